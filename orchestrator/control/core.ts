/** What the control core works with: ports, and the fence under which this main server holds the lock. */
import type { EpochId } from '../../shared/domain/epoch-id.ts';
import type { Logger } from 'pino';
import type { Clock } from '../../shared/ports/clock.ts';
import type { ObjectStore } from '../../shared/ports/object-store.ts';
import type { Random } from '../../shared/ports/random.ts';
import type { Compute } from '../cloud/compute.ts';
import type { LoadBalancer } from '../cloud/load-balancer.ts';
import type { OfferSender } from './dispatch.ts';
import type { RobotsCache } from './robots-cache.ts';
import type { LaunchTemplate } from './launch.ts';
import type { Pools } from './pools.ts';
import type { ActiveStallCause, StallCause } from './stall-causes.ts';
import { allRights } from './rights.ts';
import type { Rights } from './rights.ts';
import type { LaunchTurn } from './token-bucket.ts';
import type { FleetStore, ResultStore, RunStore, WorkStore } from './stores.ts';

export interface Core {
  runId: string;
  fence: number;
  clock: Clock;
  random: Random;
  log: Logger;
  runs: RunStore;
  fleet: FleetStore;
  work: WorkStore;
  results: ResultStore;
  compute: Compute;
  balancers: LoadBalancer;
  objects: ObjectStore;
  offers: OfferSender;
  /** The fleet's one copy of robots.txt. */
  robots: Pick<RobotsCache, 'policy'>;
  /** Resolves when RunInstances may be called: AWS lets 5 through at once, then 2 a second; slower while it throttles. */
  launchTurn: LaunchTurn;
  /** What every launch needs, prepared on first use. */
  launchTemplate(): Promise<LaunchTemplate>;
  /** Raises an alarm: writes it as an event and to the log. */
  alarm(detail: string, at?: EpochId): Promise<void>;
  /** Runs loads one after the other: two at once would only wait for each other's rows. */
  oneAtATime: <T>(work: () => Promise<T>) => Promise<T>;
  processState: ProcessState;
}

/**
 * Process-local state of one main server. Times are wall-clock milliseconds; null when this process has not seen the
 * event.
 */
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
  /** When an instance last returned chunks in a transfer. */
  lastTransferMs: number | null;
  /** `slot.epoch` of instances that were long asked for chunks without returning any: they have begun all of them. */
  nothingToGive: Set<string>;
  /** The last time that EC2 refused a launch for the account's quota. */
  quotaRefusedMs: number | null;
  /** Where instances may be launched; known once the first launch is prepared. */
  pools: Pools | null;
  /** Calls that AWS refuses for lack of keys or rights. */
  rights: Rights;
  /** ELBv2 refuses to create the balancer, and no retry will change that. */
  balancerRefused: boolean;
  /**
   * First failure to create the balancer, and first failure to remove its remains (monotonic ms); null while healthy.
   */
  balancerFailingMs: number | null;
  sweepFailingMs: number | null;
  /** ELBv2 may have something under the run's name that its row does not name: true until that is checked. */
  balancerMayRemain: boolean;
  /** Since when (wall clock) no offer has been answered, and how the last one failed; null after an answer. */
  unansweredOffers: UnansweredOffers | null;
  /** Known causes that keep the run from making progress now. */
  stallCauses: Map<StallCause, ActiveStallCause>;
  /** Alarms that are raised once, by their keys. */
  raisedAlarms: Set<string>;
}

export interface UnansweredOffers {
  sinceMs: number;
  /** Of the balancer. */
  url: string;
  /** `unreachable`: no connection. `unknown`: it may have been delivered. */
  kind: 'unreachable' | 'unknown';
  message: string;
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

/**
 * Number of recent loads from which the next is estimated; outliers, such as a database restart, drop out with them.
 */
const LOADS_KEPT = 20;

/** Records how long a part took to load. */
export function noteLoad(processState: Pick<ProcessState, 'lastLoadsMs'>, ms: number): void {
  processState.lastLoadsMs = [...processState.lastLoadsMs, ms].slice(-LOADS_KEPT);
}

/** Runs one piece of work at a time: each starts when the one before it has settled. */
export function createQueue(): <T>(work: () => Promise<T>) => Promise<T> {
  let last: Promise<unknown> = Promise.resolve();
  return (work) => {
    const next = last.then(work, work);
    last = next.catch(() => undefined);
    return next;
  };
}
