/** What the commands print. With --json stdout is exactly one JSON document; everything else goes to stderr. */
import { AppError, describeError } from '../../shared/domain/errors.ts';
import type { ExitCode } from '../../shared/domain/exit-codes.ts';
import { EXIT } from '../../shared/domain/exit-codes.ts';
import { oneLine, printable } from '../../shared/domain/terminal-text.ts';

export interface Output {
  json: boolean;
  /** One or several lines for the user: stdout, or stderr with --json. Control characters are escaped. */
  line(text?: string): void;
  /** The document of --json; without --json nothing. */
  document(value: unknown): void;
}

export function createOutput(json: boolean): Output {
  return {
    json,
    line: (text = '') => void (json ? process.stderr : process.stdout).write(`${printable(text)}\n`),
    document: (value) => {
      if (json) process.stdout.write(`${JSON.stringify(value, null, 2)}\n`);
    },
  };
}

/** Prints an error for the user, and as the document with --json; returns the exit code. */
export function printError(error: unknown, json: boolean): ExitCode {
  const known = error instanceof AppError;
  const code = known ? error.code : 'internal';
  const message = describeError(error);
  const say = (text: string): void => void process.stderr.write(`${printable(text)}\n`);
  say(`orchestrator: ${message}`);
  if (known && error.hint) say(`  ${error.hint}`);
  if (!known && error instanceof Error && error.stack) say(error.stack);
  const exitCode = known ? error.exitCode : EXIT.internal;
  if (json)
    process.stdout.write(
      `${JSON.stringify({ error: { code, message, hint: known ? (error.hint ?? null) : null }, exitCode }, null, 2)}\n`,
    );
  return exitCode;
}

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
      .map((cell, i) => (isNumber[i] ? cell.padStart(widths[i]!) : cell.padEnd(widths[i]!)))
      .join('  ')
      .trimEnd();
  return [format(headers), ...cells.map(format)].join('\n');
}
