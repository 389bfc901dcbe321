/**
 * Ninety nights of a catalogue of 100,000 products at the same number of requests a night: how old the copies are, by
 * the order in which products are crawled. Scores and rates of change are drawn from one seed, independently.
 */
import { seededRandom } from '../../shared/adapters/random.ts';
import { type CrawledProduct, type RecrawlPolicy } from '../../orchestrator/features/recrawl/due.ts';
import { Night } from '../../orchestrator/features/recrawl/night.ts';
import type { Bench, BenchResult } from '../frame.ts';
import type { ListedProduct } from '../../orchestrator/core/db/product-source.ts';

const PRODUCTS = 100_000;
const NIGHTS = 90;
/** Before, every strategy still shows the first crawl of everything. */
const MEASURED_FROM = 30;
const DAY = 86_400_000;
const POLICY: RecrawlPolicy = { baseMs: 30 * DAY, k: 2, everyMs: {}, maxShare: 1 };
const FAILING = 0.01;

interface World {
  listed: ListedProduct[];
  /** By product, the nights before which its page changes, in order. */
  changes: Float64Array[];
  fails: (i: number, night: number) => boolean;
}

/** Chooses up to `capacity` products of a night, and learns what became of them. */
interface Strategy {
  choose(night: number, capacity: number): number[];
  crawled(i: number, night: number, found: { failed: boolean; changed: boolean }): void;
}

export const bench: Bench = {
  title: 'Ninety nights: which products to crawl again',
  run: () => Promise.resolve(run()),
};

function run(): BenchResult {
  const world = makeWorld();
  // 4/5 of the capacity that would keep all products on time.
  const demand = world.listed.reduce((sum, p) => sum + DAY / (POLICY.baseMs * Math.exp(-POLICY.k * p.score)), 0);
  const capacity = Math.round(0.8 * demand);
  const strategies: Record<string, Strategy> = {
    'list order, cut': listOrder(),
    'oldest first': oldestFirst(world),
    'Nutch, adaptive, cut': nutch(world),
    'ours, no learning': ours(world, false),
    ours: ours(world, true),
  };
  const rows = Object.entries(strategies).map(([name, strategy]) => ({
    name,
    figures: play(world, strategy, capacity),
  }));
  const of = (name: string): Record<string, number> => rows.find((row) => row.name === name)!.figures;
  const ratio = (against: string, figure: string, target: string) => ({
    name: `${figure}, ours / ${against}`,
    value: of('ours')[figure]! / of(against)[figure]!,
    target,
  });
  return {
    about:
      `${PRODUCTS} products, ${capacity} requests a night: 4/5 of what scores and intervals require; crawling all of them each night would take ${(PRODUCTS / capacity).toFixed(1)} times as many. ` +
      'Means over nights 30 to 90, weighted by score: `age` in days since the last crawl, `outdatedDays` since the first change that no crawl has seen, `outdated` the share of copies with such a change. One request in a hundred fails.',
    rows,
    ratios: [
      ratio('oldest first', 'age', 'below 1'),
      ratio('oldest first', 'outdatedDays', 'below 1'),
      ratio('Nutch, adaptive, cut', 'age', 'below 1'),
      ratio('Nutch, adaptive, cut', 'outdatedDays', 'below 1'),
      ratio('ours, no learning', 'outdatedDays', 'below 1'),
    ],
  };
}

function makeWorld(): World {
  const random = seededRandom(20261123);
  const normal = (): number => Math.sqrt(-2 * Math.log(1 - random.next())) * Math.cos(2 * Math.PI * random.next());
  const ranks = Array.from({ length: PRODUCTS }, (_, i) => i + 1);
  for (let i = ranks.length - 1; i > 0; i--) {
    const j = Math.floor(random.next() * (i + 1));
    [ranks[i], ranks[j]] = [ranks[j]!, ranks[i]!];
  }
  const listed = ranks.map((rank, i) => ({
    id: `p${i}`,
    // Zipf's popularity on a scale of its logarithm.
    score: 1 - Math.log(rank) / Math.log(PRODUCTS),
    changedAtMs: null,
    priority: 0,
    category: null,
  }));
  const changes = listed.map(() => {
    const perDay = Math.exp(normal() * 1.3) / 30;
    const times: number[] = [];
    for (let at = 0; (at += -Math.log(1 - random.next()) / perDay) < NIGHTS;) times.push(at);
    return Float64Array.from(times);
  });
  const faults = seededRandom(7);
  const failing = new Set(
    Array.from({ length: PRODUCTS * NIGHTS * FAILING }, () => Math.floor(faults.next() * PRODUCTS * NIGHTS)),
  );
  return { listed, changes, fails: (i, night) => failing.has(i * NIGHTS + night) };
}

function play(world: World, strategy: Strategy, capacity: number): Record<string, number> {
  const last = new Float64Array(PRODUCTS).fill(-1);
  const weight = world.listed.reduce((sum, p) => sum + p.score, 0);
  const sums = { age: 0, outdatedDays: 0, outdated: 0, requests: 0 };
  // The next change that the last crawl has not seen, as an index.
  const next = new Uint32Array(PRODUCTS);
  for (let night = 0; night < NIGHTS; night++) {
    for (const i of strategy.choose(night, capacity)) {
      sums.requests++;
      const failed = world.fails(i, night);
      const before = next[i]!;
      if (!failed) {
        while (next[i]! < world.changes[i]!.length && world.changes[i]![next[i]!]! < night) next[i]!++;
        last[i] = night;
      }
      strategy.crawled(i, night, { failed, changed: !failed && next[i]! > before });
    }
    if (night < MEASURED_FROM) continue;
    for (let i = 0; i < PRODUCTS; i++) {
      const score = world.listed[i]!.score / weight;
      // The first crawl of a strategy that never comes round counts from the first night.
      sums.age += score * (night - Math.max(0, last[i]!));
      const change = world.changes[i]![next[i]!] ?? Infinity;
      if (change < night) {
        sums.outdated += score;
        sums.outdatedDays += score * (night - change);
      }
    }
  }
  const nights = NIGHTS - MEASURED_FROM;
  return {
    age: sums.age / nights,
    outdatedDays: sums.outdatedDays / nights,
    outdated: sums.outdated / nights,
    requestsANight: sums.requests / NIGHTS,
  };
}

const ALL = Array.from({ length: PRODUCTS }, (_, i) => i);

/** All of them each night, up to the capacity. */
const listOrder = (): Strategy => ({ choose: (_, capacity) => ALL.slice(0, capacity), crawled: () => undefined });

function oldestFirst({ listed }: World): Strategy {
  const last = new Float64Array(listed.length).fill(-1);
  return {
    choose: (_, capacity) => [...ALL].sort((a, b) => last[a]! - last[b]! || a - b).slice(0, capacity),
    crawled: (i, night) => void (last[i] = night),
  };
}

/** Nutch's AdaptiveFetchSchedule with its defaults: 0.4 later when the page is the same, 0.2 sooner when it is not. */
function nutch({ listed }: World): Strategy {
  const [due, interval] = [new Float64Array(listed.length), new Float64Array(listed.length).fill(30)];
  return {
    choose: (night, capacity) =>
      ALL.filter((i) => due[i]! <= night)
        .sort((a, b) => due[a]! - due[b]! || listed[b]!.score - listed[a]!.score)
        .slice(0, capacity),
    crawled(i, night, { failed, changed }) {
      if (!failed) interval[i] = Math.min(365, Math.max(1, interval[i]! * (changed ? 0.8 : 1.4)));
      due[i] = night + (failed ? 1 : interval[i]!);
    },
  };
}

function ours({ listed }: World, learns: boolean): Strategy {
  const known: (CrawledProduct | null)[] = listed.map(() => null);
  return {
    choose(night, capacity) {
      const chooser = new Night(POLICY, night * DAY);
      listed.forEach((product, i) => chooser.add(product, known[i]!));
      return chooser.choose(capacity).ids.map((id) => Number(id.slice(1)));
    },
    crawled(i, night, { failed, changed }) {
      const before = known[i];
      const outcome = failed ? ('failed' as const) : ('stored' as const);
      const wasStored = before?.outcome === 'stored' && !failed;
      known[i] = {
        atMs: night * DAY,
        outcome,
        inARow: before?.outcome === outcome ? before.inARow + 1 : 1,
        watchedMs: learns ? (before?.watchedMs ?? 0) + (wasStored ? night * DAY - before.atMs : 0) : 0,
        changes: learns ? (before?.changes ?? 0) + (changed && before ? 1 : 0) : 0,
      };
    },
  };
}
