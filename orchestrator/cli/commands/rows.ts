/** `orchestrator export` and `product`: the rows of a run, and what has become of one product. Read the database only. */
import { AppError } from '../../../shared/domain/errors.ts';
import { EXIT, type ExitCode } from '../../../shared/domain/exit-codes.ts';
import {
  countFormulas,
  exportColumns,
  type ExportFormat,
  exportLines,
  exportParquet,
} from '../../features/export/export-rows.ts';
import { findRun, storesOf, withDatabase } from '../../core/lookup/find-run.ts';
import { History, type ProductChange } from '../../features/history/history.ts';
import { ask, isInteractive, isYes } from '../confirm.ts';
import type { Output } from '../output.ts';
import { fileOf, writeFile, writeLines } from '../output-file.ts';
import { writeText } from '../terminal.ts';
import type { StatusOptions } from './status.ts';
import { plain } from '../../../shared/domain/terminal-text.ts';
import type { ConfigPlace } from '../../core/config/load-config.ts';
import { type AttemptDocument, type ProductNight, readProduct } from '../../core/read/product-document.ts';

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

/** `product` is an ID, or the URL of its page. */
export async function productCommand(options: ConfigPlace & { product: string }, output: Output): Promise<ExitCode> {
  return withDatabase(options, output, async (database) => {
    const stores = await storesOf(database);
    const document = await readProduct(options.product, { stores, history: new History(database) });
    const { id, nights, rows, changes } = document;
    output.line(plain(id, MOST));
    if (nights.length === 0) output.line('  none of the last runs has this product');
    else output.line(`  ${plain(nights[0]!.url, MOST)}`);
    for (const { table, rows: own } of rows)
      for (const row of own) output.line(`  ${table}: ${plain(JSON.stringify(row), MOST)}`);
    for (const { table, changes: own } of changes) {
      output.line(`\nchanges in ${table}`);
      for (const change of own) output.line(renderChange(change));
    }
    for (const night of nights) output.line(`\n${renderNight(night)}`);
    output.document(document);
    return EXIT.complete;
  });
}

const MOST = 10_000;
/** Characters of a body that are shown; --json has all that is kept. */
const SHOWN_BODY = 300;

function renderChange({ at, row, field, from, to }: ProductChange): string {
  const what = [row, field].filter((part) => part !== null).join(' ') || 'product';
  const [old, fresh] = [from, to].map((value) => (value === null ? '-' : plain(value, SHOWN_BODY)));
  return `  ${at.slice(0, 16)}Z  ${plain(what, SHOWN_BODY)}: ${old} → ${fresh}`;
}

function renderNight({ run, state, startedAt, outcome, reason, detail, attempts }: ProductNight): string {
  const end = [outcome ?? 'not crawled yet', reason, detail].filter((part) => part !== null).join(', ');
  const head = `${run}  ${startedAt.slice(0, 16)}Z  ${state}: ${plain(end, MOST)}`;
  return [head, ...attempts.map(renderAttempt)].join('\n');
}

function renderAttempt({ at, slot, epoch, address, outcome, reason, detail, evidence }: AttemptDocument): string {
  const place = slot === null ? '' : `  slot ${slot}.${epoch}${address === null ? '' : ` ${address}`}`;
  const what = [outcome ?? 'stopped', reason, detail].filter((part) => part !== null).join(', ');
  const lines = [`  ${at?.slice(11, 19) ?? '?'}${place}  ${plain(what, MOST)}`];
  if (evidence) {
    lines.push(`    ${evidence.rule}, ${evidence.status === null ? 'no reply' : `HTTP ${evidence.status}`}`);
    if (evidence.body !== '') lines.push(`    ${plain(evidence.body, SHOWN_BODY)}`);
  }
  return lines.join('\n');
}
