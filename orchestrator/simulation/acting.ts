/** Carries out what `decide` asks for, as control/act.ts does, on the simulated world. */
import type { EpochId } from '../../shared/domain/epoch-id.ts';
import { canMoveInstance, canMoveRun } from '../../shared/domain/states.ts';
import type { Action } from '../control/model/actions.ts';
import { LOSS_REASON } from '../control/model/loss-reason.ts';
import type { InstanceRecord } from '../control/model/stores.ts';
import type { Dispatching } from './dispatching.ts';
import { SIMULATED_BALANCER, simulatedClaim } from './fresh-world.ts';
import type { Launching } from './launching.ts';
import type { SimState } from './state.ts';
import { placeKey } from './state.ts';
import { beginPublishing, close, confirm, loadAll, takeBack } from './settling.ts';
import { powerOff } from './timers.ts';

type MoveOf<K> = Extract<Action, { kind: K }>;

/** True when AWS was asked for something that will show in a Describe. */
export function act(
  state: SimState,
  parts: { dispatching: Dispatching; launching: Launching },
  action: Action,
): boolean {
  const { world } = state;
  switch (action.kind) {
    case 'move-run':
      moveRun(state, action);
      return true;
    case 'ensure-balancer':
      world.run.balancer = SIMULATED_BALANCER;
      state.balancerReadyMs = state.nowMs + state.scenario.input.balancerMs;
      return true;
    case 'forget-balancer':
    case 'remove-balancer':
    case 'sweep-balancer':
      world.run.balancer = null;
      state.balancerReadyMs = Infinity;
      return false;
    case 'claim':
      claim(state, action);
      return false;
    case 'launch':
      parts.launching.queue(state, recordOf(state, action));
      return true;
    case 'adopt':
      parts.launching.adopt(recordOf(state, action), action.instance, state.nowMs);
      return false;
    case 'move-instance':
      moveInstance(state, action);
      return action.to === 'lost';
    case 'register':
      register(state, action);
      return true;
    case 'offer':
      parts.dispatching.offer(state, action.limitChunks);
      return false;
    case 'confirm':
      confirm(state, recordOf(state, action));
      return false;
    case 'close':
      close(state, recordOf(state, action));
      return false;
    case 'reassign':
      takeBack(state, recordOf(state, action));
      return false;
    case 'halt':
      world.run.request ??= action.reason;
      state.tell(`crawling stops: ${action.reason}`);
      return false;
    case 'rotate':
      recordOf(state, action).rotateAtMs ??= state.nowMs;
      state.tell(`slot ${action.slot} epoch ${action.epoch} makes room for a fresh address`);
      return false;
    case 'hold':
      state.tellOnce(`no further launch: ${action.detail}`, action.cause);
      return false;
    case 'note':
      if (!world.notedKeys.has(action.note.key)) state.tell(action.note.detail);
      world.notedKeys.add(action.note.key);
      return false;
    case 'terminate':
      terminate(state, recordOf(state, action));
      return true;
    case 'load':
      for (const machine of state.unloaded.splice(0)) loadAll(state, machine);
      return false;
    case 'publish':
      beginPublishing(state);
      return false;
  }
}

const recordOf = ({ records }: SimState, { slot, epoch }: EpochId): InstanceRecord =>
  records.get(placeKey(slot, epoch))!;

function moveRun(state: SimState, { from, to, reason }: MoveOf<'move-run'>): void {
  const { run } = state.world;
  if (run.phase !== from) return;
  if (!canMoveRun(from, to)) throw new Error(`a run cannot move from ${from} to ${to}`);
  run.phase = to;
  run.reason = reason ?? run.reason;
  state.tell(`the run is ${to}${reason === null ? '' : ` (${reason})`}`);
}

function moveInstance(state: SimState, { from, to, reason, ...at }: MoveOf<'move-instance'>): void {
  const record = recordOf(state, at);
  if (record.phase !== from) return;
  if (!canMoveInstance(from, to)) throw new Error(`an instance cannot move from ${from} to ${to}`);
  if (to === 'lost') record.manifestKey = null;
  record.phase = to;
  record.phaseAtMs = state.nowMs;
  record.reason = reason ?? record.reason;
  if (to === 'terminated') record.terminatedAtMs = state.nowMs;
  if (to === 'lost' && reason !== LOSS_REASON.notNeeded)
    state.tell(`slot ${at.slot} epoch ${at.epoch} is given up: ${reason}`);
}

function claim(state: SimState, { slot, epoch, pool, why }: MoveOf<'claim'>): void {
  const key = placeKey(slot, epoch);
  if (state.records.has(key)) return;
  const { subnetIds, instanceTypes } = state.world.pools!;
  const choice = pool ?? { subnetId: subnetIds[slot % subnetIds.length]!, instanceType: instanceTypes[0]! };
  // Every slot of one round has the same reason.
  if (why !== undefined) state.tellOnce(why, `${state.nowMs} ${why}`);
  const record = simulatedClaim({ slot, epoch }, choice, state.nowMs);
  state.records.set(key, record);
  state.latest.set(slot, record);
  const place = state.ordered.findLastIndex((r) => r.slot < slot || (r.slot === slot && r.epoch < epoch)) + 1;
  state.ordered.splice(place, 0, record);
}

function register(state: SimState, { instanceId, ...at }: MoveOf<'register'>): void {
  const machine = state.cloud.machines.get(instanceId);
  if (!machine || machine.cloud.state !== 'running') return;
  recordOf(state, at).registered = true;
  machine.healthyAtMs = Math.max(state.nowMs + machine.fate.healthyMs, state.balancerReadyMs);
}

function terminate(state: SimState, record: InstanceRecord): void {
  const machine = state.cloud.machines.get(record.instanceId!);
  record.registered = false;
  if (machine) powerOff(state, machine);
  if (record.phase === 'terminating') return;
  record.phase = 'terminating';
  record.phaseAtMs = state.nowMs;
}
