/**
 * EC2 in memory: keeps state, follows the clock it is given, records its calls, and can be made to fail in the ways EC2
 * does. Instances are replaced at each change, never changed, so that an earlier answer keeps what it showed.
 */
import { AppError } from '../../../../shared/domain/errors.ts';
import type { Clock } from '../../../../shared/ports/clock.ts';
import type {
  CloudInstance,
  CloudState,
  Compute,
  LaunchFailure,
  LaunchRequest,
  LaunchResult,
  StateReason,
  SubnetInfo,
} from '../../cloud/compute.ts';

/** What the next launch does instead of succeeding. */
export type LaunchFault =
  | LaunchFailure
  /** It launches, but the reply is lost. */
  | 'reply-lost';

export interface MemoryComputeOptions {
  clock: Clock;
  /** The time from launch to `running`. Default 0: running at the next look. */
  pendingMs?: number;
  /** The time from the terminate call to `terminated`. Default 0. */
  shuttingDownMs?: number;
  /** Number of its first instance: those of two regions must not have the same ids. Default 1. */
  firstNumber?: number;
  /** How long list() omits a fresh instance, as EC2 may. Default 0. */
  invisibleMs?: number;
  /** How long terminate() ignores a fresh instance, as EC2's NotFound does. Default 0. */
  unknownMs?: number;
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
  /** When it was asked to end or ended by itself. */
  endedAtMs: number | null;
  /** Why it does not come up; null for one that does. */
  death: StateReason | null;
}

const DEFAULT_SUBNETS: SubnetInfo[] = ['a', 'c'].map((zone) => ({
  id: `subnet-0000000${zone}`,
  zone: `ap-northeast-1${zone}`,
  vpcId: 'vpc-00000001',
  publicAddresses: true,
}));

const USUAL: MemoryCompute['behaviour'] = {
  pendingMs: 0,
  shuttingDownMs: 0,
  invisibleMs: 0,
  unknownMs: 0,
  firstNumber: 1,
  subnets: DEFAULT_SUBNETS,
};

export class MemoryCompute implements Compute {
  readonly calls: MemoryCall[] = [];
  /** Taken from the front, one per launch; null lets that launch through. */
  readonly launchFaults: (LaunchFault | null)[] = [];
  /** What consoleOutput gives, by instance id. */
  readonly consoles = new Map<string, string>();
  /** Instances that terminate() is refused for: EC2's termination protection. */
  readonly protected = new Set<string>();
  /** Until when the calls that change something (`writes`) or all of them are throttled. */
  readonly throttle = { writesUntilMs: -Infinity, allUntilMs: -Infinity };
  /** The public address of an instance; two may be given one, as behind a NAT. */
  addressOf: (instance: CloudInstance) => string = (i) => `198.51.100.${(numberOf(i.id) % 254) + 1}`;
  /** Group ids by `tag:KEY=VALUE`. */
  readonly taggedGroups = new Map<string, string>();
  /** Why a launch is refused; null lets it through. */
  refusalOf: (request: LaunchRequest) => LaunchFailure | null = () => null;
  /** Instances launched from now on end while they are pending, for this reason; null for none. */
  deathAtLaunch: StateReason | null = null;
  /** Called before every call; throw from it to make the call fail. */
  onCall: (call: MemoryCall) => void = () => {};
  /** Called with each new machine, and when one ends or stops, by our call or by itself. */
  onLaunched: (instance: CloudInstance) => void = () => {};
  onEnded: (instanceId: string) => void = () => {};

  /** How it behaves from now on: the options it was made with, changeable. */
  readonly behaviour: Required<Omit<MemoryComputeOptions, 'clock'>>;
  readonly #clock: Clock;
  readonly #machines = new Map<string, Machine>();
  readonly #byToken = new Map<string, Machine>();

  constructor(options: MemoryComputeOptions) {
    this.#clock = options.clock;
    const { clock: _clock, ...behaviour } = options;
    this.behaviour = { ...USUAL, ...behaviour };
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
      return { kind: 'launched', instance: known.instance };
    }
    const subnet = this.behaviour.subnets.find((s) => s.id === request.subnetId);
    if (!subnet) return { kind: 'refused', cause: 'invalid', message: 'InvalidSubnetID.NotFound' };
    const number = this.#machines.size + this.behaviour.firstNumber;
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
    this.onLaunched(instance);
    return { kind: 'launched', instance };
  }

  async list(tag: { key: string; value: string }): Promise<CloudInstance[]> {
    this.#record('list', tag.value);
    this.#failIfThrottled(false);
    const latestMs = this.#clock.now() - this.behaviour.invisibleMs;
    return this.all().filter((i) => i.launchedAtMs <= latestMs && i.tags[tag.key] === tag.value);
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

  /** When EC2 stopped billing it; null while it is billed. */
  endedAtMs(instanceId: string): number | null {
    return this.#machines.get(instanceId)?.endedAtMs ?? null;
  }

  /** Every instance there has been, as EC2 would show it now. */
  all(): CloudInstance[] {
    const instances: CloudInstance[] = [];
    for (const machine of this.#machines.values()) {
      this.#settle(machine);
      instances.push(machine.instance);
    }
    return instances;
  }

  /** Those that cost money or crawl: neither shutting down nor terminated. */
  alive(): CloudInstance[] {
    return this.all().filter((i) => i.state !== 'shutting-down' && i.state !== 'terminated');
  }

  /** What the machine reads from its metadata service. Throws for an unknown machine. */
  userDataOf(instanceId: string): string {
    const machine = this.#machines.get(instanceId);
    if (machine === undefined) throw new Error(`there is no machine ${instanceId}`);
    return (JSON.parse(machine.request) as LaunchRequest).userData;
  }

  /** True when it can be a target: for MemoryLoadBalancer. */
  isRunning(instanceId: string): boolean {
    const machine = this.#machines.get(instanceId);
    if (machine) this.#settle(machine);
    return machine?.instance.state === 'running';
  }

  /** The instance dies by itself, at once: retired, or its own dead-man switch. */
  kill(instanceId: string): void {
    this.#end(instanceId, 'terminated');
  }

  /** Stopped by a user, or its host is retired. */
  stop(instanceId: string): void {
    this.#end(instanceId, 'stopped');
  }

  #end(id: string, state: CloudState): void {
    const machine = this.#machines.get(id);
    if (!machine) return;
    this.#settle(machine);
    const now = machine.instance.state;
    if (now === 'terminated' || (now === 'shutting-down' && state === 'shutting-down')) return;
    machine.instance = { ...machine.instance, state, publicAddress: null };
    machine.endedAtMs = this.#clock.now();
    machine.changesAtMs = this.#clock.now() + this.behaviour.shuttingDownMs;
    this.#settle(machine);
    this.onEnded(id);
  }

  #settle(machine: Machine): void {
    if (this.#clock.now() < machine.changesAtMs) return;
    const { instance } = machine;
    if (instance.state === 'pending' && machine.death !== null) {
      machine.instance = { ...instance, state: 'terminated', stateReason: machine.death };
      machine.endedAtMs = machine.changesAtMs;
    } else if (instance.state === 'pending') {
      machine.instance = { ...instance, state: 'running', publicAddress: this.addressOf(instance) };
    } else if (instance.state === 'shutting-down') machine.instance = { ...instance, state: 'terminated' };
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
