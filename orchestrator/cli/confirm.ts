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
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  try {
    const answer = await terminal.question('Proceed? [Y/n] ', { signal: options.signal });
    return /^(y|yes|)$/i.test(answer.trim());
  } finally {
    terminal.close();
  }
}
