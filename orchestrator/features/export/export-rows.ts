/** Writes rows as CSV (RFC 4180), JSON lines or Parquet. Memory is bounded by a page of rows. */
import { fileWriter, parquetWriteRows } from 'hyparquet-writer';
import { AppError } from '../../../shared/domain/errors.ts';
import { type Column, columnsOf, hasRows } from '../../../shared/domain/mapping.ts';
import type { RunSettings } from '../../core/model/run-settings.ts';

export type ExportFormat = 'csv' | 'jsonl' | 'parquet';

type Row = Record<string, unknown>;

/** The columns of a result table that a run writes, in the order of an export. */
export function exportColumns({ mapping }: Pick<RunSettings, 'mapping'>): Column[] {
  const text = (name: string): Column => ({ name, type: 'text' });
  return [
    text('product_id'),
    ...(hasRows(mapping) ? [text('row_key')] : []),
    ...columnsOf(mapping),
    ...['url', 'crawled_at', 'run_id'].map(text),
  ];
}

interface TextForm {
  columns: readonly Column[];
  format: 'csv' | 'jsonl';
  /** CSV for a spreadsheet: text that it would take for a formula gets an apostrophe; numbers stay. */
  safe?: boolean;
}

/** One line for each row; CSV has a head before them. */
export async function* exportLines(
  rows: AsyncIterable<Row>,
  { columns, format, safe = false }: TextForm,
): AsyncGenerator<string> {
  if (format === 'csv') yield csvLine(columns.map(({ name }) => name));
  for await (const row of rows) {
    const values = columns.map((column) => valueOf(row, column));
    yield format === 'csv'
      ? csvLine(safe ? values.map(withoutFormula) : values)
      : `${JSON.stringify(Object.fromEntries(columns.map(({ name }, i) => [name, values[i]])))}\n`;
  }
}

/** How many cells of the CSV a spreadsheet would take for formulas. */
export async function countFormulas(rows: AsyncIterable<Row>, columns: readonly Column[]): Promise<number> {
  let count = 0;
  for await (const row of rows)
    for (const column of columns) {
      const value = valueOf(row, column);
      if (value !== null) count += cellsOf(value).filter(isFormula).length;
    }
  return count;
}

/** With `;` for a comma, as in much of Europe, a spreadsheet begins a cell at each. */
const cellsOf = (value: unknown): string[] => textOf(value).split(';');

const withoutFormula = (value: unknown): unknown =>
  value === null
    ? null
    : cellsOf(value)
        .map((cell) => (isFormula(cell) ? `'${cell}` : cell))
        .join(';');

/** Japanese spreadsheets take the full-width signs as well. */
const BEGINS_FORMULA = /^[=+\-@\t\r\n＝＋－＠].*[\p{L}\p{N}]/su;
/** A number, also with a currency or grouped as a phone number is: without a second sign nothing is computed. */
const NUMBER = /^[+-]?[\d .,'()\u00a0\u202f\p{Sc}]*\d[ .,'()\u00a0\u202f\p{Sc}]*(?:e[+-]?\d+)?%?$/iu;

const isFormula = (cell: string): boolean => BEGINS_FORMULA.test(cell) && !NUMBER.test(cell);

const valueOf = (row: Row, { name }: Column): unknown => row[name] ?? row[name.toLowerCase()] ?? null;

function csvLine(values: readonly unknown[]): string {
  return `${values.map(csvField).join(',')}\r\n`;
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value));

function csvField(value: unknown): string {
  if (value === null) return '';
  const text = textOf(value);
  return /[",\r\n]/.test(text) || text === '' ? `"${text.replaceAll('"', '""')}"` : text;
}

const PARQUET_TYPES = { number: 'DOUBLE', integer: 'INT64', boolean: 'BOOLEAN', json: 'JSON' } as const;
/** Rows held in memory at a time. */
const ROW_GROUP = 20_000;

/** Writes into an open file, which need not be a plain one. */
export async function exportParquet(rows: AsyncIterable<Row>, columns: readonly Column[], fd: number): Promise<void> {
  const values = async function* (): AsyncGenerator<Row> {
    for await (const row of rows)
      yield Object.fromEntries(columns.map((column) => [column.name, parquetValue(valueOf(row, column), column)]));
  };
  await parquetWriteRows({
    // It only calls `writeFileSync`, which takes a descriptor for a name; a pipe could not be opened again and again.
    writer: fileWriter(fd as unknown as string),
    rows: values(),
    rowGroupSize: ROW_GROUP,
    columns: columns.map(({ name, type }) => ({
      name,
      type: PARQUET_TYPES[type as keyof typeof PARQUET_TYPES] ?? 'STRING',
      nullable: true,
    })),
  });
}

function parquetValue(value: unknown, { name, type }: Column): unknown {
  if (value === null) return null;
  if (type !== 'integer') return type in PARQUET_TYPES ? value : textOf(value);
  // A wider column type than the one that is made by default may hold it.
  const text = textOf(value);
  const whole = /^-?\d+$/.test(text) ? BigInt(text) : null;
  if (whole !== null && BigInt.asIntN(64, whole) === whole) return whole;
  throw new AppError('usage', `${name} has the value ${text}, which is no whole number of 64 bits`, {
    hint: 'Export as csv or jsonl instead.',
  });
}
