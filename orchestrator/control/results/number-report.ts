/** How the ambiguous numbers of a run were read. */
import type { NumberReport } from '../model/report.ts';

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
