/**
 * The instances and their states. Every change of state happens here:
 *
 *   pending ──► running ──► stopping ──► stopped ──► pending …
 *      └───────────┴───────────┴────────────┴──► shutting-down ──► terminated ──► (gone)
 *
 * `terminated` stays visible for a while, as on AWS, so that whoever terminated can see that it happened.
 */
import type { Clock } from '../../shared/ports/clock.ts';
import { AwsError } from '../aws-error.ts';
import { newResourceId } from '../ids.ts';
import type { AddressPool } from '../network.ts';
import type { Instance, LaunchSpec, StateChange } from './instance.ts';
import type { MachineHost } from './machine-host.ts';
import type { TagStore } from './tag-store.ts';

export interface FleetOptions {
  clock: Clock;
  host: MachineHost;
  tags: TagStore;
  region: string;
  /** Free addresses by subnet id. */
  addresses: ReadonlyMap<string, AddressPool>;
  /** How long a launch or a start takes until the machine runs. */
  pendingMs?: number;
  /** How long a terminated instance stays visible; AWS: about an hour. */
  terminatedShownMs?: number;
  log?: (event: string, fields: Record<string, unknown>) => void;
}

export class Fleet {
  readonly #options: FleetOptions;
  readonly #instances = new Map<string, Instance>();
  readonly #closing = new AbortController();
  #sequence = 0;

  constructor(options: FleetOptions) {
    this.#options = options;
  }

  /** Every instance still visible, in order of launch. */
  all(): Instance[] {
    return [...this.#instances.values()];
  }

  find(id: string): Instance | null {
    return this.#instances.get(id) ?? null;
  }

  /** Launches between `min` and `max` instances, as many as the subnet has addresses for; none when that is under `min`. */
  launch(
    spec: LaunchSpec,
    count: { min: number; max: number },
    tagsByType: ReadonlyMap<string, ReadonlyMap<string, string>>,
  ): Instance[] {
    const pool = this.#options.addresses.get(spec.subnetId);
    const free = pool?.free ?? 0;
    if (free < count.min) {
      throw new AwsError(
        'InsufficientFreeAddressesInSubnet',
        `There are not enough free addresses in subnet '${spec.subnetId}' to satisfy the requested number of instances.`,
      );
    }
    const reservationId = newResourceId('r');
    const launched: Instance[] = [];
    for (let i = 0; i < Math.min(count.max, free); i++) {
      const instance: Instance = {
        ...spec,
        id: newResourceId('i'),
        reservationId,
        volumeId: newResourceId('vol'),
        interfaceId: newResourceId('eni'),
        sequence: this.#sequence++,
        address: pool!.take()!,
        launchedAtMs: this.#options.clock.now(),
        state: 'pending',
        reason: '',
        reasonCode: '',
      };
      this.#putTags(instance, tagsByType);
      this.#instances.set(instance.id, instance);
      launched.push(instance);
      void this.#becomeRunning(instance);
    }
    return launched;
  }

  /** Terminating twice is fine, as on AWS. */
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

  /** The machine switched itself off: what the launch said about that applies. */
  poweredOff(id: string): void {
    const instance = this.#instances.get(id);
    if (instance?.state !== 'running') return;
    if (instance.shutdownBehavior === 'terminate') this.terminate(instance, 'Client.InstanceInitiatedShutdown');
    else this.stop(instance, 'Client.InstanceInitiatedShutdown');
  }

  /** Ends every machine; no state changes after this. */
  async close(): Promise<void> {
    this.#closing.abort();
    await Promise.all(this.all().map((instance) => this.#options.host.powerOff(instance.id)));
  }

  async #becomeRunning(instance: Instance): Promise<void> {
    await this.#options.clock.sleep(this.#options.pendingMs ?? 150, this.#closing.signal);
    if (this.#closing.signal.aborted || instance.state !== 'pending') return;
    this.#move(instance, 'running', '');
    this.#options.host.powerOn({
      id: instance.id,
      address: instance.address,
      publicAddress: instance.publicAddress ? instance.address : null,
      userData: Buffer.from(instance.userData, 'base64').toString('utf8'),
      zone: instance.zone,
      region: this.#options.region,
      instanceType: instance.instanceType,
      imageId: instance.imageId,
      architecture: instance.architecture,
      role: instance.instanceProfile,
      launchedAtMs: instance.launchedAtMs,
    });
  }

  async #becomeStopped(instance: Instance): Promise<void> {
    await this.#options.host.powerOff(instance.id);
    if (instance.state === 'stopping') this.#move(instance, 'stopped', instance.reasonCode);
  }

  async #becomeTerminated(instance: Instance): Promise<void> {
    const { host, clock, tags, addresses } = this.#options;
    await host.powerOff(instance.id);
    this.#move(instance, 'terminated', instance.reasonCode);
    addresses.get(instance.subnetId)?.give(instance.address);
    await clock.sleep(this.#options.terminatedShownMs ?? 600_000, this.#closing.signal);
    if (this.#closing.signal.aborted) return;
    this.#instances.delete(instance.id);
    for (const id of [instance.id, instance.volumeId, instance.interfaceId]) tags.forget(id);
    host.forget(instance.id);
  }

  #putTags(instance: Instance, tagsByType: ReadonlyMap<string, ReadonlyMap<string, string>>): void {
    const ids: [string, string][] = [
      ['instance', instance.id],
      ['volume', instance.volumeId],
      ['network-interface', instance.interfaceId],
    ];
    for (const [type, id] of ids) {
      const tags = tagsByType.get(type);
      if (tags && tags.size > 0) this.#options.tags.put(id, tags);
    }
  }

  #move(instance: Instance, state: Instance['state'], reasonCode: string): void {
    instance.state = state;
    instance.reasonCode = reasonCode;
    const at = new Date(this.#options.clock.now()).toISOString().replace('T', ' ').slice(0, 19);
    instance.reason =
      reasonCode === ''
        ? ''
        : `${reasonCode === 'Client.UserInitiatedShutdown' ? 'User' : 'Instance'} initiated (${at} GMT)`;
    this.#options.log?.('instance', { id: instance.id, address: instance.address, state, reasonCode });
  }
}

function wrongState(instance: Instance, wanted: string): AwsError {
  return new AwsError(
    'IncorrectInstanceState',
    `The instance '${instance.id}' is not in a state from which it can be ${wanted}: it is ${instance.state}.`,
  );
}
