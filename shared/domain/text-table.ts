import { oneLine } from './terminal-text.ts';

/** Rows as a text table with aligned columns; numbers right-aligned. */
export function renderTable(
  headers: readonly string[],
  rows: readonly (readonly (string | number | null)[])[],
): string {
  const cells = rows.map((row) => row.map((cell) => (cell === null ? '-' : oneLine(String(cell)))));
  const widths = headers.map((header, i) =>
    cells.reduce((widest, row) => Math.max(widest, row[i]?.length ?? 0), header.length),
  );
  const isNumber = headers.map(
    (_, i) => rows.length > 0 && rows.every((row) => row[i] === null || typeof row[i] === 'number'),
  );
  const format = (row: readonly string[]): string =>
    row
      .map((cell, i) => (isNumber[i] ? cell.padStart(widths[i] ?? 0) : cell.padEnd(widths[i] ?? 0)))
      .join('  ')
      .trimEnd();
  return [format(headers), ...cells.map(format)].join('\n');
}
