/** Gathers the world. EC2 and ELBv2 are asked at their own pace; their last answer stands until the next. */
import { limitsFor } from '../../shared/domain/limits.ts';
import { AppError, describeError } from '../../shared/domain/errors.ts';
import type { CloudInstance } from '../cloud/compute.ts';
import { TAG } from '../cloud/compute.ts';
import type { TargetHealth } from '../cloud/load-balancer.ts';
import type { Core } from './core.ts';
import type { InstanceRecord, RunRecord } from './stores.ts';
import type { World } from './world.ts';

/** First look after something was asked of AWS; then each wait is half as long again, up to the slowest. */
const SOONEST_MS = 250;

export class Observer {
  readonly #core: Core;
  readonly #loopStartedAtMs: number;
  #cloud: { instances: CloudInstance[]; seenAtMs: number } | null = null;
  #targets: ReadonlyMap<string, TargetHealth> = new Map();
  #balancerActive = false;
  #balancerGone = false;
  #waitMs = SOONEST_MS;
  #nextLookMs = 0;

  constructor(core: Core) {
    this.#core = core;
    this.#loopStartedAtMs = core.clock.now();
  }

  /** AWS was asked for something: look again soon. */
  expectChange(): void {
    this.#waitMs = SOONEST_MS;
    this.#nextLookMs = Math.min(this.#nextLookMs, this.#core.clock.now() + SOONEST_MS);
  }

  /** When AWS will be asked again. */
  get nextLookMs(): number {
    return this.#nextLookMs;
  }

  async observe(): Promise<World> {
    const core = this.#core;
    const [run, instances, work, totals] = await Promise.all([
      core.runs.get(core.runId),
      core.fleet.instances(core.runId),
      core.work.counts(core.runId),
      core.results.totals(core.runId),
    ]);
    if (!run) throw new Error(`run ${core.runId} has vanished from the database`);
    const limits = limitsFor(run.deadlineAtMs - run.startedAtMs);
    if (core.clock.now() >= this.#nextLookMs)
      await this.#look(run, instances, Math.min(5_000, Math.max(500, limits.heartbeatMs / 3)));
    return {
      nowMs: core.clock.now(),
      loopStartedAtMs: this.#loopStartedAtMs,
      run,
      limits,
      instances,
      cloud: this.#cloud,
      balancerActive: this.#balancerActive,
      balancerGone: this.#balancerGone,
      targets: this.#targets,
      work,
      totals,
    };
  }

  async #look(run: RunRecord, instances: readonly InstanceRecord[], slowestMs: number): Promise<void> {
    const core = this.#core;
    this.#nextLookMs = core.clock.now() + this.#waitMs;
    this.#waitMs = Math.min(slowestMs, this.#waitMs * 1.5);
    const askedAtMs = core.clock.now();
    await this.#ask('EC2', async () => {
      if (instances.some((i) => i.phase !== 'terminated' && (i.attempts > 0 || i.instanceId !== null))) {
        this.#cloud = { instances: await core.compute.list({ key: TAG.run, value: run.id }), seenAtMs: askedAtMs };
      }
    });
    await this.#ask('ELBv2', async () => {
      await this.#lookAtBalancer(run, instances);
    });
  }

  async #lookAtBalancer(run: RunRecord, instances: readonly InstanceRecord[]): Promise<void> {
    if (run.balancer === null) {
      this.#balancerActive = false;
      this.#balancerGone = false;
      this.#targets = new Map();
    } else if (instances.some((i) => i.registered && i.phase !== 'terminated')) {
      try {
        this.#balancerActive ||= await this.#core.balancers.isActive(run.balancer);
        this.#targets = await this.#core.balancers.health(run.balancer);
        this.#balancerGone = false;
      } catch (error) {
        if (!(error instanceof AppError) || error.code !== 'aws-not-found') throw error;
        this.#balancerActive = false;
        this.#balancerGone = true;
        this.#targets = new Map();
      }
    }
  }

  /** The last answer stands when there is none: a failing Describe says nothing about the instances, nor about the other service. */
  async #ask(service: string, look: () => Promise<void>): Promise<void> {
    try {
      await look();
    } catch (error) {
      this.#core.log.warn({ service, error: describeError(error) }, 'AWS did not answer a Describe call');
    }
  }
}
