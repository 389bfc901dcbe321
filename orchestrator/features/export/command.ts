/** `orchestrator export`: the rows of a run as a file. Reads the database only. */
import { AppError } from '../../../shared/domain/errors.ts';
import { EXIT, type ExitCode } from '../../../shared/domain/exit-codes.ts';
import { ask, isInteractive, isYes } from '../../cli/confirm.ts';
import type { StatusOptions } from '../../cli/commands/status.ts';
import type { Output } from '../../cli/output.ts';
import { fileOf, writeFile, writeLines } from '../../cli/output-file.ts';
import { writeText } from '../../cli/terminal.ts';
import { findRun, storesOf, withDatabase } from '../../core/lookup/find-run.ts';
import { History } from '../../core/db/history.ts';
import { countFormulas, exportColumns, exportLines } from '../../core/read/row-lines.ts';
import { exportParquet } from './parquet.ts';

export type ExportFormat = 'csv' | 'jsonl' | 'parquet';

type ExportOptions = StatusOptions & { format: ExportFormat; to?: string; safe?: boolean };

export async function exportCommand(options: ExportOptions, output: Output): Promise<ExitCode> {
  const { format } = options;
  const to = fileOf(options.to);
  if (to === undefined && format === 'parquet')
    throw new AppError('usage', 'Parquet is written to a file: name it with --to FILE');
  if (to === undefined && output.json)
    throw new AppError('usage', 'with --json the rows need a file: name it with --to FILE');
  if (options.safe && format !== 'csv')
    throw new AppError('usage', '--safe is for CSV: other formats have no formulas', { hint: 'Leave it out.' });
  return withDatabase(options, output, async (database, config) => {
    const { runs } = await storesOf(database);
    const run = await findRun(runs, { runId: options.runId, config }, 'published yet', ({ phase }) =>
      PUBLISHED.includes(phase),
    );
    const columns = exportColumns(run.settings);
    const history = new History(database);
    // A pipe and cron get the exact rows without being asked, and a terminal carries out no formula.
    const safe =
      options.safe === true ||
      (format === 'csv' && to !== undefined && isInteractive(output)
        ? await wantsNoFormulas(await countFormulas(history.rowsOfRun(run), columns))
        : false);
    let count = 0;
    const rows = async function* () {
      for await (const row of history.rowsOfRun(run)) {
        count++;
        yield row;
      }
    };
    if (format !== 'parquet') await writeLines(to, exportLines(rows(), { columns, format, safe }));
    else await writeFile(to!, ({ fd }) => exportParquet(rows(), columns, fd));
    const stored = run.report?.products.stored ?? null;
    const replaced = stored !== null && run.settings.mapping.pages.every((p) => p.rows === null) ? stored - count : 0;
    if (to !== undefined) output.line(`${count} rows of run ${run.id} are in ${options.to}.`);
    // On stdout there is nothing but rows.
    if (replaced > 0)
      writeText(process.stderr, `! ${replaced} of the ${stored} products of this run have been replaced by later runs`);
    output.document({ run: run.id, format, file: to === undefined ? null : options.to, safe, rows: count, replaced });
    return EXIT.complete;
  });
}

async function wantsNoFormulas(cells: number): Promise<boolean> {
  if (cells === 0) return false;
  const what = cells === 1 ? 'One cell is a formula' : `${cells} cells are formulas`;
  return isYes(await ask(`${what} to a spreadsheet. Put an apostrophe before, as --safe does? [Y/n] `));
}

const PUBLISHED: readonly string[] = ['completed', 'banned', 'failed', 'cancelled'];
