/** gc with its adapters: what a dead main server has left at AWS and in the database. */
import { systemClock } from '../../../shared/adapters/system-clock.ts';
import { AppError, describeError } from '../../../shared/domain/errors.ts';
import { collect, type GcReport } from '../gc/gc.ts';
import type { RunStore } from '../model/stores.ts';
import type { Database } from '../db/connect.ts';
import { createGcMarks, dropOrphanStaging, findOrphanStaging } from '../db/garbage.ts';
import { openCloud } from '../cloud-access/cloud-access.ts';
import type { Config, Environment } from '../config/load-config.ts';
import { awsSettingsOf, ownerOf } from '../prepare/settings-of.ts';
import { assumedTarget, isLocal, regionOf } from '../config/target.ts';
import { runsAtWork } from '../lookup/run-lock.ts';

export interface GarbageOptions {
  config: Config;
  environment: Environment;
  database: Database;
  runs: RunStore;
  dryRun: boolean;
  /** Checks AWS; false to check only this machine. */
  cloud: boolean;
}

export interface GarbageReport {
  /** What was found at AWS; null when no region is configured, so there is no cloud to check. */
  cloud: GcReport | null;
  /** Runs whose staging table was dropped, or would be. */
  staging: string[];
}

/** Throws when AWS or the database cannot be queried. Needs the tables of migrate(). */
export async function collectGarbage(options: GarbageOptions): Promise<GarbageReport> {
  const { database, runs, dryRun } = options;
  const workedOn = await runsAtWork(runs);
  const orphans = await findOrphanStaging(database, systemClock.now(), workedOn);
  const staging = dryRun ? orphans : await dropOrphanStaging(database, orphans);
  return { cloud: options.cloud ? await reapCloud(options, workedOn) : null, staging };
}

async function reapCloud(options: GarbageOptions, workedOn: ReadonlySet<string>): Promise<GcReport | null> {
  const { config, environment, database, runs, dryRun } = options;
  const { aws } = config.values;
  const region = regionOf(config, environment);
  if (region === null && aws.endpoint === null) return null;
  let skewMs: number | null = null;
  const { regions, endpoint } = awsSettingsOf(config, assumedTarget(config, false, environment));
  const place = { region: region ?? 'ap-northeast-1', ...(regions ? { regions } : {}), endpoint, bucket: '' };
  using cloud = openCloud(place, isLocal(aws.endpoint), { onTime: (ms) => (skewMs = ms - systemClock.now()) });
  const common = { owner: ownerOf(config), runs, marks: createGcMarks(database), clock: systemClock };
  const reports: GcReport[] = [];
  const failures: unknown[] = [];
  // A region that does not answer must not keep what is left in the others.
  for (const { compute, balancers } of cloud.regions) {
    const options = { ...common, compute, balancers, skewMs: () => skewMs, workedOn, dryRun };
    await collect(options).then(
      (report) => reports.push(report),
      (error: unknown) => failures.push(error),
    );
  }
  if (failures.length > 0) throw failures[0];
  const refused = reports.find((report) => report.refused !== null)?.refused ?? null;
  return { ...reports[0]!, refused, items: reports.flatMap(({ items }) => items) };
}

const QUIET_MS = 15_000;

/** Collects garbage at the start of a run: takes bounded time and never fails; returns what it did as lines. */
export async function collectGarbageQuietly(options: GarbageOptions): Promise<string[]> {
  const done = new AbortController();
  try {
    const late = systemClock.sleep(QUIET_MS, done.signal).then(() => {
      throw new AppError('aws-failed', `no answer within ${QUIET_MS / 1_000} s`);
    });
    const { cloud } = await Promise.race([collectGarbage(options), late]);
    return cloud === null ? [] : wordsOf(cloud);
  } catch (error) {
    return [`gc could not check for leftovers of earlier runs: ${describeError(error)}`];
  } finally {
    // A leftover timer would keep the process alive until it fires.
    done.abort();
  }
}

/** What the user who starts a run should know about it. */
export function wordsOf({ items, refused, owner }: Pick<GcReport, 'items' | 'refused' | 'owner'>): string[] {
  const acted = items.filter((i) => i.action !== 'kept');
  const unknown = Map.groupBy(
    items.filter((i) => i.unknownRun && i.action === 'kept'),
    (i) => i.run,
  );
  return [
    ...(refused !== null && items.length > 0 ? [`gc did nothing: ${refused}`] : []),
    ...acted.map((i) => `gc: ${i.kind} ${i.id} of run ${i.run} is past its time: ${ACTION_WORDS[i.action]}`),
    ...[...unknown].map(([run, alive]) => strangers(run, alive, owner)),
  ];
}

function strangers(run: string | null, alive: readonly GcReport['items'][number][], owner: string): string {
  const until = alive.map((i) => i.expiresAt ?? '?').reduce((a, b) => (a > b ? a : b));
  return (
    `${alive.length} instances of run ${run} are up until ${until.slice(0, 19)}, and this database does not know that run: if they crawl the same site, ` +
    `it gets requests from both runs. A lost database: \`orchestrator load ${run}\`. Another main server: an aws.owner of its own, not ${owner}`
  );
}

/** The action in words for the user. */
export const ACTION_WORDS = {
  kept: 'stays',
  marked: 'marked; a gc after a minute ends it',
  waiting: 'marked less than a minute ago',
  terminated: 'terminated',
  failed: 'could not be terminated',
};
