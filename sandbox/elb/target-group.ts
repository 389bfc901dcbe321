/**
 * A target group: the registered targets, their health, and which one gets the next request. States of a target:
 *
 *   initial ──► healthy ◄──► unhealthy      any ──► draining ──► (gone)
 *
 * `unused` is not a separate state but is shown while the instance or the group is not in service.
 */
import type { Clock } from '../../shared/ports/clock.ts';
import { healthCheckIntervalMs, type HealthCheckSettings, type HealthCheck } from './health-check.ts';

/** A load balancer's view of an instance. */
export interface TargetInstance {
  id: string;
  state: string;
  address: string;
  zone: string;
  vpcId: string;
}

export interface Target {
  readonly id: string;
  readonly port: number;
  health: 'initial' | 'healthy' | 'unhealthy' | 'draining';
  reason: { code: string; text: string };
  /** Consecutive checks with the same result. */
  successes: number;
  failures: number;
  /** Aborts pending requests to it. */
  readonly inFlight: Set<() => void>;
  readonly leaving: AbortController;
}

export interface TargetHealthView {
  state: 'initial' | 'healthy' | 'unhealthy' | 'draining' | 'unused';
  reason?: string;
  description?: string;
}

/** The load balancer that uses the group. */
export interface GroupUse {
  loadBalancerArn: string;
  address: string;
  zones: ReadonlySet<string>;
}

export interface TargetGroupAbout {
  arn: string;
  name: string;
  port: number;
  vpcId: string;
  healthCheck: HealthCheckSettings;
}

export interface TargetGroupOptions {
  clock: Clock;
  healthCheck: HealthCheck;
  findInstance: (id: string) => TargetInstance | null;
}

const INITIAL = { code: 'Elb.InitialHealthChecking', text: 'Initial health checks in progress' };
const REGISTERING = { code: 'Elb.RegistrationInProgress', text: 'Target registration is in progress' };
const DRAINING = { code: 'Target.DeregistrationInProgress', text: 'Target deregistration is in progress' };

export class TargetGroup {
  readonly about: TargetGroupAbout;
  readonly attributes = new Map([
    ['deregistration_delay.timeout_seconds', '300'],
    ['load_balancing.algorithm.type', 'round_robin'],
    ['slow_start.duration_seconds', '0'],
    ['stickiness.enabled', 'false'],
  ]);
  /** Who uses the group; null while no listener forwards to it: then nothing is checked. */
  use: GroupUse | null = null;
  readonly #options: TargetGroupOptions;
  readonly #targets = new Map<string, Target>();
  /** Round-robin position per node of the load balancer. */
  readonly #turns = new Map<number, number>();

  constructor(about: TargetGroupAbout, options: TargetGroupOptions) {
    this.about = about;
    this.#options = options;
  }

  targets(): Target[] {
    return [...this.#targets.values()];
  }

  /** Idempotent; a draining target returns to service. */
  register(id: string, port: number): void {
    const key = `${id}:${port}`;
    const present = this.#targets.get(key);
    if (present && present.health !== 'draining') return;
    present?.leaving.abort();
    const target: Target = {
      id,
      port,
      health: 'initial',
      reason: REGISTERING,
      successes: 0,
      failures: 0,
      inFlight: present?.inFlight ?? new Set(),
      leaving: new AbortController(),
    };
    this.#targets.set(key, target);
    void this.#keepChecking(target);
  }

  /** Sends it no new requests; pending ones get the deregistration delay. Unknown targets count as done. */
  deregister(id: string, port: number | null): void {
    for (const target of this.targets()) {
      if (target.id !== id || (port !== null && target.port !== port) || target.health === 'draining') continue;
      target.leaving.abort();
      const draining: Target = { ...target, health: 'draining', reason: DRAINING, leaving: new AbortController() };
      this.#targets.set(`${target.id}:${target.port}`, draining);
      void this.#drain(draining);
    }
  }

  /** The next target of this node in round-robin order; null for 503. */
  next(node = 0): { target: Target; address: string } | null {
    const serving = this.targets().filter(
      (target) => target.health !== 'draining' && this.#unusedReason(target) === null,
    );
    const healthy = serving.filter((target) => target.health === 'healthy');
    // Fail open, like AWS: if all targets are unhealthy, all of them are tried.
    const open = serving.some((target) => target.health === 'unhealthy') ? serving : [];
    const candidates = healthy.length > 0 ? healthy : open;
    const turn = this.#turns.get(node) ?? 0;
    const target = candidates[turn % candidates.length];
    const instance = target && this.#options.findInstance(target.id);
    if (target === undefined || !instance) return null;
    this.#turns.set(node, turn + 1);
    return { target, address: instance.address };
  }

  healthOf(target: Target): TargetHealthView {
    const unused = target.health === 'draining' ? null : this.#unusedReason(target);
    if (unused) return { state: 'unused', reason: unused.code, description: unused.text };
    if (target.health === 'healthy') return { state: 'healthy' };
    return { state: target.health, reason: target.reason.code, description: target.reason.text };
  }

  /** Ends all checks. */
  close(): void {
    for (const target of this.targets()) target.leaving.abort();
    this.#targets.clear();
  }

  #unusedReason(target: Target): { code: string; text: string } | null {
    const notInUse = (text: string) => ({ code: 'Target.NotInUse', text });
    if (!this.use) return notInUse('Target group is not configured to receive traffic from the load balancer');
    const instance = this.#options.findInstance(target.id);
    if (instance?.state !== 'running')
      return { code: 'Target.InvalidState', text: `Target is in the ${instance?.state ?? 'terminated'} state` };
    if (this.use.zones.has(instance.zone)) return null;
    return notInUse('Target is in an Availability Zone that is not enabled for the load balancer');
  }

  async #keepChecking(target: Target): Promise<void> {
    const { clock, healthCheck, findInstance } = this.#options;
    const { signal } = target.leaving;
    while (!signal.aborted) {
      const instance = findInstance(target.id);
      if (!instance) {
        // AWS removes terminated instances from the group automatically.
        this.#targets.delete(`${target.id}:${target.port}`);
        return;
      }
      if (this.use && this.#unusedReason(target) === null) {
        const settings = this.about.healthCheck;
        const port = settings.port === 'traffic-port' ? target.port : Number(settings.port);
        if (target.reason === REGISTERING) target.reason = INITIAL;
        const { address } = instance;
        const failure = await healthCheck({
          instanceId: target.id,
          address,
          port,
          from: this.use.address,
          settings,
          signal,
        });
        if (!signal.aborted) note(target, failure, settings);
      }
      await clock.sleep(healthCheckIntervalMs(this.about.healthCheck), signal);
    }
  }

  async #drain(target: Target): Promise<void> {
    const delayMs = Number(this.attributes.get('deregistration_delay.timeout_seconds')) * 1_000;
    await this.#options.clock.sleep(delayMs, target.leaving.signal);
    if (target.leaving.signal.aborted) return;
    this.#targets.delete(`${target.id}:${target.port}`);
    for (const end of target.inFlight) end();
  }
}

/** One success is enough for a new target; an unhealthy one has to reach the threshold. */
function note(target: Target, failure: { code: string; text: string } | null, settings: HealthCheckSettings): void {
  if (failure === null) {
    target.successes += 1;
    target.failures = 0;
    if (target.health === 'initial' || target.successes >= settings.healthyThreshold) target.health = 'healthy';
    return;
  }
  target.failures += 1;
  target.successes = 0;
  if (target.health === 'unhealthy' || target.failures >= settings.unhealthyThreshold) {
    target.health = 'unhealthy';
    target.reason = failure;
  }
}
