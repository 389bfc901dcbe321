/**
 * EC2 in memory, for unit tests and simulation: keeps state, follows the given clock, records its calls, and fails in
 * the ways EC2 does when configured to.
 */
import { AppError } from '../../shared/domain/errors.ts';
import type { Clock } from '../../shared/ports/clock.ts';
import type {
  CloudInstance,
  CloudState,
  Compute,
  LaunchFailure,
  LaunchRequest,
  LaunchResult,
  StateReason,
  SubnetInfo,
} from './compute.ts';

/** Fault of the next launch. */
export type LaunchFault =
  | LaunchFailure
  /** It launches, but the reply is lost. */
  | 'reply-lost';

export interface MemoryComputeOptions {
  clock: Clock;
  /** From launch to `running`. Default 0: running at the next call. */
  pendingMs?: number;
  /** From the terminate call to `terminated`. Default 0. */
  shuttingDownMs?: number;
  /** How long a new instance is missing from list(), as its tags may be on EC2. Default 0. */
  invisibleMs?: number;
  /** How long terminate() does not know a new instance: the call does nothing, as with EC2's NotFound. Default 0. */
  unknownMs?: number;
  /** Maximum instances alive at once; further launches are refused for `quota`. Default: no limit. */
  quota?: number;
  /** Delay from an instance's end until the quota stops counting it. Default 0. */
  quotaLagMs?: number;
  subnets?: SubnetInfo[];
}

export interface MemoryCall {
  name: keyof Compute;
  atMs: number;
  /** Client token, tag value or ids. */
  detail: string;
}

interface Machine {
  instance: CloudInstance;
  /** The request as JSON: the same token with another one is a mismatch. */
  request: string;
  changesAtMs: number;
  /** When termination was requested, or the instance ended on its own. */
  endedAtMs: number | null;
  /** Why it dies while pending; null for one that starts normally. */
  death: StateReason | null;
}

/** A rule for launches in some pools: `until` is exclusive, Infinity means permanently. */
interface DryRule {
  where: { subnetId?: string; instanceType?: string };
  untilMs: number;
}

const DEFAULT_SUBNETS: SubnetInfo[] = ['a', 'c'].map((zone) => ({
  id: `subnet-0000000${zone}`,
  zone: `ap-northeast-1${zone}`,
  vpcId: 'vpc-00000001',
  publicAddresses: true,
}));

export class MemoryCompute implements Compute {
  readonly calls: MemoryCall[] = [];
  /** Taken from the front, one per launch; null lets that launch through. */
  readonly launchFaults: (LaunchFault | null)[] = [];
  /** What consoleOutput returns, by instance id. */
  readonly consoles = new Map<string, string>();
  /** Instances that terminate() is refused for: EC2's termination protection. */
  readonly protected = new Set<string>();
  /** Until when the calls that change something (`writes`) or all of them are throttled. */
  readonly throttle = { writesUntilMs: -Infinity, allUntilMs: -Infinity };
  /** The public address of an instance; several may share one, as behind a NAT. */
  addressOf: (instance: CloudInstance) => string = (i) => `198.51.100.${(numberOf(i.id) % 254) + 1}`;
  /** Group ids by `tag:KEY=VALUE`. */
  readonly taggedGroups = new Map<string, string>();
  /** Why a launch is refused; null lets it through. */
  refusalOf: (request: LaunchRequest) => LaunchFailure | null = () => null;
  /** Why instances launched from now on end while pending; null for none. */
  deathAtLaunch: StateReason | null = null;
  /** Called before every call; throw from it to make the call fail. */
  onCall: (call: MemoryCall) => void = () => {};

  /** Current behaviour: the constructor's options, changeable. */
  readonly behaviour: Required<Omit<MemoryComputeOptions, 'clock'>>;
  readonly #clock: Clock;
  readonly #machines = new Map<string, Machine>();
  readonly #byToken = new Map<string, Machine>();
  readonly #dry: DryRule[] = [];

  constructor(options: MemoryComputeOptions) {
    this.#clock = options.clock;
    this.behaviour = {
      pendingMs: options.pendingMs ?? 0,
      shuttingDownMs: options.shuttingDownMs ?? 0,
      invisibleMs: options.invisibleMs ?? 0,
      unknownMs: options.unknownMs ?? 0,
      quota: options.quota ?? Infinity,
      quotaLagMs: options.quotaLagMs ?? 0,
      subnets: options.subnets ?? DEFAULT_SUBNETS,
    };
  }

  async launch(request: LaunchRequest): Promise<LaunchResult> {
    this.#record('launch', request.clientToken);
    const throttled = this.#throttled(true);
    if (throttled) return { kind: 'refused', cause: 'throttled', message: throttled };
    const fault = this.launchFaults.shift() ?? null;
    if (fault !== null && fault !== 'reply-lost') return fault;
    const refused = this.refusalOf(request);
    if (refused !== null) return refused;
    const result = this.#launch(request);
    return fault === 'reply-lost' ? { kind: 'unknown', message: 'the reply was lost' } : result;
  }

  #launch(request: LaunchRequest): LaunchResult {
    const json = JSON.stringify(request);
    const known = this.#byToken.get(request.clientToken);
    if (known) {
      this.#settle(known);
      if (known.request !== json) return { kind: 'unknown', message: 'IdempotentParameterMismatch', tokenUsed: true };
      if (known.instance.state === 'terminated') {
        return { kind: 'refused', cause: 'spent', message: 'IdempotentInstanceTerminated' };
      }
      return { kind: 'launched', instance: copy(known.instance) };
    }
    if (this.#dry.some((rule) => this.#isDry(rule, request))) {
      return { kind: 'refused', cause: 'pool', message: 'InsufficientInstanceCapacity' };
    }
    if (this.behaviour.quota < Infinity && this.#counted() >= this.behaviour.quota) {
      return { kind: 'refused', cause: 'quota', message: 'VcpuLimitExceeded' };
    }
    const subnet = this.behaviour.subnets.find((s) => s.id === request.subnetId);
    if (!subnet) return { kind: 'refused', cause: 'invalid', message: 'InvalidSubnetID.NotFound' };
    const number = this.#machines.size + 1;
    const instance: CloudInstance = {
      id: `i-${number.toString(16).padStart(17, '0')}`,
      state: 'pending',
      publicAddress: null,
      privateAddress: `10.0.${number >> 8}.${number & 255}`,
      instanceType: request.instanceType,
      zone: subnet.zone,
      launchedAtMs: this.#clock.now(),
      tags: { ...request.tags },
    };
    const changesAtMs = this.#clock.now() + this.behaviour.pendingMs;
    const machine: Machine = { instance, request: json, changesAtMs, endedAtMs: null, death: this.deathAtLaunch };
    this.#machines.set(instance.id, machine);
    this.#byToken.set(request.clientToken, machine);
    return { kind: 'launched', instance: copy(instance) };
  }

  async list(tag: { key: string; value: string }): Promise<CloudInstance[]> {
    this.#record('list', tag.value);
    this.#failIfThrottled(false);
    return this.all().filter(
      (i) => i.tags[tag.key] === tag.value && this.#clock.now() - i.launchedAtMs >= this.behaviour.invisibleMs,
    );
  }

  async terminate(instanceIds: readonly string[]): Promise<void> {
    this.#record('terminate', instanceIds.join(' '));
    this.#failIfThrottled(true);
    const shielded = instanceIds.find((id) => this.protected.has(id));
    if (shielded !== undefined)
      throw new AppError('aws-invalid', `OperationNotPermitted: ${shielded} may not be terminated`);
    for (const id of instanceIds) {
      const machine = this.#machines.get(id);
      const ageMs = machine ? this.#clock.now() - machine.instance.launchedAtMs : 0;
      if (ageMs >= this.behaviour.unknownMs) this.#end(id, 'shutting-down');
    }
  }

  async consoleOutput(instanceId: string): Promise<string | null> {
    this.#record('consoleOutput', instanceId);
    return this.consoles.get(instanceId) ?? null;
  }

  async subnets(ids: readonly string[]): Promise<SubnetInfo[]> {
    this.#record('subnets', ids.join(' '));
    const unknown = ids.filter((id) => !this.behaviour.subnets.some((s) => s.id === id));
    if (unknown.length > 0) throw new AppError('aws-invalid', `aws.subnets: EC2 does not know ${unknown.join(', ')}`);
    return this.behaviour.subnets.filter((s) => ids.length === 0 || ids.includes(s.id)).map((s) => ({ ...s }));
  }

  async securityGroups(ids: readonly string[], vpcId: string): Promise<string[]> {
    this.#record('securityGroups', vpcId);
    if (!this.behaviour.subnets.some((s) => s.vpcId === vpcId)) {
      throw new AppError('aws-invalid', `${vpcId} has no default security group`);
    }
    const untagged = ids.filter((id) => id.startsWith('tag:') && !this.taggedGroups.has(id));
    if (untagged.length > 0)
      throw new AppError('aws-invalid', `aws.security_groups: no group in ${vpcId} has ${untagged.join(', ')}`);
    return ids.length > 0 ? ids.map((id) => this.taggedGroups.get(id) ?? id) : ['sg-00000001'];
  }

  async image(id: string | null, architecture: 'x86_64' | 'arm64'): Promise<string> {
    this.#record('image', id ?? architecture);
    return id ?? `ami-memory-${architecture.replace('_', '-')}`;
  }

  /** Every instance there has been, as EC2 would show it now. */
  all(): CloudInstance[] {
    return [...this.#machines.values()].map((machine) => {
      this.#settle(machine);
      return copy(machine.instance);
    });
  }

  /** Instances that are billed or crawl: neither shutting down nor terminated. */
  alive(): CloudInstance[] {
    return this.all().filter((i) => i.state !== 'shutting-down' && i.state !== 'terminated');
  }

  /** True when it can be a target of MemoryLoadBalancer. */
  isRunning(instanceId: string): boolean {
    const machine = this.#machines.get(instanceId);
    if (machine) this.#settle(machine);
    return machine?.instance.state === 'running';
  }

  /** Matching pools have no capacity until then; without `where`, all pools. */
  dryOut(untilMs: number, where: DryRule['where'] = {}): void {
    this.#dry.push({ where, untilMs });
  }

  /** The instance dies on its own, at once: retired, or by its dead-man switch. */
  kill(instanceId: string): void {
    this.#end(instanceId, 'terminated');
  }

  /** A person stops it, or EC2 retires its host. */
  stop(instanceId: string): void {
    this.#end(instanceId, 'stopped');
  }

  #end(id: string, state: CloudState): void {
    const machine = this.#machines.get(id);
    if (!machine) return;
    this.#settle(machine);
    const now = machine.instance.state;
    if (now === 'terminated' || (now === 'shutting-down' && state === 'shutting-down')) return;
    machine.instance.state = state;
    machine.instance.publicAddress = null;
    machine.endedAtMs = this.#clock.now();
    machine.changesAtMs = this.#clock.now() + this.behaviour.shuttingDownMs;
    this.#settle(machine);
  }

  #settle(machine: Machine): void {
    if (this.#clock.now() < machine.changesAtMs) return;
    const { instance } = machine;
    if (instance.state === 'pending' && machine.death !== null) {
      instance.state = 'terminated';
      instance.stateReason = machine.death;
      machine.endedAtMs = machine.changesAtMs;
    } else if (instance.state === 'pending') {
      instance.state = 'running';
      instance.publicAddress = this.addressOf(instance);
    }
    if (instance.state === 'shutting-down') instance.state = 'terminated';
  }

  /** Instances the quota counts: the alive ones and, for a while, ended ones. */
  #counted(): number {
    const sinceMs = this.#clock.now() - this.behaviour.quotaLagMs;
    return [...this.#machines.values()].filter((m) => m.endedAtMs === null || m.endedAtMs > sinceMs).length;
  }

  #isDry({ where, untilMs }: DryRule, { subnetId, instanceType }: LaunchRequest): boolean {
    const here = (where.subnetId ?? subnetId) === subnetId && (where.instanceType ?? instanceType) === instanceType;
    return here && this.#clock.now() < untilMs;
  }

  #throttled(writes: boolean): string | null {
    const untilMs = Math.max(this.throttle.allUntilMs, writes ? this.throttle.writesUntilMs : -Infinity);
    return this.#clock.now() < untilMs ? 'RequestLimitExceeded' : null;
  }

  #failIfThrottled(writes: boolean): void {
    const throttled = this.#throttled(writes);
    if (throttled) throw new AppError('aws-throttled', throttled);
  }

  #record(name: MemoryCall['name'], detail: string): void {
    const call = { name, atMs: this.#clock.now(), detail };
    this.calls.push(call);
    this.onCall(call);
  }
}

const numberOf = (id: string): number => Number.parseInt(id.slice(2), 16);

const copy = (instance: CloudInstance): CloudInstance => ({ ...instance, tags: { ...instance.tags } });
