/** Launch calls of the simulated main server: at EC2's pace, and what EC2 answers. */
import type { CloudInstance } from '../cloud/compute.ts';
import type { InstanceRecord } from '../control/model/stores.ts';
import { Machine } from './machine.ts';
import type { SimState } from './state.ts';

/** RunInstances: 5 at once, then 2 a second. */
const BURST = 5;
const GAP_MS = 500;

export class Launching {
  readonly #queued = new Set<InstanceRecord>();
  #nextFreeMs = -Infinity;

  /** Launches the claim as soon as EC2 lets another call through. Asking again changes nothing. */
  queue(state: SimState, record: InstanceRecord): void {
    if (this.#queued.has(record)) return;
    this.#queued.add(record);
    this.#nextFreeMs = Math.max(this.#nextFreeMs, state.nowMs - (BURST - 1) * GAP_MS);
    state.events.add(Math.max(state.nowMs, this.#nextFreeMs), { kind: 'launch', record });
    this.#nextFreeMs += GAP_MS;
  }

  /** A main server that was killed has forgotten what was about to be launched. */
  forget(): void {
    this.#queued.clear();
  }

  /** The call, and EC2's answer to it. */
  launch(state: SimState, record: InstanceRecord): void {
    if (!this.#queued.delete(record) || record.phase !== 'claimed') return;
    const { cloud, chance, scenario, nowMs } = state;
    record.attempts++;
    record.launchedAtMs = nowMs;
    const refusal = cloud.refuse(record.request, nowMs);
    if (refusal !== null) {
      const { message } = refusal;
      record.answer = refusal;
      state.tell(
        `EC2 refuses slot ${record.slot}: ${message} (${record.request.instanceType} in ${record.request.subnetId})`,
      );
      return;
    }
    const fate = chance.fate();
    const owner = state.work.addOwner(record.slot, record.epoch);
    const shown = cloud.start(record.request, nowMs);
    const machine = new Machine(record, owner, fate, shown, nowMs + scenario.outside.invisibleMs);
    cloud.machines.set(shown.id, machine);
    state.machines.push(machine);
    const pendingMs = Math.min(scenario.outside.pendingMs, fate.bootMs);
    state.events.add(nowMs + pendingMs, { kind: 'running', machine });
    if (fate.boots) state.events.add(nowMs + fate.bootMs, { kind: 'hello', machine });
    if (record.epoch > 1) state.tell(`slot ${record.slot} gets another instance, epoch ${record.epoch}`);
    this.adopt(record, shown, nowMs);
  }

  /** Takes what EC2 gave or shows as this claim's, or notes its new state. */
  adopt(record: InstanceRecord, instance: CloudInstance, nowMs: number): void {
    record.instanceId = instance.id;
    record.cloudState = instance.state;
    if (instance.publicAddress !== null) record.address = instance.publicAddress;
    record.zone = instance.zone;
    record.answer = null;
    if (record.phase !== 'claimed') return;
    record.phase = 'pending';
    record.phaseAtMs = nowMs;
  }
}
