/** Observes the world. EC2 and ELBv2 are polled at their own pace, each region by region-watch.ts. */
import { mapAll, type NonEmpty } from '../../../shared/domain/non-empty.ts';
import { limitsOf } from '../model/run-deadlines.ts';
import { FleetSnapshot } from '../model/fleet-snapshot.ts';
import type { Core } from '../model/core.ts';
import { notedKeys } from '../act/run-notes.ts';
import { ManifestPoll } from './manifest-poll.ts';
import { unreadableRobots } from '../model/robots-pace.ts';
import { raisedPaces, robotsInForce } from '../decide/site-cap.ts';
import type { Forecast } from '../model/forecast.ts';
import { chunkLimits, forecastRun } from '../decide/shares/chunk-limits.ts';
import { discoveryState } from '../decide/discovery-state.ts';
import { ProgressWatch } from './progress-watch.ts';
import { SiteWatch } from './site-watch.ts';
import { type ActiveStallCauses, setStallCause, type StallCause } from '../model/stall-causes.ts';
import { allRights, neededRefused } from '../model/rights.ts';
import { uploadRefusal } from '../decide/launches/rights.ts';
import { RegionWatch } from './region-watch.ts';
import { regionNamed, type Regions, regionsFromRow } from '../model/regions.ts';
import type { InstanceRecord, RunRecord } from '../model/stores.ts';
import type { Observed, SiteState, World } from '../model/world.ts';

/**
 * The time until the first poll after a call that changes AWS; each further delay is 1.5 times longer, up to the
 * slowest.
 */
const SOONEST_MS = 250;
/** A round this share of `lostMs` after the one before is a standstill. */
const STANDSTILL_SHARE = 1 / 3;
/**
 * The most late rounds in a row that are a standstill. More are the pace of this machine, its database or AWS, where
 * the limits must still end the run.
 */
const MOST_IN_A_ROW = 3;

export class Observer {
  readonly #core: Core;
  /** The wall clock minus the monotonic one. */
  #offsetMs: number;
  /** When the rows of the last round were read (monotonic ms); null before the first. */
  #readMs: number | null = null;
  /** Standstills without a round in time between them. */
  #inARow = 0;
  readonly #bucket: ManifestPoll;
  readonly #siteWatch = new SiteWatch();
  readonly #progressWatch = new ProgressWatch();
  readonly #regions: NonEmpty<RegionWatch>;
  #isSlow = false;
  readonly #onceHealthy = new Set<string>();
  #waitMs = SOONEST_MS;
  /** Time of the next AWS poll (monotonic ms). */
  nextLookMs = 0;
  #requestSeenAtMs: number | null = null;
  #notedKeys: Set<string> | null = null;
  #forecast: Forecast | null = null;

  constructor(core: Core) {
    this.#core = core;
    this.#offsetMs = core.clock.now() - core.clock.monotonic();
    core.processState.silentFromMs = core.clock.now();
    this.#bucket = new ManifestPoll(core);
    this.#regions = mapAll(core.regions, (region) => new RegionWatch(core, region));
  }

  /** Something was changed in AWS: poll again soon. */
  expectChange(): void {
    this.#waitMs = SOONEST_MS;
    this.nextLookMs = Math.min(this.nextLookMs, this.#core.clock.monotonic() + SOONEST_MS);
  }

  async observe(): Promise<World> {
    const core = this.#core;
    const readMs = core.clock.monotonic();
    const [run, instances] = await Promise.all([core.run.get(), core.fleet.instances()]);
    // Before the counts: what is taken in between is seen twice, not missed.
    const feed = run?.settings.discover ? ((await core.feed?.state()) ?? null) : null;
    // After the instances: products of an epoch that is closed by then count as waiting.
    const [work, totals] = await Promise.all([core.work.counts(), core.results.totals()]);
    if (!run) throw new Error(`run ${core.runId} has vanished from the database`);
    await core.processState.restClock.keep(core, run);
    const limits = limitsOf(run);
    const fleet = new FleetSnapshot(instances);
    await this.#watchClock(limits.heartbeatMs);
    const lookedMs = core.clock.monotonic();
    if (lookedMs >= this.nextLookMs)
      await this.#look(run, fleet, Math.min(5_000, Math.max(500, limits.heartbeatMs / 3)));
    await this.#watchStandstill(readMs, core.clock.monotonic() - lookedMs, limits.lostMs * STANDSTILL_SHARE);
    this.#bucket.look(instances, limits);
    // The clock may have been set while AWS was asked: a round must not end instances that could not report since then.
    const nowMs = await this.#watchClock(limits.heartbeatMs);
    if (run.request !== null) this.#requestSeenAtMs ??= nowMs;
    const seen = {
      nowMs,
      run: { ...run, measuredTailMs: measuredTailMs(instances, core.processState.lastLoadsMs) },
      fleet,
    };
    const raised = raisedPaces(seen, core.robots.policy);
    const robots = robotsInForce({ ...seen, raised }, core.robots.policy);
    const regions = await this.#regionStates(run, limits.lostMs);
    const notedKeys = await this.#readNoted();
    const site = this.#siteWatch.look({ fleet, limits, robots }, core.clock.monotonic());
    const rows: Omit<Observed, 'discovery'> = {
      ...seen,
      work,
      limits,
      robots,
      raised,
      loopStartedAtMs: this.#core.processState.silentFromMs,
      requestSeenAtMs: this.#requestSeenAtMs,
      regions,
      pools: core.processState.pools,
      targets: this.#targets(),
      onceHealthy: this.#onceHealthy,
      lastTransferAtMs: core.processState.lastTransferMs,
      notedKeys,
      totals,
      stallCauses: this.#stallCauses({ ...seen, robots, regions }, site),
      uploads: this.#bucket.uploads,
      unansweredOffers: core.processState.unansweredOffers,
    };
    const observed = { ...rows, discovery: feed && discoveryState(rows, feed) };
    const stall = this.#progressWatch.look(observed, core.clock.monotonic());
    this.#bucket.ask({ ...observed, stall });
    await this.#noteSite(site);
    if (this.#forecast === null || observed.nowMs - this.#forecast.atMs >= limits.heartbeatMs)
      this.#forecast = forecastRun(observed, core.processState.nothingToGive);
    const forecast = this.#forecast;
    return { ...observed, site, stall, forecast, chunkLimits: chunkLimits({ ...observed, forecast }) };
  }

  /** The causes that are known now. What the run ends for stays known to its report. */
  #stallCauses(
    { nowMs, run, fleet, robots, regions }: Pick<Observed, 'nowMs' | 'run' | 'fleet' | 'robots' | 'regions'>,
    site: SiteState,
  ): ActiveStallCauses {
    const { stallCauses, unansweredOffers } = this.#core.processState;
    const note = (cause: StallCause, detail: string | null): void => {
      if (detail !== null || run.request !== cause) setStallCause(stallCauses, cause, detail, nowMs);
    };
    note('site-down', site.detail ?? site.suspicion ?? unreadableRobots(robots));
    const [refused] = regions.flatMap(({ rights }) => neededRefused(rights));
    note('refused-right', refused?.message ?? null);
    note('refused-upload', uploadRefusal({ fleet }));
    const isCutOff = unansweredOffers?.kind === 'unreachable';
    note('unreachable', isCutOff ? `${unansweredOffers.url}: ${unansweredOffers.message}` : null);
    return new Map(stallCauses);
  }

  /** Raises an alarm when the site goes down or comes back; RobotsCache raises those about robots.txt. */
  async #noteSite(site: SiteState): Promise<void> {
    const wasSlow = this.#isSlow;
    this.#isSlow = site.slowdown > 1;
    if (this.#isSlow === wasSlow) return;
    await this.#core.alarm(
      this.#isSlow
        ? `the site is down: ${site.detail}; requests go out at half the pace, down to an eighth, and no extra instance is launched`
        : 'the site answers again; requests go out at the planned pace',
    );
  }

  /**
   * Begins to count silence anew after a step of the wall clock, or a sleep of this machine; AWS must be asked again.
   * Returns the time that it has looked at.
   */
  async #watchClock(toleranceMs: number): Promise<number> {
    const { processState, clock } = this.#core;
    const nowMs = clock.now();
    const jumpMs = nowMs - clock.monotonic() - this.#offsetMs;
    this.#offsetMs += jumpMs;
    // Less is drift.
    if (Math.abs(jumpMs) < toleranceMs) return nowMs;
    this.#countAnew(nowMs);
    // Times that are in the future by the new clock are discarded, or the loop would wait for them.
    if ((processState.lastTransferMs ?? -Infinity) > nowMs) processState.lastTransferMs = null;
    for (const { name } of this.#core.regions) {
      const region = processState.region(name);
      if ((region.quotaRefusedMs ?? -Infinity) > nowMs) region.quotaRefusedMs = null;
    }
    for (const region of this.#regions) region.forget();
    this.nextLookMs = 0;
    await this.#core.alarm(
      `the clock of this server has jumped ${jumpMs < 0 ? 'back' : 'ahead'} by ${Math.round(Math.abs(jumpMs) / 1_000)} s, or it was asleep; the silence of instances counts from now`,
    );
    return nowMs;
  }

  /**
   * Whatever has kept this process from a round for so long (stopped, starved, no database) has kept its instances from
   * reporting, too. A slow answer of AWS has not, but the rows that were read before it are as old.
   * @param lookMs how long the answers of AWS took in this round
   */
  async #watchStandstill(readMs: number, lookMs: number, leastMs: number): Promise<void> {
    const { clock } = this.#core;
    const stoodMs = clock.monotonic() - (this.#readMs ?? readMs);
    this.#readMs = readMs;
    this.#inARow = stoodMs < leastMs ? 0 : this.#inARow + 1;
    if (this.#inARow === 0 || this.#inARow > MOST_IN_A_ROW) return;
    const { processState } = this.#core;
    processState.longestStandstillMs = Math.max(processState.longestStandstillMs, stoodMs);
    this.#countAnew(clock.now());
    if (stoodMs - lookMs < leastMs) return;
    await this.#core.alarm(
      `this main server stood still for ${Math.round(stoodMs / 1_000)} s (stopped, starved or without its database); the silence of instances counts from now`,
    );
  }

  /** What no instance could report, and what went on unseen, proves nothing. */
  #countAnew(nowMs: number): void {
    const { processState, regions } = this.#core;
    this.#core.processState.silentFromMs = nowMs;
    if (processState.unansweredOffers !== null) processState.unansweredOffers.sinceMs = nowMs;
    for (const { name } of regions) processState.region(name).rights = allRights();
    this.#forecast = null;
  }

  /** Read once; from then on `note` adds its keys here too. */
  async #readNoted(): Promise<Set<string>> {
    this.#notedKeys ??= new Set(await notedKeys(this.#core));
    return this.#notedKeys;
  }

  /** A region that has just not answered does not hold up the round: its answer counts when it comes. */
  async #look(run: RunRecord, fleet: FleetSnapshot, slowestMs: number): Promise<void> {
    this.nextLookMs = this.#core.clock.monotonic() + this.#waitMs;
    this.#waitMs = Math.min(slowestMs, this.#waitMs * 1.5);
    // Whether another region answers tells a region that is out from a network that is.
    const isCheck = this.#regions.some((region) => region.failingSinceMs !== null);
    await Promise.all(
      this.#regions.map(async (region, i) => {
        const isAwaited = region.failingSinceMs === null || this.#regions.length === 1;
        const look = region.look(run, fleet.in(region.name, i === 0).all, isCheck);
        if (isAwaited) await look;
      }),
    );
    for (const { targets } of this.#regions)
      for (const [id, health] of targets) if (health === 'healthy') this.#onceHealthy.add(id);
  }

  #targets(): World['targets'] {
    const [first, ...others] = this.#regions;
    return others.length === 0 ? first.targets : new Map(this.#regions.flatMap(({ targets }) => [...targets]));
  }

  /** Raises an alarm when a region goes out or comes back. */
  async #regionStates(run: RunRecord, patienceMs: number): Promise<Regions> {
    const now = this.#core.clock.monotonic();
    const states = mapAll(regionsFromRow(run), (row) => {
      const region = regionNamed(this.#regions, row.name);
      const othersAnswer = this.#regions.some((other) => other !== region && other.isAnswering());
      return { ...row, ...region.state(now - patienceMs, othersAnswer) };
    });
    for (const { name, isOut } of states) {
      const region = regionNamed(this.#regions, name);
      if (isOut === region.wasOut) continue;
      region.wasOut = isOut;
      await this.#core.alarm(
        isOut
          ? `AWS does not answer in ${name}: ${region.failure}; other regions take over its slots, and instances there that are silent are given up`
          : `AWS answers in ${name} again; launches there are possible`,
      );
    }
    return states;
  }
}

/**
 * The longest upload of a part, plus a median load for each instance that had products (all upload their last part at
 * once), plus one load as slow as the slowest recent one, which may occur again, but not for every instance.
 */
function measuredTailMs(instances: readonly InstanceRecord[], lastLoadsMs: readonly number[]): number {
  let uploadMs = 0;
  let shards = 0;
  for (const { progress } of instances) {
    uploadMs = Math.max(uploadMs, progress?.uploadMs ?? 0);
    if ((progress?.assigned ?? 0) > 0) shards++;
  }
  const sorted = lastLoadsMs.toSorted((a, b) => a - b);
  const usualMs = sorted[Math.floor(sorted.length / 2)] ?? 0;
  return uploadMs + usualMs * shards + (sorted.at(-1) ?? 0);
}
