/** What happens on the simulated machines: boots, parts, the end of a shard, and what goes wrong with them. */
import { isServing } from '../../shared/domain/states.ts';
import { drainAtMs } from '../control/model/run-deadlines.ts';
import { hearHeartbeat, hearHello } from './hearing.ts';
import type { Machine } from './machine.ts';
import type { MachineEvent, SimState } from './state.ts';
import { isServerUp, setTimer } from './state.ts';
import { closeShard, planPart, planWork, stopProcess } from './timers.ts';

/** One event of one machine. */
export function onMachine(state: SimState, kind: MachineEvent, machine: Machine): void {
  const { nowMs, cloud } = state;
  const { timers } = machine;
  switch (kind) {
    case 'running':
      if (machine.cloud.state === 'pending') cloud.change(machine, 'running', state.nowMs);
      return;
    case 'hello':
      hearHello(state, machine);
      return;
    case 'beat':
      if (timers.beatMs === nowMs) hearHeartbeat(state, machine);
      return;
    case 'part':
      if (timers.partMs === nowMs) putPart(state, machine);
      return;
    case 'empty':
      if (timers.emptyMs === nowMs && !machine.dead) endQueue(state, machine);
      return;
    case 'closed':
      if (timers.closedMs === nowMs && !machine.dead) complete(state, machine);
      return;
    case 'terminated':
      if (machine.cloud.state === 'shutting-down') cloud.change(machine, 'terminated', state.nowMs);
      return;
    case 'die':
      die(state, machine, machine.fate.diesSilently);
      return;
    case 'ban':
      ban(state, machine);
      return;
    case 'awake':
      wakeUp(state, machine);
      return;
    case 'free':
      for (const chunk of machine.dropAll()) state.work.dropOffer(chunk);
      state.wake();
  }
}

function putPart(state: SimState, machine: Machine): void {
  if (machine.dead || machine.closing) return;
  if (state.nowMs < machine.frozenUntilMs) return setTimer(state, machine, 'part', machine.frozenUntilMs);
  const before = machine.parts.length;
  machine.cut(state.nowMs);
  setTimer(state, machine, 'part', Infinity);
  planPart(state, machine);
  if (machine.parts.length > before) speak(state, machine, state.nowMs + state.scenario.outside.uploadMs);
}

/** The last product is done: others may have more for it. */
function endQueue(state: SimState, machine: Machine): void {
  if (state.nowMs < machine.frozenUntilMs) return;
  if (machine.sealed) return closeShard(state, machine);
  speak(state, machine, state.nowMs);
}

/** Not later than the heartbeat that is due anyway. */
function speak(state: SimState, machine: Machine, atMs: number): void {
  if (machine.timers.beatMs > atMs) setTimer(state, machine, 'beat', atMs);
}

/** The manifest is in the bucket; the completion callback is repeated until somebody hears it. */
function complete(state: SimState, machine: Machine): void {
  const { record } = machine;
  machine.closed = true;
  if (!isServerUp(state)) return setTimer(state, machine, 'closed', state.nowMs + state.world.limits.heartbeatMs);
  if (isServing(record.phase) && record.manifestKey === null) {
    record.manifestKey = 'manifest.json';
    state.wake();
  }
  speak(state, machine, state.nowMs);
}

/** The machine is gone. @param silent EC2 does not notice */
export function die(state: SimState, machine: Machine, silent: boolean): void {
  if (machine.dead) return;
  const { slot, epoch } = machine.record;
  state.tell(`slot ${slot} epoch ${epoch} dies${silent ? ', and EC2 goes on showing it as running' : ''}`);
  stopProcess(state, machine);
  if (!silent) state.cloud.change(machine, 'terminated', state.nowMs);
}

/** It hears and says nothing for a while. */
export function freeze(state: SimState, machine: Machine, forMs: number): void {
  if (machine.dead) return;
  state.tell(`slot ${machine.record.slot} freezes`);
  machine.frozenUntilMs = state.nowMs + forMs;
  machine.queue.pause(state.nowMs);
  state.events.add(machine.frozenUntilMs, { kind: 'awake', machine });
}

/** The site refuses its address: it leaves the site alone and says so at once. */
export function ban(state: SimState, machine: Machine): void {
  const { nowMs } = state;
  if (machine.dead || machine.closing || machine.isBanned(nowMs)) return;
  state.tell(`slot ${machine.record.slot}: the site bans ${machine.record.address}`);
  machine.bannedAtMs = nowMs;
  machine.banOverAtMs = nowMs + state.scenario.rules.coolDownMs;
  machine.queue.pause(nowMs);
  setTimer(state, machine, 'empty', Infinity);
  state.events.add(machine.banOverAtMs, { kind: 'awake', machine });
  speak(state, machine, nowMs);
}

/** It keeps a fraction of the pace from now on. */
export function slowDown(state: SimState, machine: Machine, factor: number): void {
  if (machine.dead || machine.closing) return;
  state.tell(`slot ${machine.record.slot} slows down to a ${factor}th of its pace`);
  machine.slowness *= factor;
  machine.queue.pause(state.nowMs);
  machine.queue.resume(state.nowMs, factor);
  planWork(state, machine);
}

/** The end of a cool-down or of a freeze. */
function wakeUp(state: SimState, machine: Machine): void {
  const { nowMs } = state;
  if (machine.dead || machine.isBanned(nowMs) || nowMs < machine.frozenUntilMs) return;
  if (nowMs >= drainAtMs(state.world.run)) closeShard(state, machine);
  if (!machine.closing) {
    machine.queue.resume(nowMs);
    planWork(state, machine);
  }
  speak(state, machine, nowMs);
}
