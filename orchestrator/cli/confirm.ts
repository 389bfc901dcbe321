/** Asks the user before spending money. */
import { createInterface } from 'node:readline/promises';
import { AppError } from '../../shared/domain/errors.ts';

/** True to go on. A dry run costs nothing and skips the question without a terminal; a real run then needs --yes. */
export async function confirmRun(options: {
  yes: boolean;
  dryRun: boolean;
  json: boolean;
  signal: AbortSignal;
}): Promise<boolean> {
  if (options.yes) return true;
  const interactive = process.stdin.isTTY && process.stdout.isTTY && !options.json;
  if (!interactive) {
    if (options.dryRun) return true;
    throw new AppError('usage', 'no terminal to confirm the plan', { hint: 'Add --yes to launch without asking.' });
  }
  return /^(y|yes|)$/i.test(await ask('Proceed? [Y/n] ', options.signal));
}

/** True to discard data. Only `y` or `yes` confirms; without a terminal it needs --yes. */
export async function confirmLoss(options: {
  yes: boolean;
  json: boolean;
  question: string;
  signal: AbortSignal;
}): Promise<boolean> {
  if (options.yes) return true;
  if (!process.stdin.isTTY || !process.stdout.isTTY || options.json)
    throw new AppError('usage', 'no terminal to confirm this', { hint: 'Add --yes to do it without asking.' });
  return /^(y|yes)$/i.test(await ask(`${options.question} [y/N] `, options.signal));
}

async function ask(question: string, signal: AbortSignal): Promise<string> {
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  try {
    return (await terminal.question(question, { signal })).trim();
  } finally {
    terminal.close();
  }
}
