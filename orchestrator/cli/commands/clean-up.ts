/**
 * `orchestrator gc` and `prune`: end what dead main servers have left at AWS, and remove what old runs have left here.
 */
import { EXIT, type ExitCode } from '../../../shared/domain/exit-codes.ts';
import type { GcReport } from '../../core/gc/gc.ts';
import { createReaders } from '../../core/db/create-stores.ts';
import { migrate } from '../../core/db/migrate.ts';
import { collectGarbage, ACTION_WORDS } from '../../core/run/collect-garbage.ts';
import type { ConfigSource } from '../../core/feature.ts';
import { storesOf, withDatabase } from '../../core/lookup/find-run.ts';
import type { Output } from '../output.ts';
import { renderTable } from '../../../shared/domain/text-table.ts';
import { AppError } from '../../../shared/domain/errors.ts';
import { formatDuration, parseDuration } from '../../../shared/domain/quantity.ts';
import { describePruned, pruneRuns } from '../../core/run/next-night.ts';
import { confirmLoss } from '../confirm.ts';
import { watchInterrupts } from '../interrupts.ts';

/** Exit code 1 when something could not be ended, 4 when a wrong clock stopped gc from trying. */
export async function gcCommand(options: ConfigSource & { dryRun: boolean }, output: Output): Promise<ExitCode> {
  const { dryRun, environment } = options;
  return withDatabase(options, output, async (database, config) => {
    await migrate(database);
    const { runs } = createReaders(database);
    const report = await collectGarbage({ config, environment, database, runs, dryRun, cloud: true });
    output.line(report.cloud === null ? NO_REGION : renderCloud(report.cloud));
    const verb = dryRun ? 'would be dropped' : 'dropped';
    if (report.staging.length > 0) output.line(`\nStaging tables ${verb}: ${report.staging.join(', ')}`);
    output.document({ ...report.cloud, staging: report.staging });
    if (report.cloud?.items.some((i) => i.action === 'failed')) return EXIT.internal;
    return report.cloud?.refused && report.cloud.items.length > 0 ? EXIT.config : EXIT.complete;
  });
}

const NO_REGION = 'Neither aws.region nor aws.endpoint is set: there is no cloud to check.';

function renderCloud(report: GcReport): string {
  const { items, owner, refused, dryRun } = report;
  if (items.length === 0) return `Nothing at AWS carries the tag crawlfleet:owner=${owner}.`;
  const table = renderTable(
    ['kind', 'id', 'run', 'state', 'its time', dryRun ? 'would be' : 'now'],
    items.map((i) => [
      i.kind,
      i.id,
      i.run,
      i.state,
      i.expiresAt?.slice(0, 19) ?? null,
      i.detail === null ? ACTION_WORDS[i.action] : `${ACTION_WORDS[i.action]}: ${i.detail}`,
    ]),
  );
  return refused === null ? table : `${table}\n\n! nothing was marked or ended: ${refused}`;
}

/** `olderThan`: a duration, instead of `retention`. */
type PruneOptions = ConfigSource & { olderThan?: string; yes: boolean };

export async function pruneCommand(options: PruneOptions, output: Output): Promise<ExitCode> {
  return withDatabase(options, output, async (database, config) => {
    const retentionMs = options.olderThan === undefined ? config.values.retention : parseDuration(options.olderThan);
    if (retentionMs === null)
      throw new AppError('usage', `there is no retention in ${config.file}`, {
        hint: 'Set it, or say how old: orchestrator prune --older-than 90d',
      });
    await storesOf(database);
    using interrupts = watchInterrupts();
    const question = `Remove products, events and changes of runs that ended more than ${formatDuration(retentionMs)} ago?`;
    if (!(await confirmLoss({ ...options, json: output.json, signal: interrupts.leave, question }))) {
      output.line('Nothing was changed.');
      return EXIT.interrupted;
    }
    const pruned = await pruneRuns(database, config, retentionMs, interrupts.leave);
    output.line(`Removed what ${describePruned(pruned.runs.length, retentionMs)}: ${pruned.rows} rows.`);
    output.document(pruned);
    return interrupts.leave.aborted ? EXIT.interrupted : EXIT.complete;
  });
}
