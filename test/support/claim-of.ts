/** The claim of a lock in tests. */
import type { LockClaim, LockHolder } from '../../orchestrator/control/model/stores.ts';

/** What the runs of tests need for themselves. */
export const LOCK_NAMES = ['host:shop.example', 'table:products'];

export const claimOf = (owner: string, nowMs: number, leaseMs: number, ...steal: LockHolder[]): LockClaim => ({
  owner,
  names: LOCK_NAMES,
  nowMs,
  leaseMs,
  steal,
});
