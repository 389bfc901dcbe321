/**
 * `npm run bench -- --against REV [NAME …]`: runs benches on another revision and on this tree in turn, in one run, and
 * prints how the costs compare. Nothing is stored: a ratio belongs to the two revisions.
 *
 * The programs that are measured are each tree's own. What they have in common is narrow, so that old revisions can be
 * compared: the command line, and the arguments and output of the case programs in bench/.
 */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { CaseFigures } from '../simulation/simulation-case.ts';
import { PAGE_SERVER } from '../fetch/fetch.ts';
import { measureInTurn, measureProgram, median, startProgram } from '../frame.ts';
import type * as loadingPlace from '../loading/loading-place.ts';
import type * as loadingRun from '../loading/bench-run.ts';
import { measurePages } from '../pages.ts';
import { measureBoots } from './boot.ts';
import { checkOut, commitOf, OWN_TREE } from './checkout.ts';

/** What one tree costs, each figure with its unit in the name; less is better. */
type Costs = Record<string, number>;

/** One tree, ready to be measured again and again. */
interface Side {
  measure(): Promise<Costs>;
  close?(): Promise<void>;
}

interface Comparison {
  rounds: number;
  /** Programs or modules that both trees must have. */
  needs: readonly string[];
  open(tree: string): Promise<Side> | Side;
}

const SIMULATION = 'bench/simulation/simulation-case.ts';
const EXTRACT = 'bench/extract/extract-case.ts';
const FETCH = 'bench/fetch/fetch-case.ts';
const [LOADING_PLACE, LOADING_RUN] = ['bench/loading/loading-place.ts', 'bench/loading/bench-run.ts'];

const EXTRACT_PAGES = 20_000;
const FETCH_PAGES = 6_000;
const FETCH_DIFFERENT = 100;
const LOADED_PRODUCTS = [20_000, 120_000] as const;

export const COMPARISONS: Record<string, Comparison> = {
  simulation: {
    rounds: 7,
    needs: [SIMULATION],
    open: (tree) => ({
      async measure() {
        const { stdout } = await measureProgram(join(tree, SIMULATION), ['run', '30000', '32']);
        return { cpuMs: (JSON.parse(stdout) as CaseFigures).cpuMs };
      },
    }),
  },
  boot: { rounds: 5, needs: ['bin/orchestrator.js'], open: (tree) => ({ measure: () => measureBoots(tree) }) },
  fetch: {
    rounds: 5,
    needs: [FETCH],
    async open(tree) {
      const { line: origin, stop } = await startProgram(PAGE_SERVER, [String(FETCH_DIFFERENT)]);
      const cpuMsPer1000 = async (shape: string): Promise<number> => {
        const args = ['crawlfleet', origin, shape, String(FETCH_PAGES), String(FETCH_DIFFERENT)];
        return 1e6 / (await measurePages(join(tree, FETCH), args)).pagesPerCpuSecond;
      };
      return {
        measure: async () => ({
          denseCpuMsPer1000: await cpuMsPer1000('item'),
          typicalCpuMsPer1000: await cpuMsPer1000('typical'),
        }),
        close: stop,
      };
    },
  },
  extract: {
    rounds: 5,
    needs: [EXTRACT],
    open: (tree) => ({
      async measure() {
        const { pagesPerCpuSecond } = await measurePages(join(tree, EXTRACT), [
          'extractor',
          String(EXTRACT_PAGES),
          'shop',
        ]);
        return { cpuMsPer1000: 1e6 / pagesPerCpuSecond };
      },
    }),
  },
  loading: { rounds: 5, needs: [LOADING_PLACE, LOADING_RUN], open: openLoading },
};

/** The modules of that tree make its run and its tables; the program that loads is a process of its own. */
async function openLoading(tree: string): Promise<Side> {
  const { openLoadingPlace } = await importFrom<typeof loadingPlace>(tree, LOADING_PLACE);
  const { benchRun } = await importFrom<typeof loadingRun>(tree, LOADING_RUN);
  const place = await openLoadingPlace();
  let runs = 0;
  const loadRun = async (products: number): Promise<{ cpuMs: number; totalMs: number }> => {
    const name = String(runs++);
    const database = await place.openDatabase(`against_${name}`);
    try {
      const run = benchRun(products, 22, name);
      await database.crawl(run, {});
      const before = childrenCpuMs();
      const { totalMs } = await database.load(run);
      return { cpuMs: childrenCpuMs() - before, totalMs: totalMs! };
    } finally {
      await database.db.close();
    }
  };
  return {
    async measure() {
      // The difference of two sizes leaves out what a tree's case program takes to start: its imports, compiled anew.
      const few = await loadRun(LOADED_PRODUCTS[0]);
      const many = await loadRun(LOADED_PRODUCTS[1]);
      const thousands = (LOADED_PRODUCTS[1] - LOADED_PRODUCTS[0]) / 1_000;
      return {
        cpuMsPer1000: (many.cpuMs - few.cpuMs) / thousands,
        msPer1000: (many.totalMs - few.totalMs) / thousands,
      };
    },
    close: () => place.close(),
  };
}

const importFrom = async <T>(tree: string, file: string): Promise<T> =>
  (await import(pathToFileURL(join(tree, file)).href)) as T;

/** Processor time of the children of this process that have ended, by the kernel. */
function childrenCpuMs(): number {
  const stat = readFileSync('/proc/self/stat', 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  // `cutime` and `cstime`, in ticks of 10 ms.
  return (Number(fields[13]) + Number(fields[14])) * 10;
}

/** How one figure compares. */
export interface Compared {
  before: number;
  now: number;
  /** Now / before: the median over the rounds, each of which measures both trees within moments. */
  ratio: number;
  /** The smallest and the largest of the rounds. */
  range: readonly [number, number];
}

/** By figure; only those that both trees have. The rounds are in the same order on both sides. */
export function compare(before: readonly Costs[], now: readonly Costs[]): Record<string, Compared> {
  const figures = Object.keys(before[0]!).filter((figure) => figure in now[0]!);
  return Object.fromEntries(
    figures.map((figure) => {
      const [old, own] = [before, now].map((rounds) => rounds.map((costs) => costs[figure]!)) as [number[], number[]];
      const ratios = own.map((cost, round) => cost / old[round]!);
      const range = [Math.min(...ratios), Math.max(...ratios)] as const;
      return [figure, { before: median(old), now: median(own), ratio: median(ratios), range }];
    }),
  );
}

/** Prints a line for each figure. Returns the exit code: 2 for a revision or a name that does not exist. */
export async function benchAgainst(revision: string, names: readonly string[]): Promise<number> {
  const commit = commitOf(revision);
  if (commit === null) return refuse(`no such revision: ${revision}\n  Name a commit, a branch or a tag.`);
  const unknown = names.filter((name) => !Object.hasOwn(COMPARISONS, name));
  if (unknown.length > 0)
    return refuse(
      `cannot be compared with a revision: ${unknown.join(', ')}\n  There are: ${Object.keys(COMPARISONS).join(', ')}`,
    );
  process.stdout.write(`now / ${commit.slice(0, 8)}, in turn; medians, and the range of the rounds\n`);
  using tree = checkOut(commit);
  for (const [name, comparison] of Object.entries(COMPARISONS)) {
    if (names.length > 0 && !names.includes(name)) continue;
    const missing = comparison.needs.find((file) => !existsSync(join(tree.path, file)));
    if (missing !== undefined) process.stdout.write(`${name}: not compared, because ${revision} has no ${missing}\n`);
    else printCompared(name, await runComparison(comparison, tree.path));
  }
  return 0;
}

async function runComparison(comparison: Comparison, tree: string): Promise<Record<string, Compared>> {
  const old = await comparison.open(tree);
  try {
    const own = await comparison.open(OWN_TREE);
    try {
      const measured = await measureInTurn(
        { before: () => old.measure(), now: () => own.measure() },
        comparison.rounds,
      );
      return compare(measured.before!, measured.now!);
    } finally {
      await own.close?.();
    }
  } finally {
    await old.close?.();
  }
}

function printCompared(name: string, figures: Record<string, Compared>): void {
  for (const [figure, { before, now, ratio, range }] of Object.entries(figures)) {
    const [least, most] = range.map((value) => value.toFixed(2));
    process.stdout.write(
      `${`${name} ${figure}`.padEnd(30)} ${ratio.toFixed(2)} (${least} to ${most})   ${before.toFixed(1)} → ${now.toFixed(1)}\n`,
    );
  }
}

function refuse(words: string): number {
  process.stderr.write(`${words}\n`);
  return 2;
}
