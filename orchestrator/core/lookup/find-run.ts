/** Finds the run that a command is about. */
import { AppError } from '../../../shared/domain/errors.ts';
import { isRunEnd } from '../../../shared/domain/states.ts';
import { hasBalancer } from '../model/regions.ts';
import type { RunRecord, RunStore, StoreReaders } from '../model/stores.ts';
import { type Database, openDatabase } from '../db/connect.ts';
import { createReaders } from '../db/create-stores.ts';
import { LATEST_VERSION, migrate, versionOf } from '../db/migrate.ts';
import type { Output } from '../caller.ts';
import { type Config, loadConfig } from '../config/load-config.ts';
import type { ConfigSource } from '../feature.ts';
import { competesWith, lockNamesOfConfig } from './run-lock.ts';

/** Opens the database of the configuration. While its server restarts, the command waits, and tells the user. */
export const openWaiting = ({ values }: Config, output: Pick<Output, 'line'>): Promise<Database> =>
  openDatabase(values.database.url, { onWait: (text) => output.line(`! ${text}`) });

/** Opens the database of the configuration for `work`, as `openWaiting` does, and closes it afterwards. */
export async function withDatabase<T>(
  place: ConfigSource,
  output: Pick<Output, 'line'>,
  work: (database: Database, config: Config) => Promise<T>,
): Promise<T> {
  const config = loadConfig(place);
  await using database = await openWaiting(config, output);
  return await work(database, config);
}

/** The stores for a command about an existing run. Creates no tables: this may be the wrong database. */
export async function storesOf(database: Database): Promise<StoreReaders> {
  if ((await versionOf(database)) === 0) throw noRun();
  await migrate(database);
  return createReaders(database);
}

/**
 * The stores for a list of runs; null where our tables are missing. Says when those of an earlier version are updated.
 */
export async function storesToList(database: Database, output: Pick<Output, 'line'>): Promise<StoreReaders | null> {
  const version = await versionOf(database);
  if (version === 0) return null;
  if (version !== LATEST_VERSION)
    output.line(
      `! ${database.label}: the crawlfleet tables are of an earlier version, ${version}, and are brought up to date`,
    );
  return await storesOf(database);
}

/** The named run. Throws `run-unknown`. */
export async function getRun(runs: RunStore, id: string): Promise<RunRecord> {
  const run = await runs.get(id);
  if (run) return run;
  throw new AppError('run-unknown', `there is no run ${id} in this database`, {
    hint: 'List them with: orchestrator status',
  });
}

/** Throws `run-unknown` for a run whose products and events `retention` has removed. */
export function assertKept({ id, prunedAtMs }: RunRecord): void {
  if (prunedAtMs === null) return;
  const day = new Date(prunedAtMs).toISOString().slice(0, 10);
  throw new AppError('run-unknown', `products and events of run ${id} were removed on ${day} (retention)`, {
    hint: `Its report stays: orchestrator report ${id}`,
  });
}

/** Newest runs, those of all sites that share the database. */
const LOOKED_AT = 500;
export const NO_RUN_YET = 'No run yet. Start one with: orchestrator run';
/** Runs that a command without a RUN lists. */
export const LISTED = 10;

/** The newest runs of the configuration's site or result table, the newest first, and all that are unfinished. */
export async function runsOfSite(runs: RunStore, config: Config): Promise<RunRecord[]> {
  const names = lockNamesOfConfig(config);
  const [listed, unfinished] = await Promise.all([runs.list(LOOKED_AT), runs.unfinished()]);
  const byId = new Map([...listed, ...unfinished].map((run) => [run.id, run]));
  return [...byId.values()].filter((run) => competesWith(run, names));
}

/**
 * The named run, else the newest that matches of the configuration's site or result table: others may share the
 * database. `kind` says in a word what matches. Throws `run-unknown`.
 */
export async function findRun(
  runs: RunStore,
  { runId, config }: { runId: string | undefined; config: Config },
  kind: string,
  wanted: (run: RunRecord) => boolean,
): Promise<RunRecord> {
  if (runId !== undefined) return getRun(runs, runId);
  const known = await runsOfSite(runs, config);
  const run = known.find(wanted);
  if (run) return run;
  if (known.length > 0) {
    throw new AppError('run-unknown', `no run of this site or result table is ${kind}`, {
      hint: 'Look at them with: orchestrator status',
    });
  }
  throw noRun(' of this site or result table');
}

const noRun = (of = ''): AppError =>
  new AppError('run-unknown', `there is no run${of} in this database`, {
    hint: 'Start one with: orchestrator run. If there should be some, check --config and its database.url',
  });

/** A run gets its report once it is cleaned up: a run that has ended without one is also for `resume`. */
export const isUnfinished = (run: RunRecord): boolean => !isRunEnd(run.phase) || run.report === null;

/** The unfinished runs that need a lock of these names, the newest first. */
export const unfinishedRuns = async (
  runs: Pick<RunStore, 'unfinished'>,
  names: readonly string[],
): Promise<RunRecord[]> => (await runs.unfinished()).filter((run) => competesWith(run, names));

/** True unless the instances and the load balancer of the run are known to be gone. */
export async function hasLeftovers(stores: Pick<StoreReaders, 'of'>, run: RunRecord): Promise<boolean> {
  if (hasBalancer(run)) return true;
  return (await stores.of(run.id).fleet.instances()).some((i) => i.phase !== 'terminated');
}
