/**
 * What one main server remembers beside the database. A restart loses all of it: docs/decisions/0002-control-loop.md
 * says what that costs.
 */
import type { BalancerPart } from '../cloud/load-balancer.ts';
import { RestClock } from './rest-clock.ts';
import { allRights } from './rights.ts';
import type { StallCause, ActiveStallCause } from './stall-causes.ts';
import type { UnansweredOffers } from './world.ts';
import type { Pools } from './launch-history.ts';

/** What AWS has refused to delete of the balancer, and its words; `parts` null where that is not known. */
export interface BalancerLeft {
  parts: readonly BalancerPart[] | null;
  words: string;
}

/** What a process remembers of one region. */
export class RegionProcessState {
  /** The last time that EC2 refused a launch for the account's quota. */
  quotaRefusedMs: number | null = null;
  /** Calls that AWS refuses for lack of keys or rights. */
  rights = allRights();
  /** ELBv2 refuses to create the balancer, and no retry will change that. */
  balancerRefused = false;
  /** First failure to create the balancer, and to remove its remains (monotonic ms); null while healthy. */
  balancerFailingMs: number | null = null;
  sweepFailingMs: number | null = null;
  /** Since when the account has no room for the balancer (monotonic ms); null while that is not known. */
  balancerFullMs: number | null = null;
  /** The last attempt to remove the balancer was refused; null otherwise. */
  balancerLeft: BalancerLeft | null = null;
  /** ELBv2 may have something under the run's name that its row does not name: true until that is checked. */
  balancerMayRemain = true;
}

/**
 * What the process of one main server remembers. Times are wall-clock milliseconds; null when it has not seen the
 * event.
 */
export class ProcessState {
  firstLaunchMs: number | null = null;
  lastLaunchMs: number | null = null;
  firstOfferMs: number | null = null;
  lastGrantMs: number | null = null;
  firstReadyMs: number | null = null;
  crawlEndMs: number | null = null;
  loadMs = 0;
  /** How long the last parts took to load, by the monotonic clock. */
  lastLoadsMs: number[] = [];
  publishMs: number | null = null;
  /** When an instance last returned chunks in a transfer. */
  lastTransferMs: number | null = null;
  /** `slot.epoch` of instances that were long asked for chunks without returning any: they have begun all of them. */
  nothingToGive = new Set<string>();
  /** Where instances may be launched; known once the first launch is prepared. */
  pools: Pools | null = null;
  /** Since when (wall clock) no offer has been answered, and how the last one failed; null after an answer. */
  unansweredOffers: UnansweredOffers | null = null;
  /**
   * From when on the silence of instances counts: the start of this process, or the last time that its clock was set or
   * it stood still.
   */
  silentFromMs = -Infinity;
  /** The clock by which the stored rests of hosts are right. */
  readonly restClock = new RestClock();
  /** The longest standstill by the monotonic clock. */
  longestStandstillMs = 0;
  /** Known causes that keep the run from making progress now. */
  stallCauses = new Map<StallCause, ActiveStallCause>();
  /** Alarms that are raised once, by their keys. */
  raisedAlarms = new Set<string>();
  readonly #regions = new Map<string, RegionProcessState>();

  /** What is remembered of one region. */
  region(name: string): RegionProcessState {
    let known = this.#regions.get(name);
    if (known === undefined) this.#regions.set(name, (known = new RegionProcessState()));
    return known;
  }
}

/** Recent loads from which the next is estimated; outliers, such as a database restart, drop out with them. */
const LOADS_KEPT = 20;

/** Records how long a part took to load. */
export function noteLoad(processState: Pick<ProcessState, 'lastLoadsMs'>, ms: number): void {
  processState.lastLoadsMs = [...processState.lastLoadsMs, ms].slice(-LOADS_KEPT);
}
