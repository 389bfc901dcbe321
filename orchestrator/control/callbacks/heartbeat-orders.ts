/** From a heartbeat and the world around it to what the orders depend on. Pure. */
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
  /** The sender as it is since this heartbeat. */
  record: InstanceRecord;
  heartbeat: Heartbeat;
  /** False for one that is given up or superseded: it gets no more than the word that it is. */
  serving: boolean;
  robots: RobotsPolicy | null;
  /** True while the fleet is uneven enough for this one to be given something. */
  awaited: boolean;
}

/** @param world as last seen, with the run, the work and the time of this moment */
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

/** The list with this row in place of the one of an earlier look; the very list when that is in it, with all that is known of it. */
function withCurrent(instances: InstanceRecord[], record: InstanceRecord): InstanceRecord[] {
  const at = instances.findIndex((i) => i.slot === record.slot && i.epoch === record.epoch);
  return at === -1 || instances[at] === record ? instances : instances.with(at, record);
}

/** The reply to an epoch that is given up or superseded: nothing is its own, and it is to go. */
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
