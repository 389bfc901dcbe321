/** What became of the records of a host in a run, as a person is shown it. */
import { expect, it } from 'vitest';
import { readHostOutcomes } from '../../../../orchestrator/core/db/host-outcomes.ts';
import { at, bound, createInstance, createRun, keepingGrants, load, onBothEngines, stored } from './harness.ts';

let made = 0;

onBothEngines('Records of a host', (bench) => {
  it('are counted, those of names that only look alike are not', async () => {
    const host = `w${++made}_x.example`;
    const urls = [
      `https://www.${host}/1`,
      `http://${host}:8080/2`,
      `https://${host}.foreign.example/1`,
      `https://other.example/?from=${host}`,
      `https://${host.replace('_', '-')}/1`,
      'about:blank',
    ];
    const settings = { ...keepingGrants(`outcomes_${made}`), site: { productUrl: [], intervalMs: 15_000 } } as never;
    const chunks = [{ index: 1, first: 1, last: urls.length, hosts: { sliceOf: null, leftMs: 5_000 } }];
    const byId = new Map(urls.map((url, i) => [`p${i + 1}`, url]));
    const { id } = await createRun(bench(), urls.length, { settings, urls: byId, chunks });
    await createInstance(bench(), id, 0);
    expect(await bound(bench(), id).work.grant(at(0), ['1-1'], 9)).toEqual(['1-1']);
    await load(bench(), id, [stored(1, urls[0])]);
    const counts = await readHostOutcomes(bench().db, id, host);
    expect(counts).toMatchObject({ records: 2, stored: 1, gone: 0, failed: {}, open: 1 });
    expect(counts.lastSettledAtMs).toBeGreaterThan(0);
    await bound(bench(), id).work.failRest('deadline');
    expect(await readHostOutcomes(bench().db, id, host)).toMatchObject({ open: 0, failed: { deadline: 1 } });
    const nothing = { records: 0, open: 0, stored: 0, gone: 0, failed: {}, lastSettledAtMs: null };
    expect(await readHostOutcomes(bench().db, id, 'foreign.example2')).toEqual(nothing);
  });
});
