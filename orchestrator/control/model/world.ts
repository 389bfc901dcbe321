/** What the control core knows at one moment: everything `decide` may read. */
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
  /** When this main server started or resumed the run: silence before that proves nothing about an instance. */
  loopStartedAtMs: number;
  run: RunRecord;
  limits: RunLimits;
  /** All epochs of all slots, ordered by slot and epoch. */
  instances: InstanceRecord[];
  /** When the stop request was first seen; null while there is none. */
  requestSeenAtMs: number | null;
  /** robots.txt as it is in force; null before it was first read. */
  robots: RobotsPolicy | null;
  /** What EC2 shows under the run's tag, and when it was polled; null before the first answer. */
  cloud: { instances: readonly CloudInstance[]; seenAtMs: number } | null;
  /** Where instances may be launched; null before the first launch was prepared. */
  pools: Pools | null;
  balancerActive: boolean;
  /** ELBv2 no longer knows the balancer that the run's row names: it has to be created again. */
  balancerGone: boolean;
  /** ELBv2 refuses to create the balancer, and no retry will change that. */
  balancerRefused?: boolean;
  /** Calls that AWS refuses for lack of keys or rights; omitted: none. */
  rights?: Rights;
  /** ELBv2 may have something under the run's name that its row does not name. */
  balancerMayRemain?: boolean;
  /** Target health by instance id; empty while there is no balancer. */
  targets: ReadonlyMap<string, TargetHealth>;
  work: WorkCounts;
  /** When an instance last returned chunks in a transfer; null before that, also after a restart of the main server. */
  lastTransferAtMs: number | null;
  /** When the fleet will finish and whether it is even, at most a heartbeat old; null before the first observation. */
  forecast: Forecast | null;
  /** Keys of the run's `decision` and `forecast` events, each of which is noted only once. */
  notedKeys: Set<string>;
  totals: OutcomeCounts & { seen: number; loaded: number };
  /** How long nothing has come in although products wait; null while none wait, omitted where it is not measured. */
  stall?: Stall | null;
  /** Known causes that keep the run from making progress. */
  stallCauses?: ActiveStallCauses;
  /** Whether the site answers, and by how much requests are slowed down. */
  site?: SiteState;
  /** Since when no offer has been answered; null after an answer. */
  unansweredOffers?: UnansweredOffers | null;
  /** Targets that this main server has seen healthy at least once, by instance id. */
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

/** Number of slots of the run: the planned ones and those claimed in addition. */
export function slotCount(world: {
  run: { plan: { instances: number } };
  instances: readonly InstanceRecord[];
}): number {
  return world.instances.reduce((most, r) => Math.max(most, r.slot + 1), world.run.plan.instances);
}

/** EC2 has refused its last call, and the call is not repeated. A throttled call is repeated. */
export function isRefused({ answer }: InstanceRecord): boolean {
  return answer?.kind === 'refused' && answer.cause !== 'throttled';
}

/** No call for the claim can have launched anything. */
export function wasNeverLaunched(record: InstanceRecord): boolean {
  if (record.attempts === 0) return true;
  return isRefused(record) && record.answer?.kind === 'refused' && record.answer.mayExist !== true;
}

/** Given up permanently: it may take no product, and its uncrawled ones belong to others. */
export function isGivenUp(record: InstanceRecord): boolean {
  return (
    record.phase === 'lost' ||
    record.phase === 'terminating' ||
    record.phase === 'terminated' ||
    record.phase === 'done'
  );
}

/** Terminated, and seen shutting down: EC2 does not revert that. */
export function isLeaving(record: InstanceRecord): boolean {
  if (record.phase === 'terminated') return true;
  return (
    record.phase === 'terminating' && (record.cloudState === 'shutting-down' || record.cloudState === 'terminated')
  );
}

/** Its manifest is written: no result will be added under this epoch. */
export function isClosed(record: InstanceRecord): boolean {
  return isGivenUp(record) && record.manifestKey !== null && record.phase !== 'lost';
}
/** `ms`: the time without progress that counts. `sinceMs`: the wall clock at the last progress. */
export interface Stall {
  ms: number;
  sinceMs: number;
}

export interface SiteState {
  /** Factor by which every interval is longer. */
  slowdown: number;
  /** What was seen, in words; null while the site is up. */
  detail: string | null;
  /** The same for all requests since the last right or gone page: the likeliest cause where nothing comes in. */
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

/** `open`: any number. `one`: one at a time, each after the answer to the last. `held`: none for now. */
export type LaunchGate = 'open' | 'one' | 'held';

export type GateWorld = Pick<World, 'instances' | 'nowMs' | 'limits'> &
  Partial<Pick<World, 'loopStartedAtMs' | 'rights'>>;
