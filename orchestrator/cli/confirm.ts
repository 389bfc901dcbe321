/** Questions to the user, above all before spending money. */
import { createInterface } from 'node:readline/promises';
import { AppError } from '../../shared/domain/errors.ts';
import { printable } from '../../shared/domain/terminal-text.ts';
import { watchInterrupts } from './interrupts.ts';

interface Asking {
  yes: boolean;
  json: boolean;
  /** Ends the question; omitted: the signals of this process do. */
  signal?: AbortSignal;
}

/** Whether there is a terminal to ask on. */
export const isInteractive = ({ json }: Pick<Asking, 'json'>): boolean =>
  process.stdin.isTTY && process.stdout.isTTY && !json;

/** Where Enter says yes. */
export const isYes = (answer: string): boolean => /^(y|yes|)$/i.test(answer);

/** True to go on. A dry run costs nothing and skips the question without a terminal; a real run then needs --yes. */
export async function confirmRun(options: Asking & { dryRun: boolean }): Promise<boolean> {
  if (options.yes) return true;
  if (isInteractive(options)) return isYes(await ask('Proceed? [Y/n] ', options.signal));
  if (options.dryRun) return true;
  throw new AppError('usage', 'no terminal to confirm the plan', { hint: 'Add --yes to launch without asking.' });
}

/** True to discard or change data. Only `y` or `yes` confirms; without a terminal it needs --yes. */
export async function confirmLoss(options: Asking & { question: string }): Promise<boolean> {
  if (options.yes) return true;
  if (isInteractive(options)) return /^(y|yes)$/i.test(await ask(`${options.question} [y/N] `, options.signal));
  throw new AppError('usage', 'no terminal to confirm this', { hint: 'Add --yes to do it without asking.' });
}

/** Throws `interrupted` on Ctrl-C, Ctrl-D or `given` instead of an answer. */
export async function ask(question: string, given?: AbortSignal): Promise<string> {
  using interrupts = watchInterrupts();
  const signal = given ?? interrupts.leave;
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  try {
    return (await terminal.question(printable(question), { signal })).trim();
  } catch (error) {
    if ((error as Error).name !== 'AbortError') throw error;
    throw new AppError('interrupted', 'no answer, so nothing was done', { cause: error });
  } finally {
    terminal.close();
  }
}
