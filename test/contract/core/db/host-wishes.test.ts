/** What operators ask of hosts in mid-run, as the main servers of the runs that have these hosts find it. */
import { expect, it } from 'vitest';
import { at, type Bench, bound, createInstance, createRun, keepingGrants, onBothEngines } from './harness.ts';

let made = 0;

/** A run that was granted these URLs; numbers are from 1. */
async function runOf(bench: Bench, urls: readonly string[]): Promise<string> {
  const own = { ...keepingGrants(`wishes_${++made}`), site: { productUrl: [], intervalMs: 15_000 } } as never;
  const chunks = [{ index: 1, first: 1, last: urls.length, hosts: { sliceOf: null, leftMs: 5_000 } }];
  const byId = new Map(urls.map((url, i) => [`p${i + 1}`, url]));
  const { id } = await createRun(bench, urls.length, { settings: own, urls: byId, chunks });
  await createInstance(bench, id, 0);
  expect(await bound(bench, id).work.grant(at(0), ['1-1'], 9)).toEqual(['1-1']);
  return id;
}

onBothEngines('Wishes about hosts', (bench) => {
  const wishes = (id: string, sinceMs: number) => bound(bench(), id).work.hostWishes(sinceMs);

  it('are found by the run that has the host, from the time on when they were asked', async () => {
    const [host, other] = [`w${++made}.example`, `w${++made}.example`];
    const id = await runOf(bench(), [`https://www.${host}/1`]);
    const another = await runOf(bench(), [`https://${other}/1`]);
    const { runs } = bench().stores;
    const sinceMs = bench().db.clock.now();
    expect(await wishes(id, 0)).toEqual([]);
    await runs.setHost(host, { denied: true });
    const [wish] = await wishes(id, sinceMs);
    expect(wish).toEqual({ host, denied: true, paceMs: null, wishedAtMs: expect.any(Number) });
    expect(await wishes(id, wish!.wishedAtMs)).toEqual([wish]);
    expect(await wishes(id, wish!.wishedAtMs + 1)).toEqual([]);
    expect(await wishes(another, 0)).toEqual([]);
    expect(await runs.hostRow(host)).toMatchObject({ denied: true, wishedAtMs: wish!.wishedAtMs });
  });

  it('keep what else is asked, and are found again when they are taken back', async () => {
    const host = `w${++made}.example`;
    const id = await runOf(bench(), [`https://${host}/1`]);
    const { runs } = bench().stores;
    await runs.setHost(host, { denied: true });
    await runs.setHost(host, { paceMs: 60_000 });
    expect(await wishes(id, 0)).toMatchObject([{ denied: true, paceMs: 60_000 }]);
    await runs.setHost(host, { denied: null });
    await runs.setHost(host, { paceMs: null });
    expect(await wishes(id, 0)).toMatchObject([{ host, denied: null, paceMs: null }]);
  });

  it('of a host that no run had are for the grant of it', async () => {
    const host = `w${++made}.example`;
    await bench().stores.runs.setHost(host, { paceMs: 60_000 });
    const id = await runOf(bench(), [`https://${host}/1`]);
    expect(await bound(bench(), id).work.hostNotes(['1-1'])).toMatchObject([{ host, paceMs: 60_000 }]);
  });
});
