/** What the control core knows at one moment: everything `decide` may read. */
import type { RobotsPolicy } from '../../../shared/domain/robots-matcher.ts';
import type { RunLimits } from '../../../shared/domain/limits.ts';
import type { TargetHealth } from '../cloud/load-balancer.ts';
import type { HostPace } from '../plan/host-pace.ts';
import type { ChunkLimits, Forecast } from './forecast.ts';
import type { FleetSnapshot } from './fleet-snapshot.ts';
import type { Pools } from './launch-history.ts';
import type { ActiveStallCauses } from './stall-causes.ts';
import { type RegionState, regionsFromRow } from './regions.ts';
import { limitsOf } from './run-deadlines.ts';
import type { LoadTotals, RunRecord, WorkCounts } from './stores.ts';

export interface World {
  nowMs: number;
  /** When this main server started or resumed the run: silence before that proves nothing about an instance. */
  loopStartedAtMs: number;
  run: RunRecord;
  limits: RunLimits;
  fleet: FleetSnapshot;
  /** When the stop request was first seen; null while there is none. */
  requestSeenAtMs: number | null;
  /** robots.txt as it is in force; null before it was first read. */
  robots: RobotsPolicy | null;
  /** The run's paces, where the site asks for a slower one that is not stored yet; else null. */
  raised: readonly HostPace[] | null;
  /** In the order of the configuration; never empty. */
  regions: readonly RegionState[];
  /** Where instances may be launched; null before the first launch was prepared. */
  pools: Pools | null;
  /** Target health by instance id, in all regions; empty while there is no balancer. */
  targets: ReadonlyMap<string, TargetHealth>;
  work: WorkCounts;
  /** How many URLs a discovery may take now, and whether it may find more; null for other runs. */
  discovery: DiscoveryState | null;
  /** When an instance last returned chunks in a transfer; null before that, also after a restart of the main server. */
  lastTransferAtMs: number | null;
  /** When the fleet will finish and whether it is even, at most a heartbeat old; null before the first observation. */
  forecast: Forecast | null;
  /** As of this observation; a transfer since then changes them. */
  chunkLimits: ChunkLimits;
  /** Keys of the run's `decision` and `forecast` events, each of which is noted only once. */
  notedKeys: Set<string>;
  totals: LoadTotals;
  /** How long nothing has come in although products wait; null while none wait. */
  stall: Stall | null;
  /** Known causes that keep the run from making progress. */
  stallCauses: ActiveStallCauses;
  /** Whether the site answers, and by how much requests are slowed down. */
  site: SiteState;
  /** Since when no offer has been answered; null after an answer. */
  unansweredOffers: UnansweredOffers | null;
  /** Targets that this main server has seen healthy at least once, by instance id. */
  onceHealthy: ReadonlySet<string>;
  /** When silent instances last put a part into the bucket, by `<slot>.<epoch>`. */
  uploads: ReadonlyMap<string, number>;
}

export interface DiscoveryState {
  /** URLs that wait and that the fleet can crawl in time. */
  takable: number;
  /** URLs that wait and that only a larger fleet could crawl in time; omitted: none. */
  beyond?: number;
  /** Products under way may lead to more. */
  isOpen: boolean;
}

/** True while products wait, or a discovery may still add some: instances stay, and empty slots are filled. */
export const hasMoreWork = ({ work, discovery }: Pick<World, 'work' | 'discovery'>): boolean =>
  work.waiting > 0 || (discovery !== null && (discovery.takable > 0 || discovery.isOpen));

/** What the database shows alone, with nothing known of AWS, of the site and of other moments. */
export const worldFromRows = (rows: Pick<World, 'nowMs' | 'run' | 'fleet' | 'work' | 'robots'>): World => ({
  ...rows,
  loopStartedAtMs: -Infinity,
  limits: limitsOf(rows.run),
  requestSeenAtMs: null,
  raised: null,
  regions: regionsFromRow(rows.run),
  pools: null,
  targets: new Map(),
  discovery: null,
  lastTransferAtMs: null,
  forecast: null,
  chunkLimits: { equal: 0, byTime: null },
  notedKeys: new Set(),
  totals: { stored: 0, gone: 0, failed: 0, seen: 0, loaded: 0 },
  stall: null,
  stallCauses: new Map(),
  site: { slowdown: 1, detail: null, suspicion: null },
  unansweredOffers: null,
  onceHealthy: new Set(),
  uploads: new Map(),
});

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

export const isDown = ({ detail }: SiteState): boolean => detail !== null;

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
