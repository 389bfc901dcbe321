/** How the ambiguous numbers of a run were read. */
import type { DecimalMark } from '../../shared/domain/currencies.ts';
import type { MarkCounts } from '../../shared/domain/unread-number.ts';

export interface NumberReport {
  field: string;
  /** The decimal mark that the other values of the column show; null where they show none or both. */
  mark: DecimalMark | null;
  /** Products whose numbers show each mark beyond doubt. */
  shown: MarkCounts;
  /** Values that were read by that mark. */
  decided: number;
  /** Values that were left empty. */
  empty: number;
  /** The text of one of those; null when there is none. */
  example: string | null;
}

/** One line for each field with values that were left empty. */
export function numberNotes(numbers: readonly NumberReport[]): string[] {
  return numbers
    .filter(({ empty }) => empty > 0)
    .map(
      ({ field, empty, example, ...column }) =>
        `field ${field}: ${empty} values were left empty, because nothing decides which number ${JSON.stringify(example)} is${why(column)}. ` +
        'Where the site has one decimal mark, name it in the mapping: number: { decimal: "," }, or price: { currency, decimal }',
    );
}

function why({ mark, shown }: Pick<NumberReport, 'mark' | 'shown'>): string {
  if (mark !== null) return `, though "${mark}" is the decimal mark of the column`;
  return shown['.'] > 0
    ? ` (the column has both decimal marks: "." in ${shown['.']} products, "," in ${shown[',']})`
    : ' (no other value of the column shows its decimal mark)';
}
