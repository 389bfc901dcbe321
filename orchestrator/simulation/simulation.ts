/** One simulated run, from its first claim to its last terminated instance, event by event on a virtual clock. */
import { canMoveRun } from '../../shared/domain/states.ts';
import type { Random } from '../../shared/ports/random.ts';
import { drainAtMs, powerOffAtMs } from '../control/model/run-deadlines.ts';
import { Chance } from './chance.ts';
import { CloudModel } from './cloud-model.ts';
import { ban, die, freeze, onMachine, slowDown } from './crawling.ts';
import { endOfRun } from './ending.ts';
import { EventQueue } from './event-queue.ts';
import { START_MS, freshWorld } from './fresh-world.ts';
import type { Machine } from './machine.ts';
import { MainServer } from './main-server.ts';
import type { SimResult, Tale } from './result.ts';
import { resultOf } from './result.ts';
import type { Fault, Scenario } from './scenario.ts';
import type { SimEvent, SimState } from './state.ts';
import { isServerUp } from './state.ts';
import { closeShard, stopProcess } from './timers.ts';
import { Work } from './work.ts';

export interface SimulationOptions {
  /** Writes down what happens, in words. */
  tells?: boolean;
  /** Called after every event, for checks; slows it down. */
  onStep?: (state: SimState) => void;
}

/** Far above what any run takes: a simulation that gets there does not end by itself. */
const MAX_EVENTS = 200_000_000;

/** Runs the scenario to its end. The same scenario and chance give the same result. Throws when the run does not come to an end. */
export function simulate(scenario: Scenario, random: Random, options: SimulationOptions = {}): SimResult {
  const server = new MainServer();
  const tale: Tale[] = [];
  const state = freshState(scenario, random, server, tale, options.tells === true);
  scheduleKnown(state);
  server.wake(state);
  const lastMs = powerOffAtMs(state.world.run) + 24 * 3_600_000;
  let steps = 0;
  while (!server.isOver(state)) {
    if (state.events.size === 0 || state.events.nextMs > lastMs || ++steps > MAX_EVENTS)
      throw new Error(`the simulated run does not end: it is ${state.world.run.phase}`);
    state.nowMs = state.events.nextMs;
    happen(state, server, state.events.take());
    options.onStep?.(state);
  }
  return resultOf(state, tale, { events: steps, decisions: server.decisions });
}

function freshState(scenario: Scenario, random: Random, server: MainServer, tale: Tale[], tells: boolean): SimState {
  const { plan, input, outside } = scenario;
  const work = new Work(input.products, plan.chunkSize, outside.goneShare);
  const told = new Set<string>();
  const state: SimState = {
    scenario,
    startMs: START_MS,
    nowMs: START_MS,
    world: freshWorld(scenario, work),
    work,
    cloud: new CloudModel(scenario, START_MS),
    chance: new Chance(scenario, random),
    events: new EventQueue<SimEvent>(),
    records: new Map(),
    ordered: [],
    latest: new Map(),
    machines: [],
    losses: [],
    unwilling: new Set(),
    unloaded: [],
    limits: null,
    balancerReadyMs: Infinity,
    serverDownUntilMs: -Infinity,
    publishing: false,
    unfinished: 0,
    tell: (text) => void (tells && tale.push({ atMs: state.nowMs - START_MS, text })),
    tellOnce: (text, key) => {
      if (told.has(key)) return;
      told.add(key);
      state.tell(text);
    },
    wake: () => server.wake(state),
    wakeFor: () => server.wakeToLoad(state),
  };
  return state;
}

/** What is known from the start: the deadline's moments and the faults of the scenario. */
function scheduleKnown(state: SimState): void {
  const { run } = state.world;
  state.events.add(drainAtMs(run), { kind: 'drain' });
  state.events.add(powerOffAtMs(run), { kind: 'power-off' });
  for (const fault of state.scenario.faults) state.events.add(state.startMs + fault.atMs, { kind: 'fault', fault });
}

function happen(state: SimState, server: MainServer, event: SimEvent): void {
  switch (event.kind) {
    case 'loop':
      if (state.nowMs === server.loopAtMs) server.loop(state);
      return;
    case 'launch':
      if (isServerUp(state)) server.launching.launch(state, event.record);
      state.wake();
      return;
    case 'fault':
      strike(state, event.fault);
      return;
    case 'main-server-up':
      state.tell('a main server takes the run up again');
      server.restart(state);
      return;
    case 'drain':
      for (const machine of state.machines) if (machine.isUp(state.nowMs)) closeShard(state, machine);
      state.wake();
      return;
    case 'power-off':
      for (const machine of state.machines) {
        stopProcess(state, machine);
        state.cloud.change(machine, 'terminated', state.nowMs);
      }
      state.wake();
      return;
    case 'published':
      publish(state);
      return;
    default:
      onMachine(state, event.kind, event.machine);
  }
}

function publish(state: SimState): void {
  const { run } = state.world;
  const end = endOfRun(state);
  if (!canMoveRun(run.phase, end.state)) throw new Error(`a run cannot move from ${run.phase} to ${end.state}`);
  run.phase = end.state;
  run.reason = end.reason;
  run.exitCode = end.exitCode;
  run.finishedAtMs = state.nowMs;
  state.tell(`the rows are in the table: the run is ${end.state}${end.reason === null ? '' : ` (${end.reason})`}`);
  state.wake();
}

/** Something that the scenario says happens now. */
function strike(state: SimState, fault: Fault): void {
  switch (fault.kind) {
    case 'kill':
      for (const machine of victims(state, fault.whom)) die(state, machine, fault.silent);
      return;
    case 'freeze':
      for (const machine of victims(state, fault.whom)) freeze(state, machine, fault.forMs);
      return;
    case 'ban':
      for (const machine of victims(state, fault.whom)) ban(state, machine);
      return;
    case 'slow':
      for (const machine of victims(state, fault.whom)) slowDown(state, machine, fault.factor);
      return;
    case 'main-server-down':
      state.tell('the main server is gone');
      state.serverDownUntilMs = state.nowMs + fault.forMs;
      state.events.add(state.serverDownUntilMs, { kind: 'main-server-up' });
      return;
    case 'dry':
      state.tell('EC2 has no capacity');
      return;
    case 'throttle':
      state.tell('EC2 throttles every launch');
  }
}

function victims({ machines }: SimState, whom: { count: number } | 'all'): Machine[] {
  const crawling = machines.filter((machine) => machine.isCrawling);
  return whom === 'all' ? crawling : crawling.slice(0, whom.count);
}
