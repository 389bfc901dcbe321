/** What the commands print. With --json stdout is exactly one JSON document; everything else goes to stderr. */
import type { Output as UseCaseOutput } from '../core/caller.ts';
import { AppError, describeError } from '../../shared/domain/errors.ts';
import { EXIT, type ExitCode } from '../../shared/domain/exit-codes.ts';
import { writeData, writeText } from './terminal.ts';
import { asTyped, programName } from './typed-name.ts';

/** Lines go to stdout, or to stderr with --json. Documents appear only with --json. */
export interface Output extends UseCaseOutput {
  json: boolean;
  /** How much a run says: `quiet` alarms and its end, `verbose` its log too; `normal` unless given. */
  detail?: Detail;
}

export type Detail = 'quiet' | 'normal' | 'verbose';

export function createOutput(json: boolean, detail: Detail = 'normal'): Output {
  const stream = json ? process.stderr : process.stdout;
  return {
    json,
    detail,
    line(text = '') {
      if (detail !== 'quiet' || text.startsWith('!')) writeText(stream, asTyped(text));
    },
    verdict(text, isGood) {
      writeText(stream, '');
      writeText(stream, `${isGood ? '✓' : '✕'} ${asTyped(text)}`, isGood ? 'good' : 'bad');
    },
    document: (value) => {
      if (json) writeDocument(value);
    },
  };
}

const writeDocument = (value: unknown): void => writeData(process.stdout, `${JSON.stringify(value, null, 2)}\n`);

/** The part of a document that says why the command failed. */
export function errorDocument(error: unknown) {
  const known = error instanceof AppError ? error : null;
  return {
    error: { code: known?.code ?? 'internal', message: describeError(error), hint: known?.hint ?? null },
    exitCode: known?.exitCode ?? EXIT.internal,
  };
}

/** Prints an error for the user, and as the document with --json; returns the exit code. */
export function printError(error: unknown, json: boolean): ExitCode {
  const document = errorDocument(error);
  const { message, hint } = document.error;
  const say = (text: string): void => writeText(process.stderr, asTyped(text));
  say(`${programName()}: ${message}`);
  if (hint) say(`  ${hint}`);
  if (!(error instanceof AppError) && error instanceof Error && error.stack) say(error.stack);
  if (json) writeDocument(document);
  return document.exitCode;
}
