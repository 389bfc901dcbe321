/** Rows as CSV (RFC 4180) or JSON lines, one after the other. */
import { type Column, columnsOf, hasRows } from '../../../shared/domain/mapping.ts';
import type { RunSettings } from '../model/run-settings.ts';

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

/** The cells that a spreadsheet makes of a value where it has `;` for a comma, as in much of Europe. */
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

/** The value of a column, whose name the database may have in lower case. */
export const valueOf = (row: Row, { name }: Column): unknown => row[name] ?? row[name.toLowerCase()] ?? null;

function csvLine(values: readonly unknown[]): string {
  return `${values.map(csvField).join(',')}\r\n`;
}

/** A text as it is, anything else as JSON. */
export const textOf = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value));

function csvField(value: unknown): string {
  if (value === null) return '';
  const text = textOf(value);
  return /[",\r\n]/.test(text) || text === '' ? `"${text.replaceAll('"', '""')}"` : text;
}
