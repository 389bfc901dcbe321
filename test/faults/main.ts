/* oxlint-disable unicorn/require-post-message-target-origin -- threads have no origin */
/**
 * `npm run faults`: seeded runs with random faults, each checked against all invariants, on as many threads as there
 * are processors. A failing run prints one line that replays it.
 */
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { Worker, isMainThread, parentPort } from 'node:worker_threads';
import { AppError, describeError } from '../../shared/domain/errors.ts';
import { BUGS } from './bugs.ts';
import { campaignSeed } from './campaign-seed.ts';
import { bugPlans, type FaultPlan, pairPlans, parsePlan, randomPlans, singlePlans } from './plan.ts';
import { play, type Played } from './play.ts';

interface Task {
  plan: FaultPlan;
  bug: string | null;
}

const HELP = `npm run faults -- [options]        exit code 1 when a run breaks an invariant: its line is printed at once

  --runs N          N runs (500): every fault at every moment, the worst pairs, then random ones, at most 100,000 a seed
  --seed N|date     random runs of this seed, or of a new one each day (FAULT_SEED, else 1)
  --threads N       on N threads (one for each processor)
  --replay "LINE"   the line that a failing run has printed
  --crash-points    the main server killed before and after every effect of a run
  --bug NAME        runs with this bug switched on: one must break an invariant
  --list-bugs
`;

/** Runs that are killed around every effect. */
const CRASHED = [
  { seed: 1, discovery: false, hosts: false },
  { seed: 2, discovery: false, hosts: false },
  { seed: 1, discovery: true, hosts: false },
  { seed: 1, discovery: false, hosts: true },
];

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      runs: { type: 'string', default: '500' },
      seed: { type: 'string', default: process.env.FAULT_SEED ?? '1' },
      threads: { type: 'string', default: String(availableParallelism()) },
      replay: { type: 'string' },
      bug: { type: 'string' },
      'list-bugs': { type: 'boolean', default: false },
      'crash-points': { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) {
    process.stdout.write(HELP);
    return 0;
  }
  if (values['list-bugs']) {
    for (const [name, { what, breaks }] of Object.entries(BUGS))
      process.stdout.write(`${name.padEnd(22)} ${breaks.join(' ').padEnd(8)} ${what}\n`);
    return 0;
  }
  const bug = values.bug ?? null;
  if (bug !== null && !BUGS[bug]) throw new Error(`there is no bug ${bug}; see --list-bugs`);
  if (values.replay !== undefined) {
    const played = await play(parsePlan(values.replay), bug);
    show(played);
    return report([played], 0);
  }
  const startedMs = performance.now();
  const runs = wholeNumber('--runs', values.runs);
  const threads = wholeNumber('--threads', values.threads);
  const seed = campaignSeed(values.seed, Date.now());
  const plans = bug === null ? await usualPlans(runs, seed, values['crash-points']) : bugPlans(BUGS[bug]!, seed);
  process.stdout.write(`${plans.length} runs, seed ${seed}\n`);
  const tasks = plans.map((plan) => ({ plan, bug }));
  const played = await playAll(tasks, threads);
  return report(played, performance.now() - startedMs);
}

/** All single faults and all pairs, then random ones; or only the crash points. */
async function usualPlans(runs: number, seed: number, crashPoints: boolean): Promise<FaultPlan[]> {
  if (crashPoints) return (await Promise.all(CRASHED.map(crashPlans))).flat();
  const fixed = [...singlePlans(), ...pairPlans()];
  const count = Math.max(0, runs - fixed.length);
  return [...fixed.slice(0, runs), ...randomPlans(seed, count)];
}

function wholeNumber(name: string, text: string): number {
  if (!/^[1-9]\d*$/.test(text)) throw new AppError('usage', `${name} is a whole number from 1, not ${text}`);
  return Number(text);
}

/** A kill before and one after every effect of a run without other faults. */
async function crashPlans(run: Pick<FaultPlan, 'seed' | 'discovery' | 'hosts'>): Promise<FaultPlan[]> {
  const { effects } = await play({ ...run, faults: [], crash: null });
  return effects.flatMap((_, at) =>
    (['before', 'after'] as const).map((side) => ({ ...run, faults: [], crash: { at, side } })),
  );
}

async function playAll(tasks: readonly Task[], threads: number): Promise<Played[]> {
  const queue = [...tasks];
  const played: Played[] = [];
  const work = (): Promise<void> =>
    new Promise((resolve, reject) => {
      const worker = new Worker(new URL(import.meta.url));
      const next = (): void => {
        const task = queue.shift();
        if (task) worker.postMessage(task);
        else void worker.terminate().then(() => resolve());
      };
      worker.on('message', (result: Played) => {
        played.push(result);
        show(result);
        next();
      });
      worker.on('error', reject);
      next();
    });
  await Promise.all(Array.from({ length: Math.min(threads, tasks.length) }, work));
  return played;
}

/** Printed at once, so that a campaign that is stopped keeps its findings. */
function show({ line, end, violations }: Played): void {
  if (violations.length === 0) return;
  process.stdout.write(`--replay "${line}"   (${end})\n`);
  for (const { invariant, sentence } of violations.slice(0, 4)) process.stdout.write(`    ${invariant} ${sentence}\n`);
}

/** F2 before F19. */
const byName = new Intl.Collator('en', { numeric: true });

/** The exit code. */
function report(played: readonly Played[], tookMs: number): number {
  const struck = Map.groupBy(
    played.flatMap((p) => p.struck),
    (name) => name,
  );
  const times = [...struck].map(([name, same]) => `${name}: ${same.length}`).toSorted(byName.compare);
  process.stdout.write(`struck: ${times.join(', ')}\n`);
  const broken = played.filter((p) => p.violations.length > 0);
  const ends = Map.groupBy(played, (p) => p.end);
  const counts = [...ends].map(([end, same]) => `${end}: ${same.length}`).join(', ');
  process.stdout.write(
    `${played.length} runs in ${(tookMs / 1_000).toFixed(1)} s, ${broken.length} broke an invariant (${counts})\n`,
  );
  return broken.length > 0 ? 1 : 0;
}

if (isMainThread)
  process.exitCode = await main().catch((error: unknown) => {
    process.stderr.write(`npm run faults: ${describeError(error)} (--help lists the options)\n`);
    return 2;
  });
else
  parentPort!.on('message', (task: Task) => {
    void play(task.plan, task.bug).then((result) => parentPort!.postMessage({ ...result, effects: [] }));
  });
