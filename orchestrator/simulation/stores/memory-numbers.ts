/** Numbers that can be read in two ways, in memory: the contract of db/number-columns.ts without SQL. */
import type { DecimalMark } from '../../../shared/domain/currencies.ts';
import { columnsOf, type FieldValue } from '../../../shared/domain/mapping.ts';
import { decideMark, type MarkCounts } from '../../../shared/domain/unread-number.ts';
import type { NumberReport } from '../../control/model/report.ts';
import { NO_MARKS, findUnread, numberPlaces, settle, sumMarks } from '../../db/settled-values.ts';
import type { MemoryRow, MemoryRun } from './memory-database.ts';

interface NumberField {
  field: string;
  shown: MarkCounts;
  mark: DecimalMark | null;
}

function numberFields({ record, parts }: MemoryRun): NumberField[] {
  const all = sumMarks([...parts.values()].map(({ marks }) => marks));
  const columns = columnsOf(record.settings.mapping);
  return numberPlaces(record.settings.mapping).map((place) => {
    const field = columns[place]!.name;
    const shown = all[field.toLowerCase()] ?? NO_MARKS;
    return { field, shown, mark: decideMark(shown) };
  });
}

/** The staged rows, with every number read as its whole column decides. */
export function settledRows(run: MemoryRun): [string, MemoryRow][] {
  const fields = numberFields(run);
  return [...(run.staging ?? [])].map(([place, row]) => {
    const settled = fields.map(({ field, mark }) => [field, settle(valueOf(row, field), mark)]);
    return [place, { ...row, ...(Object.fromEntries(settled) as object) }];
  });
}

/** Counts the numbers that were decided and those left empty. */
export function noteNumbers(run: MemoryRun): void {
  const rows = [...(run.staging?.values() ?? [])];
  const numbers = numberFields(run).flatMap(({ field, shown, mark }): NumberReport[] => {
    const unread = rows.map((row) => valueOf(row, field)).filter((value) => findUnread(value) !== null);
    const open = unread.filter((value) => mark === null || settle(value, mark) === null);
    if (unread.length === 0) return [];
    const example = open[0] === undefined ? null : findUnread(open[0])!.text;
    return [{ field, mark, shown, decided: unread.length - open.length, empty: open.length, example }];
  });
  run.record = { ...run.record, numbers };
}

const valueOf = (row: MemoryRow, field: string): FieldValue => (row[field] as FieldValue | undefined) ?? null;
