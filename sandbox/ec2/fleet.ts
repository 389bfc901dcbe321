/**
 * The instances and their states. Every change of state happens here:
 *
 *   pending ──► running ──► stopping ──► stopped ──► pending …
 *      └───────────┴───────────┴────────────┴──► shutting-down ──► terminated ──► (gone)
 *
 * `terminated` stays visible for a while, as on AWS, so that the caller can confirm the termination.
 */
import type { Clock } from '../../shared/ports/clock.ts';
import { AwsError } from '../aws-error.ts';
import { ConditionBoard } from '../conditions.ts';
import { newResourceId } from '../ids.ts';
import type { AddressPool } from '../network.ts';
import { BillingLedger } from './billing.ts';
import type { Instance, LaunchSpec, StateChange } from './instance.ts';
import type { Machine, MachineSpec } from './machine.ts';
import type { TagStore } from './tag-store.ts';

export interface FleetOptions {
  clock: Clock;
  makeMachine: (spec: MachineSpec) => Machine;
  tags: TagStore;
  region: string;
  /** Free addresses by subnet id. */
  addresses: ReadonlyMap<string, AddressPool>;
  /** Left out: the defaults. */
  conditions?: ConditionBoard;
  log?: (event: string, fields: Record<string, unknown>) => void;
}

export class Fleet {
  readonly billing = new BillingLedger();
  readonly #options: FleetOptions;
  readonly #conditions: ConditionBoard;
  readonly #instances = new Map<string, Instance>();
  readonly #closing = new AbortController();
  #sequence = 0;
  /** The public address that the next launches share, and how many more may share it. */
  #shared: { address: string; left: number } | null = null;

  constructor(options: FleetOptions) {
    this.#options = options;
    this.#conditions = options.conditions ?? new ConditionBoard();
  }

  /** Every instance still visible, in order of launch. */
  all(): Instance[] {
    return [...this.#instances.values()];
  }

  find(id: string): Instance | null {
    return this.#instances.get(id) ?? null;
  }

  /**
   * Launches between `min` and `max` instances, as many as the subnet has addresses for; none when that is under `min`.
   */
  launch(
    spec: LaunchSpec,
    count: { min: number; max: number },
    tagsByType: ReadonlyMap<string, ReadonlyMap<string, string>>,
  ): Instance[] {
    const free = this.#options.addresses.get(spec.subnetId)?.free ?? 0;
    if (free < count.min)
      throw new AwsError(
        'InsufficientFreeAddressesInSubnet',
        `There are not enough free addresses in subnet '${spec.subnetId}' to satisfy the requested number of instances.`,
      );
    const reservationId = newResourceId('r');
    const launchedAtMs = this.#options.clock.now();
    return Array.from({ length: Math.min(count.max, free) }, () =>
      this.#create(spec, { id: newResourceId('i'), reservationId, launchedAtMs }, tagsByType),
    );
  }

  /**
   * Adopts an instance that another endpoint has launched (stand-in/): it boots here, under the id and with the tags it
   * has there. Null when the subnet has no address left.
   */
  adopt(
    spec: LaunchSpec,
    { id, launchedAtMs }: { id: string; launchedAtMs: number },
    tags: ReadonlyMap<string, string>,
  ): Instance | null {
    if (!this.#options.addresses.get(spec.subnetId)?.free) return null;
    const born = { id, launchedAtMs, reservationId: newResourceId('r') };
    return this.#create(spec, born, new Map([['instance', tags]]));
  }

  /** Idempotent, as on AWS. */
  terminate(instance: Instance, reasonCode = 'Client.UserInitiatedShutdown'): StateChange {
    const previous = instance.state;
    if (previous !== 'terminated' && previous !== 'shutting-down') {
      this.#move(instance, 'shutting-down', reasonCode);
      void this.#becomeTerminated(instance);
    }
    return { instance, previous };
  }

  stop(instance: Instance, reasonCode = 'Client.UserInitiatedShutdown'): StateChange {
    const previous = instance.state;
    if (previous === 'running') {
      this.#move(instance, 'stopping', reasonCode);
      void this.#becomeStopped(instance);
    } else if (previous !== 'stopping' && previous !== 'stopped') {
      throw wrongState(instance, 'stopped');
    }
    return { instance, previous };
  }

  start(instance: Instance): StateChange {
    const previous = instance.state;
    if (previous === 'stopped') {
      this.#move(instance, 'pending', '');
      void this.#becomeRunning(instance);
    } else if (previous !== 'pending' && previous !== 'running') {
      throw wrongState(instance, 'started');
    }
    return { instance, previous };
  }

  /** The machine powered itself off: the launch's shutdown behaviour applies. */
  poweredOff(id: string): void {
    const instance = this.#instances.get(id);
    if (instance?.state !== 'running') return;
    if (instance.shutdownBehavior === 'terminate') this.terminate(instance, 'Client.InstanceInitiatedShutdown');
    else this.stop(instance, 'Client.InstanceInitiatedShutdown');
  }

  /** AWS retires the machine: it is stopped without a request, whatever the launch's shutdown behaviour. */
  retire(instance: Instance): StateChange {
    return this.stop(instance, 'Server.ScheduledStop');
  }

  /** Ends every machine; no state changes after this. */
  async close(): Promise<void> {
    this.#closing.abort();
    const machines = this.all().flatMap(({ machine }) => machine ?? []);
    await Promise.all(machines.map((machine) => machine.powerOff()));
    for (const machine of machines) machine.close();
  }

  #create(
    spec: LaunchSpec,
    born: Pick<Instance, 'id' | 'reservationId' | 'launchedAtMs'>,
    tagsByType: ReadonlyMap<string, ReadonlyMap<string, string>>,
  ): Instance {
    const address = this.#options.addresses.get(spec.subnetId)!.take()!;
    const instance: Instance = {
      ...spec,
      ...born,
      address,
      volumeId: newResourceId('vol'),
      interfaceId: newResourceId('eni'),
      sequence: this.#sequence++,
      outsideAddress: this.#outsideAddress(address),
      state: 'pending',
      machine: null,
      reason: '',
      reasonCode: '',
      reasonMessage: null,
      death: null,
      isProtected: spec.terminationProtection,
      endedAtMs: null,
    };
    const tagged = { instance: instance.id, volume: instance.volumeId, 'network-interface': instance.interfaceId };
    for (const [type, id] of Object.entries(tagged)) this.#options.tags.put(id, tagsByType.get(type) ?? new Map());
    this.#instances.set(instance.id, instance);
    void this.#becomeRunning(instance);
    return instance;
  }

  async #becomeRunning(instance: Instance): Promise<void> {
    await this.#options.clock.sleep(this.#conditions.now.pendingMs, this.#closing.signal);
    if (this.#closing.signal.aborted || instance.state !== 'pending') return;
    if (instance.death !== null) {
      instance.reasonMessage = instance.death.message;
      this.terminate(instance, instance.death.code);
      return;
    }
    this.#move(instance, 'running', '');
    const { id, address, zone, instanceType, imageId, architecture, launchedAtMs } = instance;
    instance.machine ??= this.#options.makeMachine({
      id,
      address,
      zone,
      instanceType,
      imageId,
      architecture,
      launchedAtMs,
      publicAddress: instance.publicAddress ? instance.outsideAddress : null,
      userData: Buffer.from(instance.userData, 'base64').toString('utf8'),
      region: this.#options.region,
      role: instance.instanceProfile,
    });
    if (!this.#conditions.now.outages.includes(this.#options.region)) instance.machine.powerOn();
  }

  async #becomeStopped(instance: Instance): Promise<void> {
    await instance.machine?.powerOff();
    if (instance.state === 'stopping') this.#move(instance, 'stopped', instance.reasonCode);
  }

  async #becomeTerminated(instance: Instance): Promise<void> {
    const { clock, tags, addresses } = this.#options;
    await instance.machine?.powerOff();
    this.#move(instance, 'terminated', instance.reasonCode);
    addresses.get(instance.subnetId)?.give(instance.address);
    await clock.sleep(this.#conditions.now.terminatedShownMs, this.#closing.signal);
    if (this.#closing.signal.aborted) return;
    this.#instances.delete(instance.id);
    for (const id of [instance.id, instance.volumeId, instance.interfaceId]) tags.forget(id);
    instance.machine?.close();
  }

  #outsideAddress(own: string): string {
    if (!this.#shared || this.#shared.left === 0)
      this.#shared = { address: own, left: this.#conditions.now.instancesPerAddress };
    this.#shared.left -= 1;
    return this.#shared.address;
  }

  #move(instance: Instance, state: Instance['state'], reasonCode: string): void {
    instance.state = state;
    instance.reasonCode = reasonCode;
    const nowMs = this.#options.clock.now();
    // Billing runs while the instance runs; the quota counts it from its launch.
    if (state === 'pending' || state === 'running') instance.endedAtMs = null;
    else instance.endedAtMs ??= nowMs;
    if (state === 'running') this.billing.started(instance, nowMs);
    else this.billing.ended(instance.id, nowMs);
    const at = new Date(nowMs).toISOString().replace('T', ' ').slice(0, 19);
    instance.reason = reasonCode === '' ? '' : `${INITIATORS[reasonCode] ?? 'Instance'} initiated (${at} GMT)`;
    this.#options.log?.('instance', { id: instance.id, address: instance.address, state, reasonCode });
  }
}

const INITIATORS: Record<string, string> = {
  'Client.UserInitiatedShutdown': 'User',
  'Server.ScheduledStop': 'Service',
};

function wrongState(instance: Instance, wanted: string): AwsError {
  return new AwsError(
    'IncorrectInstanceState',
    `The instance '${instance.id}' is not in a state from which it can be ${wanted}: it is ${instance.state}.`,
  );
}
