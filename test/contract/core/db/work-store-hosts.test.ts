import fc from 'fast-check';
import { expect, it } from 'vitest';
import { type ChunkRange, NOT_NEXT_MS } from '../../../../shared/domain/sharing.ts';
import { type EpochId, epochKey } from '../../../../shared/domain/epoch-id.ts';
import type { ChunkRow } from '../../../../orchestrator/core/db/chunk-rows.ts';
import type { OpenChunk, WorkStore } from '../../../../orchestrator/core/model/stores.ts';
import { at, type Bench, bound, createInstance, createRun, load, NOW, onEveryEngine, stored } from './harness.ts';
import '../../../support/property-seed.ts';

const none: ReadonlySet<string> = new Set();

/** Chunk 1 has whole hosts, 2 to 4 are one host, 5 and 6 another one; a slice takes 20 seconds. */
const CHUNKS: readonly ChunkRange[] = [
  { index: 1, first: 1, last: 2, hosts: { sliceOf: null, leftMs: 5_000 } },
  { index: 2, first: 3, last: 4, hosts: { sliceOf: 2, leftMs: 60_000 } },
  { index: 3, first: 5, last: 6, hosts: { sliceOf: 2, leftMs: 40_000 } },
  { index: 4, first: 7, last: 8, hosts: { sliceOf: 2, leftMs: 20_000 } },
  { index: 5, first: 9, last: 10, hosts: { sliceOf: 5, leftMs: 40_000 } },
  { index: 6, first: 11, last: 12, hosts: { sliceOf: 5, leftMs: 20_000 } },
];
const PRODUCTS = 12;
const LATER = 3_600_000;

interface Stage {
  id: string;
  /** The store when this time has passed since the run began. */
  after: (ms: number) => WorkStore;
  /** Loads the results of products. */
  settle: (numbers: readonly number[]) => Promise<void>;
}

/** A run cut by host, with instances in the slots 0 and 1. */
async function openStage(bench: Bench): Promise<Stage> {
  const { id } = await createRun(bench, PRODUCTS, { chunks: CHUNKS });
  for (const slot of [0, 1]) await createInstance(bench, id, slot);
  let seq = 0;
  return {
    id,
    after: (ms) => bound(bench, id, { nowMs: NOW + ms }).work,
    settle: async (numbers) => {
      const results = numbers.map((n) => stored(n));
      await load(bench, id, results, { slot: 0, seq: seq++ });
    },
  };
}

const idsOf = (chunks: readonly OpenChunk[]): string[] => chunks.map(({ id }) => id);

const nextOf = async (work: WorkStore, owner: EpochId): Promise<string[]> => idsOf(await work.nextSlices(owner, 9));

const offered = async (work: WorkStore): Promise<string[]> => idsOf(await work.waiting(10, none));

onEveryEngine('WorkStore with many hosts', (bench, engine) => {
  it('offers whole hosts and the first slice of each other one', async () => {
    const { after } = await openStage(bench());
    const chunks = await after(0).waiting(10, none);
    expect(idsOf(chunks)).toEqual(['1-1', '2-1', '5-1']);
    expect(await offered(after(LATER))).toEqual(['1-1', '2-1', '5-1']);
    expect(await after(LATER).grant(at(0), ['3-1', '4-1', '6-1'], 9)).toEqual([]);
  });

  it('offers the next slice to the owner of the host, once half of the slice before it is left', async () => {
    const { after } = await openStage(bench());
    expect(await after(0).grant(at(0), ['2-1'], 9)).toEqual(['2-1']);
    expect(await offered(after(9_999))).toEqual(['1-1', '5-1']);
    expect(await after(9_999).grant(at(0), ['3-1'], 9)).toEqual([]);
    expect(await nextOf(after(9_999), at(0))).toEqual([]);
    expect(await after(10_000).nextSlices(at(0), 9)).toEqual([
      { id: '3-1', products: [expect.objectContaining({ n: 5 }), expect.objectContaining({ n: 6 })] },
    ]);
    expect(await nextOf(after(10_000), at(1))).toEqual([]);
    expect(await offered(after(10_000))).toEqual(['1-1', '5-1']);
    expect(await after(10_000).grant(at(0), ['3-1'], 9)).toEqual(['3-1']);
    // The crawl of the second slice begins at 20 seconds.
    expect(await nextOf(after(29_999), at(0))).toEqual([]);
    expect(await nextOf(after(30_000), at(0))).toEqual(['4-1']);
  });

  it('offers as many next slices as have a number of products, and at least one', async () => {
    const { after } = await openStage(bench());
    await after(0).grant(at(0), ['2-1', '5-1'], 9);
    const idsWithin = async (limit: number): Promise<string[]> => idsOf(await after(LATER).nextSlices(at(0), limit));
    expect(await idsWithin(1)).toEqual(['3-1']);
    expect(await idsWithin(3)).toEqual(['3-1']);
    expect(await idsWithin(4)).toEqual(['3-1', '6-1']);
  });

  it('refuses the next slice to every other instance, however late it is', async () => {
    const { id, after } = await openStage(bench());
    await createInstance(bench(), id, 0, 2);
    await after(0).grant(at(0), ['2-1'], 9);
    expect(await after(LATER).grant(at(1), ['3-1', '4-1'], 9)).toEqual([]);
    expect(await after(LATER).grant(at(0, 2), ['3-1'], 9)).toEqual([]);
    expect(await after(LATER).counts()).toMatchObject({ waiting: 5, granted: 1 });
  });

  it('grants the next slice to the owner beyond its limit, and nothing else', async () => {
    const { after } = await openStage(bench());
    await after(0).grant(at(0), ['2-1'], 1);
    expect(await after(10_000).grant(at(0), ['1-1', '3-1', '5-1'], 1)).toEqual(['3-1']);
  });

  it('grants the next slice to no owner that is given up', async () => {
    const { id, after } = await openStage(bench());
    await after(0).grant(at(0), ['2-1'], 9);
    await bound(bench(), id).fleet.move(at(0), 'crawling', 'lost');
    expect(await after(10_000).grant(at(0), ['3-1'], 9)).toEqual([]);
  });

  it('frees the hosts of a lost instance after their rest, each from its first open slice on', async () => {
    const { after, settle } = await openStage(bench());
    await after(0).grant(at(0), ['1-1', '2-1'], 9);
    await after(10_000).grant(at(0), ['3-1'], 9);
    await settle([1, 3, 4]);
    expect(await after(20_000).returnChunks(at(0), NOW + 50_000)).toBe(3);
    expect(await offered(after(49_999))).toEqual(['5-1']);
    const free = await after(50_000).waiting(10, none);
    expect(idsOf(free)).toEqual(['1-2', '3-2', '5-1']);
    expect(await after(49_999).grant(at(1), ['1-2', '3-2'], 9)).toEqual([]);
    expect(await after(LATER).grant(at(1), ['4-1', '3-2'], 9)).toEqual(['3-2']);
  });

  it('frees the hosts of a lost instance sooner when its machine is gone, and no others', async () => {
    const { after, settle } = await openStage(bench());
    await after(0).grant(at(0), ['1-1', '2-1'], 9);
    await after(0).grant(at(1), ['5-1'], 9);
    await settle([3, 4]);
    await after(20_000).returnChunks(at(0), NOW + 50_000);
    await after(20_000).returnChunks(at(1), NOW + 50_000);
    await after(21_000).freeHosts(at(0), NOW + 30_000);
    expect(await offered(after(29_999))).toEqual([]);
    // Of the second host it had crawled all that it was granted.
    expect(await offered(after(30_000))).toEqual(['1-2', '3-1']);
    expect(await after(30_000).grant(at(1), ['1-2', '3-1'], 9)).toEqual(['1-2', '3-1']);
    expect(await offered(after(50_000))).toEqual(['5-2']);
  });

  it('frees no host later than it would be, and none that has a new owner', async () => {
    const { after } = await openStage(bench());
    await after(0).grant(at(0), ['2-1'], 9);
    // Not returned yet.
    await after(0).freeHosts(at(0), NOW + 1_000);
    await after(20_000).returnChunks(at(0), NOW + 30_000);
    await after(20_000).freeHosts(at(0), NOW + 40_000);
    expect(await after(30_000).grant(at(1), ['2-2'], 9)).toEqual(['2-2']);
    await after(31_000).returnChunks(at(1), NOW + 90_000);
    await after(31_000).freeHosts(at(0), NOW + 32_000);
    expect(await offered(after(89_999))).not.toContain('2-3');
    expect(await offered(after(90_000))).toContain('2-3');
  });

  it('moves the rests under way with the clock, and nothing that is over', async () => {
    const { after } = await openStage(bench());
    await after(0).grant(at(0), ['1-1'], 9);
    await after(0).grant(at(1), ['2-1'], 9);
    await after(0).returnChunks(at(0), NOW + 10_000);
    await after(0).returnChunks(at(1), NOW + 50_000);
    // It has been set an hour ahead at 20 seconds.
    await after(LATER + 20_000).moveRests(LATER, NOW + 20_000);
    expect(await offered(after(LATER + 49_999))).toEqual(['1-2', '5-1']);
    expect(await offered(after(LATER + 50_000))).toEqual(['1-2', '2-2', '5-1']);
    expect((await after(0).counts()).waiting).toBe(6);
    // Slices that are not the next one stay what they are, and the rest can still end sooner.
    expect(await after(LATER + LATER).grant(at(0), ['3-1'], 9)).toEqual([]);
    await after(LATER + 20_000).freeHosts(at(1), NOW + LATER + 30_000);
    expect(await offered(after(LATER + 30_000))).toEqual(['1-2', '2-2', '5-1']);
  });

  it('frees hosts at once without a rest', async () => {
    const { after } = await openStage(bench());
    await after(0).grant(at(0), ['1-1', '2-1'], 9);
    await after(0).returnChunks(at(0));
    expect(await offered(after(0))).toEqual(['1-2', '2-2', '5-1']);
  });

  it('frees the host of a lost instance that had crawled all it was granted of it', async () => {
    const { after, settle } = await openStage(bench());
    await after(0).grant(at(0), ['2-1'], 9);
    await settle([3, 4]);
    expect(await after(20_000).returnChunks(at(0), NOW + 50_000)).toBe(0);
    expect(await offered(after(49_999))).not.toContain('3-1');
    const next = (await after(50_000).waiting(10, none)).find(({ id }) => id === '3-1');
    expect(next).toEqual({ id: '3-1', products: [expect.anything(), expect.anything()] });
    expect(await after(50_000).grant(at(1), ['3-1'], 9)).toEqual(['3-1']);
  });

  it('takes no host from its new owner when the old one is given up again', async () => {
    const { after, settle } = await openStage(bench());
    await after(0).grant(at(0), ['2-1'], 9);
    await settle([3, 4]);
    await after(20_000).returnChunks(at(0));
    await after(20_000).grant(at(1), ['3-1'], 9);
    await after(20_000).returnChunks(at(0));
    expect(await after(LATER).grant(at(0), ['4-1'], 9)).toEqual([]);
    expect(await after(LATER).grant(at(1), ['4-1'], 9)).toEqual(['4-1']);
  });

  it('leaves a host with its owner that has another slice of it after a transfer', async () => {
    const { after } = await openStage(bench());
    await after(0).grant(at(0), ['2-1'], 9);
    await after(10_000).grant(at(0), ['3-1'], 9);
    expect(await after(10_000).transferChunks(at(0), ['3-1'])).toBe(2);
    expect(await after(LATER).grant(at(1), ['3-2', '4-1'], 9)).toEqual([]);
    expect(await nextOf(after(10_000), at(0))).toEqual(['3-2']);
    expect(await after(10_000).grant(at(0), ['3-2'], 1)).toEqual(['3-2']);
  });

  it('frees a host at once after a transfer of the only slice that its owner had to crawl', async () => {
    const { after, settle } = await openStage(bench());
    await after(0).grant(at(0), ['2-1'], 9);
    await after(10_000).grant(at(0), ['3-1'], 9);
    await settle([3, 4]);
    expect(await after(20_000).transferChunks(at(0), ['2-1', '3-1'])).toBe(2);
    expect(await offered(after(20_000))).toEqual(['1-1', '3-2', '5-1']);
    expect(await after(20_000).grant(at(1), ['3-2'], 9)).toEqual(['3-2']);
    expect(await after(LATER).grant(at(0), ['4-1'], 9)).toEqual([]);
  });

  it('leaves a host with its owner when that gives away a slice that it has crawled', async () => {
    const { after, settle } = await openStage(bench());
    await after(0).grant(at(0), ['2-1'], 9);
    await settle([3, 4]);
    expect(await after(10_000).transferChunks(at(0), ['2-1'])).toBe(0);
    expect(await after(10_000).grant(at(1), ['3-1'], 9)).toEqual([]);
    expect(await after(10_000).grant(at(0), ['3-1'], 9)).toEqual(['3-1']);
  });

  it('offers the next slice in place of one that late results have settled', async () => {
    const { after, settle } = await openStage(bench());
    await after(0).grant(at(0), ['2-1'], 9);
    await after(0).returnChunks(at(0), NOW + 30_000);
    await settle([3, 4]);
    expect(await offered(after(29_999))).not.toContain('3-1');
    expect(await offered(after(30_000))).toEqual(['1-1', '3-1', '5-1']);
    expect(await after(30_000).counts()).toMatchObject({ chunks: 6, waiting: 5 });
  });

  it('keeps the slice for the same owner that follows one with nothing left to crawl', async () => {
    const { after, settle } = await openStage(bench());
    await after(0).grant(at(0), ['2-1'], 9);
    await settle([5, 6]);
    expect(await nextOf(after(10_000), at(0))).toEqual(['4-1']);
    expect(await after(10_000).grant(at(1), ['4-1'], 9)).toEqual([]);
    expect(await after(10_000).grant(at(0), ['4-1'], 9)).toEqual(['4-1']);
  });

  it('counts when each instance is done with its hosts, and the longest one without an owner', async () => {
    const { after } = await openStage(bench());
    expect(await after(0).counts()).toEqual({
      chunks: 6,
      waiting: 6,
      granted: 0,
      bySlot: [],
      byHost: { products: 12, longestMs: 60_000, restUntilMs: 0 },
    });
    await after(0).grant(at(0), ['2-1'], 9);
    await after(1_000).grant(at(1), ['1-1'], 9);
    const one = { slot: 1, epoch: 1, chunks: 1, products: 2, hostsEndMs: NOW + 6_000 };
    expect(await after(1_000).counts()).toEqual({
      chunks: 6,
      waiting: 4,
      granted: 2,
      bySlot: [{ slot: 0, epoch: 1, chunks: 1, products: 2, hostsEndMs: NOW + 60_000 }, one],
      byHost: { products: 8, longestMs: 40_000, restUntilMs: 0 },
    });
    // Its second slice begins late.
    await after(25_000).grant(at(0), ['3-1', '5-1'], 9);
    const counts = await after(25_000).counts();
    expect(counts.bySlot[0]).toEqual({ slot: 0, epoch: 1, chunks: 3, products: 6, hostsEndMs: NOW + 65_000 });
    expect(counts).toMatchObject({ waiting: 2, granted: 4, byHost: { longestMs: 0 } });
  });

  it('counts until when all hosts rest that wait for any instance', async () => {
    const { after, settle } = await openStage(bench());
    const restUntil = async (): Promise<number | undefined> => (await after(0).counts()).byHost?.restUntilMs;
    await after(0).grant(at(0), ['1-1', '2-1'], 9);
    expect(await restUntil()).toBe(0);
    await after(0).grant(at(1), ['5-1'], 9);
    // What waits is kept for the owners of its hosts.
    expect(await restUntil()).toBe(0);
    await after(0).returnChunks(at(1), NOW + 70_000);
    expect(await restUntil()).toBe(NOW + 70_000);
    await settle([3, 4]);
    await after(0).returnChunks(at(0), NOW + 50_000);
    expect(await restUntil()).toBe(NOW + 50_000);
    await after(50_000).transferChunks(at(1), await after(60_000).grant(at(1), ['1-2'], 9));
    expect(await restUntil()).toBe(0);
  });

  it('counts no host that an instance has given away', async () => {
    const { after, settle } = await openStage(bench());
    await after(0).grant(at(0), ['1-1', '2-1'], 9);
    await after(10_000).grant(at(0), ['3-1'], 9);
    await settle([3, 4]);
    await after(20_000).transferChunks(at(0), ['3-1']);
    const counts = await after(20_000).counts();
    expect(counts.bySlot).toEqual([{ slot: 0, epoch: 1, chunks: 2, products: 4, hostsEndMs: NOW + 5_000 }]);
    expect(counts.byHost?.longestMs).toBe(40_000);
  });

  it('counts nothing of hosts in a run of one site', async () => {
    const { id, work } = await createRun(bench(), 10);
    await createInstance(bench(), id, 0);
    await work.grant(at(0), ['1-1'], 9);
    const bySlot = [{ slot: 0, epoch: 1, chunks: 1, products: 5 }];
    expect(await work.counts()).toEqual({ chunks: 2, waiting: 1, granted: 1, bySlot });
    await work.returnChunks(at(0), NOW + 1_000);
    expect(await offered(work)).toEqual(['1-2', '2-1']);
  });

  it('closes every slice when the rest fails', async () => {
    const { after } = await openStage(bench());
    await after(0).grant(at(0), ['2-1'], 9);
    expect(await after(0).failRest('deadline')).toBe(PRODUCTS);
    expect(await offered(after(LATER))).toEqual([]);
    expect(await after(LATER).counts()).toMatchObject({
      waiting: 0,
      granted: 1,
      byHost: { products: 0, longestMs: 0, restUntilMs: 0 },
    });
    expect(await after(LATER).returnChunks(at(0))).toBe(0);
  });

  it('never lets two instances have a host, however they ask, lose it and settle', async () => {
    for (let round = 0; round < 8; round++) {
      const { id, after, settle } = await openStage(bench());
      await after(0).grant(at(0), ['2-1', '5-1'], 9);
      await Promise.all([
        after(10_000).returnChunks(at(0)),
        after(10_000).grant(at(0), ['3-1', '6-1'], 9),
        after(10_000).grant(at(1), ['5-2', '2-2'], 9),
        settle([5, 6, 9]),
      ]);
      await expectOneOwner(bench(), id);
    }
  });

  // What SQL can do wrong shows on SQLite as well, in a tenth of the time.
  if (engine !== 'mysql') {
    it('leaves each host with one owner, and none without a next slice, after any calls', { timeout: 120_000 }, () =>
      fc.assert(
        fc.asyncProperty(fc.array(step, { minLength: 20, maxLength: 60 }), (steps) => play(bench(), steps)),
        { numRuns: engine === 'memory' ? 200 : 25 },
      ),
    );
  }
});

type Step =
  | { kind: 'grant'; slot: number; index: number }
  | { kind: 'take' | 'crawl' | 'lose' | 'loseAgain'; slot: number }
  | { kind: 'transfer'; slot: number; index: number }
  | { kind: 'settle'; index: number; products: number }
  | { kind: 'offer' }
  | { kind: 'wait'; ms: number };

const slot = fc.integer({ min: 0, max: 1 });
const index = fc.integer({ min: 1, max: CHUNKS.length });
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('grant' as const), slot, index }) },
  { weight: 8, arbitrary: fc.record({ kind: fc.constantFrom('take', 'crawl', 'lose', 'loseAgain'), slot }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('transfer' as const), slot, index }) },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('settle' as const), index, products: fc.constantFrom(1, 2) }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('offer' as const) }) },
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constant('wait' as const), ms: fc.constantFrom(1_000, 10_000, 60_000) }),
  },
);

/** Each id that a chunk may have had. */
const idsAt = (index: number): string[] => Array.from({ length: 60 }, (_, i) => `${index}-${i + 1}`);

const productsOf = (index: number): number[] => [2 * index - 1, 2 * index];

/** Plays the steps, checks the ledger after each, and lets the instance in slot 0 crawl the rest. */
async function play(bench: Bench, steps: readonly Step[]): Promise<void> {
  const { id, after, settle } = await openStage(bench);
  const epochs = [1, 1];
  const now = (slot: number): EpochId => at(slot, epochs[slot]);
  let ms = 0;
  for (const step of steps) {
    const work = after(ms);
    switch (step.kind) {
      case 'grant':
        await work.grant(now(step.slot), idsAt(step.index), 3);
        break;
      case 'take':
        await work.grant(now(step.slot), [...(await offered(work)), ...(await nextOf(work, now(step.slot)))], 3);
        break;
      case 'crawl': {
        const own = await work.chunksOf(now(step.slot));
        await settle(own.flatMap(({ id: chunk }) => productsOf(Number.parseInt(chunk, 10))));
        break;
      }
      case 'transfer':
        await work.transferChunks(now(step.slot), idsAt(step.index));
        break;
      case 'lose': {
        const { slot } = step;
        await bound(bench, id).fleet.move(now(slot), 'crawling', 'lost');
        await work.returnChunks(now(slot), NOW + ms + 10_000);
        epochs[slot] = now(slot).epoch + 1;
        await createInstance(bench, id, slot, now(slot).epoch);
        break;
      }
      case 'loseAgain': {
        const { slot, epoch } = now(step.slot);
        if (epoch > 1) await work.returnChunks(at(slot, epoch - 1), NOW + ms + 10_000);
        break;
      }
      case 'settle':
        await settle(productsOf(step.index).slice(-step.products));
        break;
      case 'offer':
        await work.waiting(10, none);
        break;
      case 'wait':
        ms += step.ms;
    }
    await expectOneOwner(bench, id, new Set(epochs.map((epoch, slot) => epochKey({ slot, epoch }))));
  }
  await after(ms).returnChunks(now(1));
  for (let rounds = 0; rounds < CHUNKS.length; rounds++) {
    ms += LATER;
    const chunks = [...(await after(ms).waiting(10, none)), ...(await after(ms).nextSlices(now(0), 99))];
    await after(ms).grant(now(0), idsOf(chunks), 99);
    await settle(chunks.flatMap(({ products }) => products.map(({ n }) => n)));
  }
  for (const { state } of await ledger(bench, id)) expect(state).not.toBe('waiting');
}

interface Held {
  index: number;
  sliceOf: number | null;
  state: ChunkRow['state'];
  /** Granted or kept for. */
  owner: string | null;
  isNext: boolean;
  open: number;
}

/** @param serving owners that may have something to crawl; default: any */
async function expectOneOwner(bench: Bench, id: string, serving?: ReadonlySet<string>): Promise<void> {
  const hosts = Map.groupBy(await ledger(bench, id), ({ sliceOf }) => sliceOf);
  for (const [sliceOf, slices] of hosts) {
    const owners = new Set(slices.flatMap((p) => (p.state === 'granted' && p.open > 0 ? (p.owner ?? []) : [])));
    if (serving) for (const owner of owners) expect(serving).toContain(owner);
    if (sliceOf === null) continue;
    const waiting = slices.filter(({ state }) => state === 'waiting');
    // The first one alone is offered, to the owner of the slices before it.
    expect(waiting.map(({ isNext }) => isNext)).toEqual(waiting.map((_, i) => i === 0));
    expect(owners.size).toBeLessThanOrEqual(1);
    const [next, ...others] = waiting;
    for (const owner of next ? owners : []) expect(next?.owner).toBe(owner);
    for (const { owner } of others) expect(owner).toBeNull();
  }
}

/** The chunks as the tables have them. */
async function ledger({ memory, db }: Bench, id: string): Promise<Held[]> {
  if (memory !== null) {
    const { chunks, items } = memory.run(id);
    return chunks.map(({ index, first, last, state, hosts, dueAtMs, grant, owner }) => {
      const who = grant ?? owner;
      const open = items.slice(first - 1, last).filter(({ outcome }) => outcome === null).length;
      const held = { index, sliceOf: hosts?.sliceOf ?? null, state, owner: who && epochKey(who) };
      return { ...held, isNext: dueAtMs !== NOT_NEXT_MS, open };
    });
  }
  const rows = (await db.knex('crawlfleet_chunks').where({ run_id: id }).orderBy('idx')) as ChunkRow[];
  const items = (await db.knex('crawlfleet_items').where({ run_id: id }).whereNull('outcome')) as { n: number }[];
  return rows.map(({ idx, first_n, last_n, state, slice_of, due_at, slot, epoch }) => ({
    index: idx,
    sliceOf: slice_of,
    state,
    owner: slot === null || epoch === null ? null : epochKey({ slot, epoch }),
    isNext: due_at === null || Number(due_at) !== NOT_NEXT_MS,
    open: items.filter(({ n }) => n >= first_n && n <= last_n).length,
  }));
}
