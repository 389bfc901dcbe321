/** `orchestrator export`: the rows of a run as CSV, JSON lines or Parquet. Reads the database only. */
import { resolve } from 'node:path';
import { AppError } from '../../../shared/domain/errors.ts';
import { EXIT, type ExitCode } from '../../../shared/domain/exit-codes.ts';
import { exportColumns, type ExportFormat, exportToFile, exportToStream } from '../../app/export/export-rows.ts';
import { findRun, storesOf, withDatabase } from '../../app/run/find-run.ts';
import { History } from '../../db/history.ts';
import type { Output } from '../output.ts';
import type { StatusOptions } from './status.ts';

export interface ExportOptions extends StatusOptions {
  format: ExportFormat;
  /** Omitted: stdout. */
  to?: string;
}

export async function exportCommand(options: ExportOptions, output: Output): Promise<ExitCode> {
  const { format, to } = options;
  if (to === undefined && format === 'parquet')
    throw new AppError('usage', 'Parquet is written to a file: name it with --to FILE');
  if (to === undefined && output.json)
    throw new AppError('usage', 'with --json the rows need a file: name it with --to FILE');
  return withDatabase(options, async (database) => {
    const { runs } = await storesOf(database);
    const run = await findRun(runs, options.runId, 'published yet', ({ phase }) => PUBLISHED.includes(phase));
    const rows = new History(database).rowsOfRun(run);
    const columns = exportColumns(run.settings);
    const count = await (to === undefined
      ? exportToStream(rows, { columns, format: format as 'csv' | 'jsonl', to: process.stdout })
      : exportToFile(rows, { columns, format, to: resolve(to) }));
    const stored = run.report?.products.stored ?? null;
    const replaced = stored !== null && run.settings.mapping.pages.every((p) => p.rows === null) ? stored - count : 0;
    if (to !== undefined) output.line(`${count} rows of run ${run.id} are in ${to}.`);
    // On stdout there is nothing but rows.
    if (replaced > 0)
      process.stderr.write(`! ${replaced} of the ${stored} products of this run have been replaced by later runs\n`);
    output.document({ run: run.id, format, file: to ?? null, rows: count, replaced });
    return EXIT.complete;
  });
}

const PUBLISHED: readonly string[] = ['completed', 'banned', 'failed', 'cancelled'];
