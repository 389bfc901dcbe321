/** Observes the world. EC2 and ELBv2 are polled at their own pace; their last answer stands until the next. */
import { limitsOf } from '../model/run-deadlines.ts';
import { AppError, describeError } from '../../../shared/domain/errors.ts';
import { CloudSnapshot } from '../model/cloud-snapshot.ts';
import { FleetSnapshot } from '../model/fleet-snapshot.ts';
import { TAG } from '../../cloud/compute.ts';
import type { Balancer, TargetHealth } from '../../cloud/load-balancer.ts';
import type { Core } from '../model/core.ts';
import { alarmOnce, notedKeys } from '../run-notes.ts';
import { ManifestPoll } from './manifest-poll.ts';
import { unreadableRobots } from './robots-cache.ts';
import type { Forecast } from '../model/forecast.ts';
import { chunkLimits, forecastRun } from '../sharing/chunk-limits.ts';
import { discoveryState } from '../sharing/discovery.ts';
import { ProgressWatch } from './progress-watch.ts';
import { SiteWatch } from './site-watch.ts';
import { setStallCause } from '../model/stall-causes.ts';
import { noteRefused, allRights } from '../model/rights.ts';
import type { InstanceRecord, RunRecord } from '../model/stores.ts';
import { type World, worldFromRows } from '../model/world.ts';

/** Until the first poll after a call that changes AWS; each further delay is 1.5 times longer, up to the slowest. */
const SOONEST_MS = 250;

export class Observer {
  readonly #core: Core;
  /** The wall clock minus the monotonic one. */
  #offsetMs: number;
  #loopStartedAtMs: number;
  readonly #bucket: ManifestPoll;
  readonly #siteWatch = new SiteWatch();
  readonly #progressWatch = new ProgressWatch();
  #isSlow = false;
  #cloud: CloudSnapshot | null = null;
  #targets: ReadonlyMap<string, TargetHealth> = new Map();
  readonly #onceHealthy = new Set<string>();
  #balancerActive = false;
  #balancerGone = false;
  /** Since when the balancer has been polled without being in service (monotonic ms). */
  #inactiveSinceMs: number | null = null;
  #waitMs = SOONEST_MS;
  /** Time of the next AWS poll (monotonic ms). */
  nextLookMs = 0;
  #requestSeenAtMs: number | null = null;
  #notedKeys: Set<string> | null = null;
  #forecast: Forecast | null = null;

  constructor(core: Core) {
    this.#core = core;
    this.#offsetMs = core.clock.now() - core.clock.monotonic();
    this.#loopStartedAtMs = core.clock.now();
    this.#bucket = new ManifestPoll(core);
  }

  /** Something was changed in AWS: poll again soon. */
  expectChange(): void {
    this.#waitMs = SOONEST_MS;
    this.nextLookMs = Math.min(this.nextLookMs, this.#core.clock.monotonic() + SOONEST_MS);
  }

  async observe(): Promise<World> {
    const core = this.#core;
    const [run, instances] = await Promise.all([core.run.get(), core.fleet.instances()]);
    // Before the counts: what is taken in between is seen twice, not missed.
    const frontier = run?.settings.discover ? await core.frontier!.state() : null;
    // After the instances: products of an epoch that is closed by then count as waiting.
    const [work, totals] = await Promise.all([core.work.counts(), core.results.totals()]);
    if (!run) throw new Error(`run ${core.runId} has vanished from the database`);
    const limits = limitsOf(run);
    await this.#watchClock(limits.heartbeatMs);
    if (core.clock.monotonic() >= this.nextLookMs)
      await this.#look(run, instances, Math.min(5_000, Math.max(500, limits.heartbeatMs / 3)));
    this.#bucket.look(instances, limits);
    if (run.request !== null) this.#requestSeenAtMs ??= core.clock.now();
    const rows = {
      nowMs: core.clock.now(),
      run: { ...run, measuredTailMs: measuredTailMs(instances, core.processState.lastLoadsMs) },
      fleet: new FleetSnapshot(instances),
      work,
      robots: core.robots.policy,
    };
    const world: World = {
      ...worldFromRows(rows),
      loopStartedAtMs: this.#loopStartedAtMs,
      requestSeenAtMs: this.#requestSeenAtMs,
      cloud: this.#cloud,
      pools: core.processState.pools,
      balancerActive: this.#balancerActive,
      balancerGone: this.#balancerGone,
      rights: core.processState.rights,
      balancerRefused: core.processState.balancerRefused,
      balancerMayRemain: core.processState.balancerMayRemain,
      targets: this.#targets,
      onceHealthy: this.#onceHealthy,
      lastTransferAtMs: core.processState.lastTransferMs,
      forecast: this.#forecast,
      notedKeys: await this.#readNoted(),
      totals,
      uploads: this.#bucket.uploads,
      unansweredOffers: core.processState.unansweredOffers,
    };
    world.discovery = frontier && discoveryState(world, frontier);
    await this.#watchProgress(world);
    if (this.#forecast === null || world.nowMs - this.#forecast.atMs >= limits.heartbeatMs)
      world.forecast = this.#forecast = forecastRun(world, core.processState.nothingToGive);
    world.chunkLimits = chunkLimits(world);
    return world;
  }

  /** Updates the inputs of the watchdog. */
  async #watchProgress(world: World): Promise<void> {
    const { processState, clock } = this.#core;
    const site = this.#siteWatch.look(world, clock.monotonic());
    const wasSlow = this.#isSlow;
    this.#isSlow = site.slowdown > 1;
    world.site = site;
    const down = site.detail ?? site.suspicion ?? unreadableRobots(world.robots);
    setStallCause(processState.stallCauses, 'site-down', down, world.nowMs);
    const { unansweredOffers } = processState;
    const isCutOff = unansweredOffers?.kind === 'unreachable';
    setStallCause(
      processState.stallCauses,
      'unreachable',
      isCutOff ? `${unansweredOffers.url}: ${unansweredOffers.message}` : null,
      world.nowMs,
    );
    world.stallCauses = new Map(processState.stallCauses);
    world.stall = this.#progressWatch.look(world, clock.monotonic());
    this.#bucket.ask(world);
    // RobotsCache raises the alarms about robots.txt.
    if (this.#isSlow !== wasSlow)
      await this.#core.alarm(
        this.#isSlow
          ? `the site is down: ${site.detail}; requests go out at half the pace, down to an eighth, and no extra instance is launched`
          : 'the site answers again; requests go out at the planned pace',
      );
  }

  /** After a step of the wall clock, or a sleep of this machine, silence counts anew; AWS must be asked again. */
  async #watchClock(toleranceMs: number): Promise<void> {
    const { processState, clock } = this.#core;
    const nowMs = clock.now();
    const jumpMs = nowMs - clock.monotonic() - this.#offsetMs;
    this.#offsetMs += jumpMs;
    // Less is drift.
    if (Math.abs(jumpMs) < toleranceMs) return;
    this.#loopStartedAtMs = nowMs;
    // Times that are in the future by the new clock are discarded, or the loop would wait for them.
    if ((processState.lastTransferMs ?? -Infinity) > nowMs) processState.lastTransferMs = null;
    if (processState.unansweredOffers !== null)
      processState.unansweredOffers.sinceMs = Math.min(processState.unansweredOffers.sinceMs, nowMs);
    if ((processState.quotaRefusedMs ?? -Infinity) > nowMs) processState.quotaRefusedMs = null;
    processState.rights = allRights();
    this.#forecast = null;
    this.#cloud = null;
    this.nextLookMs = 0;
    await this.#core.alarm(
      `the clock of this server has jumped ${jumpMs < 0 ? 'back' : 'ahead'} by ${Math.round(Math.abs(jumpMs) / 1_000)} s, or it was asleep; the silence of instances counts from now`,
    );
  }

  /** Read once; from then on `note` adds its keys here too. */
  async #readNoted(): Promise<Set<string>> {
    this.#notedKeys ??= new Set(await notedKeys(this.#core));
    return this.#notedKeys;
  }

  async #look(run: RunRecord, instances: readonly InstanceRecord[], slowestMs: number): Promise<void> {
    const core = this.#core;
    this.nextLookMs = core.clock.monotonic() + this.#waitMs;
    this.#waitMs = Math.min(slowestMs, this.#waitMs * 1.5);
    const askedAtMs = core.clock.now();
    await this.#ask('EC2', async () => {
      if (instances.some((i) => i.phase !== 'terminated' && (i.attempts > 0 || i.instanceId !== null))) {
        this.#cloud = new CloudSnapshot(await core.compute.list({ key: TAG.run, value: run.id }), askedAtMs);
        core.processState.rights.look = null;
      }
    });
    await this.#ask('ELBv2', async () => {
      await this.#lookAtBalancer(run, instances);
    });
  }

  async #lookAtBalancer(run: RunRecord, instances: readonly InstanceRecord[]): Promise<void> {
    if (run.balancer === null) {
      this.#balancerActive = false;
      this.#inactiveSinceMs = null;
      this.#balancerGone = false;
      this.#targets = new Map();
    } else if (instances.some((i) => i.registered && i.phase !== 'terminated')) {
      try {
        if (!this.#balancerActive) await this.#awaitService(run, run.balancer);
        this.#targets = await this.#core.balancers.health(run.balancer);
        for (const [id, health] of this.#targets) if (health === 'healthy') this.#onceHealthy.add(id);
        this.#balancerGone = false;
      } catch (error) {
        if (!isNotFound(error)) throw error;
        this.#balancerActive = false;
        this.#balancerGone = true;
        this.#targets = new Map();
      }
    }
  }

  /** Takes two to three minutes on AWS. Beyond the limit for a boot it may never come: an alarm is raised. */
  async #awaitService(run: RunRecord, balancer: Balancer): Promise<void> {
    const core = this.#core;
    this.#inactiveSinceMs ??= core.clock.monotonic();
    let failure: unknown = null;
    try {
      this.#balancerActive = await core.balancers.isActive(balancer);
    } catch (error) {
      failure = error;
    }
    if (this.#balancerActive) this.#inactiveSinceMs = null;
    else if (core.clock.monotonic() - this.#inactiveSinceMs >= limitsOf(run).bootMs && !isNotFound(failure)) {
      const words = failure === null ? 'ELBv2 shows it as still being provisioned' : describeError(failure);
      await alarmOnce(
        core,
        'balancer inactive',
        `the load balancer of this run is not in service: ${words}; no product can be handed out before it is`,
      );
    }
    if (failure !== null) throw failure;
  }

  /** Without an answer the last one stands: a failing Describe proves nothing about instances or the other service. */
  async #ask(service: string, look: () => Promise<void>): Promise<void> {
    try {
      await look();
    } catch (error) {
      if (service === 'EC2' && error instanceof AppError && error.code === 'aws-denied') {
        const refused = { cause: 'denied', message: describeError(error), nowMs: this.#core.clock.now() } as const;
        noteRefused(this.#core.processState.rights, 'look', refused);
      }
      this.#core.log.warn({ service, error: describeError(error) }, 'AWS did not answer a Describe call');
    }
  }
}

const isNotFound = (error: unknown): boolean => error instanceof AppError && error.code === 'aws-not-found';

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
