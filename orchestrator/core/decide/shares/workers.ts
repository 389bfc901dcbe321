/**
 * Which workers crawl or will crawl, how much, and how long it takes: the input of the forecast, rebalancing and extra
 * launches. A worker is a slot with its newest epoch. Pure.
 */
import { isNonEmpty } from '../../../../shared/domain/non-empty.ts';
import { type EpochId, epochNumber } from '../../../../shared/domain/epoch-id.ts';
import { domainPaces, isAnyHost, meanSpacingMs, pageShare } from '../../../../shared/domain/domains.ts';
import { easingMs, paceMarginMs } from '../../../../shared/domain/pacing.ts';
import type { Progress } from '../../../../shared/wire/callbacks.ts';
import { isUnavailable, mustReturnProducts } from '../ban-policy.ts';
import { intervalOf, pausedUntilMs } from '../../model/operator-pace.ts';
import { costOfRecord, type RecordCost } from '../../plan/host-sums.ts';
import { intervalUnder } from '../../model/robots-pace.ts';
import { hasAttemptsLeft, isFilled, isFilledSoon } from '../slot-attempts.ts';
import type { InstanceRecord, RunRecord, WorkCounts } from '../../model/stores.ts';
import { hasMoreWork, type Observed } from '../../model/world.ts';
import { isGivenUp } from '../../model/instance-state.ts';

export interface Worker {
  slot: number;
  /** 0 while nothing is claimed. */
  epoch: number;
  /** Products it holds and has not crawled. */
  pending: number;
  /** Chunks granted to it, crawled or not. */
  chunks: number;
  paceMs: number;
  /** True when its pages take longer than the interval: unlike the interval, page times vary. */
  isSlow: boolean;
  /**
   * When it can crawl at its pace: now, or when it will probably have booted; later by what its slower beginning after
   * a ban costs it.
   */
  startMs: number;
  /** The same with a slow boot. */
  startP95Ms: number;
  /** When it will have crawled what it holds. */
  endMs: number;
  /** When the last of the many hosts that it owns is done at its pace, the slices to come included; 0 for one site. */
  hostsEndMs: number;
  /** True for a serving instance, false for one still to boot. */
  isUp: boolean;
  canTake: boolean;
  canGive: boolean;
}

export interface Workers {
  workers: Worker[];
  /** Products that no instance holds, or that an address returns. */
  unassigned: number;
  chunkSize: number;
}

/** Usual boot time as a share of a slow one. */
const USUAL_BOOT = 1 / 2;
type Shard = WorkCounts['bySlot'][number];

const NO_SHARD: Omit<Shard, keyof EpochId> = { chunks: 0, products: 0 };
/** Silence that is part of the reporting: counters are up to one heartbeat old, and the next may be late. */
const USUAL_HEARTBEATS = 2;
/** Minimum outcomes from which the requests per product are estimated. */
const MIN_OUTCOMES = 10;

/** @param extra further workers that would start to boot now */
export function workersOf(world: Observed, extra = 0): Workers {
  const { chunkSize } = world.run.plan;
  const { latest } = world.fleet;
  const shardOf = shardsOf(world.work);
  const workers: Worker[] = [];
  let pool = world.work.byHost?.products ?? world.work.waiting * chunkSize;
  const count = world.fleet.slotCount(world.run.plan);
  const paces = { ...pacesOf(world), meanShare: (pool + pendingOf(world)) / (count + extra) };
  for (let slot = 0; slot < count + extra; slot++) {
    const record = latest.get(slot);
    const shard = record && shardOf(slot, record.epoch);
    const worker = workerOf(world, { slot, record, isExtra: slot >= count }, shard ?? NO_SHARD, paces);
    if (worker) workers.push(worker);
    if (record && !isGivenUp(record) && isGivingBack(world, record)) pool += record.progress?.pending ?? 0;
  }
  return { workers, unassigned: pool, chunkSize };
}

/** Products that it has crawled since its counters came, where that is long ago: it crawls on while it is not heard. */
function unseen({ nowMs, limits }: Observed, { lastHeartbeatAtMs }: InstanceRecord, paceMs: number): number {
  const silentMs = nowMs - (lastHeartbeatAtMs ?? nowMs);
  return silentMs > USUAL_HEARTBEATS * limits.heartbeatMs ? Math.floor(silentMs / paceMs) : 0;
}

/** What it has not crawled will be crawled under another epoch. */
const isGivingBack = (world: Observed, record: InstanceRecord): boolean =>
  record.rotateAtMs !== null || mustReturnProducts(world, record);

/** The worker of a slot; null for one in which nothing will be crawled, or with an open incident. */
function workerOf(
  world: Observed,
  { slot, record, isExtra }: { slot: number; record: InstanceRecord | undefined; isExtra: boolean },
  shard: Omit<Shard, keyof EpochId>,
  paces: Shares,
): Worker | null {
  const { nowMs } = world;
  const epoch = record?.epoch ?? 0;
  const isBannedLately = world.run.settings.site.bannedLately !== undefined;
  const booting = (sinceMs: number, progress: Progress | null): Worker => {
    const lostMs = isBannedLately ? easingOf(paces, null, { canTake: true }) : 0;
    return bootingWorker(world, { slot, epoch, ...paceOf(paces, progress) }, { sinceMs, lostMs });
  };
  if (isExtra) return booting(nowMs, null);
  if (record === undefined || isGivenUp(record))
    return hasMoreWork(world) && isFilledSoon(world, slot, record) ? booting(nowMs, null) : null;
  const { progress } = record;
  if (record.phase === 'claimed' || record.phase === 'pending' || record.phase === 'booting')
    return isFilled(world, record) ? booting(record.launchedAtMs ?? record.claimedAtMs, progress) : null;
  // Its successor crawls what it leaves.
  if (record.rotateAtMs !== null) return hasAttemptsLeft(world, slot) ? booting(nowMs, progress) : null;
  if (isUnavailable(record)) return null;
  const { paceMs, isSlow } = paceOf(paces, progress);
  // Its counters do not include the grants of the last reply yet.
  const unheard = Math.max(0, shard.products - (progress?.assigned ?? 0));
  const pending = Math.max(0, (progress?.pending ?? 0) + unheard - unseen(world, record, paceMs));
  const canTake = !record.sealed && record.phase !== 'uploading';
  const lostMs = progress?.sinceBan === undefined ? 0 : easingOf(paces, { ...progress, pending }, { canTake });
  const startMs = Math.max(nowMs, pausedUntilMs(world.run)) + lostMs;
  const canGive = canTake && record.phase === 'crawling';
  return {
    slot,
    epoch,
    pending,
    chunks: shard.chunks,
    paceMs,
    isSlow,
    startMs,
    startP95Ms: startMs,
    endMs: startMs + pending * paceMs,
    hostsEndMs: shard.hostsEndMs ?? 0,
    isUp: true,
    canTake,
    canGive,
  };
}

function bootingWorker(
  { nowMs, limits, run }: Observed,
  at: Pick<Worker, 'slot' | 'epoch' | 'paceMs' | 'isSlow'>,
  { sinceMs, lostMs }: { sinceMs: number; lostMs: number },
): Worker {
  // The plan's slow boot: with the boot limit instead, every tight plan would look late from the start.
  const slowBootMs = Math.min(limits.bootMs, run.plan.bootP95Ms);
  const soonestMs = Math.max(nowMs, pausedUntilMs(run));
  const startMs = Math.max(soonestMs, sinceMs + slowBootMs * USUAL_BOOT) + lostMs;
  const startP95Ms = Math.max(soonestMs, sinceMs + slowBootMs) + lostMs;
  const vacant = { pending: 0, chunks: 0, hostsEndMs: 0, isUp: false, canTake: true, canGive: false };
  return { ...at, ...vacant, startMs, startP95Ms, endMs: startMs };
}

/** Time per product of an instance with this progress, without a Crawl-delay. */
export const ownPaceMs = (run: RunRecord, progress: Progress | null): number =>
  paceOf(pacesOf({ run, robots: null }), progress).paceMs;

/** What holds for every address of the run. */
interface Paces {
  /** The interval of each address at a domain, without a margin. */
  intervalMs: number;
  /** How many of them are crawled at the same time. */
  domains: number;
  /** How many pages of an address are under way at the same time. */
  pages: number;
  /** The part of a page's time for which it delays the next request. */
  pageShare: number;
  /** Mean time between two requests at the least, over all domains: interval (or Crawl-delay) and margin. */
  spacingMs: number;
  requests: number;
  /** What a record costs over many hosts, as planned; null for one site. */
  record: (RecordCost & { plannedMs: number }) | null;
}

/** Also the mean number of products that a worker has still to crawl. */
type Shares = Paces & { meanShare: number };

/** Products that instances hold and have not crawled. */
const pendingOf = ({ fleet }: Observed): number =>
  fleet.all.reduce((sum, r) => sum + (isGivenUp(r) ? 0 : (r.progress?.pending ?? 0)), 0);

/** By how much the slower beginning after a ban will lengthen the crawl of what a worker holds or will probably get. */
function easingOf(shares: Shares, progress: Progress | null, { canTake }: Pick<Worker, 'canTake'>): number {
  const { intervalMs, domains, pages, meanShare } = shares;
  const products = Math.max(progress?.pending ?? 0, canTake ? Math.ceil(meanShare) : 0);
  // Of several domains one has banned it: its share of the products, each at that domain's own interval.
  const atLeastMs = (progress?.pageMs ?? 0) * (domains / pages);
  const rightPages = progress?.sinceBan ?? 0;
  return requestsEach(shares, progress) * easingMs(intervalMs, products / domains, { rightPages, atLeastMs });
}

function pacesOf({ run, robots }: Pick<Observed, 'run' | 'robots'>): Paces {
  const { plan } = run;
  const { productUrl, pagesAtOnce = 1 } = run.settings.site;
  const domains = domainPaces(productUrl, null);
  const spacingMs = (ms: number, policy: Observed['robots']): number =>
    meanSpacingMs(domainPaces(productUrl, policy), ms, (interval) => interval + paceMarginMs(interval));
  return {
    intervalMs: intervalUnder(robots, intervalOf(run)),
    domains: domains.length,
    pages: Math.min(pagesAtOnce, domains.length || pagesAtOnce),
    pageShare: pageShare(domains, pagesAtOnce),
    spacingMs: spacingMs(intervalUnder(robots, intervalOf(run)), robots),
    requests: isAnyHost(productUrl)
      ? 1
      : plan.paceMs / spacingMs(Math.max(plan.intervalMs, plan.operatorPace?.intervalMs ?? 0), null),
    record: plan.manyHosts ? { ...costOfRecord(plan.manyHosts), plannedMs: plan.paceMs } : null,
  };
}

/** The spacing, or the instance's median page time where that is longer, times the requests per product. */
function paceOf(paces: Paces, progress: Progress | null): Pick<Worker, 'paceMs' | 'isSlow'> {
  const pageMs = progress?.pageMs ?? null;
  if (paces.record !== null) {
    const { requestsEach: requests, deadMs, plannedMs } = paces.record;
    return { paceMs: pageMs === null ? plannedMs : (pageMs * requests + deadMs) / paces.pages, isSlow: true };
  }
  const { spacingMs } = paces;
  const requestMs = Math.max(spacingMs, (pageMs ?? 0) * paces.pageShare);
  return { paceMs: requestMs * requestsEach(paces, progress), isSlow: requestMs > spacingMs };
}

/** Requests per product: as planned, or as its instance has counted them. */
function requestsEach({ requests: planned }: Paces, progress: Progress | null): number {
  const done = progress ? progress.stored + progress.gone + progress.failed : 0;
  return Math.max(1, progress !== null && done >= MIN_OUTCOMES ? progress.requests / done : planned);
}

/**
 * Earliest time by which these workers finish `products` more; Infinity without workers. Water-filling: each worker
 * starts at its own end.
 */
export function waterFillLevel(workers: readonly { endMs: number; paceMs: number }[], products: number): number {
  const ordered = [...workers].sort((a, b) => a.endMs - b.endMs);
  if (!isNonEmpty(ordered)) return products > 0 ? Infinity : 0;
  let perMs = 0;
  let done = 0;
  let levelMs = ordered[0].endMs;
  for (const { endMs, paceMs } of ordered) {
    const more = (endMs - levelMs) * perMs;
    if (done + more >= products) break;
    done += more;
    levelMs = endMs;
    perMs += 1 / paceMs;
  }
  return perMs === 0 ? levelMs : levelMs + (products - done) / perMs;
}

/** Looks up shards of these counts; undefined for a (slot, epoch) that owns nothing. */
export function shardsOf({ bySlot }: Pick<WorkCounts, 'bySlot'>): (slot: number, epoch: number) => Shard | undefined {
  const byPlace = new Map(bySlot.map((shard) => [epochNumber(shard), shard]));
  return (slot, epoch) => byPlace.get(epochNumber({ slot, epoch }));
}
