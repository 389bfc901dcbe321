/** Numbers whose text can be read in two ways. The main server, which sees the whole column, decides. */
import type { DecimalMark } from './currencies.ts';

/** Maximum characters of the text that are kept. */
export const MAX_UNREAD_CHARS = 80;

/** An ambiguous number. Both readings null: no decimal mark would resolve it. */
export interface UnreadNumber {
  /** The text on the page. */
  text: string;
  /** With the point as decimal mark. */
  point: number | null;
  /** With the comma. */
  comma: number | null;
}

export function isUnread(value: unknown): value is UnreadNumber {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The non-null readings. */
export function readingsOf({ point, comma }: UnreadNumber): number[] {
  return [point, comma].filter((reading) => reading !== null);
}

/** The reading under this decimal mark; null where there is none, or where the mark is undecided. */
export function readAs(unread: UnreadNumber, mark: DecimalMark | null): number | null {
  return mark === null ? null : mark === '.' ? unread.point : unread.comma;
}

/** Per decimal mark, how many products have a value in the field's column that shows it unambiguously. */
export type MarkCounts = Record<DecimalMark, number>;

/** The decimal mark of a column: the one shown, if the other is not. */
export function decideMark({ '.': points, ',': commas }: MarkCounts): DecimalMark | null {
  if (points > 0 && commas > 0) return null;
  return points > 0 ? '.' : commas > 0 ? ',' : null;
}
