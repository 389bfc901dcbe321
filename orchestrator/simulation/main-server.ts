/**
 * The simulated main server: looks at AWS at its own pace, lets the real `decide` decide, and has it carried out. As
 * control/loop.ts and control/observe/observe.ts, without their promises.
 */
import { decide } from '../control/decide/decide.ts';
import { forecastRun } from '../control/sharing/forecast.ts';
import { ProgressWatch } from '../control/observe/progress-watch.ts';
import { powerOffAtMs } from '../control/model/run-deadlines.ts';
import { act } from './acting.ts';
import { Dispatching } from './dispatching.ts';
import { Launching } from './launching.ts';
import type { SimState } from './state.ts';
import { isEnded, isServerUp, refreshWorld, roundMs } from './state.ts';

/** As control/observe/observe.ts: soon after AWS was asked for something, then each wait half as long again. */
const SOONEST_MS = 250;
const WAIT_FACTOR = 1.5;

export class MainServer {
  readonly launching = new Launching();
  readonly #dispatching = new Dispatching();
  #progress = new ProgressWatch();
  #nextLookMs = 0;
  #waitMs = SOONEST_MS;
  #lastLoopMs = -Infinity;
  /** When the loop runs next; an event of another time is void. */
  loopAtMs = Infinity;
  /** How often it has decided. */
  decisions = 0;

  /** Something has changed: as soon as the loop may look again. */
  wake(state: SimState): void {
    this.#runAt(state, Math.max(state.nowMs, this.#lastLoopMs + roundMs(state)));
  }

  /** Parts are loaded with the next look at AWS: nothing but the end of the run waits for them. */
  wakeToLoad(state: SimState): void {
    this.#runAt(state, state.nowMs + slowestLookMs(state));
  }

  #runAt(state: SimState, atMs: number): void {
    if (atMs >= this.loopAtMs) return;
    this.loopAtMs = atMs;
    state.events.add(atMs, { kind: 'loop' });
  }

  /** Takes the run up again after a while without a main server. */
  restart(state: SimState): void {
    state.world.loopStartedAtMs = state.nowMs;
    state.world.cloud = null;
    state.world.balancerActive = false;
    state.world.targets = new Map();
    state.world.requestSeenAtMs = null;
    state.world.lastTransferAtMs = null;
    state.world.forecast = null;
    this.launching.forget();
    this.#progress = new ProgressWatch();
    this.#nextLookMs = 0;
    this.#waitMs = SOONEST_MS;
    this.wake(state);
  }

  /** One round: look, decide, act. */
  loop(state: SimState): void {
    this.loopAtMs = Infinity;
    if (!isServerUp(state) || this.isOver(state)) return;
    const { nowMs, world } = state;
    this.#lastLoopMs = nowMs;
    if (nowMs >= this.#nextLookMs) this.#look(state);
    if (world.run.request !== null) world.requestSeenAtMs ??= nowMs;
    refreshWorld(state);
    if (world.forecast === null || nowMs - world.forecast.atMs >= world.limits.heartbeatMs)
      world.forecast = forecastRun(world, state.unwilling);
    world.stall = this.#progress.look(world, nowMs);
    const isLoading = world.run.phase === 'loading';
    let changed = false;
    this.decisions++;
    for (const action of decide(world)) {
      if (action.kind === 'offer') {
        const dueMs = this.#dispatching.dueMs(action.limitChunks, world.targets);
        if (dueMs > nowMs) {
          this.#runAt(state, dueMs);
          continue;
        }
      }
      if (act(state, { dispatching: this.#dispatching, launching: this.launching }, action)) this.#expectChange(nowMs);
      changed ||= action.kind !== 'offer' && action.kind !== 'launch' && (action.kind !== 'load' || isLoading);
    }
    // What was done may ask for more; what waits for AWS or for an answer brings its own event.
    if (changed) this.wake(state);
    this.#runAt(state, nowMs + Math.min(world.limits.heartbeatMs, Math.max(50, this.#nextLookMs - nowMs)));
  }

  #expectChange(nowMs: number): void {
    this.#waitMs = SOONEST_MS;
    this.#nextLookMs = Math.min(this.#nextLookMs, nowMs + SOONEST_MS);
  }

  #look(state: SimState): void {
    const { world, cloud, nowMs } = state;
    this.#nextLookMs = nowMs + this.#waitMs;
    this.#waitMs = Math.min(slowestLookMs(state), this.#waitMs * WAIT_FACTOR);
    if (cloud.machines.size > 0 || state.records.size > 0)
      world.cloud = { instances: cloud.list(nowMs), seenAtMs: nowMs };
    if (world.run.balancer === null) {
      world.balancerActive = false;
      world.targets = new Map();
      return;
    }
    world.balancerActive = nowMs >= state.balancerReadyMs;
    world.targets = cloud.health(nowMs);
  }

  /** The run has ended and nothing of it is left, or nothing that a main server could do anything about. */
  isOver(state: SimState): boolean {
    if (!isEnded(state)) return false;
    const { world, nowMs } = state;
    const left = state.ordered.some((r) => r.phase !== 'terminated') || world.run.balancer !== null;
    return !left || nowMs > powerOffAtMs(world.run) + world.limits.terminateMs;
  }
}

const slowestLookMs = ({ world }: SimState): number => Math.min(5_000, Math.max(500, world.limits.heartbeatMs / 3));
