/** Everything that a simulated run is at one moment; its parts change it in turn, by the events of one queue. */
import type { InstanceRecord } from '../control/model/stores.ts';
import type { LimitsByTime } from '../control/sharing/rebalance.ts';
import type { World } from '../control/model/world.ts';
import { isRunEnd } from '../../shared/domain/states.ts';
import type { Chance } from './chance.ts';
import type { CloudModel } from './cloud-model.ts';
import type { EventQueue } from './event-queue.ts';
import type { Machine } from './machine.ts';
import type { Fault, Scenario } from './scenario.ts';
import type { Loss, Work } from './work.ts';

export type SimEvent =
  /** The main server looks at the world and decides. */
  | { kind: 'loop' }
  /** It is a claim's turn to be launched. */
  | { kind: 'launch'; record: InstanceRecord }
  | { kind: MachineEvent; machine: Machine }
  | { kind: 'fault'; fault: Fault }
  | { kind: 'main-server-up' }
  /** Everybody knows the deadline and stops by itself. */
  | { kind: 'drain' }
  | { kind: 'power-off' }
  | { kind: 'published' };

/** `beat`, `part`, `empty` and `closed` count only at the time of the machine's own timer. */
export type MachineEvent =
  'running' | 'hello' | 'beat' | 'part' | 'empty' | 'closed' | 'terminated' | 'die' | 'ban' | 'awake' | 'free';

export interface SimState {
  readonly scenario: Scenario;
  readonly startMs: number;
  nowMs: number;
  readonly world: World;
  readonly work: Work;
  readonly cloud: CloudModel;
  readonly chance: Chance;
  readonly events: EventQueue<SimEvent>;
  /** Rows of all instances by `placeKey`, and the same in the order of the world. */
  readonly records: Map<number, InstanceRecord>;
  readonly ordered: InstanceRecord[];
  readonly machines: Machine[];
  readonly losses: Loss[];
  /** Those that were asked for chunks in vain, as `slot.epoch`. */
  readonly unwilling: Set<string>;
  /** Parts that the main server knows of and has not loaded. */
  readonly unloaded: Machine[];
  /** How many chunks each slot may own, as last worked out. */
  limits: { atMs: number; due: number; byTime: LimitsByTime | null } | null;
  /** When the balancer takes traffic; Infinity while there is none. */
  balancerReadyMs: number;
  /** Nobody answers a callback before then. */
  serverDownUntilMs: number;
  /** The newest epoch of each slot. */
  readonly latest: Map<number, InstanceRecord>;
  /** True while the publishing statement runs. */
  publishing: boolean;
  /** Products that had no outcome when publishing began. */
  unfinished: number;
  /** What happened, in words. */
  readonly tell: (text: string) => void;
  /** The same, once for each key. */
  readonly tellOnce: (text: string, key: string) => void;
  /** Looks at the world as soon as the loop may. */
  readonly wake: () => void;
  /** Not so soon: there are parts to load, which nothing waits for. */
  readonly wakeFor: (what: 'load') => void;
}

/** Sets one of the instance's timers; an earlier setting is void. */
export function setTimer(
  state: SimState,
  machine: Machine,
  kind: 'beat' | 'part' | 'empty' | 'closed',
  atMs: number,
): void {
  const mark = `${kind}Ms` as const;
  if (machine.timers[mark] === atMs) return;
  machine.timers[mark] = atMs;
  if (atMs < Infinity) state.events.add(atMs, { kind, machine });
}

export const isServerUp = (state: SimState): boolean => state.nowMs >= state.serverDownUntilMs;

export const isEnded = ({ world }: SimState): boolean => isRunEnd(world.run.phase);

/** One number for (slot, epoch); nobody is replaced so often. */
export const placeKey = (slot: number, epoch: number): number => slot * 10_000 + epoch;

/** A list of its own for each look: the rules remember sums by the list they were made of. */
export function refreshWorld(state: SimState): World {
  state.world.nowMs = state.nowMs;
  state.world.instances = state.ordered.slice();
  return state.world;
}

/** To read one instance's row. */
const ROW_MS = 0.2;

/** From one look at the world to the next one: as the loop's own pause, or what reading thousands of rows takes. */
export function roundMs({ world, ordered }: Pick<SimState, 'world' | 'ordered'>): number {
  const pauseMs = Math.min(250, Math.max(20, world.limits.heartbeatMs / 30));
  return Math.max(pauseMs, ordered.length * ROW_MS);
}
