/** What the control core knows at one moment. */
import type { RobotsPolicy } from '../../../shared/domain/robots-matcher.ts';
import type { RunLimits } from '../../../shared/domain/limits.ts';
import type { TargetHealth } from '../cloud/load-balancer.ts';
import type { HostPace } from '../plan/host-pace.ts';
import type { ChunkLimits, Forecast } from './forecast.ts';
import type { FleetSnapshot } from './fleet-snapshot.ts';
import type { Pools } from './launch-history.ts';
import type { ActiveStallCauses } from './stall-causes.ts';
import { type Regions, regionsFromRow } from './regions.ts';
import { limitsOf } from './run-deadlines.ts';
import type { LoadTotals, RunRecord, WorkCounts } from './stores.ts';

/** What was read and counted, before it is judged: what forecasts, shares and launches follow from. */
export interface Observed {
  readonly nowMs: number;
  /** When this main server started or resumed the run: silence before that proves nothing about an instance. */
  readonly loopStartedAtMs: number;
  readonly run: RunRecord;
  readonly limits: RunLimits;
  readonly fleet: FleetSnapshot;
  /** When the stop request was first seen; null while there is none. */
  readonly requestSeenAtMs: number | null;
  /** robots.txt as it is in force; null before it was first read. */
  readonly robots: RobotsPolicy | null;
  /** The run's paces, where the site asks for a slower one that is not stored yet; else null. */
  readonly raised: readonly HostPace[] | null;
  readonly regions: Regions;
  /** Where instances may be launched; null before the first launch was prepared. */
  readonly pools: Pools | null;
  /** Target health by instance id, in all regions; empty while there is no balancer. */
  readonly targets: ReadonlyMap<string, TargetHealth>;
  readonly work: WorkCounts;
  /** How many URLs a discovery may take now, and whether it may find more; null for other runs. */
  readonly discovery: DiscoveryState | null;
  /** When an instance last returned chunks in a transfer; null before that, also after a restart of the main server. */
  readonly lastTransferAtMs: number | null;
  /** Keys of the run's `decision` and `forecast` events, each of which is noted only once. */
  readonly notedKeys: Set<string>;
  readonly totals: LoadTotals;
  /** Known causes that keep the run from making progress. */
  readonly stallCauses: ActiveStallCauses;
  /** Since when no offer has been answered; null after an answer. */
  readonly unansweredOffers: UnansweredOffers | null;
  /** Targets that this main server has seen healthy at least once, by instance id. */
  readonly onceHealthy: ReadonlySet<string>;
  /** When silent instances last put a part into the bucket, by `<slot>.<epoch>`. */
  readonly uploads: ReadonlyMap<string, number>;
}

/** What was observed, and what it means: everything `decide` may read. */
export interface World extends Observed {
  /** Whether the site answers, and by how much requests are slowed down. */
  readonly site: SiteState;
  /** How long nothing has come in although products wait; null while none wait. */
  readonly stall: Stall | null;
  /** When the fleet will finish and whether it is even, at most a heartbeat old; null before the first observation. */
  readonly forecast: Forecast | null;
  /** The limits as of this observation; a transfer since then changes them. */
  readonly chunkLimits: ChunkLimits;
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
export const hasMoreWork = ({ work, discovery }: Pick<Observed, 'work' | 'discovery'>): boolean =>
  work.waiting > 0 || (discovery !== null && (discovery.takable > 0 || discovery.isOpen));

/**
 * Of many hosts: true while a part is not loaded, which may have products that go on at another host. Instances stay
 * for them, but none is launched before there are any.
 */
export const mayHaveMoved = ({ work, totals }: Pick<Observed, 'work' | 'totals'>): boolean =>
  work.byHost !== undefined && totals.seen > totals.loaded;

/** What the database shows alone, with nothing known of AWS, of the site and of other moments. */
export const observedInRows = (rows: Pick<Observed, 'nowMs' | 'run' | 'fleet' | 'work' | 'robots'>): Observed => ({
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
  notedKeys: new Set(),
  totals: { stored: 0, gone: 0, failed: 0, seen: 0, loaded: 0 },
  stallCauses: new Map(),
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
  /** The URL of the balancer. */
  url: string;
  /** `unreachable`: no connection. `unknown`: it may have been delivered. */
  kind: 'unreachable' | 'unknown';
  message: string;
}

/** `open`: any number. `one`: one at a time, each after the answer to the last. `held`: none for now. */
export type LaunchGate = 'open' | 'one' | 'held';
