/** EC2 and ELBv2 of a simulated run: capacity, quota, throttling, states that take their time, target health. */
import type { CloudInstance, CloudState, LaunchRequest, LaunchResult } from '../cloud/compute.ts';
import type { TargetHealth } from '../cloud/load-balancer.ts';
import { describeInstanceType } from '../plan/instance-types.ts';
import type { Machine } from './machine.ts';
import type { Fault, Scenario } from './scenario.ts';

/** A target that does not answer is unhealthy after two checks, 10 s apart. */
const UNHEALTHY_MS = 20_000;

export type Refusal = Extract<LaunchResult, { kind: 'refused' }>;

interface Described {
  instances: readonly CloudInstance[];
  /** Shown or not. */
  machines: number;
  /** When the next one is shown. */
  untilMs: number;
}

export class CloudModel {
  readonly machines = new Map<string, Machine>();
  readonly #scenario: Scenario;
  readonly #startMs: number;
  #launched = 0;
  #vcpus = 0;
  /** The last answer to a Describe: a calm fleet looks the same for hours. */
  #shown: Described | null = null;

  constructor(scenario: Scenario, startMs: number) {
    this.#scenario = scenario;
    this.#startMs = startMs;
  }

  /** Why EC2 would refuse this launch now; null when it would not. */
  refuse(request: LaunchRequest, nowMs: number): Refusal | null {
    const { faults, outside } = this.#scenario;
    const now = (kind: Fault['kind']) =>
      faults.filter((f) => f.kind === kind && 'forMs' in f && this.#isNow(f.atMs, f.forMs, nowMs));
    if (now('throttle').length > 0) return refusal('throttled', 'RequestLimitExceeded');
    const { vcpus } = describeInstanceType(request.instanceType);
    if (this.#vcpus + vcpus > outside.vcpuQuota) return refusal('quota', 'VcpuLimitExceeded');
    const dry = now('dry').some(
      (f) =>
        f.kind === 'dry' &&
        (f.subnets?.includes(request.subnetId) ?? true) &&
        (f.types?.includes(request.instanceType) ?? true),
    );
    return dry ? refusal('pool', 'InsufficientInstanceCapacity') : null;
  }

  #isNow(atMs: number, forMs: number, nowMs: number): boolean {
    return nowMs >= this.#startMs + atMs && nowMs < this.#startMs + atMs + forMs;
  }

  /** A fresh machine for the request, with an address of its own. */
  start(request: LaunchRequest, nowMs: number): CloudInstance {
    const number = ++this.#launched;
    this.#vcpus += describeInstanceType(request.instanceType).vcpus;
    return {
      id: `i-${number}`,
      state: 'pending',
      publicAddress: `198.${18 + (number >> 16)}.${(number >> 8) & 255}.${number & 255}`,
      privateAddress: null,
      instanceType: request.instanceType,
      zone: request.subnetId,
      launchedAtMs: nowMs,
      tags: request.tags,
    };
  }

  /** The machine is in another state from now on. */
  change(machine: Machine, state: CloudState, nowMs: number): void {
    this.#shown = null;
    const wasUp = machine.cloud.state === 'pending' || machine.cloud.state === 'running';
    machine.cloud = { ...machine.cloud, state };
    if (!wasUp || state === 'running') return;
    machine.endedAtMs = nowMs;
    this.#vcpus -= describeInstanceType(machine.cloud.instanceType).vcpus;
  }

  /** What a Describe shows now. The very list of the last time while nothing has changed: the rules index it once. */
  list(nowMs: number): readonly CloudInstance[] {
    let shown = this.#shown;
    if (shown === null || shown.machines !== this.machines.size || nowMs >= shown.untilMs)
      shown = this.#shown = this.#describe(nowMs);
    return shown.instances;
  }

  #describe(nowMs: number): Described {
    const instances: CloudInstance[] = [];
    let untilMs = Infinity;
    for (const { cloud, visibleAtMs } of this.machines.values()) {
      if (nowMs >= visibleAtMs) instances.push(cloud);
      else untilMs = Math.min(untilMs, visibleAtMs);
    }
    return { instances, machines: this.machines.size, untilMs };
  }

  /** What DescribeTargetHealth shows now. */
  health(nowMs: number): Map<string, TargetHealth> {
    const targets = new Map<string, TargetHealth>();
    for (const [id, machine] of this.machines) {
      if (machine.record.registered) targets.set(id, healthOf(machine, nowMs));
    }
    return targets;
  }
}

function healthOf(machine: Machine, nowMs: number): TargetHealth {
  if (nowMs < machine.healthyAtMs) return 'initial';
  if (machine.cloud.state !== 'running') return 'unused';
  const silent = machine.dead || nowMs < machine.frozenUntilMs - UNHEALTHY_MS;
  return silent || machine.isBanned(nowMs) ? 'unhealthy' : 'healthy';
}

const refusal = (cause: Refusal['cause'], message: string): Refusal => ({ kind: 'refused', cause, message });
