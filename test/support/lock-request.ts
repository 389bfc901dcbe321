/** A request for the lock in tests. */
import type { LockRequest, LockHolder } from '../../orchestrator/core/model/stores.ts';

/** What the runs of tests need for themselves. */
export const LOCK_NAMES = ['host:shop.example', 'table:products'];

export const lockRequest = (owner: string, nowMs: number, leaseMs: number, ...steal: LockHolder[]): LockRequest => ({
  owner,
  names: LOCK_NAMES,
  nowMs,
  leaseMs,
  steal,
});
