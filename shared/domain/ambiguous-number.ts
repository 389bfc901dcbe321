/** Numbers whose text can be read in two ways. The main server, which sees the whole column, decides. */
import type { DecimalMark } from './currencies.ts';

/** Maximum characters of the text that are kept. */
export const MAX_AMBIGUOUS_CHARS = 80;

/** An ambiguous number. Both readings null: no decimal mark would resolve it. */
export interface AmbiguousNumber {
  /** The text on the page. */
  text: string;
  /** The reading with the point as decimal mark. */
  point: number | null;
  /** The reading with the comma. */
  comma: number | null;
}

export function isAmbiguous(value: unknown): value is AmbiguousNumber {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The non-null readings. */
export function readingsOf({ point, comma }: AmbiguousNumber): number[] {
  return [point, comma].filter((reading) => reading !== null);
}

/** The reading under this decimal mark; null where there is none, or where the mark is undecided. */
export function readAs(ambiguous: AmbiguousNumber, mark: DecimalMark | null): number | null {
  return mark === null ? null : mark === '.' ? ambiguous.point : ambiguous.comma;
}

/** How many products have a value in the field's column that shows a decimal mark unambiguously, per mark. */
export type MarkCounts = Record<DecimalMark, number>;

/** What else is known of a run's column. */
export interface ColumnCounts {
  /** Products of the run, and how many of them have a number in this column. */
  products: number;
  numbers: number;
  /** The mark by which the last run was published; null where none was, or it had none. */
  last: DecimalMark | null;
}

/** One stray value among fewer than this many must not decide. */
export const MIN_SHOWN = 3;
export const MIN_SHOWN_SHARE = 1 / 20;
/** A run of fewer products may rightly show less. */
export const SMALL_RUN = 20;

/**
 * The decimal mark of a column: the one shown by enough of its numbers, while none shows the other. In a small run that
 * of the last one; without one, all that is shown.
 */
export function decideMark(shown: MarkCounts, facts?: ColumnCounts): DecimalMark | null {
  const only = onlyShown(shown);
  const { products = SMALL_RUN, numbers = 0, last = null } = facts ?? {};
  if (products >= SMALL_RUN)
    return only !== null && shown[only] >= Math.max(MIN_SHOWN, numbers * MIN_SHOWN_SHARE) ? only : null;
  if (last === null) return only;
  return only === last || shown['.'] + shown[','] === 0 ? last : null;
}

/** The mark that is shown, if the other is not. */
export function onlyShown({ '.': points, ',': commas }: MarkCounts): DecimalMark | null {
  if (points > 0 && commas > 0) return null;
  return points > 0 ? '.' : commas > 0 ? ',' : null;
}
