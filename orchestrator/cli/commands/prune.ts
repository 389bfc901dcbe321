/** `orchestrator prune`: removes what the database holds of old runs, beside their rows and reports. */
import { AppError } from '../../../shared/domain/errors.ts';
import { EXIT, type ExitCode } from '../../../shared/domain/exit-codes.ts';
import { formatDuration, parseDuration } from '../../../shared/domain/quantity.ts';
import type { ConfigPlace } from '../../app/config/load-config.ts';
import { storesOf, withDatabase } from '../../app/run/find-run.ts';
import { describePruned, pruneRuns } from '../../app/run/next-night.ts';
import { confirmLoss } from '../confirm.ts';
import { watchInterrupts } from '../interrupts.ts';
import type { Output } from '../output.ts';

export interface PruneOptions extends ConfigPlace {
  /** A duration; instead of `retention`. */
  olderThan?: string;
  yes: boolean;
}

export async function pruneCommand(options: PruneOptions, output: Output): Promise<ExitCode> {
  return withDatabase(options, async (database, config) => {
    const retentionMs = options.olderThan === undefined ? config.values.retention : parseDuration(options.olderThan);
    if (retentionMs === null)
      throw new AppError('usage', `there is no retention in ${config.file}`, {
        hint: 'Set it, or say how old: orchestrator prune --older-than 90d',
      });
    await storesOf(database);
    const interrupts = watchInterrupts();
    try {
      const question = `Remove products, events and changes of runs that ended more than ${formatDuration(retentionMs)} ago?`;
      if (!(await confirmLoss({ ...options, json: output.json, signal: interrupts.leave, question }))) {
        output.line('Nothing was changed.');
        return EXIT.interrupted;
      }
      const pruned = await pruneRuns(database, retentionMs, interrupts.leave);
      output.line(`Removed what ${describePruned(pruned.runs.length, retentionMs)}: ${pruned.rows} rows.`);
      output.document(pruned);
      return interrupts.leave.aborted ? EXIT.interrupted : EXIT.complete;
    } finally {
      interrupts.dispose();
    }
  });
}
