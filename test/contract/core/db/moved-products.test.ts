/** Products that go on at another host: they wait again, as products of that host, and end once. */
import { expect, it } from 'vitest';
import type { ChunkRange } from '../../../../shared/domain/sharing.ts';
import type { ItemResult, Move } from '../../../../shared/wire/part.ts';
import type { RunSettings } from '../../../../orchestrator/core/model/run-settings.ts';
import type { OpenChunk, WorkStore } from '../../../../orchestrator/core/model/stores.ts';
import {
  at,
  type Bench,
  bound,
  createInstance,
  createRun,
  failed,
  keepingGrants,
  load,
  NOW,
  onBothEngines,
  readFacts,
  stored,
} from './harness.ts';

/** A page that redirects to another host. */
const elsewhere = (n: number, id: string, moved: Move): ItemResult => ({
  ...(failed(n, '301', id) as Extract<ItemResult, { outcome: 'failed' }>),
  reason: 'redirect',
  moved,
});

const none: ReadonlySet<string> = new Set();
const INTERVAL_MS = 15_000;
/** With its margin. */
const GAP_MS = 15_150;

let made = 0;
/** A domain that no other test has. */
const newHost = (): string => `moved-${++made}.example`;

interface Stage {
  id: string;
  /** The offered product is asked for elsewhere. */
  moves: (chunk: OpenChunk, moves: Record<number, Move>, slot?: number) => Promise<unknown>;
  store: (chunk: OpenChunk, slot?: number) => Promise<unknown>;
  /** The only chunk that is offered, granted. */
  next: (ms?: number, slot?: number) => Promise<OpenChunk>;
  work: (ms?: number) => WorkStore;
}

async function openRun(bench: Bench, urls: readonly string[], chunks?: readonly ChunkRange[]): Promise<Stage> {
  const base = keepingGrants(`moved_${++made}`);
  const site = { productUrl: [], intervalMs: INTERVAL_MS } as unknown as RunSettings['site'];
  const whole = [{ index: 1, first: 1, last: urls.length, hosts: { sliceOf: null, leftMs: 5_000 } }];
  const { id } = await createRun(bench, urls.length, {
    settings: { ...base, site, run: { ...base.run, graceMs: 30_000 } },
    urls: new Map(urls.map((url, i) => [`p${i + 1}`, url])),
    chunks: chunks ?? whole,
  });
  for (const slot of [0, 1]) await createInstance(bench, id, slot);
  let seq = 0;
  const work = (ms = 0): WorkStore => bound(bench, id, { nowMs: NOW + ms }).work;
  const settle = (results: readonly ItemResult[], slot: number): Promise<unknown> =>
    load(bench, id, results, { slot, seq: seq++ });
  return {
    id,
    work,
    moves: ({ products }, moves, slot = 0) =>
      settle(
        products.flatMap(({ n, id: url }): ItemResult[] => {
          const moved = moves[n];
          return moved === undefined ? [] : [elsewhere(n, url, moved)];
        }),
        slot,
      ),
    store: ({ products }, slot = 0) =>
      settle(
        products.map(({ n, id: url }) => stored(n, url)),
        slot,
      ),
    next: async (ms = 0, slot = 0) => {
      const [chunk, ...others] = await work(ms).waiting(10, none);
      expect(others).toEqual([]);
      expect(await work(ms).grant(at(slot), [chunk!.id], 99)).toEqual([chunk!.id]);
      return chunk!;
    },
  };
}

onBothEngines('Products that have moved', (bench) => {
  it('wait as products of the other host, and are stored once under their own ID and URL', async () => {
    const [a, b] = [newHost(), newHost()];
    const run = await openRun(bench(), [`https://${a}/1`, `https://${a}/2`]);
    const first = await run.next();
    await run.moves(first, { 2: { page: `https://${b}/two` } });
    const second = await run.next(1_000, 1);
    expect(second.products).toEqual([{ n: 3, id: `https://${b}/two` }]);
    expect(await run.work().outcomes()).toMatchObject({ planned: 2, open: 2, failed: 0 });
    await run.store({ ...first, products: first.products.slice(0, 1) });
    await run.store(second, 1);
    expect(await run.work().outcomes()).toMatchObject({ planned: 2, open: 0, stored: 2 });
    const facts = await readFacts(bench(), run.id);
    expect(facts.items).toBe(2);
    expect([facts.partsOff.count, facts.ungranted.count, facts.duplicates.count]).toEqual([0, 0, 0]);
  });

  it('count once when the instance that found it sends the same again, or the part is loaded twice', async () => {
    const [a, b] = [newHost(), newHost()];
    const run = await openRun(bench(), [`https://${a}/1`]);
    const first = await run.next();
    await run.moves(first, { 1: { page: `https://${b}/` } });
    await run.moves(first, { 1: { page: `https://${b}/` } });
    const second = await run.next();
    expect(second.products).toEqual([{ n: 2, id: `https://${b}/` }]);
    expect(await run.work().outcomes()).toMatchObject({ planned: 1, open: 1 });
  });

  it('wait for the host that another instance of the run has, and for a gap after that', async () => {
    const [a, b] = [newHost(), newHost()];
    const both: ChunkRange[] = [
      { index: 1, first: 1, last: 1, hosts: { sliceOf: null, leftMs: 5_000 } },
      { index: 2, first: 2, last: 2, hosts: { sliceOf: null, leftMs: 5_000 } },
    ];
    const run = await openRun(bench(), [`https://${a}/1`, `https://${b}/own`], both);
    const [ofA, ofB] = await run.work().waiting(10, none);
    await run.work().grant(at(0), [ofA!.id], 99);
    await run.work().grant(at(1), [ofB!.id], 99);
    await run.moves(ofA!, { 1: { page: `https://www.${b}/new` } });
    const [moved] = await run.work().waiting(10, none);
    expect(await run.work().grant(at(0), [moved!.id], 99)).toEqual([]);
    expect(await run.work().waiting(10, none)).toEqual([]);
    await run.store(ofB!, 1);
    // The gap counts from the last result of the owner before.
    const [again] = await run.work(90_000).waiting(10, none);
    expect(await run.work(10_000).grant(at(0), [again!.id], 99)).toEqual([]);
    expect(await run.work(90_000 + GAP_MS).grant(at(0), [again!.id], 99)).toEqual([again!.id]);
  });

  it('are granted with the host whose robots.txt holds for them', async () => {
    const [a, b] = [newHost(), newHost()];
    const run = await openRun(bench(), [`https://${a}/1`]);
    const robots = `https://${b}/robots.txt`;
    await run.moves(await run.next(), { 1: { page: `https://${a}/1`, robots } });
    const second = await run.next(60_000, 1);
    expect(second.products).toEqual([{ n: 2, id: `https://${a}/1`, robots }]);
    expect(await bench().stores.runs.hostRow(b)).toMatchObject({
      claim: { runId: run.id, slot: 1, first: 2, last: 2 },
    });
    expect(await bench().stores.runs.hostRow(a)).toMatchObject({
      claim: { runId: run.id, slot: 1, first: 2, last: 2 },
    });
    // Its page may lead to that host, too: then it is asked there, under its own rules.
    await run.moves(second, { 2: { page: `https://${b}/1` } }, 1);
    expect((await run.next(60_000, 1)).products).toEqual([{ n: 3, id: `https://${b}/1` }]);
  });

  it('leave a host that the next owner asks no sooner than a gap after the result', async () => {
    const [a, b] = [newHost(), newHost()];
    const run = await openRun(bench(), [`https://${a}/1`]);
    await run.moves(await run.next(), { 1: { page: `https://${a}/1`, robots: `https://${b}/robots.txt` } });
    const [chunk] = await run.work(1_000).waiting(10, none);
    expect(await run.work(1_000).grant(at(1), [chunk!.id], 99)).toEqual([]);
    expect(await run.work(GAP_MS - 1).waiting(10, none)).toEqual([]);
    const [due] = await run.work(GAP_MS).waiting(10, none);
    expect(await run.work(GAP_MS).grant(at(1), [due!.id], 99)).toEqual([due!.id]);
  });

  it('fail where they cannot be asked for, or were passed on too often', async () => {
    const a = newHost();
    const run = await openRun(
      bench(),
      [1, 2, 3].map((i) => `https://${a}/${i}`),
    );
    await run.moves(await run.next(), {
      1: { page: `https://user:secret@${newHost()}/` },
      2: { page: `https://${a}/2`, robots: `https://${newHost()}/rules.txt` },
      3: { page: `https://${newHost()}/` },
    });
    expect(await run.work().outcomes()).toMatchObject({ open: 1, failed: 2, reasons: { redirect: 2 } });
    for (let i = 1; i <= 5; i++) {
      const chunk = await run.next(i * 60_000);
      await run.moves(chunk, { [chunk.products[0]!.n]: { page: `https://${newHost()}/` } });
    }
    expect(await run.work().outcomes()).toMatchObject({ open: 0, failed: 3, reasons: { redirect: 3 } });
    const misses = await run.work().failedProducts(0, 10);
    expect(misses.map(({ detail }) => detail).at(-1)).toContain('other hosts 5 times');
  });

  it('fail without a request where many of them lead to one page', async () => {
    const [sale] = [newHost()];
    const urls = Array.from({ length: 30 }, () => `https://${newHost()}/`);
    const run = await openRun(bench(), urls);
    const all = await run.next();
    const page = `https://${sale}/buy`;
    const few = { ...all, products: all.products.slice(0, 12) };
    await run.moves(few, Object.fromEntries(few.products.map(({ n }) => [n, { page }])));
    expect(await run.work().outcomes()).toMatchObject({ open: 30, failed: 0 });
    await run.moves(all, Object.fromEntries(all.products.map(({ n }) => [n, { page }])));
    expect(await run.work().outcomes()).toMatchObject({ planned: 30, open: 12, failed: 18, reasons: { redirect: 18 } });
    const [miss] = await run.work().failedProducts(0, 1);
    expect(miss?.detail).toContain(`30 products lead to ${page}`);
    // One that is stored has not been published yet. In so short a run each of them is a slice of its host.
    await run.store(await run.next(60_000));
    const { results } = bound(bench(), run.id);
    const [together, ...others] = await results.movedTogether();
    expect([together?.page, together?.ids.length, others]).toEqual([page, 1, []]);
  });

  it('are no concern of a run that names its site', async () => {
    const { id } = await createRun(bench(), 1, { settings: keepingGrants(`moved_${++made}`) });
    await createInstance(bench(), id, 0);
    const { work } = bound(bench(), id);
    await work.grant(at(0), ['1-1'], 99);
    await load(bench(), id, [elsewhere(1, 'p1', { page: `https://${newHost()}/` })]);
    expect(await work.outcomes()).toMatchObject({ planned: 1, open: 0, failed: 1, reasons: { redirect: 1 } });
  });
});
