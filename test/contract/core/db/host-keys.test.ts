/** Runs of one database that have hosts by domain, and by name: no two of them ask one domain at a time. */
import { expect, it } from 'vitest';
import type { HostKey } from '../../../../shared/domain/host-key.ts';
import { openDatabase } from '../../../../orchestrator/core/db/connect.ts';
import { createStores } from '../../../../orchestrator/core/db/create-stores.ts';
import { pruneHosts } from '../../../../orchestrator/core/db/host-rows.ts';
import { readHostOutcomes } from '../../../../orchestrator/core/db/host-outcomes.ts';
import type { HostInUse, WorkStore } from '../../../../orchestrator/core/model/stores.ts';
import { withKnownDelays } from '../../../../orchestrator/core/prepare/asked-paces.ts';
import { features } from '../../../support/features.ts';
import {
  at,
  type Bench,
  bound,
  createInstance,
  createRun,
  keepingGrants,
  load,
  NOW,
  onBothEngines,
  onEveryEngine,
  onMysql,
  stored,
} from './harness.ts';

const INTERVAL_MS = 15_000;
/** With its margin. */
const GAP_MS = 15_150;
const MINUTE = 60_000;

let made = 0;
/** A domain that no other test has. */
const newDomain = (): string => `platform-${++made}.example`;

interface Stage {
  id: string;
  after: (ms: number) => WorkStore;
  grant: (ids: string | readonly string[], ms?: number, slot?: number) => Promise<string[]>;
  settle: (n: number, ms?: number) => Promise<unknown>;
}

/** A run with a record at each of these names, in a chunk of its own. */
async function openRun(bench: Bench, key: HostKey, names: readonly string[]): Promise<Stage> {
  const all = names.map((name, i) => `https://${name}/${i + 1}`);
  const urls = new Map(all.map((url, i) => [`p${i + 1}`, url]));
  const hostKey = key === 'host' ? { hostKey: key } : {};
  const site = { productUrl: [], intervalMs: INTERVAL_MS, ...hostKey };
  const base = keepingGrants(`keys_${++made}`);
  const settings = { ...base, site, run: { ...base.run, graceMs: 30_000 } } as never;
  const chunks = names.map((_, i) => {
    return { index: i + 1, first: i + 1, last: i + 1, hosts: { sliceOf: null, leftMs: 5_000 } };
  });
  const { id } = await createRun(bench, all.length, { settings, urls, chunks });
  for (const slot of [0, 1]) await createInstance(bench, id, slot);
  const after = (ms: number): WorkStore => bound(bench, id, { nowMs: NOW + ms }).work;
  let seq = 0;
  return {
    id,
    after,
    grant: (ids, ms = 0, slot = 0) => after(ms).grant(at(slot), [ids].flat(), 99),
    settle: (n, ms = 0) => load(bench, id, [stored(n, all[n - 1])], { slot: 0, seq: seq++, nowMs: NOW + ms } as never),
  };
}

const inUse = ({ stores }: Bench, host: string, nowMs = NOW): Promise<HostInUse[]> =>
  stores.runs.hostsInUse!([host], { runId: null, nowMs, intervalMs: INTERVAL_MS });

onEveryEngine('Names of a domain in one run', (bench) => {
  it('are hosts by themselves: two instances have them, and what one asks for is its own', async () => {
    const domain = newDomain();
    const run = await openRun(bench(), 'host', [`a.${domain}`, `b.${domain}`]);
    expect([await run.grant('1-1', 0, 0), await run.grant('2-1', 0, 1)]).toEqual([['1-1'], ['2-1']]);
    await run.after(0).noteHosts(at(0), [{ host: `a.${domain}`, delayMs: 20_000 }]);
    expect(await run.after(0).hostNotes(['1-1', '2-1'])).toMatchObject([{ host: `a.${domain}`, delayMs: 20_000 }]);
    expect(await run.after(0).hosts({ startedAtMs: NOW, nowMs: NOW, intervalMs: INTERVAL_MS } as never)).toMatchObject({
      open: 2,
    });
  });
});

onBothEngines('Hosts of runs with different keys', (bench) => {
  it.each([
    ['domain', 'host'],
    ['host', 'domain'],
  ] as const)('are at one run at a time, and rest for a gap: by %s, then by %s', async (key, other) => {
    const domain = newDomain();
    const names = [`a.${domain}`, `www.b.${domain}`];
    const first = await openRun(bench(), key, names);
    const second = await openRun(bench(), other, names.toReversed());
    expect(await first.grant(['1-1', '2-1'])).toHaveLength(2);
    expect(await second.grant(['1-1', '2-1'])).toEqual([]);
    await first.settle(1);
    expect(await second.grant(['1-1', '2-1'], MINUTE)).toEqual([]);
    await first.settle(2, MINUTE);
    expect(await second.grant(['1-1', '2-1'], 2 * MINUTE)).toHaveLength(2);
    expect(await inUse(bench(), domain)).toMatchObject([{ runId: second.id, isResting: false }]);
  });

  it('the bare name is the domain to the one and a name to the other', async () => {
    const domain = newDomain();
    const byName = await openRun(bench(), 'host', [`www.${domain}`, `a.${domain}`]);
    const other = await openRun(bench(), 'host', [domain, `a.${domain}`]);
    const byDomain = await openRun(bench(), 'domain', [`b.${domain}`]);
    expect(await byName.grant('1-1')).toEqual(['1-1']);
    // Two runs by name share the domain, but no name.
    expect(await other.grant(['1-1', '2-1'])).toEqual(['2-1']);
    expect(await byDomain.grant('1-1')).toEqual([]);
    await byName.settle(1);
    expect(await byDomain.grant('1-1', MINUTE)).toEqual([]);
    await other.settle(2);
    expect(await byDomain.grant('1-1', 2 * MINUTE)).toEqual(['1-1']);
  });

  it('rest as long as one of the names has asked for, which other names do not wait for', async () => {
    const domain = newDomain();
    const byName = await openRun(bench(), 'host', [`a.${domain}`, `b.${domain}`]);
    const byDomain = await openRun(bench(), 'domain', [`c.${domain}`]);
    await byName.grant('1-1');
    await byName.after(0).noteHosts(at(0), [{ host: `a.${domain}`, notBeforeMs: NOW + 50_000 }]);
    await byName.settle(1);
    expect(await byDomain.grant('1-1', 49_000)).toEqual([]);
    expect(await byName.grant('2-1', 20_000)).toEqual(['2-1']);
    await byName.settle(2, 20_000);
    expect(await byDomain.grant('1-1', 3 * MINUTE)).toEqual(['1-1']);
  });

  it('and a run of one site exclude each other by domain', async () => {
    const domain = newDomain();
    const [held, later] = [
      await openRun(bench(), 'host', [`a.${domain}`]),
      await openRun(bench(), 'host', [`b.${domain}`]),
    ];
    expect(await inUse(bench(), domain)).toEqual([]);
    await held.grant('1-1');
    expect(await inUse(bench(), domain)).toMatchObject([{ runId: held.id, isResting: false }]);
    await held.settle(1);
    expect(await inUse(bench(), domain)).toMatchObject([{ untilMs: NOW + GAP_MS, isResting: true }]);
    const request = { owner: 'another', names: [`host:www.${domain}`], nowMs: Date.now(), leaseMs: 3_600_000 };
    const lock = await bench().stores.runs.acquireLock(request);
    expect(await later.grant('1-1', MINUTE)).toEqual([]);
    await bench().stores.runs.releaseLock((lock as { fence: number }).fence);
    expect(await later.grant('1-1', 5 * MINUTE)).toEqual(['1-1']);
  });

  it('obey what an operator asks of the domain, also in mid-run and in the next plan', async () => {
    const [denied, paced] = [newDomain(), newDomain()];
    const { runs } = bench().stores;
    const before = await openRun(bench(), 'host', [`a.${denied}`, `a.${paced}`, `b.${denied}`]);
    await before.grant(['1-1', '2-1']);
    const sinceMs = bench().db.clock.now();
    await runs.setHost(denied, { denied: true });
    await runs.setHost(paced, { paceMs: 60_000 });
    expect(await before.after(0).hostWishes(sinceMs)).toMatchObject([
      { host: `a.${denied}`, denied: true },
      { host: `a.${paced}`, paceMs: 60_000 },
    ]);
    expect(await before.after(0).hostNotes(['2-1'])).toMatchObject([{ host: `a.${paced}`, paceMs: 60_000 }]);
    expect(await before.grant('3-1')).toEqual([]);
    expect(await before.after(0).failedProducts(0, 9)).toMatchObject([{ n: 3, reason: 'redirect' }]);
    const loads = [`new.${paced}`, `x.${newDomain()}`].map((host) => ({ host, records: 5, delayMs: 0 }));
    expect(await withKnownDelays(bench().db, loads, 'host')).toEqual([{ ...loads[0], delayMs: 60_000 }, loads[1]]);
    await before.settle(2);
    const byDomain = await openRun(bench(), 'domain', [`c.${paced}`]);
    expect(await byDomain.grant('1-1', 60_000)).toEqual([]);
  });

  it('are still found after rows were removed that no run needs', async () => {
    const domain = newDomain();
    const byName = await openRun(bench(), 'host', [`a.${domain}`]);
    const byDomain = await openRun(bench(), 'domain', [`b.${domain}`]);
    await byName.grant('1-1');
    const signal = new AbortController().signal;
    await pruneHosts(bench().db, { beforeMs: NOW + 9 * MINUTE, nowMs: NOW + 9 * MINUTE, signal });
    expect(await bench().stores.runs.hostNames(domain)).toEqual([{ host: `a.${domain}`, runId: byName.id }]);
    expect(await byDomain.grant('1-1')).toEqual([]);
    expect(await readHostOutcomes(bench().db, byName.id, `a.${domain}`, 'host')).toMatchObject({ records: 1 });
  });
});

onMysql('Grants of a domain and of a name at once', (bench) => {
  it('are never both made', { timeout: 60_000 }, async () => {
    const db = await openDatabase(bench().url);
    const other = { ...bench(), db, stores: createStores(db, features) };
    try {
      for (let round = 0; round < 15; round++) {
        const domain = newDomain();
        const byName = await openRun(bench(), 'host', [`a.${domain}`]);
        const byDomain = await openRun(other, 'domain', [`b.${domain}`]);
        const granted = await Promise.all([byName.grant('1-1'), byDomain.grant('1-1')]);
        expect(granted.flat()).toEqual(['1-1']);
      }
    } finally {
      await db.close();
    }
  });
});
