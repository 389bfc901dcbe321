/** What earlier nights know of the hosts of a list, in the plan of the next one. */
import { expect, it } from 'vitest';
import { withKnownDelays } from '../../../orchestrator/core/prepare/asked-paces.ts';
import { bound, at, createInstance, createRun, keepingGrants, onBothEngines } from './db/harness.ts';

onBothEngines('The hosts of a list', (bench, engine) => {
  it('are planned with the Crawl-delay of earlier runs, or with what an operator asks for', async () => {
    const { db, stores } = bench();
    const settings = { ...keepingGrants(`delays_${engine}`), site: { productUrl: [], intervalMs: 15_000 } } as never;
    const chunks = [{ index: 1, first: 1, last: 1, hosts: { sliceOf: null, leftMs: 5_000 } }];
    const { id } = await createRun(bench(), 1, {
      settings,
      urls: new Map([['p1', 'https://delay.example/1']]),
      chunks,
    });
    await createInstance(bench(), id, 0);
    const { work } = bound(bench(), id);
    await work.grant(at(0), ['1-1'], 9);
    await work.noteHosts(at(0), [{ host: 'delay.example', delayMs: 30_000 }]);
    await stores.runs.setHost('pace.example', { paceMs: 60_000 });
    const load = (host: string) => ({ host, records: 5, delayMs: 0 });
    await stores.runs.setHost('denied.example', { denied: true });
    await stores.runs.setHost('again.example', { denied: true });
    await stores.runs.setHost('again.example', { denied: null });
    const hosts = ['new', 'pace', 'delay', 'denied', 'again'].map((name) => load(`${name}.example`));
    expect(await withKnownDelays(db, hosts)).toEqual([
      load('new.example'),
      { ...load('pace.example'), delayMs: 60_000 },
      { ...load('delay.example'), delayMs: 30_000 },
      { ...load('denied.example'), isDenied: true },
      load('again.example'),
    ]);
  });
});
