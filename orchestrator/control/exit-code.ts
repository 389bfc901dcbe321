/** How a run ends: its state and exit code from what became of the products. Pure. */
import type { ExitCode } from '../../shared/domain/exit-codes.ts';
import { EXIT } from '../../shared/domain/exit-codes.ts';
import type { FailureReason } from '../../shared/domain/outcome.ts';

export interface EndInput {
  planned: number;
  stored: number;
  gone: number;
  failed: number;
  reasons: Partial<Record<FailureReason, number>>;
  request: 'stop' | 'cancel' | null;
  onTime: boolean;
  /** Share of failed products that is still fine. */
  maxFailed: number;
  /** Why EC2 gave no instance at all; null when it gave one. */
  noInstances: 'capacity' | 'rights' | null;
}

export interface RunEnd {
  state: 'completed' | 'failed' | 'cancelled';
  exitCode: ExitCode;
  reason: string | null;
}

export function endOf(input: EndInput): RunEnd {
  const unfinished = input.reasons.deadline ?? 0;
  if (input.request !== null)
    return {
      state: 'cancelled',
      exitCode: EXIT.interrupted,
      reason: input.request === 'stop' ? 'stopped' : 'cancelled',
    };
  const share = input.planned === 0 ? 0 : input.failed / input.planned;
  const nothing = input.planned > 0 && (input.reasons['lost-instance'] ?? 0) === input.planned;
  if (nothing && input.noInstances === 'rights') {
    return { state: 'failed', exitCode: EXIT.config, reason: 'AWS refuses to launch: a right or a parameter is wrong' };
  }
  if (nothing && input.noInstances === 'capacity')
    return { state: 'failed', exitCode: EXIT.capacity, reason: 'EC2 gave no instance' };
  if (nothing) return { state: 'failed', exitCode: EXIT.failedProducts, reason: 'no instance crawled anything' };
  if (unfinished > 0)
    return {
      state: 'completed',
      exitCode: EXIT.deadline,
      reason: `deadline missed: ${unfinished} products not crawled`,
    };
  if (!input.onTime) return { state: 'completed', exitCode: EXIT.deadline, reason: 'deadline missed: published late' };
  if (share > input.maxFailed)
    return {
      state: 'completed',
      exitCode: EXIT.failedProducts,
      reason: `${input.failed} of ${input.planned} products failed`,
    };
  return { state: 'completed', exitCode: EXIT.complete, reason: null };
}
