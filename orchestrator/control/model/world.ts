/** What the control core knows at one moment: everything `decide` may look at. */
import type { RobotsPolicy } from '../../../shared/domain/robots-matcher.ts';
import type { RunLimits } from '../../../shared/domain/limits.ts';
import type { CloudInstance } from '../../cloud/compute.ts';
import type { TargetHealth } from '../../cloud/load-balancer.ts';
import type { Forecast } from './forecast.ts';
import { perFleet } from '../per-fleet.ts';
import type { ActiveStallCauses } from './stall-causes.ts';
import type { Rights } from './rights.ts';
import type { InstanceRecord, RunRecord, WorkCounts } from './stores.ts';
import type { OutcomeCounts } from '../../../shared/domain/outcome.ts';

export interface World {
  nowMs: number;
  /** When this main server took the run up: silence before that proves nothing about an instance. */
  loopStartedAtMs: number;
  run: RunRecord;
  limits: RunLimits;
  /** All epochs of all slots, ordered by slot and epoch. */
  instances: InstanceRecord[];
  /** When the wish to end the run early was first seen; null while there is none. */
  requestSeenAtMs: number | null;
  /** robots.txt as it is in force; null before it was first read. */
  robots: RobotsPolicy | null;
  /** What EC2 shows under the run's tag, and when it was asked; null before the first answer. */
  cloud: { instances: readonly CloudInstance[]; seenAtMs: number } | null;
  /** Where instances may be launched; null before the first launch was prepared. */
  pools: Pools | null;
  balancerActive: boolean;
  /** ELBv2 does not know the balancer any more that the run's row names: it has to be made again. */
  balancerGone: boolean;
  /** ELBv2 refuses to make the balancer, and no further try will change that. */
  balancerRefused?: boolean;
  /** Calls that AWS refuses for want of keys or rights; left out: none. */
  rights?: Rights;
  /** ELBv2 may have something under the run's name that its row does not name. */
  balancerMayRemain?: boolean;
  /** Target health by instance id; empty while there is no balancer. */
  targets: ReadonlyMap<string, TargetHealth>;
  work: WorkCounts;
  /** When chunks that an instance gave back were last taken; null before that, also after a restart of the main server. */
  lastTransferAtMs: number | null;
  /** When the fleet will be through and whether it is even, as of the last heartbeat's time; null before the first look. */
  forecast: Forecast | null;
  /** What this run has said or decided once, and is not to again: keys of its `decision` and `projection` events. */
  notedKeys: Set<string>;
  totals: OutcomeCounts & { seen: number; loaded: number };
  /** How long nothing has come in although products wait; null while none does, left out where it is not measured. */
  stall?: Stall | null;
  /** What keeps the run from getting on, as far as it is known. */
  stallCauses?: ActiveStallCauses;
  /** Whether the site answers, and how much slower it is asked. */
  site?: SiteState;
  /** Since when no offer has been answered; null after an answer. */
  unansweredOffers?: UnansweredOffers | null;
  /** Targets that were healthy at any look of this main server, by instance id. */
  onceHealthy?: ReadonlySet<string>;
  /** When silent instances last put a part into the bucket, by `<slot>.<epoch>`. */
  uploads?: ReadonlyMap<string, number>;
}

/** The newest epoch of every slot that has one. */
export const latestBySlot = perFleet((instances): ReadonlyMap<number, InstanceRecord> => {
  const latest = new Map<number, InstanceRecord>();
  for (const record of instances) {
    const known = latest.get(record.slot);
    if (!known || known.epoch < record.epoch) latest.set(record.slot, record);
  }
  return latest;
});

/** How many slots the run has: the planned ones and those that were claimed beside them. */
export function slotCount(world: {
  run: { plan: { instances: number } };
  instances: readonly InstanceRecord[];
}): number {
  return world.instances.reduce((most, r) => Math.max(most, r.slot + 1), world.run.plan.instances);
}

/** EC2 has said no to its last call and will not be asked again. One that was throttled is asked again. */
export function isRefused({ answer }: InstanceRecord): boolean {
  return answer?.kind === 'refused' && answer.cause !== 'throttled';
}

/** No call for the claim can have launched anything. */
export function wasNeverLaunched(record: InstanceRecord): boolean {
  if (record.attempts === 0) return true;
  return isRefused(record) && record.answer?.kind === 'refused' && record.answer.mayExist !== true;
}

/** Given up for good: it may take no product, and what it did not crawl belongs to others. */
export function isGivenUp(record: InstanceRecord): boolean {
  return (
    record.phase === 'lost' ||
    record.phase === 'terminating' ||
    record.phase === 'terminated' ||
    record.phase === 'done'
  );
}

/** Asked to go and seen going: from here EC2 does not turn back. */
export function isLeaving(record: InstanceRecord): boolean {
  if (record.phase === 'terminated') return true;
  return (
    record.phase === 'terminating' && (record.cloudState === 'shutting-down' || record.cloudState === 'terminated')
  );
}

/** Its manifest is written: nobody will add a result under this epoch. */
export function isClosed(record: InstanceRecord): boolean {
  return isGivenUp(record) && record.manifestKey !== null && record.phase !== 'lost';
}
/** `ms`: the time without progress that counts. `sinceMs`: the wall clock at the last progress. */

export interface Stall {
  ms: number;
  sinceMs: number;
}
export interface SiteState {
  /** By how much every interval is longer. */
  slowdown: number;
  /** What was seen, in words; null while the site is up. */
  detail: string | null;
  /** The same of all requests since the last page that was right or gone: the likeliest cause where nothing comes in. */
  suspicion: string | null;
}
export const isDown = (site: SiteState | undefined): boolean => site !== undefined && site.detail !== null;
export interface Pool {
  subnetId: string;
  instanceType: string;
}
export interface Pools {
  subnetIds: readonly string[];
  /** In the order in which they are tried. */
  instanceTypes: readonly string[];
}
export interface UnansweredOffers {
  sinceMs: number;
  /** Of the balancer. */
  url: string;
  /** `unreachable`: no connection. `unknown`: it may have been delivered. */
  kind: 'unreachable' | 'unknown';
  message: string;
}
/** `open`: as many as are wanted. `one`: one at a time, its answer first. `held`: none for now. */

export type LaunchGate = 'open' | 'one' | 'held';
export type GateWorld = Pick<World, 'instances' | 'nowMs' | 'limits'> &
  Partial<Pick<World, 'loopStartedAtMs' | 'rights'>>;
