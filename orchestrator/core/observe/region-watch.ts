/** Polls EC2 and ELBv2 in one region; their last answer stands until the next. */
import { AppError, describeError } from '../../../shared/domain/errors.ts';
import { TAG } from '../cloud/compute.ts';
import type { Balancer, TargetHealth } from '../cloud/load-balancer.ts';
import { CloudSnapshot } from '../model/cloud-snapshot.ts';
import type { Core, RegionPorts } from '../model/core.ts';
import type { RegionState } from '../model/regions.ts';
import { noteRefused } from '../model/rights.ts';
import { limitsOf } from '../model/run-deadlines.ts';
import type { InstanceRecord, RunRecord } from '../model/stores.ts';
import { alarmOnce } from '../act/run-notes.ts';

/** What one region adds to a world beside what the run's row says of it. */
type Seen = Omit<RegionState, 'name' | 'maxInstances' | 'balancer'>;

export class RegionWatch {
  readonly name: string;
  targets: ReadonlyMap<string, TargetHealth> = new Map();
  /** Since when calls there have got no answer (monotonic ms); null after an answer. */
  failingSinceMs: number | null = null;
  /** How the last call without an answer failed. */
  failure = '';
  /** True when the region was out as last reported. */
  wasOut = false;
  readonly #core: Core;
  readonly #ports: RegionPorts;
  #cloud: CloudSnapshot | null = null;
  #balancerActive = false;
  #balancerGone = false;
  /** Since when the balancer has been polled without being in service (monotonic ms). */
  #inactiveSinceMs: number | null = null;
  #hasAnswered = false;
  #underWay: Promise<void> | null = null;

  constructor(core: Core, ports: RegionPorts) {
    this.#core = core;
    this.#ports = ports;
    this.name = ports.name;
  }

  /** The wall clock has jumped: what EC2 showed before it proves nothing. */
  forget(): void {
    this.#cloud = null;
  }

  /** AWS has answered here, and does so still. */
  isAnswering(): boolean {
    return this.#hasAnswered && this.failingSinceMs === null;
  }

  /** @param outSinceMs calls that have failed since before then (monotonic ms) put it out, if `othersAnswer` */
  state(outSinceMs: number, othersAnswer: boolean): Seen {
    const { balancerRefused, balancerMayRemain, balancerFailingMs, rights } = this.#core.processState.region(this.name);
    const sinceMs = Math.min(this.failingSinceMs ?? Infinity, balancerFailingMs ?? Infinity);
    return {
      cloud: this.#cloud,
      balancerActive: this.#balancerActive,
      balancerGone: this.#balancerGone,
      balancerRefused,
      balancerMayRemain,
      rights,
      isOut: othersAnswer && sinceMs < outSinceMs,
    };
  }

  /**
   * Looks at the region. Never rejects; joins a look that is under way. Without instances EC2 is polled only with
   * `isCheck`.
   * @param instances of this region
   */
  look(run: RunRecord, instances: readonly InstanceRecord[], isCheck: boolean): Promise<void> {
    this.#underWay ??= this.#look(run, instances, isCheck).finally(() => (this.#underWay = null));
    return this.#underWay;
  }

  async #look(run: RunRecord, instances: readonly InstanceRecord[], isCheck: boolean): Promise<void> {
    const { clock, processState } = this.#core;
    const askedAtMs = clock.now();
    const askedMs = clock.monotonic();
    const failure = await this.#ask('EC2', async () => {
      const isLaunched = (i: InstanceRecord): boolean => i.attempts > 0 || i.instanceId !== null;
      if (!isCheck && !instances.some((i) => i.phase !== 'terminated' && isLaunched(i))) return;
      this.#cloud = new CloudSnapshot(await this.#ports.compute.list({ key: TAG.run, value: run.id }), askedAtMs);
      processState.region(this.name).rights.look = null;
      this.#hasAnswered = true;
    });
    const other = await this.#ask('ELBv2', () => this.#lookAtBalancer(run, instances));
    const words = failure ?? other;
    if (words === null) this.failingSinceMs = null;
    else {
      this.failingSinceMs ??= askedMs;
      this.failure = words;
    }
  }

  async #lookAtBalancer(run: RunRecord, instances: readonly InstanceRecord[]): Promise<void> {
    const balancer = run.balancers[this.name] ?? null;
    if (balancer === null) {
      this.#balancerActive = false;
      this.#inactiveSinceMs = null;
      this.#balancerGone = false;
      this.targets = new Map();
    } else if (instances.some((i) => i.registered && i.phase !== 'terminated')) {
      try {
        if (!this.#balancerActive) await this.#awaitService(run, balancer);
        this.targets = await this.#ports.balancers.health(balancer);
        this.#core.processState.region(this.name).rights.health = null;
        this.#balancerGone = false;
      } catch (error) {
        if (!isNotFound(error)) throw error;
        this.#balancerActive = false;
        this.#balancerGone = true;
        this.targets = new Map();
      }
    }
  }

  /** Takes two to three minutes on AWS. Beyond the limit for a boot it may never come: an alarm is raised. */
  async #awaitService(run: RunRecord, balancer: Balancer): Promise<void> {
    const core = this.#core;
    this.#inactiveSinceMs ??= core.clock.monotonic();
    let failure: unknown = null;
    try {
      this.#balancerActive = await this.#ports.balancers.isActive(balancer);
    } catch (error) {
      failure = error;
    }
    if (this.#balancerActive) this.#inactiveSinceMs = null;
    else if (core.clock.monotonic() - this.#inactiveSinceMs >= limitsOf(run).bootMs && !isNotFound(failure)) {
      const words = failure === null ? 'ELBv2 shows it as still being provisioned' : describeError(failure);
      await alarmOnce(
        core,
        `balancer inactive ${this.name}`,
        `the load balancer of this run is not in service: ${words}; no product can be handed out before it is`,
      );
    }
    if (failure !== null) throw failure;
  }

  /**
   * Asks a service. Without an answer the last one stands: a failing Describe proves nothing about instances or the
   * other service. Resolves with how the service failed to answer; null after an answer, a refusal included.
   */
  async #ask(service: string, look: () => Promise<void>): Promise<string | null> {
    try {
      await look();
      return null;
    } catch (error) {
      const words = describeError(error);
      const code = error instanceof AppError ? error.code : null;
      if (code === 'aws-denied') {
        const refused = { cause: 'denied', message: words, nowMs: this.#core.clock.now() } as const;
        noteRefused(this.#core.processState.region(this.name).rights, service === 'EC2' ? 'look' : 'health', refused);
      }
      this.#core.log.warn({ service, region: this.name, error: words }, 'AWS did not answer a Describe call');
      return code === null || code === 'aws-failed' ? words : null;
    }
  }
}

const isNotFound = (error: unknown): boolean => error instanceof AppError && error.code === 'aws-not-found';
