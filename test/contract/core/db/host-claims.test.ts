/** The hosts of many runs in one database: no two of them ask one host at a time. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { ChunkRange } from '../../../../shared/domain/sharing.ts';
import { type ChunkRow, chunkId } from '../../../../orchestrator/core/db/chunk-rows.ts';
import { type Database, openDatabase } from '../../../../orchestrator/core/db/connect.ts';
import { createStores } from '../../../../orchestrator/core/db/create-stores.ts';
import { piecesOf } from '../../../../orchestrator/core/db/split-chunks.ts';
import type { RunSettings } from '../../../../orchestrator/core/model/run-settings.ts';
import type { HostAsker, HostInUse, OpenChunk, WorkStore } from '../../../../orchestrator/core/model/stores.ts';
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
  readFacts,
  settings,
  stored,
} from './harness.ts';
import { features } from '../../../support/features.ts';
import '../../../support/property-seed.ts';

const none: ReadonlySet<string> = new Set();
const INTERVAL_MS = 15_000;
/** With its margin. */
const GAP_MS = 15_150;
const MINUTE = 60_000;
/** Of runs of a minute. */
const LEASE_MS = 20_000;
const GRACE_MS = 30_000;
/** When a run and its lease are over, from its start. */
const END_MS = MINUTE + GRACE_MS + LEASE_MS;

let made = 0;
/** A domain that no other test has. */
const newHost = (): string => `shop-${++made}.example`;

interface Stage {
  id: string;
  after: (ms: number) => WorkStore;
  grant: (ids: string | readonly string[], ms?: number, slot?: number) => Promise<string[]>;
  settle: (...numbers: number[]) => Promise<unknown>;
}

/** A run of many hosts with this many products at each, in one chunk of whole hosts unless told otherwise. */
async function openRun(
  bench: Bench,
  hosts: readonly (readonly [host: string, products: number])[],
  chunks?: readonly ChunkRange[],
): Promise<Stage> {
  const all = hosts.flatMap(([host, products]) =>
    Array.from({ length: products }, (_, i) => `https://www.${host}/${i + 1}`),
  );
  const urls = new Map(all.map((url, i) => [`p${i + 1}`, url]));
  const base = keepingGrants(`claims_${++made}`);
  const site = { productUrl: [], intervalMs: INTERVAL_MS } as unknown as RunSettings['site'];
  const own = { ...base, site, run: { ...base.run, graceMs: GRACE_MS } };
  const whole = [{ index: 1, first: 1, last: all.length, hosts: { sliceOf: null, leftMs: 5_000 } }];
  const { id } = await createRun(bench, all.length, { settings: own, urls, chunks: chunks ?? whole });
  for (const slot of [0, 1]) await createInstance(bench, id, slot);
  const after = (ms: number): WorkStore => bound(bench, id, { nowMs: NOW + ms }).work;
  let seq = 0;
  return {
    id,
    after,
    grant: (ids, ms = 0, slot = 0) => after(ms).grant(at(slot), [ids].flat(), 99),
    settle: (...numbers) => {
      const results = numbers.map((n) => stored(n, all[n - 1]));
      return load(bench, id, results, { slot: 0, seq: seq++ });
    },
  };
}

const idsOf = (chunks: readonly OpenChunk[]): string[] => chunks.map(({ id }) => id);
const numbersOf = (chunks: readonly OpenChunk[]): number[][] =>
  chunks.map(({ products }) => products.map(({ n }) => n));

const inUse = ({ stores }: Bench, hosts: readonly string[], asker: Partial<HostAsker> = {}): Promise<HostInUse[]> =>
  stores.runs.hostsInUse!(hosts, { runId: null, nowMs: NOW, intervalMs: INTERVAL_MS, ...asker });

async function lockHost(bench: Bench, host: string): Promise<number> {
  const request = { owner: 'another', names: [`host:${host}`], nowMs: Date.now(), leaseMs: 3_600_000 };
  const lock = await bench.stores.runs.acquireLock(request);
  if (!('fence' in lock)) throw new Error('it is taken');
  return lock.fence;
}

async function ledger({ knex }: Database, id: string): Promise<ChunkRow[]> {
  return (await knex('crawlfleet_chunks').where({ run_id: id }).orderBy('first_n')) as ChunkRow[];
}

/** Each product is in one chunk. */
async function expectWhole({ db }: Bench, id: string, products: number): Promise<void> {
  let next = 1;
  for (const { first_n, last_n } of await ledger(db, id)) {
    expect(first_n).toBe(next);
    next = last_n + 1;
  }
  expect(next).toBe(products + 1);
}

onBothEngines('Hosts of several runs', (bench) => {
  it('grants a chunk without the hosts that another run has, and those once it is done with them', async () => {
    const [a, b, c] = [newHost(), newHost(), newHost()];
    const first = await openRun(bench(), [[b, 2]]);
    const second = await openRun(bench(), [
      [a, 1],
      [b, 2],
      [c, 1],
    ]);
    expect(await first.grant('1-1')).toEqual(['1-1']);
    expect(await second.grant('1-1')).toEqual([]);
    await expectWhole(bench(), second.id, 4);
    const free = await second.after(0).waiting(10, none);
    expect(idsOf(free)).toEqual(['1-2', '3-1']);
    expect(numbersOf(free)).toEqual([[1], [4]]);
    expect(await second.grant(idsOf(free))).toEqual(['1-2', '3-1']);
    expect(idsOf(await second.after(MINUTE).waiting(10, none))).toEqual(['2-1']);
    expect(await second.grant('2-1', MINUTE)).toEqual([]);
    expect(await second.after(MINUTE).waiting(10, none)).toEqual([]);
    await first.settle(1, 2);
    expect(numbersOf(await second.after(2 * MINUTE).waiting(10, none))).toEqual([[2, 3]]);
    expect(await second.grant('2-1', 2 * MINUTE)).toEqual(['2-1']);
    expect(await bench().stores.runs.hostRow(b)).toMatchObject({
      claim: { runId: second.id, slot: 0, epoch: 1, first: 2, last: 3 },
    });
  });

  it('keeps a gap after the last product of another run, the longer one of a Crawl-delay', async () => {
    const [fast, slow] = [newHost(), newHost()];
    const first = await openRun(bench(), [
      [fast, 1],
      [slow, 1],
    ]);
    const second = await openRun(bench(), [
      [fast, 1],
      [slow, 1],
    ]);
    await first.grant('1-1');
    await first.after(0).noteHosts(at(0), [{ host: slow, delayMs: 30_000 }]);
    await first.settle(1, 2);
    expect(await second.grant('1-1', 1_000)).toEqual([]);
    const due = (await ledger(bench().db, second.id)).map(({ due_at }) => Number(due_at));
    expect(due).toEqual([NOW + GAP_MS, NOW + 30_300]);
    expect(await second.grant(['1-2', '2-1'], GAP_MS)).toEqual(['1-2']);
    expect(await second.grant('2-1', 30_300)).toEqual(['2-1']);
  });

  it('counts late results of a chunk that was granted, returned and split', async () => {
    const [a, b] = [newHost(), newHost()];
    const first = await openRun(bench(), [[b, 1]]);
    const second = await openRun(bench(), [
      [a, 2],
      [b, 2],
    ]);
    await second.grant('1-1');
    await second.after(0).returnChunks(at(0), NOW + 1_000);
    await first.grant('1-1', 1_000 + GAP_MS);
    expect(await second.grant('1-2', 1_000 + GAP_MS, 1)).toEqual([]);
    expect((await ledger(bench().db, second.id)).map(chunkId)).toEqual(['1-3', '2-2']);
    expect(await second.settle(1, 3, 4)).toEqual({ stored: 3, gone: 0, failed: 0 });
    // Nothing waits any more for what is settled.
    expect((await ledger(bench().db, second.id)).map(({ state }) => state)).toEqual(['waiting', 'closed']);
    const facts = await readFacts(bench(), second.id);
    expect(facts).toMatchObject({ ungranted: { count: 0 }, partsOff: { count: 0 }, outcomes: { stored: 3, open: 1 } });
  });

  it('counts results of a piece that comes before the chunk that it was cut from', async () => {
    const [a, b] = [newHost(), newHost()];
    const first = await openRun(bench(), [[a, 1]]);
    const second = await openRun(bench(), [
      [a, 1],
      [b, 1],
    ]);
    await first.grant('1-1');
    await second.grant('1-1');
    await second.grant('1-2');
    await first.settle(1);
    expect(await second.grant('2-1', MINUTE)).toEqual(['2-1']);
    expect(await second.settle(1, 2)).toEqual({ stored: 2, gone: 0, failed: 0 });
  });

  it('leaves a slice whole, and keeps it for its owner', async () => {
    const host = newHost();
    const slices = [1, 2].map((index) => {
      return { index, first: index, last: index, hosts: { sliceOf: 1, leftMs: 40_000 - 20_000 * (index - 1) } };
    });
    const second = await openRun(bench(), [[host, 2]], slices);
    const first = await openRun(bench(), [[host, 1]]);
    await second.grant('1-1');
    await second.settle(1);
    // Between two slices the host is free.
    await first.grant('1-1', GAP_MS);
    expect(await second.grant('2-1', GAP_MS)).toEqual([]);
    const [, slice] = await ledger(bench().db, second.id);
    expect(slice).toMatchObject({ generation: 1, slot: 0, epoch: 1 });
    expect(Number(slice?.due_at)).toBe(NOW + GAP_MS + MINUTE);
    await first.settle(1);
    expect(idsOf(await second.after(GAP_MS + MINUTE).nextSlices(at(0), 9))).toEqual(['2-1']);
    expect(await second.grant('2-1', GAP_MS + MINUTE)).toEqual(['2-1']);
  });

  it('is asked for slices of a host until all of them are settled', async () => {
    const host = newHost();
    const slices = [1, 2].map((index) => {
      return { index, first: index, last: index, hosts: { sliceOf: 1, leftMs: 40_000 - 20_000 * (index - 1) } };
    });
    const run = await openRun(bench(), [[host, 2]], slices);
    await run.grant('1-1');
    await run.grant('2-1', 10_000);
    await run.settle(2);
    expect(await inUse(bench(), [host], { nowMs: NOW + MINUTE })).toMatchObject([{ host, runId: run.id }]);
    await run.settle(1);
    expect(await inUse(bench(), [host], { nowMs: NOW + MINUTE })).toEqual([]);
  });

  it('frees the hosts of a run that has ended, after a gap', async () => {
    const host = newHost();
    const first = await openRun(bench(), [[host, 2]]);
    const second = await openRun(bench(), [[host, 2]]);
    await first.grant('1-1');
    await bench().db.knex('crawlfleet_runs').where({ id: first.id }).update({ phase: 'completed', finished_at: NOW });
    expect(await second.grant('1-1', GAP_MS - 1)).toEqual([]);
    expect(await second.grant('1-1', GAP_MS)).toEqual(['1-1']);
  });

  it('frees the hosts of a dead run when its instances have switched themselves off', async () => {
    const host = newHost();
    const first = await openRun(bench(), [[host, 1]]);
    const second = await openRun(bench(), [[host, 1]]);
    await first.grant('1-1');
    expect(await second.grant('1-1', END_MS - 1_000)).toEqual([]);
    const fence = await lockHost(bench(), newHost());
    await bench().stores.runs.renewLock(fence, Date.now(), 3_600_000, first.id);
    // A living main server of it is still there.
    expect(await second.grant('1-1', END_MS + MINUTE)).toEqual([]);
    await bench().stores.runs.releaseLock(fence);
    expect(await second.grant('1-1', END_MS + 2 * MINUTE)).toEqual(['1-1']);
  });

  it('lets the hosts of a lost instance rest in all runs', async () => {
    const host = newHost();
    const first = await openRun(bench(), [[host, 1]]);
    const second = await openRun(bench(), [[host, 1]]);
    await first.grant('1-1');
    await first.after(0).returnChunks(at(0), NOW + 50_000);
    expect(await second.grant('1-1', 49_999)).toEqual([]);
    expect(await inUse(bench(), [host])).toMatchObject([
      { host, runId: first.id, untilMs: NOW + 50_000, isResting: true },
    ]);
    expect(await second.grant('1-1', 50_000)).toEqual(['1-1']);
    // It has the host no more.
    await first.after(50_000).returnChunks(at(0), NOW + 90_000);
    const claim = { runId: second.id, slot: 0, epoch: 1 };
    expect(await bench().stores.runs.hostRow(host)).toMatchObject({ claim, notBeforeMs: null });
  });

  it('ends the rest of a lost instance sooner in all runs when its machine is gone, and no Retry-After', async () => {
    const [plain, slow, busy] = [newHost(), newHost(), newHost()];
    const hosts = [plain, slow, busy].map((host) => [host, 1] as const);
    const first = await openRun(bench(), hosts);
    const second = await openRun(bench(), hosts);
    await first.grant('1-1');
    const notes = [
      { host: slow, delayMs: 60_000 },
      { host: busy, notBeforeMs: NOW + 200_000 },
    ];
    await first.after(0).noteHosts(at(0), notes);
    await first.after(0).returnChunks(at(0), NOW + 400_000);
    await first.after(0).freeHosts(at(0), NOW + 20_000);
    expect(await inUse(bench(), [plain, slow, busy])).toMatchObject([
      { host: plain, untilMs: NOW + 20_000, isResting: true },
      { host: slow, untilMs: NOW + 20_000 + 60_600, isResting: true },
      { host: busy, untilMs: NOW + 200_000, isResting: true },
    ]);
    expect(await second.grant('1-1', 20_000)).toEqual([]);
    expect(await second.grant('1-2', 20_000)).toEqual(['1-2']);
    expect(await first.after(20_000).waiting(9, none)).toHaveLength(1);
  });

  it('fails what waits for a rest that a host has asked for beyond the deadline, and waits for a shorter one', async () => {
    const [late, soon, free] = [newHost(), newHost(), newHost()];
    const run = await openRun(bench(), [
      [late, 2],
      [soon, 1],
      [free, 1],
    ]);
    await run.grant('1-1');
    const untilMs = NOW + 10 * MINUTE;
    await run.after(0).noteHosts(at(0), [
      { host: late, notBeforeMs: untilMs, refusals: 2 },
      { host: soon, notBeforeMs: NOW + 40_000, refusals: 2 },
    ]);
    await run.after(0).returnChunks(at(0), NOW + 10_000);
    expect(await run.grant('1-2', 10_000, 1)).toEqual([]);
    await expectWhole(bench(), run.id, 4);
    const detail = `${late} wants no request before ${new Date(untilMs).toISOString()}, which is after the end of the run`;
    expect(await run.after(0).failedProducts(0, 9)).toMatchObject([
      { n: 1, reason: 'banned', detail },
      { n: 2, reason: 'banned', detail },
    ]);
    expect(numbersOf(await run.after(39_999).waiting(9, none))).toEqual([[4]]);
    expect(numbersOf(await run.after(40_000).waiting(9, none))).toEqual([[4], [3]]);
  });

  it('fails nothing for the rest after an owner that was lost: that may end sooner', async () => {
    const run = await openRun(bench(), [[newHost(), 1]]);
    await run.grant('1-1');
    await run.after(0).returnChunks(at(0), NOW + 10 * MINUTE);
    expect(await run.grant('1-2', 10_000, 1)).toEqual([]);
    await run.after(0).freeHosts(at(0), NOW + 20_000);
    expect(await run.grant('1-2', 20_000, 1)).toEqual(['1-2']);
  });

  it('moves what a host has asked for, and the rest after its owner, with the clock of its run', async () => {
    const [resting, plain, foreign] = [newHost(), newHost(), newHost()];
    const first = await openRun(bench(), [
      [resting, 1],
      [plain, 1],
    ]);
    const second = await openRun(bench(), [[foreign, 1]]);
    await first.grant('1-1');
    await second.grant('1-1');
    await first.after(0).noteHosts(at(0), [{ host: resting, notBeforeMs: NOW + 90_000 }]);
    await second.after(0).noteHosts(at(0), [{ host: foreign, notBeforeMs: NOW + 90_000 }]);
    await first.after(0).returnChunks(at(0), NOW + 50_000);
    await first.after(0).moveRests(3_600_000, NOW + 20_000);
    const untilOf = async (host: string): Promise<number | null | undefined> =>
      (await bench().stores.runs.hostRow(host))?.notBeforeMs;
    expect(await untilOf(resting)).toBe(NOW + 3_690_000);
    expect(await untilOf(plain)).toBe(NOW + 3_650_000);
    expect(await untilOf(foreign)).toBe(NOW + 90_000);
    // And back again.
    await first.after(0).moveRests(-3_600_000, NOW + 3_620_000);
    expect([await untilOf(resting), await untilOf(plain)]).toEqual([NOW + 90_000, NOW + 50_000]);
  });

  it('grants no host of a site that another main server has locked, or that its open run may ask', async () => {
    const host = newHost();
    const run = await openRun(bench(), [[host, 1]]);
    const fence = await lockHost(bench(), `m.${host}`);
    expect(await run.grant('1-1')).toEqual([]);
    await bench().stores.runs.releaseLock(fence);
    const own = settings(`site_${++made}`);
    const site = { productUrl: `https://${host}/{id}`, intervalMs: INTERVAL_MS } as RunSettings['site'];
    const one = await createRun(bench(), 1, { settings: { ...own, site, run: { ...own.run, graceMs: GRACE_MS } } });
    expect(await run.grant('1-1', MINUTE)).toEqual([]);
    await bench().db.knex('crawlfleet_runs').where({ id: one.id }).update({ phase: 'completed', finished_at: NOW });
    expect(await run.grant('1-1', 2 * MINUTE)).toEqual(['1-1']);
  });

  it('says to a run of one site which run has its host, and nothing of its own', async () => {
    const host = newHost();
    const run = await openRun(bench(), [[host, 1]]);
    expect(await inUse(bench(), [host])).toEqual([]);
    await run.grant('1-1');
    const [use] = await inUse(bench(), [host, newHost()]);
    expect(use).toMatchObject({
      host,
      runId: run.id,
      isResting: false,
      restMs: expect.closeTo(LEASE_MS + GAP_MS, -3) as number,
    });
    expect(await inUse(bench(), [host], { runId: run.id })).toEqual([]);
    await run.settle(1);
    expect(await inUse(bench(), [host])).toMatchObject([{ untilMs: NOW + GAP_MS, isResting: true }]);
    expect(await inUse(bench(), [host], { intervalMs: 60_000, nowMs: NOW + GAP_MS })).toHaveLength(1);
    expect(await inUse(bench(), [host], { nowMs: NOW + GAP_MS })).toEqual([]);
  });

  it('forgets what a host has refused with the run, and keeps it for the next owner in that run', async () => {
    const host = newHost();
    const first = await openRun(bench(), [[host, 2]]);
    await first.grant('1-1');
    await first.after(0).noteHosts(at(0), [{ host, refusals: 2 }]);
    await first.after(0).returnChunks(at(0));
    expect(await first.grant('1-2', GAP_MS, 1)).toEqual(['1-2']);
    expect(await first.after(GAP_MS).hostNotes(['1-2'])).toMatchObject([{ host, refusals: 2 }]);
    await first.settle(1, 2);
    const second = await openRun(bench(), [[host, 1]]);
    expect(await second.grant('1-1', 10 * MINUTE)).toEqual(['1-1']);
    expect(await second.after(0).hostNotes(['1-1'])).toEqual([]);
  });

  it('fails products of denied hosts without a request, and grants the rest', async () => {
    const [a, b] = [newHost(), newHost()];
    await bench().stores.runs.setHost(a, { denied: true });
    const run = await openRun(bench(), [
      [a, 2],
      [b, 1],
    ]);
    expect(await run.grant('1-1')).toEqual([]);
    await expectWhole(bench(), run.id, 3);
    expect(await run.after(0).failedProducts(0, 9)).toMatchObject([
      { n: 1, reason: 'redirect', detail: `${a} is denied (orchestrator hosts deny)` },
      { n: 2, reason: 'redirect' },
    ]);
    expect(await run.grant('1-2')).toEqual(['1-2']);
    const facts = await readFacts(bench(), run.id);
    expect(facts).toMatchObject({
      withoutPart: { count: 0 },
      outcomes: { failed: 2, open: 1 },
      reasons: { redirect: 2 },
    });
    const alone = await openRun(bench(), [[a, 1]]);
    expect(await alone.grant('1-1')).toEqual([]);
    expect(await alone.after(0).counts()).toMatchObject({ waiting: 0, granted: 0 });
    await bench().stores.runs.setHost(a, { denied: null });
    const later = await openRun(bench(), [[a, 1]]);
    expect(await later.grant('1-1')).toEqual(['1-1']);
  });

  it('keeps what an operator asks of a host apart from what is known of it', async () => {
    const host = newHost();
    const { runs } = bench().stores;
    expect(await runs.hostRow(host)).toBeNull();
    await runs.setHost(host, { paceMs: 60_000 });
    await runs.setHost(host, { denied: false });
    const nothing = {
      host,
      delayMs: null,
      notBeforeMs: null,
      refusals: null,
      claim: null,
      wishedAtMs: expect.any(Number),
    };
    expect(await runs.hostRow(host)).toEqual({ ...nothing, paceMs: 60_000, denied: false });
    await runs.setHost(host, { paceMs: null });
    expect(await runs.hostRow(host)).toEqual({ ...nothing, paceMs: null, denied: false });
  });

  it('sends no statement about hosts for a run of one site', async () => {
    const { id, work } = await createRun(bench(), 10);
    await createInstance(bench(), id, 0);
    const { knex } = bench().db;
    const statements: string[] = [];
    const note = ({ sql }: { sql: string }): void => void statements.push(sql);
    knex.on('query', note);
    try {
      expect(await work.grant(at(0), ['1-1'], 9)).toEqual(['1-1']);
      await work.returnChunks(at(0), NOW + 1_000);
    } finally {
      knex.off('query', note);
    }
    expect(statements.filter((sql) => /_hosts|_leases|_runs/.test(sql))).toEqual([]);
  });

  it('has each product in one chunk after any splits', { timeout: 120_000 }, () =>
    fc.assert(
      fc.asyncProperty(
        fc.array(
          fc.record({ products: fc.integer({ min: 1, max: 3 }), isTaken: fc.boolean(), isDenied: fc.boolean() }),
          {
            minLength: 1,
            maxLength: 8,
          },
        ),
        async (given) => {
          const hosts = given.map((each) => ({ ...each, host: newHost() }));
          const list = hosts.map(({ host, products }) => [host, products] as const);
          const taken = list.filter((_, i) => hosts[i]?.isTaken);
          const denied = hosts.filter(({ isDenied }) => isDenied);
          const other = taken.length > 0 ? await openRun(bench(), taken) : null;
          await other?.grant('1-1');
          for (const { host } of denied) await bench().stores.runs.setHost(host, { denied: true });
          const run = await openRun(bench(), list);
          const products = hosts.reduce((sum, each) => sum + each.products, 0);
          await run.grant('1-1');
          await expectWhole(bench(), run.id, products);
          await run.grant(idsOf(await run.after(0).waiting(99, none)));
          const open = hosts.filter(({ isDenied, isTaken }) => !isDenied && !isTaken);
          const granted = (await run.after(0).counts()).bySlot[0]?.products ?? 0;
          expect(granted).toBe(open.reduce((sum, each) => sum + each.products, 0));
          await run.after(0).grant(at(1), idsOf(await run.after(MINUTE).waiting(99, none)), 99);
          await expectWhole(bench(), run.id, products);
        },
      ),
      { numRuns: 12 },
    ),
  );
});

onEveryEngine('Notes about hosts', (bench) => {
  it('raises what the last owner of a host has learnt, and hands it out with its chunks', async () => {
    const [a, b] = [newHost(), newHost()];
    const run = await openRun(bench(), [
      [a, 1],
      [b, 1],
    ]);
    await run.after(0).noteHosts(at(0), [{ host: a, delayMs: 9_000 }]);
    expect(await run.after(0).hostNotes(['1-1'])).toEqual([]);
    await run.grant('1-1');
    const nothing = { paceMs: null, denied: null };
    await run.after(0).noteHosts(at(1), [{ host: a, delayMs: 9_000 }]);
    await run.after(0).noteHosts(at(0), [
      { host: a, delayMs: 20_000 },
      { host: newHost(), delayMs: 1 },
    ]);
    await run.after(0).noteHosts(at(0), [{ host: a, delayMs: 10_000, notBeforeMs: NOW + 5_000, refusals: 2 }]);
    await run.after(0).noteHosts(at(0), [{ host: a, refusals: 1 }]);
    const note = { host: a, delayMs: 20_000, notBeforeMs: NOW + 5_000, refusals: 2, ...nothing };
    expect(await run.after(0).hostNotes(['1-1', '1-2', '2-1', 'x'])).toEqual([note]);
    await run.after(0).returnChunks(at(0));
    expect(await run.grant('1-2', 5_000, 1)).toEqual(['1-2']);
    await run.after(0).noteHosts(at(0), [{ host: b, delayMs: 1_000 }]);
    expect(await run.after(0).hostNotes(['1-2'])).toEqual([note]);
  });

  it('forgets a single refusal when a page was right since, and nothing more', async () => {
    const host = newHost();
    const run = await openRun(bench(), [[host, 1]]);
    await run.grant('1-1');
    const known = async (refusals?: number): Promise<number | null | undefined> => {
      const news = { host, delayMs: 9_000, ...(refusals === undefined ? {} : { refusals }) };
      await run.after(0).noteHosts(at(0), [news]);
      return (await run.after(0).hostNotes(['1-1']))[0]?.refusals;
    };
    expect([await known(1), await known(), await known(1), await known(2), await known()]).toEqual([1, null, 1, 2, 2]);
  });

  it('lets a host with a Crawl-delay rest for that when its owner is gone, and others for a gap', async () => {
    const [slow, resting] = [newHost(), newHost()];
    const run = await openRun(bench(), [
      [slow, 1],
      [resting, 1],
    ]);
    await run.grant('1-1');
    await run.after(0).noteHosts(at(0), [
      { host: slow, delayMs: 20_000 },
      { host: resting, delayMs: 20_000, notBeforeMs: NOW + 90_000 },
    ]);
    await run.after(0).returnChunks(at(0), NOW + 1_000);
    expect(await run.after(0).hostNotes(['1-2'])).toMatchObject([
      { host: slow, notBeforeMs: NOW + 21_200 },
      { host: resting, notBeforeMs: NOW + 90_000 },
    ]);
  });
});

onMysql('Hosts and locks of two connections', (bench) => {
  it(
    'at least one sees the other when a host is granted and locked at the same time',
    { timeout: 60_000 },
    async () => {
      const other = await openOther(bench());
      try {
        for (let round = 0; round < 25; round++) {
          const host = newHost();
          const run = await openRun(bench(), [[host, 1]]);
          const lock = async (): Promise<HostInUse[]> => {
            await lockHost(other, host);
            return inUse(other, [host]);
          };
          const [granted, seen] = await Promise.all([run.grant('1-1'), lock()]);
          expect(granted.length === 0 || seen.length === 1).toBe(true);
        }
      } finally {
        await other.db.close();
      }
    },
  );

  it('a run of one site waits for a grant that has its host and is not committed', async () => {
    const other = await openOther(bench());
    try {
      const host = newHost();
      const run = await openRun(bench(), [[host, 1]]);
      await run.grant('1-1');
      const seen: string[] = [];
      const looking = await bench().db.knex.transaction(async (trx) => {
        await trx('crawlfleet_hosts')
          .where({ host })
          .update({ not_before: NOW + 1 });
        const looks = inUse(other, [host]).then(() => seen.push('looked'));
        // Answered by the server meanwhile: the look has begun, and hangs.
        await other.db.knex.raw('select sleep(0.2)');
        seen.push('commits');
        return { looks };
      });
      await looking.looks;
      expect(seen).toEqual(['commits', 'looked']);
    } finally {
      await other.db.close();
    }
  });

  it('two runs that ask for the same hosts at once are never both granted them', { timeout: 60_000 }, async () => {
    for (let round = 0; round < 15; round++) {
      const hosts = [
        [newHost(), 1],
        [newHost(), 1],
        [newHost(), 1],
      ] as const;
      const [first, second] = [await openRun(bench(), hosts), await openRun(bench(), hosts.toReversed())];
      const granted = await Promise.all([first.grant('1-1'), second.grant('1-1')]);
      expect(granted.flat()).toEqual(['1-1']);
    }
  });
});

/** The same database by connections of its own. */
async function openOther(bench: Bench): Promise<Bench> {
  const db = await openDatabase(bench.url);
  return { ...bench, db, stores: createStores(db, features) };
}

it('cuts a chunk into ranges that have each number once', () => {
  const free = (first: number) => ({ first, open: 1, dueAtMs: null });
  const waits = (first: number) => ({ first, open: 1, dueAtMs: 5 });
  const chunk = { first_n: 1, last_n: 20 };
  expect(piecesOf(chunk, [])).toEqual([]);
  // The products before and between have outcomes.
  expect(piecesOf(chunk, [free(3), free(5), waits(8), waits(9), free(15)])).toEqual([
    { first: 1, last: 7, open: 2, dueAtMs: null },
    { first: 8, last: 8, open: 1, dueAtMs: 5 },
    { first: 9, last: 14, open: 1, dueAtMs: 5 },
    { first: 15, last: 20, open: 1, dueAtMs: null },
  ]);
});
