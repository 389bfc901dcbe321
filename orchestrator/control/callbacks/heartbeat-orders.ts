/** Derives the input of the orders from a heartbeat and the observed world. Pure. */
import type { RobotsPolicy } from '../../../shared/domain/robots-matcher.ts';
import type { Heartbeat, Orders } from '../../../shared/wire/callbacks.ts';
import { isRotatingAddress, isReturnExpected, judgeSuspicion, mustReturnProducts } from '../decide/ban-policy.ts';
import type { OrderInput } from './orders.ts';
import { ordersFor } from './orders.ts';
import type { InstanceRecord } from '../model/stores.ts';
import type { World } from '../model/world.ts';

export interface HeardHeartbeat extends Pick<
  OrderInput,
  'granted' | 'partsAck' | 'superseded' | 'transfer' | 'maxProducts' | 'canaryPage'
> {
  /** The sender's record, updated by this heartbeat. */
  record: InstanceRecord;
  heartbeat: Heartbeat;
  /** False for an instance that is given up or superseded: its reply only reports that. */
  serving: boolean;
  robots: RobotsPolicy | null;
  /** True while the fleet is uneven enough for this instance to receive chunks. */
  awaited: boolean;
}

/** @param world as last observed, with the current run, work and time */
export function orderInput(world: World, heard: HeardHeartbeat): OrderInput {
  const { serving, awaited, record, ...rest } = heard;
  const current = { ...world, instances: withCurrent(world.instances, record) };
  return {
    ...rest,
    record,
    nowMs: world.nowMs,
    run: world.run,
    slowdown: world.site?.slowdown ?? 1,
    waiting: serving ? world.work.waiting : 0,
    returning: isReturnExpected(current) || (serving && awaited),
    returnProducts: serving && mustReturnProducts(current, record),
    rotate: serving && isRotatingAddress(current, record),
    verdict: serving ? judgeSuspicion(current, record) : null,
  };
}

/** The list with this row in place of an older one; the same list, with its cached results, if the row is in it. */
function withCurrent(instances: InstanceRecord[], record: InstanceRecord): InstanceRecord[] {
  const at = instances.findIndex((i) => i.slot === record.slot && i.epoch === record.epoch);
  return at === -1 || instances[at] === record ? instances : instances.with(at, record);
}

/** The reply to an epoch that is given up or superseded: it owns nothing and has to end. */
export function fencedOrders(world: World, record: InstanceRecord, heartbeat: Heartbeat): Orders {
  const none = {
    granted: [],
    transfer: [],
    maxProducts: null,
    partsAck: -1,
    awaited: false,
    serving: false,
    robots: null,
    canaryPage: null,
  };
  return ordersFor(orderInput(world, { ...none, record, heartbeat, superseded: true }));
}
