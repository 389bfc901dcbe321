/** How results and products of simulated instances are settled: loaded, taken back, published. As close-epoch, take-back and finish. */
import { openIncident } from '../control/decide/ban-policy.ts';
import { LOSS_REASON } from '../control/model/loss-reason.ts';
import type { InstanceRecord } from '../control/model/stores.ts';
import type { Machine } from './machine.ts';
import type { SimState } from './state.ts';
import type { Loss } from './work.ts';

/** Loads every part of the machine that the main server knows of. */
export function loadAll({ work }: SimState, machine: Machine): void {
  for (let i = machine.loaded; i < machine.acknowledged; i++) work.load(machine.parts[i]!);
  machine.loaded = Math.max(machine.loaded, machine.acknowledged);
}

/** The bucket has its parts, whether it could tell of them or not. */
function loadFromBucket(state: SimState, machine: Machine): void {
  state.work.totals.seen += machine.parts.length - machine.acknowledged;
  machine.acknowledged = machine.parts.length;
  loadAll(state, machine);
}

function release(state: SimState, machine: Machine, loss: Loss | null): number {
  let returned = 0;
  for (const chunk of machine.granted) {
    if (chunk.owner === machine.owner) returned += state.work.takeBack(chunk, loss);
  }
  machine.granted.length = 0;
  return returned;
}

/** Its own manifest closes the epoch. */
export function confirm(state: SimState, record: InstanceRecord): void {
  const machine = machineOf(state, record);
  if (!machine || record.manifestKey === null) return;
  loadFromBucket(state, machine);
  release(state, machine, null);
  const replaced = openIncident(record)?.verdict === 'banned' && state.scenario.rules.onBan === 'replace';
  record.phase = 'done';
  record.phaseAtMs = state.nowMs;
  if (replaced) record.reason = LOSS_REASON.banned;
  else if (record.rotateAtMs !== null) record.reason = LOSS_REASON.rotated;
}

/** The main server closes the epoch of one that is given up. */
export function close(state: SimState, record: InstanceRecord): void {
  if (record.manifestKey !== null) return;
  record.manifestKey = 'manifest.json';
  const machine = machineOf(state, record);
  if (!machine) return;
  loadFromBucket(state, machine);
  const { slot, lastHeartbeatAtMs } = record;
  const loss: Loss = { slot, lastHeardMs: lastHeartbeatAtMs ?? state.nowMs, waiting: 0, reassignedAtMs: null };
  const returned = release(state, machine, loss);
  if (returned === 0) return;
  state.losses.push(loss);
  state.tell(`${returned} products of slot ${slot} go out again`);
}

/** A banned instance has forgotten what it did not crawl. */
export function takeBack(state: SimState, record: InstanceRecord): void {
  const machine = machineOf(state, record);
  const { incident } = record;
  if (!machine || incident === null || incident.returnedAtMs !== null) return;
  const uploaded = machine.parts.slice(0, machine.acknowledged).reduce((sum, part) => sum + part.products, 0);
  const isPatient = state.nowMs < incident.atMs + state.world.limits.uploadMs;
  if (isPatient && uploaded < (record.progress?.stored ?? 0)) return;
  loadAll(state, machine);
  const returned = release(state, machine, null);
  record.incident = { ...incident, returnedAtMs: state.nowMs };
  state.tell(`${returned} products of slot ${record.slot}, which is banned, go out again`);
}

/** Every product gets an outcome now; the rows are in the table when the statement has ended. */
export function beginPublishing(state: SimState): void {
  if (state.publishing) return;
  const { work, scenario, nowMs } = state;
  state.publishing = true;
  state.unfinished = work.failRest();
  const seconds = work.totals.stored / scenario.outside.publishRowsPerSecond;
  state.events.add(nowMs + 1_000 * seconds, { kind: 'published' });
}

const machineOf = ({ cloud }: SimState, { instanceId }: InstanceRecord): Machine | undefined =>
  instanceId === null ? undefined : cloud.machines.get(instanceId);
