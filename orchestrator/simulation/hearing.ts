/** What the main server makes of callbacks, by the rules of the real one: control/callbacks/callbacks.ts without HTTP and database. */
import { epochKey } from '../../shared/domain/epoch-id.ts';
import { isServing } from '../../shared/domain/states.ts';
import { chunkLimit } from '../control/decide/decide.ts';
import { isUnavailable } from '../control/decide/ban-policy.ts';
import { orderInput } from '../control/callbacks/heartbeat-orders.ts';
import { isShardComplete, ordersFor } from '../control/callbacks/orders.ts';
import { limitsByTime } from '../control/sharing/rebalance.ts';
import { isDraining } from '../control/model/run-deadlines.ts';
import type { Heartbeat, Orders } from '../../shared/wire/callbacks.ts';
import type { Machine } from './machine.ts';
import type { SimState } from './state.ts';
import { isServerUp, refreshWorld, roundMs, setTimer } from './state.ts';
import { closeShard, planWork, powerOff } from './timers.ts';

/** The first words of an instance. */
export function hearHello(state: SimState, machine: Machine): void {
  const { record } = machine;
  const { nowMs } = state;
  if (!machine.isUp(nowMs)) return;
  if (!isServerUp(state) || record.instanceId === null) {
    state.events.add(nowMs + state.world.limits.heartbeatMs, { kind: 'hello', machine });
    return;
  }
  // Given up meanwhile: the answer is 409, and it powers off.
  if (record.phase !== 'pending' && record.phase !== 'booting') return;
  record.phase = 'ready';
  record.phaseAtMs = nowMs;
  record.publicKey = machine.cloud.id;
  record.lastHeartbeatAtMs = nowMs;
  record.address ??= machine.cloud.publicAddress;
  state.tell(`slot ${record.slot} says hello from ${record.address}`);
  setTimer(state, machine, 'beat', nowMs + state.world.limits.heartbeatMs);
  if (machine.fate.diesAfterMs < Infinity) state.events.add(nowMs + machine.fate.diesAfterMs, { kind: 'die', machine });
  if (machine.fate.bannedAfterMs < Infinity)
    state.events.add(nowMs + machine.fate.bannedAfterMs, { kind: 'ban', machine });
  state.wake();
}

/** A heartbeat and what its orders do. The next one is due an interval later. */
export function hearHeartbeat(state: SimState, machine: Machine): void {
  const { nowMs, world } = state;
  if (!machine.isUp(nowMs)) {
    // A frozen process goes on with this when it wakes.
    if (!machine.dead && machine.frozenUntilMs > nowMs) setTimer(state, machine, 'beat', machine.frozenUntilMs);
    return;
  }
  setTimer(state, machine, 'beat', nowMs + world.limits.heartbeatMs);
  if (!isServerUp(state)) return;
  if (isUsual(state, machine) && hearUsual(state, machine)) return;
  const orders = answer(state, machine, machine.describe(nowMs));
  state.wake();
  if (orders.fenced) return powerOff(state, machine);
  const changed = machine.follow(orders, state.work, state.chance, nowMs);
  if (orders.drain || (machine.sealed && machine.queue.pending === 0)) closeShard(state, machine);
  else planWork(state, machine);
  if (changed) setTimer(state, machine, 'beat', nowMs + state.scenario.outside.roundTripMs);
}

/**
 * The short way for what most heartbeats are: the same outcome as with all rules, which have nothing to say to an instance
 * in good order that has something to crawl. False when it has nothing: then they decide whether it is done.
 */
function hearUsual(state: SimState, machine: Machine): boolean {
  const { nowMs, work, chance } = state;
  const { record } = machine;
  const asked = machine.offered.length > 0;
  machine.accept(grant(state, machine), work, chance, nowMs);
  const before = record.progress?.assigned ?? 0;
  record.progress = machine.measure(nowMs);
  record.lastHeartbeatAtMs = nowMs;
  machine.most = mostOf(state, record.slot);
  registerParts(state, machine);
  if (asked) planWork(state, machine);
  if (asked || before !== record.progress.assigned) state.wake();
  return machine.queue.pending > 0;
}

function isUsual(state: SimState, machine: Machine): boolean {
  const { record } = machine;
  return (
    machine.isPlain(state.nowMs) &&
    (record.phase === 'crawling' || record.phase === 'ready') &&
    record.rotateAtMs === null &&
    !isDraining(state.world) &&
    state.world.forecast?.balance.give.has(record.slot) !== true &&
    state.latest.get(record.slot) === record
  );
}

function answer(state: SimState, machine: Machine, heartbeat: Heartbeat): Orders {
  const { nowMs } = state;
  const world = refreshWorld(state);
  const { record } = machine;
  record.progress = heartbeat.progress;
  record.lastHeartbeatAtMs = nowMs;
  noteTrouble(state, machine, heartbeat);
  const superseded = state.latest.get(record.slot) !== record;
  const serving = isServing(record.phase) && !superseded;
  if (serving) registerParts(state, machine);
  if (serving) takeYielded(state, machine);
  const granted = serving && !isUnavailable(record) ? grant(state, machine) : [];
  const input = orderInput(world, {
    record,
    heartbeat,
    granted,
    partsAck: -1,
    superseded,
    serving,
    robots: null,
    canaryPage: null,
    transfer: serving ? wantedBack(state, machine) : [],
    maxProducts: mostOf(state, record.slot),
    awaited: world.forecast?.balance.get.has(record.slot) === true,
  });
  if (serving && !record.sealed && isShardComplete(input)) record.sealed = true;
  return ordersFor(input);
}

/** As the store does it: an incident begins once, and ends once. */
function noteTrouble(state: SimState, machine: Machine, heartbeat: Heartbeat): void {
  const { record } = machine;
  const { nowMs } = state;
  const isOpen = record.incident !== null && record.incident.overAtMs === null;
  const { incident } = heartbeat;
  if (incident === null) {
    if (isOpen) record.incident = { ...record.incident!, overAtMs: nowMs };
    return;
  }
  if (isOpen) return;
  record.incident = {
    verdict: incident.verdict,
    rule: incident.evidence.rule,
    atMs: nowMs - incident.sinceMs,
    untilMs: incident.leftMs === null ? null : nowMs + incident.leftMs,
    returnedAtMs: null,
    overAtMs: null,
  };
}

/** Enters the parts it tells of into the ledger; they are loaded by an action of their own. */
function registerParts(state: SimState, machine: Machine): void {
  const { work, unloaded } = state;
  const fresh = machine.parts.length - machine.acknowledged;
  if (fresh === 0) return;
  work.totals.seen += fresh;
  machine.acknowledged = machine.parts.length;
  unloaded.push(machine);
  state.wakeFor('load');
}

/** Gives it what it holds under offers, as far as its share goes; what others have it is to drop. */
function grant(state: SimState, { offered, owner }: Machine): string[] {
  const { work, nowMs } = state;
  if (offered.length === 0) return [];
  const limit = limitOf(state, owner.slot);
  return offered.filter((chunk) => owner.chunks < limit && work.grant(chunk, owner, nowMs)).map((chunk) => chunk.id);
}

/** How many chunks it may own. */
function limitOf(state: SimState, slot: number): number {
  const { due, byTime } = limitsNow(state);
  return byTime === null ? due : (byTime.maxChunks.get(slot) ?? 0);
}

/** How many products it is told to hold at most; null while shares are equal. */
function mostOf(state: SimState, slot: number): number | null {
  if (state.work.counts.waiting === 0) return null;
  const { byTime } = limitsNow(state);
  return byTime === null ? null : (byTime.maxChunks.get(slot) ?? 0) * state.world.run.plan.chunkSize;
}

/** Worked out once in a round of the loop: a share that is up to that much older only lets a chunk wait for the next offer. */
function limitsNow(state: SimState): NonNullable<SimState['limits']> {
  const { world, limits, nowMs } = state;
  if (limits !== null && nowMs <= limits.atMs + roundMs(state)) return limits;
  const due = chunkLimit(world);
  return (state.limits = { atMs: nowMs, due, byTime: limitsByTime(world, () => due) });
}

/** Asked so long without giving anything: it has begun something of every chunk. */
const PATIENCE_HEARTBEATS = 8;

/** Chunks of its own that others could crawl sooner: those that it was granted last. As control/transfer.ts. */
function wantedBack({ world, nowMs, unwilling: nothingToGive }: SimState, machine: Machine): string[] {
  const { forecast, limits } = world;
  const { record } = machine;
  const count = forecast?.balance.give.get(record.slot) ?? 0;
  // What it gave is not in an older outlook.
  const isSettled = machine.gaveAtMs < (forecast?.atMs ?? -Infinity);
  if (count === 0 || !isSettled || record.sealed || isUnavailable(record)) {
    machine.askedSinceMs = Infinity;
    return [];
  }
  machine.askedSinceMs = Math.min(machine.askedSinceMs, nowMs);
  if (nowMs - machine.askedSinceMs > PATIENCE_HEARTBEATS * limits.heartbeatMs) nothingToGive.add(epochKey(record));
  return machine.queue
    .openChunks()
    .slice(-count)
    .reverse()
    .map((chunk) => chunk.id);
}

/** What it has given back goes out again, as far as it is still its own. */
function takeYielded({ work, world, nowMs, tell }: SimState, machine: Machine): void {
  if (machine.yielded.length === 0) return;
  let products = 0;
  for (const { id, chunk } of machine.yielded) {
    if (chunk.id === id && chunk.owner === machine.owner) products += work.takeBack(chunk, null);
  }
  machine.gaveAtMs = nowMs;
  machine.askedSinceMs = Infinity;
  if (products === 0) return;
  world.lastTransferAtMs = nowMs;
  tell(`slot ${machine.record.slot} has given back ${products} products that others can crawl sooner`);
}
