/** What one main server remembers beside the database, and what a restart loses of it. */

import type { Rights } from './rights.ts';
import { allRights } from './rights.ts';
import type { StallCause, ActiveStallCause } from './stall-causes.ts';
import type { Pools, UnansweredOffers } from './world.ts';

/** What one main server remembers of its own time: when things happened, in the clock's wall milliseconds; null when it did not see it. */

export interface ProcessState {
  firstLaunchMs: number | null;
  lastLaunchMs: number | null;
  firstOfferMs: number | null;
  lastGrantMs: number | null;
  firstReadyMs: number | null;
  crawlEndMs: number | null;
  loadMs: number;
  /** How long the last parts took to load, by the monotonic clock. */
  lastLoadsMs: number[];
  publishMs: number | null;
  /** When chunks that an instance gave back were last taken. */
  lastTransferMs: number | null;
  /** `slot.epoch` of those that were asked for chunks long enough without giving any: they have begun something of each. */
  nothingToGive: Set<string>;
  /** The last time that EC2 refused a launch for the account's quota. */
  quotaRefusedMs: number | null;
  /** Where instances may be launched, from the first preparation of a launch. */
  pools: Pools | null;
  /** Calls that AWS refuses for want of keys or rights. */
  rights: Rights;
  /** ELBv2 refuses to make the balancer, and no further try will change that. */
  balancerRefused: boolean;
  /** Since when the balancer cannot be made, and since when what is left of it cannot be removed, by the monotonic clock. */
  balancerFailingMs: number | null;
  sweepFailingMs: number | null;
  /** ELBv2 may have something under the run's name that its row does not name: true until it was looked for. */
  balancerMayRemain: boolean;
  /** Since when (wall clock) no offer has been answered, and how the last one failed; null after an answer. */
  unansweredOffers: UnansweredOffers | null;
  /** What keeps the run from getting on, as far as it is known and not over. */
  stallCauses: Map<StallCause, ActiveStallCause>;
  /** Alarms that are raised once, by their keys. */
  raisedAlarms: Set<string>;
}
export const newProcessState = (): ProcessState => ({
  firstLaunchMs: null,
  lastLaunchMs: null,
  firstOfferMs: null,
  lastGrantMs: null,
  firstReadyMs: null,
  crawlEndMs: null,
  loadMs: 0,
  lastLoadsMs: [],
  publishMs: null,
  lastTransferMs: null,
  nothingToGive: new Set(),
  quotaRefusedMs: null,
  pools: null,
  rights: allRights(),
  balancerRefused: false,
  balancerFailingMs: null,
  sweepFailingMs: null,
  balancerMayRemain: true,
  unansweredOffers: null,
  stallCauses: new Map(),
  raisedAlarms: new Set(),
});
/** So many loads say what the next will take; a restart of the database among them is forgotten with them. */
export const LOADS_KEPT = 20;
/** Keeps how long a part took to load. */

export function noteLoad(processState: Pick<ProcessState, 'lastLoadsMs'>, ms: number): void {
  processState.lastLoadsMs = [...processState.lastLoadsMs, ms].slice(-LOADS_KEPT);
}
