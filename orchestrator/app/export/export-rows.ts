/** Writes rows as CSV (RFC 4180), JSON lines or Parquet. Memory is bounded by a page of rows. */
import { fileWriter, parquetWriteRows } from 'hyparquet-writer';
import { AppError } from '../../../shared/domain/errors.ts';
import { type Column, columnsOf, hasRows } from '../../../shared/domain/mapping.ts';
import type { RunSettings } from '../../control/model/run-settings.ts';

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
  /** No cell is a formula: text that begins like one gets an apostrophe, as spreadsheets do it. */
  forSheets?: boolean;
}

/** One line for each row; CSV has a head before them. */
export async function* exportLines(
  rows: AsyncIterable<Row>,
  { columns, format, forSheets = false }: TextForm,
): AsyncGenerator<string> {
  if (format === 'csv') yield csvLine(columns.map(({ name }) => name));
  for await (const row of rows) {
    const values = columns.map((column) => valueOf(row, column));
    yield format === 'csv'
      ? csvLine(forSheets ? values.map(noFormula) : values)
      : `${JSON.stringify(Object.fromEntries(columns.map(({ name }, i) => [name, values[i]])))}\n`;
  }
}

/** A number is none, also as text. */
const noFormula = (value: unknown): unknown =>
  typeof value === 'string' && /^[=+\-@\t\r]/.test(value) && !/^[+-]?\d+(?:[.,]\d+)*$/.test(value)
    ? `'${value}`
    : value;

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
