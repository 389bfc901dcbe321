/** Numbers that a page shows so that they can be read in two ways, on their way to the main server, which sees the whole column. */
import type { DecimalMark } from './currencies.ts';

/** As much of the text is kept. */
export const MAX_UNREAD_CHARS = 80;

/** A number that its own text does not decide. Both readings null: no decimal mark would decide it either. */
export interface UnreadNumber {
  /** As the page has it. */
  text: string;
  /** With the point as decimal mark. */
  point: number | null;
  /** With the comma. */
  comma: number | null;
}

export function isUnread(value: unknown): value is UnreadNumber {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The readings that are numbers. */
export function readingsOf({ point, comma }: UnreadNumber): number[] {
  return [point, comma].filter((reading) => reading !== null);
}

/** The reading under this decimal mark; null where there is none, or where nothing has decided. */
export function readAs(unread: UnreadNumber, mark: DecimalMark | null): number | null {
  return mark === null ? null : mark === '.' ? unread.point : unread.comma;
}

/** What the column of a field shows: how many products have a value with this decimal mark beyond doubt. */
export type MarkCounts = Record<DecimalMark, number>;

/** The decimal mark of a column: the one that is shown, when the other is not. */
export function decideMark({ '.': points, ',': commas }: MarkCounts): DecimalMark | null {
  if (points > 0 && commas > 0) return null;
  return points > 0 ? '.' : commas > 0 ? ',' : null;
}
