/** Asks before money is spent. */
import { createInterface } from 'node:readline/promises';
import { AppError } from '../../shared/domain/errors.ts';

/** True to go on. A dry run costs nothing and is not asked about without a terminal; a real run then needs --yes. */
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
    throw new AppError('usage', 'nobody is there to confirm the plan', { hint: 'Add --yes to launch without asking.' });
  }
  return /^(y|yes|)$/i.test(await ask('Proceed? [Y/n] ', options.signal));
}

/** True to throw something away. Nothing but `y` or `yes` will do; without a terminal it needs --yes. */
export async function confirmLoss(options: {
  yes: boolean;
  json: boolean;
  question: string;
  signal: AbortSignal;
}): Promise<boolean> {
  if (options.yes) return true;
  if (!process.stdin.isTTY || !process.stdout.isTTY || options.json)
    throw new AppError('usage', 'nobody is there to confirm this', { hint: 'Add --yes to do it without asking.' });
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
