/** The instances of a run as one observation found them, and what follows from all of them together. */
import { type LaunchHistory, launchHistory } from './launch-history.ts';
import { LOSS_REASON } from './loss-reason.ts';
import type { EpochId } from '../../../shared/domain/epoch-id.ts';
import type { InstanceRecord } from './stores.ts';
import { hasRequests, isGivenUp, isLeaving } from './instance-state.ts';

/**
 * Immutable. Each answer takes one pass over the fleet, on first use: a round of the loop needs some for every slot.
 */
export class FleetSnapshot {
  /** All epochs of all slots, ordered by slot and epoch. */
  readonly all: readonly InstanceRecord[];
  #bySlot?: ReadonlyMap<number, readonly InstanceRecord[]>;
  #latest?: ReadonlyMap<number, InstanceRecord>;
  #serving?: readonly InstanceRecord[];
  #lastHeardMs?: number;
  #alive?: number;
  #slotsOfLost?: ReadonlySet<number>;
  #addressOwners?: ReadonlyMap<string, InstanceRecord>;
  #launches?: LaunchHistory;
  #addresses?: Addresses;
  readonly #byRegion = new Map<string, FleetSnapshot>();

  constructor(instances: readonly InstanceRecord[]) {
    this.all = instances;
  }

  /** The newest epoch of every slot that has one. */
  get latest(): ReadonlyMap<number, InstanceRecord> {
    // Of several entries of a slot the last one stays, which is its newest epoch.
    return (this.#latest ??= new Map(this.all.map((record) => [record.slot, record])));
  }

  /** The newest instances of their slots that have said hello and are not given up. */
  get serving(): readonly InstanceRecord[] {
    return (this.#serving ??= [...this.latest.values()].filter((r) => !isGivenUp(r) && r.publicKey !== null));
  }

  /** Number of instances that are not given up. */
  get alive(): number {
    return (this.#alive ??= this.all.filter((r) => !isGivenUp(r)).length);
  }

  /** When any of the serving instances was last heard. */
  get lastHeardMs(): number {
    const heardMs = (r: InstanceRecord): number => r.lastHeartbeatAtMs ?? r.phaseAtMs;
    return (this.#lastHeardMs ??= this.serving.reduce((last, r) => Math.max(last, heardMs(r)), -Infinity));
  }

  /** Slots that lost an instance with products. Banned and rotated ones do not count: their share waits. */
  get slotsOfLost(): ReadonlySet<number> {
    return (this.#slotsOfLost ??= new Set(this.all.filter(mayHaveLostProducts).map((r) => r.slot)));
  }

  /** The instance that keeps each address: one that crawls before one that does not, then the first to arrive. */
  get addressOwners(): ReadonlyMap<string, InstanceRecord> {
    return (this.#addressOwners ??= addressOwnersOf(this.all));
  }

  /** The addresses that may send requests, now or later. */
  get addresses(): Addresses {
    return (this.#addresses ??= addressesOf(this.all));
  }

  get launches(): LaunchHistory {
    return (this.#launches ??= launchHistory(this.all));
  }

  /** The instances of one region alone; `isFirst` includes claims of earlier versions, which name none. */
  in(region: string, isFirst: boolean): FleetSnapshot {
    let part = this.#byRegion.get(region);
    if (part === undefined) {
      const rows = this.all.filter(({ request }) => (request.region ?? (isFirst ? region : null)) === region);
      part = rows.length === this.all.length ? this : new FleetSnapshot(rows);
      this.#byRegion.set(region, part);
    }
    return part;
  }

  /** All epochs of one slot, oldest first. */
  epochs(slot: number): readonly InstanceRecord[] {
    return this.#slots.get(slot) ?? [];
  }

  find({ slot, epoch }: EpochId): InstanceRecord | undefined {
    const newest = this.latest.get(slot);
    return newest?.epoch === epoch ? newest : this.epochs(slot).find((r) => r.epoch === epoch);
  }

  /** Number of slots of the run: the planned ones and those claimed in addition. */
  slotCount({ instances }: { instances: number }): number {
    return Math.max(instances, (this.all.at(-1)?.slot ?? -1) + 1);
  }

  /** The same fleet with a newer row of one instance. */
  with(record: InstanceRecord): FleetSnapshot {
    const known = this.find(record);
    return known === undefined ? this : new FleetSnapshot(this.all.with(this.all.indexOf(known), record));
  }

  get #slots(): ReadonlyMap<number, readonly InstanceRecord[]> {
    return (this.#bySlot ??= Map.groupBy(this.all, (r) => r.slot));
  }
}

interface Addresses {
  /** How many are launched, and have or may get something to crawl. */
  up: number;
  /** How many are given up while EC2 may still run them. */
  ending: number;
  /** Claims for which EC2 was not called yet. */
  unsent: readonly InstanceRecord[];
}

function addressesOf(instances: readonly InstanceRecord[]): Addresses {
  let [up, ending] = [0, 0];
  const unsent: InstanceRecord[] = [];
  for (const record of instances) {
    if (isGivenUp(record))
      ending += record.instanceId !== null && record.phase !== 'done' && !isLeaving(record) ? 1 : 0;
    else if (record.phase === 'claimed' && record.attempts === 0) unsent.push(record);
    else if (hasRequests(record)) up++;
  }
  return { up, ending, unsent };
}

function mayHaveLostProducts(record: InstanceRecord): boolean {
  const { reason } = record;
  if (!isGivenUp(record) || record.publicKey === null || reason === null) return false;
  // Given up so that another address can take its place.
  return reason !== LOSS_REASON.banned && reason !== LOSS_REASON.rotated;
}

function addressOwnersOf(instances: readonly InstanceRecord[]): ReadonlyMap<string, InstanceRecord> {
  const owners = new Map<string, InstanceRecord>();
  for (const record of instances) {
    if (record.address === null || record.instanceId === null || isGivenUp(record)) continue;
    const known = owners.get(record.address);
    if (known === undefined || comesBefore(record, known)) owners.set(record.address, record);
  }
  return owners;
}

function comesBefore(a: InstanceRecord, b: InstanceRecord): boolean {
  const crawls = (r: InstanceRecord): boolean => (r.progress?.assigned ?? 0) > 0;
  const said = (r: InstanceRecord): boolean => r.publicKey !== null;
  if (crawls(a) !== crawls(b)) return crawls(a);
  if (said(a) !== said(b)) return said(a);
  if (a.phaseAtMs !== b.phaseAtMs) return a.phaseAtMs < b.phaseAtMs;
  return a.slot < b.slot;
}
