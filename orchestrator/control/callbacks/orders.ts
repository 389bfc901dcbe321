/** The orders in the reply to a heartbeat, and what they depend on. Pure, so that they do not depend on how the heartbeat arrived. */
import type { RobotsPolicy } from '../../../shared/domain/robots-matcher.ts';
import { isServing } from '../../../shared/domain/states.ts';
import type { Heartbeat, Orders } from '../../../shared/wire/callbacks.ts';
import { intervalUnder } from '../observe/robots-cache.ts';
import { drainAtMs, isDraining } from '../model/run-deadlines.ts';
import type { InstanceRecord, RunRecord } from '../model/stores.ts';
import { isRotatingAddress, isReturnExpected, judgeSuspicion, mustReturnProducts } from '../decide/ban-policy.ts';
import type { World } from '../model/world.ts';

export interface OrderInput {
  nowMs: number;
  run: RunRecord;
  record: InstanceRecord;
  heartbeat: Heartbeat;
  /** Chunks offered in the heartbeat that it now owns. */
  granted: string[];
  /** Chunks of the run without an owner, after the grants. */
  waiting: number;
  /** True while an address with an open incident, or a slow one, still holds products that may come back. */
  returning: boolean;
  partsAck: number;
  /** True when a newer epoch has the slot. */
  superseded: boolean;
  robots: RobotsPolicy | null;
  /** Factor by which every interval is longer, because the site is down. */
  slowdown: number;
  /** True when a banned instance has to return its products and keep its slot. */
  returnProducts: boolean;
  /** Chunks that others could crawl sooner. */
  transfer: string[];
  /** Maximum products it may hold; null while shares are equal. */
  maxProducts: number | null;
  /** Its address is replaced, because it is banned or rotated: the instance uploads, closes its epoch and ends. */
  rotate: boolean;
  verdict: Orders['verdict'];
  canaryPage: Orders['canaryPage'];
}

/**
 * Sealed = the shard is complete: no chunk waits for an owner or may come back, and this instance has crawled all it
 * holds. Before that an instance stays open, so that it can take products of a lost, banned or slow one.
 */
function isShardComplete(input: OrderInput): boolean {
  if (input.record.sealed || isDraining(input) || input.rotate) return true;
  return isIdle(input) && input.waiting === 0 && !input.returning;
}

const isIdle = ({ heartbeat, granted }: Pick<OrderInput, 'heartbeat' | 'granted'>): boolean =>
  heartbeat.progress.pending === 0 && granted.length === 0 && heartbeat.offered.length === 0;

export function ordersFor(input: OrderInput): Orders {
  const own = new Set(input.granted);
  const { robots, heartbeat } = input;
  return {
    grants: input.granted,
    drops: heartbeat.offered.filter((id) => !own.has(id)),
    transfer: isDraining(input) ? [] : input.transfer,
    transferredAck: heartbeat.transferred,
    maxProducts: input.maxProducts,
    sealed: isShardComplete(input),
    drain: isDraining(input) || input.rotate,
    fenced: input.superseded || !(isServing(input.record.phase) || input.record.phase === 'done'),
    partsAck: input.partsAck,
    intervalMs: intervalUnder(robots, input.run.settings.site.intervalMs) * input.slowdown,
    deadline: new Date(drainAtMs(input.run)).toISOString(),
    robots: robots === null || robots.version === heartbeat.robots ? null : robots,
    returnProducts: input.returnProducts,
    verdict: input.verdict,
    canaryPage: input.canaryPage,
  };
}

/** What a heartbeat has changed, and what its sender is asked for in return. */
export type Effects = Pick<OrderInput, 'partsAck' | 'granted' | 'transfer' | 'canaryPage'>;

export const NO_EFFECTS: Effects = { partsAck: -1, granted: [], transfer: [], canaryPage: null };

/** `record` is the sender's, updated by this heartbeat. */
interface HeardHeartbeat
  extends Effects, Pick<OrderInput, 'record' | 'heartbeat' | 'superseded' | 'robots' | 'maxProducts'> {
  /** False for an instance that is given up or superseded: its reply only reports that. */
  serving: boolean;
  /** True while the fleet is uneven enough for this instance to receive chunks. */
  awaited: boolean;
}

/** @param world as last observed, with the current run, work, time and the sender's current row */
export function orderInput(world: World, heard: HeardHeartbeat): OrderInput {
  const { serving, awaited, record, ...rest } = heard;
  return {
    ...rest,
    record,
    nowMs: world.nowMs,
    run: world.run,
    slowdown: world.site.slowdown,
    waiting: serving ? world.work.waiting : 0,
    returning: (isIdle(rest) && isReturnExpected(world)) || (serving && awaited),
    returnProducts: serving && mustReturnProducts(world, record),
    rotate: serving && isRotatingAddress(world, record),
    verdict: serving ? judgeSuspicion(world, record) : null,
  };
}

/** The reply to an epoch that is given up or superseded: it owns nothing and has to end. */
export function fencedOrders(world: World, record: InstanceRecord, heartbeat: Heartbeat): Orders {
  const none = { ...NO_EFFECTS, maxProducts: null, awaited: false, serving: false, robots: null };
  return ordersFor(orderInput(world, { ...none, record, heartbeat, superseded: true }));
}
