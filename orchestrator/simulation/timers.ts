/** When a simulated instance does what by itself: parts, the last product, the manifest, its end. */
import { PART_PRODUCTS } from '../../shared/wire/part.ts';
import type { Machine } from './machine.ts';
import type { SimState } from './state.ts';
import { setTimer } from './state.ts';

/** To be called when what it has to crawl has changed. */
export function planWork(state: SimState, machine: Machine): void {
  const { queue, timers } = machine;
  if (machine.closing || machine.dead) return;
  setTimer(state, machine, 'empty', queue.pending > 0 ? Math.max(state.nowMs, queue.emptyAtMs) : Infinity);
  if (timers.partMs === Infinity) planPart(state, machine);
}

/** A part is cut when its oldest result has waited long enough, or when it is full. */
export function planPart(state: SimState, machine: Machine): void {
  const { queue } = machine;
  const firstMs = Math.max(state.nowMs, queue.resultMs(1));
  const fullMs = Math.max(state.nowMs, queue.resultMs(PART_PRODUCTS));
  setTimer(state, machine, 'part', Math.min(firstMs + state.world.limits.partMs, fullMs));
}

/** It crawls no more; the last part, then the manifest go into the bucket. */
export function closeShard(state: SimState, machine: Machine): void {
  if (machine.closing || machine.dead) return;
  const { uploadMs } = state.scenario.outside;
  machine.close(state.nowMs);
  setTimer(state, machine, 'empty', Infinity);
  setTimer(state, machine, 'part', Infinity);
  setTimer(state, machine, 'beat', state.nowMs + uploadMs);
  setTimer(state, machine, 'closed', state.nowMs + 2 * uploadMs);
}

/** Its machine goes away, at its own wish or at ours. */
export function powerOff(state: SimState, machine: Machine): void {
  const { cloud, scenario, nowMs } = state;
  stopProcess(state, machine);
  if (machine.cloud.state !== 'pending' && machine.cloud.state !== 'running') return;
  cloud.change(machine, 'shutting-down', nowMs);
  state.events.add(nowMs + scenario.outside.shuttingDownMs, { kind: 'terminated', machine });
}

/** Nothing happens on it any more. What it held under offers is free again when the dispatcher has waited long enough. */
export function stopProcess(state: SimState, machine: Machine): void {
  if (machine.dead) return;
  machine.dead = true;
  machine.queue.pause(state.nowMs);
  if (machine.offered.length > 0)
    state.events.add(state.nowMs + 2 * state.world.limits.heartbeatMs + 5_000, { kind: 'free', machine });
}
