/** `orchestrator retry`: a child run of the products that failed in another one. */
import type { ExitCode } from '../../../shared/domain/exit-codes.ts';
import type { RetryOptions } from '../../app/run/retry.ts';
import { retryRun } from '../../app/run/retry.ts';
import { inTerminal } from '../in-terminal.ts';
import type { Output } from '../output.ts';
import type { RunOptions } from './run.ts';
import { confirmed } from './run.ts';

export function retryCommand(options: RunOptions & Omit<RetryOptions, 'confirm'>, output: Output): Promise<ExitCode> {
  return inTerminal(output, (caller) => retryRun(confirmed(options, output, caller), caller));
}
