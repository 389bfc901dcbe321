/** Starts a run: checks, plans, asks for confirmation; then launches, crawls, publishes, reports. */
import { systemRandom } from '../../../shared/adapters/random.ts';
import { systemClock } from '../../../shared/adapters/system-clock.ts';
import { EXIT, type ExitCode } from '../../../shared/domain/exit-codes.ts';
import { prepareNextNight } from './next-night.ts';
import { type Config, type FlagValue, loadConfig } from '../config/load-config.ts';
import { addColumns, columnsToAdd } from '../db/result-table.ts';
import type { ConfigSource } from '../feature.ts';
import type { RunRecord } from '../model/stores.ts';
import { newRunId } from '../new-run.ts';
import { startInWords } from '../plan/render-plan.ts';
import type { RunSource } from '../prepare/run-source.ts';
import { carryOut } from './carry-out.ts';
import { completeEmptyRun } from './empty-run.ts';
import { launchRun } from './launch-run.ts';
import { planStart } from './plan-start.ts';
import { type DueTimeOfRun, emit } from '../run-events.ts';
import type { Caller } from '../caller.ts';
import { openStart, type StartContext } from './start-context.ts';

export interface StartOptions extends ConfigSource {
  flags: FlagValue[];
  dryRun: boolean;
  /** Asked once the plan is shown; false launches nothing. */
  confirm: (dryRun: boolean) => Promise<boolean>;
  /** Asked before the columns that a new field needs are added to a table of ours; omitted: none are added. */
  confirmColumns?: ((question: string) => Promise<boolean>) | undefined;
  /** The due time that the run is started for; null by hand. */
  due?: DueTimeOfRun | null;
  /** No person sees what it says, and no daemon answers for it: an error before there is a run is announced. */
  unattended?: boolean;
}

/**
 * Checks, plans, asks for confirmation, then carries the run out. The same for `run`, `discover`, `retry` and `probe`.
 */
export async function startRun(options: StartOptions, caller: Caller, source: RunSource): Promise<ExitCode> {
  const { environment, features, due = null } = options;
  const { output } = caller;
  const loaded = loadConfig(options);
  const config = source.configure?.(loaded) ?? loaded;
  let isStored = false;
  try {
    const { parent, dryRun } = await kindOf(source, options, config);
    const isQuery = source.isQuery === true;
    await using context = await openStart({ config, environment, features, dryRun, isQuery }, caller);
    const { database } = context;
    if (options.confirmColumns) await addNewColumns(context, options.confirmColumns);
    const planned = await planStart(context, source, parent);
    if (planned === null) return EXIT.complete;
    const { plan, products } = planned;
    const runId = newRunId(systemClock.now(), systemRandom);
    const bind = async (): Promise<void> => {
      const run = { runId, deadlineAtMs: systemClock.now() + plan.deadlineMs };
      if (due) for (const { runEvents } of features) await runEvents?.bind?.(context, due, run);
      isStored = true;
    };
    const accepted = { ...planned, runId, dueAtMs: due?.atMs ?? null, bind };
    if (products.ids.length === 0) return await completeEmptyRun(context, accepted);
    output.line(startInWords(plan, dryRun, systemClock.now()));
    if (!(await options.confirm(dryRun))) {
      output.line('Nothing was launched.');
      return EXIT.interrupted;
    }
    const { exitCode } = await carryOut(context, await launchRun(context, accepted));
    await prepareNextNight(database, config, output);
    return exitCode;
  } catch (error) {
    if (options.unattended === true && !isStored)
      for (const fault of await emit(features, (events) => events.refused?.(error, { config, dryRun: options.dryRun })))
        output.line(`! ${fault}`);
    throw error;
  }
}

/** Brings a table of ours up to the mapping; the checks that follow refuse what is still missing. */
async function addNewColumns(
  { config, database, output }: StartContext,
  confirm: (question: string) => Promise<boolean>,
): Promise<void> {
  const { table } = config.values.results;
  const columns = await columnsToAdd(database, table, config.mapping);
  if (columns.length === 0 || !(await confirm(`Add to ${table}: ${columns.join(', ')}?`))) return;
  await addColumns(database, table, columns);
  output.line(`Added to ${table}: ${columns.join(', ')}`);
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
