/**
 * Ambiguous numbers in the staging table: the field's own column is empty, and extra columns hold the text and both
 * readings. The whole column decides which reading counts each time the rows are read, so nothing is rewritten and
 * deciding again gives the same result.
 */
import type { Knex } from 'knex';
import type { DecimalMark } from '../../../shared/domain/currencies.ts';
import {
  decideMark,
  MIN_SHOWN,
  MIN_SHOWN_SHARE,
  onlyShown,
  SMALL_RUN,
} from '../../../shared/domain/ambiguous-number.ts';
import type { Column } from '../../../shared/domain/mapping.ts';
import type { NumberReport } from '../model/report.ts';
import { NEWEST_FIRST, notCancelled, PUBLISHED } from './newer-runs.ts';
import { countOf, rowOf, rowsOf, type SqlNumber, toNumber } from './rows.ts';
import { readRun, type RunShape } from './run-shape.ts';
import { NO_MARKS, type ShownCounts, sumMarks } from './ambiguous-values.ts';
import { LONG_STATEMENT_MS } from './statement-timeout.ts';
import type { AmbiguousColumns } from './staging.ts';

const RUNS = 'crawlfleet_runs';

type Shape = Pick<RunShape, 'columns' | 'ambiguous' | 'staging'>;

/** How the columns of a run are read: by index, the decimal mark of those that show one. */
export interface Decisions {
  shown: ShownCounts;
  marks: ReadonlyMap<number, DecimalMark>;
}

/** Decided by the numbers of all loaded parts; in a small run by how the last one was published. */
export async function readDecisions(knex: Knex, runId: string, shape: Shape): Promise<Decisions> {
  if (shape.ambiguous.length === 0) return { shown: {}, marks: new Map() };
  const parts = await rowsOf<{ number_marks: string }>(
    knex('crawlfleet_parts').where({ run_id: runId }).whereNotNull('number_marks').select('number_marks'),
  );
  const shown = sumMarks(parts.map((part) => JSON.parse(part.number_marks) as ShownCounts));
  const run = await readRun<OwnRow>(knex, runId, 'planned', 'results_table', 'started_at');
  const products = run.planned;
  const isSmall = products < SMALL_RUN;
  const last = isSmall ? await readLastMarks(knex, run) : new Map<string, DecimalMark | null>();
  const marks = new Map<number, DecimalMark>();
  for (const own of shape.ambiguous) {
    const field = own.column.name.toLowerCase();
    const counts = shown[field] ?? NO_MARKS;
    const only = onlyShown(counts);
    // Too few decide nothing, however many numbers there are; enough for all products decide without a count.
    const isOpen = !isSmall && only !== null && counts[only] >= MIN_SHOWN && counts[only] < products * MIN_SHOWN_SHARE;
    const numbers = isOpen ? await countNumbers(knex, shape, own) : 0;
    const mark = decideMark(counts, { products, numbers, last: last.get(field) ?? null });
    if (mark !== null) marks.set(own.place, mark);
  }
  return { shown, marks };
}

interface OwnRow {
  planned: number;
  results_table: string;
  started_at: SqlNumber;
}

/** The marks by which the last run with this result table was published, by lower-case field. */
async function readLastMarks(knex: Knex, own: OwnRow): Promise<Map<string, DecimalMark | null>> {
  const row = await rowOf<{ numbers: string }>(
    knex(RUNS)
      .where({ results_table: own.results_table })
      .whereIn('phase', PUBLISHED)
      .where(notCancelled)
      .whereNotNull('numbers')
      .where('started_at', '<', own.started_at)
      .orderBy(NEWEST_FIRST)
      .first('numbers'),
  );
  const reports = row ? (JSON.parse(row.numbers) as NumberReport[]) : [];
  return new Map(reports.map(({ field, mark }) => [field.toLowerCase(), mark]));
}

/** How many products have a number in this column, decided or not. */
function countNumbers(knex: Knex, { staging }: Shape, { column, text }: AmbiguousColumns): Promise<number> {
  const products = knex(staging).distinct('product_id').whereNotNull(column.name).orWhereNotNull(text);
  return countOf(knex.from(products.as('numbers')).options({ timeout: LONG_STATEMENT_MS }));
}

/** The value of a field in a staged row. */
interface StagedValue {
  column: Column;
  sql: string;
  bindings: string[];
}

/** The staged values of the fields, in the order of the columns. */
export function fieldValues(shape: Shape, { marks }: Decisions): StagedValue[] {
  return shape.columns.map((column, place) => {
    const { name } = column;
    const own = shape.ambiguous.find((ambiguous) => ambiguous.place === place);
    const mark = marks.get(place);
    if (own === undefined || mark === undefined) return { column, sql: '??', bindings: [name] };
    const bindings = [own.text, name, readingColumn(own, mark)];
    return { column, sql: 'case when ?? is null then ?? else ?? end', bindings };
  });
}

const readingColumn = (own: AmbiguousColumns, mark: DecimalMark): string => (mark === '.' ? own.point : own.comma);

/** Stores in the run's row, per field, how many numbers were decided and how many were left empty. */
export async function noteNumbers(trx: Knex, runId: string, shape: Shape, decisions: Decisions): Promise<void> {
  const reports: NumberReport[] = [];
  for (const { own, all, empty } of await countAmbiguous(trx, shape, decisions)) {
    const mark = decisions.marks.get(own.place) ?? null;
    // The mark alone is of use to a small run after this one.
    if (all === 0 && mark === null) continue;
    const field = own.column.name;
    const shown = decisions.shown[field.toLowerCase()] ?? NO_MARKS;
    const example = empty === 0 ? null : await firstEmpty(trx, shape, own, mark);
    reports.push({ field, mark, shown, decided: all - empty, empty, example });
  }
  await trx(RUNS)
    .where({ id: runId })
    .update({ numbers: reports.length === 0 ? null : JSON.stringify(reports) });
}

/** How many values of each field their text does not decide, and how many stay undecided. One pass over staging. */
async function countAmbiguous(
  trx: Knex,
  { ambiguous, staging }: Shape,
  { marks }: Decisions,
): Promise<{ own: AmbiguousColumns; all: number; empty: number }[]> {
  if (ambiguous.length === 0) return [];
  const counts = ambiguous.flatMap((own, i) => {
    const mark = marks.get(own.place);
    // COUNT skips NULL.
    const decided =
      mark === undefined
        ? trx.raw('0 as ??', [`decided_${i}`])
        : trx.raw('count(??) as ??', [readingColumn(own, mark), `decided_${i}`]);
    return [trx.raw('count(??) as ??', [own.text, `all_${i}`]), decided];
  });
  const row = await rowOf<Record<string, SqlNumber>>(
    trx(staging)
      .select(...counts)
      .first()
      .options({ timeout: LONG_STATEMENT_MS }),
  );
  return ambiguous.map((own, i) => {
    const all = toNumber(row?.[`all_${i}`]);
    return { own, all, empty: all - toNumber(row?.[`decided_${i}`]) };
  });
}

async function firstEmpty(
  trx: Knex,
  { staging }: Shape,
  own: AmbiguousColumns,
  mark: DecimalMark | null,
): Promise<string | null> {
  const open = trx(staging).whereNotNull(own.text);
  if (mark !== null) void open.whereNull(readingColumn(own, mark));
  const row = await rowOf<{ text: string }>(open.first({ text: own.text }).options({ timeout: LONG_STATEMENT_MS }));
  return row?.text ?? null;
}
