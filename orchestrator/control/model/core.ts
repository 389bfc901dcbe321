/** What the control core works with: ports, and the number under which this main server holds the lock. */
import type { EpochId } from '../../../shared/domain/epoch-id.ts';
import type { Logger } from 'pino';
import type { Clock } from '../../../shared/ports/clock.ts';
import type { ObjectStore } from '../../../shared/ports/object-store.ts';
import type { Random } from '../../../shared/ports/random.ts';
import type { Compute } from '../../cloud/compute.ts';
import type { LoadBalancer } from '../../cloud/load-balancer.ts';
import type { OfferSender } from '../sharing/dispatch.ts';
import type { RobotsCache } from '../observe/robots-cache.ts';
import type { LaunchTemplate } from '../launching/launch.ts';
import type { Pools } from '../launching/pools.ts';
import type { ActiveStallCause, StallCause } from '../decide/stall-causes.ts';
import { allRights } from '../launching/rights.ts';
import type { Rights } from '../launching/rights.ts';
import type { LaunchTurn } from '../launching/token-bucket.ts';
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
  /** Ends an alarm's silence: written as an event and to the log. */
  alarm(detail: string, at?: EpochId): Promise<void>;
  /** Runs loads one after the other: two at once would only wait for each other's rows. */
  oneAtATime: <T>(work: () => Promise<T>) => Promise<T>;
  /** Marks of time for the report. */
  processState: ProcessState;
}

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

/** So many loads say what the next will take; a restart of the database among them is forgotten with them. */
const LOADS_KEPT = 20;

/** Keeps how long a part took to load. */
export function noteLoad(processState: Pick<ProcessState, 'lastLoadsMs'>, ms: number): void {
  processState.lastLoadsMs = [...processState.lastLoadsMs, ms].slice(-LOADS_KEPT);
}

/** A queue of one: each piece of work starts when the one before it has ended, well or badly. */
export function createQueue(): <T>(work: () => Promise<T>) => Promise<T> {
  let last: Promise<unknown> = Promise.resolve();
  return (work) => {
    const next = last.then(work, work);
    last = next.catch(() => undefined);
    return next;
  };
}
