/**
 * A program for `orchestrator extract`: fetches and reads one page as an instance would and reports what each field
 * yields. The request is one JSON document on stdin, the answer is one on stdout (shared/wire/page-trial.ts).
 */
import { text } from 'node:stream/consumers';
import { AppError, describeError } from '../shared/domain/errors.ts';
import { pageTrialSchema, type TrialAnswer } from '../shared/wire/page-trial.ts';
import { tryPage } from './trial/try-page.ts';

async function answer(): Promise<TrialAnswer> {
  try {
    return await tryPage(pageTrialSchema.parse(JSON.parse(await text(process.stdin))));
  } catch (error) {
    const known = error instanceof AppError;
    return {
      outcome: 'error',
      code: known ? error.code : 'internal',
      message: describeError(error),
      hint: known ? (error.hint ?? null) : null,
    };
  }
}

process.stdout.write(JSON.stringify(await answer()));
