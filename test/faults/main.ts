/* oxlint-disable unicorn/require-post-message-target-origin -- threads have no origin */
/**
 * `npm run faults`: seeded runs with random faults, each checked against all invariants, on as many threads as there are
 * processors. A failing run prints one line that replays it.
 */
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { Worker, isMainThread, parentPort } from 'node:worker_threads';
import { BUGS } from './bugs.ts';
import type { FaultPlan } from './plan.ts';
import { bugPlans, pairPlans, parsePlan, randomPlan, singlePlans } from './plan.ts';
import type { Played } from './play.ts';
import { play } from './play.ts';

interface Task {
  plan: FaultPlan;
  bug: string | null;
}

/** Runs with a kill around every effect of these. */
const CRASHED_SEEDS = [1, 2];

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      runs: { type: 'string', default: '500' },
      seed: { type: 'string', default: '1' },
      replay: { type: 'string' },
      bug: { type: 'string' },
      'list-bugs': { type: 'boolean', default: false },
      'crash-points': { type: 'boolean', default: false },
    },
  });
  if (values['list-bugs']) {
    for (const [name, { what, breaks }] of Object.entries(BUGS))
      process.stdout.write(`${name.padEnd(22)} ${breaks.join(' ').padEnd(8)} ${what}\n`);
    return 0;
  }
  const bug = values.bug ?? null;
  if (bug !== null && !BUGS[bug]) throw new Error(`there is no bug ${bug}; see --list-bugs`);
  if (values.replay !== undefined) return report([await play(parsePlan(values.replay), bug)], 0);
  const startedMs = performance.now();
  const runs = Number(values.runs);
  const seed = Number(values.seed);
  const plans = bug === null ? await usualPlans(runs, seed, values['crash-points']) : bugPlans(BUGS[bug]!, seed);
  const played = await playAll(plans.map((plan) => ({ plan, bug })));
  return report(played, performance.now() - startedMs);
}

/** All single faults and all pairs, then random ones; or the crash points alone. */
async function usualPlans(runs: number, seed: number, crashPoints: boolean): Promise<FaultPlan[]> {
  if (crashPoints) return (await Promise.all(CRASHED_SEEDS.map(crashPlans))).flat();
  const fixed = [...singlePlans(), ...pairPlans()];
  const count = Math.max(0, runs - fixed.length);
  return [...fixed.slice(0, runs), ...Array.from({ length: count }, (_, i) => randomPlan(seed * 100_000 + i))];
}

/** A kill before and one after every effect of a run without other faults. */
async function crashPlans(seed: number): Promise<FaultPlan[]> {
  const { effects } = await play({ seed, faults: [], crash: null });
  return effects.flatMap((_, at) =>
    (['before', 'after'] as const).map((side) => ({ seed, faults: [], crash: { at, side } })),
  );
}

async function playAll(tasks: readonly Task[]): Promise<Played[]> {
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
        next();
      });
      worker.on('error', reject);
      next();
    });
  await Promise.all(Array.from({ length: Math.min(availableParallelism(), tasks.length) }, work));
  return played;
}

function report(played: readonly Played[], tookMs: number): number {
  const broken = played.filter((p) => p.violations.length > 0);
  for (const { line, end, violations } of broken.slice(0, 20)) {
    process.stdout.write(`--replay "${line}"   (${end})\n`);
    for (const { invariant, sentence } of violations.slice(0, 4))
      process.stdout.write(`    ${invariant} ${sentence}\n`);
  }
  const ends = Map.groupBy(played, (p) => p.end);
  const counts = [...ends].map(([end, same]) => `${end}: ${same.length}`).join(', ');
  process.stdout.write(
    `${played.length} runs in ${(tookMs / 1_000).toFixed(1)} s, ${broken.length} broke an invariant (${counts})\n`,
  );
  return broken.length > 0 ? 1 : 0;
}

if (isMainThread) process.exitCode = await main();
else
  parentPort!.on('message', (task: Task) => {
    void play(task.plan, task.bug).then((result) => parentPort!.postMessage({ ...result, effects: [] }));
  });
