/** Starts a run: checks, plans, asks for confirmation; then launches, crawls, publishes, reports. */
import type { Caller } from '../caller.ts';
import { systemRandom } from '../../../shared/adapters/random.ts';
import { systemClock } from '../../../shared/adapters/system-clock.ts';
import type { RobotsPolicy } from '../../../shared/domain/robots-matcher.ts';
import { EXIT, type ExitCode } from '../../../shared/domain/exit-codes.ts';
import { ProcessState } from '../model/process-state.ts';
import { buildReport } from '../act/results/finish.ts';
import { newRunId, newRunKeys } from '../new-run.ts';
import type { Database } from '../db/connect.ts';
import { createResultTable } from '../db/result-table.ts';
import { ScheduleStore } from '../../features/schedule/schedule-store.ts';
import type { Plan } from '../plan/plan.ts';
import type { Planned } from '../../features/recrawl/fit-night.ts';
import { renderPlan, startInWords } from '../plan/render-plan.ts';
import { announceEnd, announceRefusal } from '../../features/notify/announce.ts';
import { publishReport } from './carry-out.ts';
import { checkBeforeLaunch, withOtherFailures } from './before-launch.ts';
import type { FactsOptions } from '../checks/facts.ts';
import { collectGarbageQuietly } from './collect-garbage.ts';
import { type Config, type FlagValue, loadConfig } from '../config/load-config.ts';
import type { ConfigPlace } from '../feature.ts';
import { launchRun, type LaunchRunOptions, newRun } from './launch-run.ts';
import type { RunSource } from '../prepare/run-source.ts';
import { recognizeEndpoint } from '../cloud-access/recognize-endpoint.ts';
import { preflight, robotsOf } from '../prepare/preflight.ts';
import type { ProductList } from '../prepare/products.ts';
import { settingsOf } from '../prepare/settings-of.ts';
import { awaitSite } from '../prepare/await-site.ts';
import { IGNORED_ROBOTS } from '../model/robots-pace.ts';
import { assumedTarget, chooseTarget } from '../config/target.ts';
import { prepareNextNight } from '../../features/recrawl/next-night.ts';
import { ownName } from '../lookup/process-name.ts';
import { livingHolder, lockNamesOfConfig, lockNamesOfRun, type RunLock, underLock } from '../lookup/run-lock.ts';
import { unfinishedRuns } from '../lookup/find-run.ts';
import { AppError, describeError } from '../../../shared/domain/errors.ts';
import { isRunEnd } from '../../../shared/domain/states.ts';
import type { RunRecord, RunStore } from '../model/stores.ts';
import { isRebuilt } from '../act/results/recover.ts';
import { type Resumption, resumeRun } from './resume.ts';

export interface StartOptions extends ConfigPlace {
  flags: FlagValue[];
  /** What the run goes by instead of the configuration as it stands. */
  configure?: (config: Config) => Config;
  dryRun: boolean;
  /** Asked once the plan is shown; false launches nothing. */
  confirm: (dryRun: boolean) => Promise<boolean>;
  /** The due time that the run is started for; null by hand. */
  due?: DueTimeOfRun | null;
  /** No person sees what it says, and no daemon answers for it: an error before there is a run is announced. */
  unattended?: boolean;
}

const unchanged = (config: Config): Config => config;

interface DueTimeOfRun {
  atMs: number;
  /** When the daemon started this process; it names the start. */
  startedAtMs: number;
  /** The name of the schedule. */
  schedule: string;
}

/** Checks, plans, asks for confirmation, then carries the run out. The same for `run` and `retry`. */
export async function startRun(options: StartOptions, caller: Caller, source: RunSource): Promise<ExitCode> {
  const config = (options.configure ?? unchanged)(loadConfig(options));
  let isStored = false;
  const onBound = (): void => {
    isStored = true;
  };
  try {
    return await start(config, { ...options, onBound }, caller, source);
  } catch (error) {
    if (options.unattended === true && !isStored)
      for (const fault of await announceRefusal(error, config, options)) caller.output.line(`! ${fault}`);
    throw error;
  }
}

/** The run that a source tries again, and whether it is done as a dry run: `--dry-run` makes a dry run of any. */
export async function kindOf(
  source: RunSource,
  asked: { dryRun: boolean },
  config: Config,
): Promise<{ parent: RunRecord | null; dryRun: boolean }> {
  const parent = (await source.parent?.(config)) ?? null;
  return { parent, dryRun: asked.dryRun || parent?.dryRun === true };
}

async function start(
  config: Config,
  options: StartOptions & { onBound: () => void },
  caller: Caller,
  source: RunSource,
): Promise<ExitCode> {
  const { environment } = options;
  const { output, interrupts } = caller;
  const { parent, dryRun } = await kindOf(source, options, config);
  // An error that stops the run is reported together with everything else that would stop it.
  const allAtOnce = <T>(step: Promise<T>, known: NonNullable<FactsOptions['known']> = {}): Promise<T> =>
    step.catch(async (error: unknown) => {
      const place = { config, target: assumedTarget(config, dryRun, environment), environment };
      throw await withOtherFailures(error, { ...place, isQuery: source.isQuery === true }, known);
    });
  const chosenTarget = await allAtOnce(Promise.resolve().then(() => chooseTarget(config, dryRun, environment)));
  const { target, profile } = await recognizeEndpoint(chosenTarget);
  const place = { config, target, environment };
  await using checked = await allAtOnce(preflight(config, target, { migrate: true, environment, output }));
  const { runs } = checked.stores;
  const names = await namesToLock(runs, lockNamesOfConfig(config));
  const work = async (lock: RunLock): Promise<ExitCode> => {
    await takeUpUnfinished({ ...caller, stores: checked.stores, lock, config }, names);
    const { database } = checked;
    // The sandbox of a dry run ends on its own; everything else may be left over from a dead main server.
    const cloud = target.kind !== 'sandbox';
    const garbage = { config, environment: options.environment, database, runs, dryRun: false, cloud };
    for (const line of await collectGarbageQuietly(garbage)) output.line(`! ${line}`);
    const chosen = await allAtOnce(source.choose(checked, parent), { database });
    if (chosen === null) return EXIT.complete;
    const { products: all, parentId } = chosen;
    // Of a discovery, only some paths are known.
    const ids = all.discovery === undefined ? all.ids : [];
    await allAtOnce(checked.checkResults(ids), { database, products: all });
    const planned = async (robots: RobotsPolicy): Promise<Planned> => {
      const { plan, products } = await allAtOnce(checked.plan(all, robots), { database, products: all });
      output.line(renderPlan(plan, config.values.run.max_cost));
      output.line();
      for (const line of await checkBeforeLaunch({ ...place, database, plan, products })) output.line(`! ${line}`);
      return { plan, products };
    };
    const seen = all.ids.length === 0 ? IGNORED_ROBOTS : await robotsOf(config);
    let { plan, products } = await planned(seen);
    // Report all other problems before waiting for the site; its robots.txt may then change the plan.
    const waiting = { clock: systemClock, signal: interrupts.leave, say: (text: string) => output.line(text) };
    const robots = await awaitSite(seen, config, dryRun, waiting);
    if (robots !== seen) ({ plan, products } = await planned(robots));
    const shared = {
      ...caller,
      ...checked,
      config,
      target,
      lock,
      plan,
      products,
      parentId,
      profile,
      runId: newRunId(systemClock.now(), systemRandom),
      dueAtMs: options.due?.atMs ?? null,
      bindRun: async (runId: string) => {
        if (options.due) await bindDueTime(database, options.due, runId, systemClock.now() + plan.deadlineMs);
        options.onBound();
      },
    };
    if (products.ids.length === 0) return await runNothing(shared);
    output.line(startInWords(plan, dryRun, systemClock.now()));
    if (!(await options.confirm(dryRun))) {
      output.line('Nothing was launched.');
      return EXIT.interrupted;
    }
    const exitCode = await launchRun(shared);
    await prepareNextNight(database, config, output);
    return exitCode;
  };
  return await underLock(runs, names, work, () => unfinishedToEnd(runs, config));
}

/**
 * Writes the run into the row of its due time before the run is stored, so no run of a due time can be overlooked. Throws
 * `lock-held` when the due time has been started anew since this process was: then this one must store no run.
 */
async function bindDueTime(
  database: Database,
  { atMs, startedAtMs, schedule }: DueTimeOfRun,
  runId: string,
  deadlineAtMs: number,
): Promise<void> {
  const store = new ScheduleStore(database, schedule);
  const run = { runner: ownName(), runId, deadlineAtMs };
  if (await store.write(atMs, { state: 'started', startedAtMs }, run)) return;
  throw new AppError('lock-held', `the due time ${new Date(atMs).toISOString()} is given to another process`);
}

/** A run of no products is complete at once; nothing is launched for it. */
async function runNothing(options: LaunchRunOptions & { plan: Plan; products: ProductList }): Promise<ExitCode> {
  const { config, target, stores, lock, runId, output } = options;
  const settings = {
    ...settingsOf(config, target, options.plan),
    sandbox: null,
    server: { callbackUrl: '', callbackListen: '' },
  };
  await createResultTable(options.database, settings.results, settings.mapping);
  await options.bindRun(runId);
  await stores.runs.create(newRun(options, newRunKeys(), settings), [], lock.fence, systemClock.now());
  const rows = stores.bind({ runId, fence: lock.fence, clock: systemClock });
  await rows.run.move('planned', 'completed', { exitCode: EXIT.complete, reason: 'no products' });
  const report = await buildReport({ ...rows, clock: systemClock, processState: new ProcessState() });
  for (const fault of await announceEnd((await rows.run.get())!, report, config)) {
    output.line(`! ${fault}`);
    report.notes.push(fault);
  }
  await rows.run.setReport(report);
  const why = options.products.night
    ? 'No product is due'
    : config.discovery
      ? 'No URL waits'
      : 'The query yields no products';
  output.line(`${why}: nothing to crawl, nothing was launched.`);
  publishReport(report, (await stores.runs.get(runId))!, config, output);
  return EXIT.complete;
}

type UnfinishedOptions = Omit<Resumption, 'run'>;

/**
 * The locks of a new run, and those of the unfinished runs that it has to end first: a discovery of the same host has
 * another table. Without the latter if another main server has one of them.
 */
async function namesToLock(runs: RunStore, names: readonly string[]): Promise<readonly string[]> {
  const others = (await unfinishedRuns(runs, names)).flatMap(lockNamesOfRun).filter((name) => !names.includes(name));
  return others.length > 0 && (await livingHolder(runs, others)) === null ? [...new Set([...names, ...others])] : names;
}

/**
 * Unfinished runs of this site or result table. Throws `run-unfinished` when the deadline of one is still ahead: two
 * crawls at a time would double the load on the site.
 */
async function unfinishedToEnd(runs: RunStore, config: Config): Promise<RunRecord[]> {
  const unfinished = await unfinishedRuns(runs, lockNamesOfConfig(config));
  const ahead = unfinished.find(
    (run) => !isRunEnd(run.phase) && systemClock.now() <= run.deadlineAtMs && !isRebuilt(run),
  );
  if (ahead) throw stillAhead(ahead);
  return unfinished;
}

/**
 * Ends every unfinished run of this site or result table whose deadline is past, and every ended run without a report:
 * loads and publishes what its instances have left in the bucket, terminates its remaining resources, writes its report.
 * A run that cannot be ended is reported; it does not block the new run.
 * @param names of the locks that are held
 */
async function takeUpUnfinished(options: UnfinishedOptions, names: readonly string[]): Promise<void> {
  const unfinished = await unfinishedToEnd(options.stores.runs, options.config);
  // The oldest first: of two that crawled the same product the later one wins, and must be there to win.
  for (const run of unfinished.reverse()) {
    const others = lockNamesOfRun(run).filter((name) => !names.includes(name));
    if (others.length === 0) await endOne(options, run);
    else
      options.output.line(
        `! run ${run.id} is not ended: another main server has the lock of ${others.join(', ').replaceAll(':', ' ')}. End it later with: orchestrator resume ${run.id}`,
      );
  }
}

async function endOne(options: UnfinishedOptions, run: RunRecord): Promise<void> {
  const { output, lock, interrupts } = options;
  if (isRebuilt(run)) {
    output.line(`! run ${run.id} was being rebuilt from the bucket; go on with: orchestrator load ${run.id}`);
    return;
  }
  output.line(
    isRunEnd(run.phase)
      ? `Run ${run.id} is ${run.phase}, but what it has left is not gone, or its report is missing: it is finished first.`
      : `Run ${run.id} has lost its main server, and its deadline is past: it is ended first.`,
  );
  try {
    await lock.setRun(run.id);
    // A command prints one JSON document: that of the new run.
    const quiet = { ...output, document: () => undefined };
    // Ctrl-C leaves at once: it was meant for the new run, and must not end the old one as stopped by the user.
    const leaving = { ...interrupts, onFirst: () => undefined };
    await resumeRun({ ...options, run, interrupts: leaving, output: quiet });
  } catch (error) {
    if (error instanceof AppError && error.code === 'lock-held') throw error;
    output.line(`! run ${run.id} could not be ended: ${describeError(error)}; try: orchestrator resume ${run.id}`);
  }
  if (interrupts.leave.aborted) throw new AppError('interrupted', 'interrupted before anything was launched');
  output.line();
}

function stillAhead(run: RunRecord): AppError {
  return new AppError(
    'run-unfinished',
    `run ${run.id} (${run.phase}) has lost its main server, and its deadline is ahead: ${new Date(run.deadlineAtMs).toISOString()}`,
    { hint: `Take it up with: orchestrator resume ${run.id}, or give it up with: orchestrator cancel ${run.id}` },
  );
}
