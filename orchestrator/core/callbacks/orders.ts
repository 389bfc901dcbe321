/** The orders in the reply to a heartbeat. Pure, so that they do not depend on how the heartbeat arrived. */
import type { RobotsPolicy } from '../../../shared/domain/robots-matcher.ts';
import { isServing } from '../../../shared/domain/states.ts';
import type { Heartbeat, HostOrder, Orders } from '../../../shared/wire/callbacks.ts';
import { intervalUnder } from '../model/robots-pace.ts';
import { intervalOf, pausedUntilMs } from '../model/operator-pace.ts';
import { drainAtMs, isDraining } from '../model/run-deadlines.ts';
import type { InstanceRecord, NotedHost, OpenChunk } from '../model/stores.ts';
import type { NewWishes } from './host-wishes.ts';
import { isRotatingAddress, isReturnExpected, judgeSuspicion, mustReturnProducts } from '../decide/ban-policy.ts';
import { hasMoreWork, mayHaveMoved, type World } from '../model/world.ts';

/** What a heartbeat has changed, and what its sender is asked for in return. */
export interface Effects {
  partsAck: number;
  /** Chunks offered in the heartbeat that it now owns. */
  granted: string[];
  /** Chunks that others could crawl sooner. */
  transfer: string[];
  canaryPage: Orders['canaryPage'];
  /** Of many hosts: slices of those that it owns which are due. */
  nextSlices: readonly OpenChunk[];
  /** Of many hosts: what is known of those in `granted`. */
  hosts: readonly NotedHost[];
  /** Of many hosts: what operators have asked that it has not heard of yet. */
  wished: NewWishes | null;
}

export const NO_EFFECTS: Effects = {
  partsAck: -1,
  granted: [],
  transfer: [],
  canaryPage: null,
  nextSlices: [],
  hosts: [],
  wished: null,
};

interface Sender extends Effects, Pick<Orders, 'secrets'> {
  /** The instance's record, updated by this heartbeat. */
  record: InstanceRecord;
  heartbeat: Heartbeat;
  robots: RobotsPolicy | null;
  /** Maximum products it may hold; null while shares are equal. */
  maxProducts: number | null;
  /** True while the fleet is uneven enough for this instance to receive chunks. */
  awaited: boolean;
  /** A newer epoch has its slot, or it is given up: it owns nothing and has to end. */
  fenced: boolean;
}

/** @param world as last observed, with the current run, work, time and the sender's current row */
export function ordersFor(world: World, sender: Sender): Orders {
  const { record, heartbeat, granted, robots } = sender;
  const serves = !sender.fenced && isServing(record.phase);
  const own = new Set(granted);
  const drain = isDraining(world) || (serves && isRotatingAddress(world, record));
  const isIdle = heartbeat.progress.pending === 0 && granted.length === 0 && heartbeat.offered.length === 0;
  return {
    grants: granted,
    drops: heartbeat.offered.filter((id) => !own.has(id)),
    transfer: isDraining(world) ? [] : sender.transfer,
    transferredAck: heartbeat.transferred,
    maxProducts: sender.maxProducts,
    sealed: record.sealed || drain || (isIdle && !mayGetMore(world, serves, sender.awaited)),
    drain,
    fenced: sender.fenced,
    partsAck: sender.partsAck,
    intervalMs: intervalUnder(robots, intervalOf(world.run)) * world.site.slowdown,
    deadline: new Date(drainAtMs(world.run)).toISOString(),
    ...pauseOf(world),
    robots: robots === null || robots.version === heartbeat.robots ? null : robots,
    returnProducts: serves && mustReturnProducts(world, record),
    verdict: serves ? judgeSuspicion(world, record) : null,
    canaryPage: sender.canaryPage,
    ...(sender.secrets === undefined ? {} : { secrets: sender.secrets }),
    ...nextSlicesOf(sender, drain),
    ...hostOrdersOf(sender, world.nowMs),
    ...(heartbeat.understands?.includes('clock') ? { clock: new Date(world.nowMs).toISOString() } : {}),
  };
}

/** One that takes nothing more needs none. */
function nextSlicesOf({ nextSlices, record, heartbeat }: Sender, drain: boolean): Pick<Orders, 'nextSlices'> {
  if (drain || record.sealed || nextSlices.length === 0) return {};
  const asked = new Set(heartbeat.offered);
  return {
    nextSlices: nextSlices.filter(({ id }) => !asked.has(id)).map(({ id, products }) => ({ chunk: id, products })),
  };
}

/** What holds for hosts from the first request of their new owner on, and what an operator asks of others. */
function hostOrdersOf({ hosts, wished }: Sender, nowMs: number): Pick<Orders, 'hosts' | 'wishes'> {
  if (hosts.length === 0 && wished === null) return {};
  const nothing = { delayMs: null, notBeforeMs: null, refusals: null };
  const told = new Map<string, NotedHost>(wished?.wishes.map((wish) => [wish.host, { ...wish, ...nothing }]));
  // Read after the wishes.
  for (const note of hosts) told.set(note.host, note);
  return {
    hosts: [...told.values()].map(({ host, delayMs, paceMs, notBeforeMs, refusals, denied }): HostOrder => {
      const waitMs = Math.max(0, (notBeforeMs ?? 0) - nowMs);
      return {
        host,
        ...(delayMs === null ? {} : { delayMs }),
        ...(paceMs === null ? {} : { paceMs }),
        ...(waitMs === 0 ? {} : { waitMs }),
        ...(refusals === null ? {} : { refusals }),
        ...(denied === true ? { denied } : {}),
      };
    }),
    ...(wished === null ? {} : { wishes: wished.version }),
  };
}

/** Omitted without a pause: an instance of an earlier version refuses a reply with a key that it does not know. */
function pauseOf({ nowMs, run }: World): Pick<Orders, 'pausedUntil'> {
  const untilMs = pausedUntilMs(run);
  return untilMs > nowMs ? { pausedUntil: new Date(untilMs).toISOString() } : {};
}

/**
 * True while a chunk waits for an owner, may come back, or may be found. Until then an idle instance stays open (its
 * shard is not sealed), so that it can take products of a lost, banned or slow one.
 */
const mayGetMore = (world: World, serves: boolean, awaited: boolean): boolean =>
  (serves && (awaited || hasMoreWork(world) || mayHaveMoved(world))) || isReturnExpected(world);
