/** What a run leaves for the nights after it: what was crawled when, and nothing that is older than `retention`. */
import { existsSync, readdirSync, rmSync } from 'node:fs';
import { systemClock } from '../../../shared/adapters/system-clock.ts';
import { describeError } from '../../../shared/domain/errors.ts';
import { formatDuration } from '../../../shared/domain/quantity.ts';
import type { RunStore } from '../model/stores.ts';
import type { Database } from '../db/connect.ts';
import { createReaders } from '../db/create-stores.ts';
import { prune, type Pruned } from '../db/prune.ts';
import type { Output } from '../caller.ts';
import type { Config } from '../config/load-config.ts';
import { probeTable } from '../prepare/settings-of.ts';
import { stateDirOf } from '../config/state-dir.ts';

/** The longest time that old runs are pruned after a run; what is left then is removed after the next one. */
const QUIET_MS = 120_000;

/**
 * Prunes this configuration's runs, discoveries and probes: other sites that share the database have their own
 * `retention`. The folder of a dry run, with its bucket and its machines, goes with the rest.
 */
export async function pruneRuns(
  db: Database,
  config: Config,
  retentionMs: number,
  signal: AbortSignal,
): Promise<Pruned> {
  const { file, features, values } = config;
  const { table } = values.results;
  const nowMs = systemClock.now();
  const further = features.flatMap(({ afterPublish }) => afterPublish?.furtherTables?.(config) ?? []);
  const tables = [table, probeTable(table), ...further];
  const pruned = await prune(db, { tables, beforeMs: nowMs - retentionMs, nowMs, signal });
  await removeSandboxes(file, createReaders(db).runs);
  return pruned;
}

/**
 * Removes the folders of pruned dry runs, also of those pruned before: one that is only over still has results for
 * `load` and `verify` there.
 */
async function removeSandboxes(configFile: string, runs: Pick<RunStore, 'get'>): Promise<void> {
  const { sandboxes, sandbox } = stateDirOf(configFile);
  if (!existsSync(sandboxes)) return;
  for (const id of readdirSync(sandboxes)) {
    const run = await runs.get(id);
    if (run !== null && run.prunedAtMs !== null) rmSync(sandbox(id), { recursive: true, force: true });
  }
}

/** Prepares the next night after a run: takes bounded time and never fails. */
export async function prepareNextNight(db: Database, config: Config, output: Output): Promise<void> {
  const { retention: retentionMs, products, results } = config.values;
  try {
    const run = { resultTable: results.table, recrawls: products.recrawl !== null, discover: config.discovery };
    for (const { afterPublish } of config.features) {
      const line = (await afterPublish?.afterRun?.(db, run)) ?? null;
      if (line !== null) output.line(line);
    }
    if (retentionMs === null) return;
    const { runs } = await pruneRuns(db, config, retentionMs, AbortSignal.timeout(QUIET_MS));
    if (runs.length > 0) output.line(`  retention   removed what ${describePruned(runs.length, retentionMs)}`);
  } catch (error) {
    output.line(`! what the next night goes by could not be brought up to date: ${describeError(error)}`);
  }
}

export const describePruned = (runs: number, retentionMs: number): string =>
  `${runs === 1 ? 'one run' : `${runs} runs`} of more than ${formatDuration(retentionMs)} ago had left beside their rows and reports`;
