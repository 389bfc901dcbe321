/** Observe, decide, act, sleep until something changes. The state is in the database: `resume` only starts it again. */
import { backoffMs } from '../../shared/domain/backoff.ts';
import { AppError, describeError } from '../../shared/domain/errors.ts';
import { isRunEnd } from '../../shared/domain/states.ts';
import { type Action, actionKey } from './model/actions.ts';
import { act, changesCloud } from './act/act.ts';
import type { LoopLink } from './callbacks/callbacks.ts';
import type { Core } from './model/core.ts';
import { decide } from './decide/decide.ts';
import type { Dispatcher } from './act/shares/dispatch.ts';
import { Observer } from './observe/observe.ts';
import { isSettled, leaveBehind } from './act/results/left-behind.ts';
import { powerOffAtMs } from './model/run-deadlines.ts';
import type { RegionState } from './model/regions.ts';
import type { World } from './model/world.ts';

/** A publish that fails this often will not recover on its own: a person must fix the cause and `resume`. */
const MAX_PUBLISH_FAILURES = 6;
/** Minimum pause before an action is repeated that changed nothing `decide` reads: each end of one wakes the loop. */
const REPEAT_MS = 250;
/** EC2 takes time to end a machine; the call is repeated only in case it was lost. */
const REPEAT_TERMINATE_MS = 10_000;

interface Failure {
  count: number;
  notBeforeMs: number;
}

export class ControlLoop implements LoopLink {
  readonly #core: Core;
  readonly #dispatcher: Dispatcher;
  readonly #observer: Observer;
  readonly #onWorld: (world: World) => void;
  readonly #underWay = new Set<string>();
  readonly #failures = new Map<string, Failure>();
  /** What was last carried out under each key, and when it ended. */
  readonly #done = new Map<string, { what: string; atMs: number }>();
  /** When the first delayed action is due. */
  #nextTryMs = Infinity;
  #world: World | null = null;
  #wake: AbortController = new AbortController();
  #fatal: unknown = null;

  constructor(core: Core, dispatcher: Dispatcher, onWorld: (world: World) => void) {
    this.#core = core;
    this.#dispatcher = dispatcher;
    this.#onWorld = onWorld;
    this.#observer = new Observer(core);
  }

  world(): World | null {
    return this.#world;
  }

  wake(): void {
    // Without a reason Node makes an exception with a stack each time.
    this.#wake.abort('woken');
  }

  /** Returns when the run has ended and nothing of it is left, or the signal aborts. Throws what no retry can fix. */
  async run(signal: AbortSignal): Promise<void> {
    const onAbort = (): void => this.wake();
    signal.addEventListener('abort', onAbort);
    try {
      while (!signal.aborted) {
        this.#wake = new AbortController();
        const world = await this.#tryObserve();
        if (this.#fatal) throw this.#fatal;
        if (world) {
          if (this.#isOver(world) && (await this.#tryLeave(world))) return;
          this.#start(world, decide(world), signal);
        }
        const seenMs = this.#core.clock.monotonic();
        await this.#core.clock.sleep(this.#pauseMs(world), this.#wake.signal);
        await this.#core.clock.sleep(seenMs + leastPauseMs(world) - this.#core.clock.monotonic(), signal);
      }
    } finally {
      signal.removeEventListener('abort', onAbort);
    }
  }

  async #tryObserve(): Promise<World | null> {
    try {
      const world = await this.#observer.observe();
      this.#world = world;
      this.#onWorld(world);
      return world;
    } catch (error) {
      if (isFatal(error)) throw error;
      this.#core.log.warn({ error: describeError(error) }, 'cannot read the state of the run; trying again');
      return null;
    }
  }

  /** Stores what of the run stays at AWS; false when that has to be tried again. */
  async #tryLeave(world: World): Promise<boolean> {
    try {
      await leaveBehind(this.#core, world);
      return true;
    } catch (error) {
      if (isFatal(error)) throw error;
      this.#core.log.warn({ error: describeError(error) }, 'cannot store what the run leaves behind; trying again');
      return false;
    }
  }

  #isOver(world: World): boolean {
    if (!isRunEnd(world.run.phase)) return false;
    // Not the observed value: an action that has failed since may have left something.
    const { processState } = this.#core;
    // What is left where AWS does not answer has had its alarm.
    const hasMore = ({ name, balancer, isOut }: RegionState): boolean => {
      const { balancerLeft, balancerMayRemain } = processState.region(name);
      return !isOut && balancerLeft === null && (balancer !== null || balancerMayRemain);
    };
    const left = world.regions.some(hasMore) || world.fleet.all.some((i) => !isSettled(world, i));
    if (!left) return this.#underWay.size === 0;
    // Long after the power-off, whatever EC2 still shows is for a person to look into. A clock that jumps is no wait.
    return world.nowMs > Math.max(powerOffAtMs(world.run), world.loopStartedAtMs) + world.limits.terminateMs;
  }

  #start(world: World, actions: readonly Action[], signal: AbortSignal): void {
    const now = this.#core.clock.monotonic();
    this.#nextTryMs = Infinity;
    for (const action of actions) {
      const key = actionKey(action);
      if (this.#underWay.has(key)) continue;
      const dueMs = this.#dueMs(world, action, key);
      if (dueMs > now) {
        this.#nextTryMs = Math.min(this.#nextTryMs, dueMs);
        continue;
      }
      this.#underWay.add(key);
      void this.#carryOut(world, action, key, signal);
    }
  }

  #dueMs(world: World, action: Action, key: string): number {
    const failedMs = this.#failures.get(key)?.notBeforeMs ?? 0;
    const soonestMs = action.kind === 'offer' ? Math.max(failedMs, this.#dispatcher.nextRoundMs) : failedMs;
    const last = this.#done.get(key);
    if (last?.what !== describe(world, action)) return soonestMs;
    if (action.kind === 'offer') return Math.max(soonestMs, this.#dispatcher.restUntilMs);
    return Math.max(soonestMs, last.atMs + (action.kind === 'terminate' ? REPEAT_TERMINATE_MS : REPEAT_MS));
  }

  async #carryOut(world: World, action: Action, key: string, signal: AbortSignal): Promise<void> {
    try {
      await act(this.#core, world, action, { dispatcher: this.#dispatcher, signal });
      if (changesCloud(action)) this.#observer.expectChange();
      this.#failures.delete(key);
      this.#done.set(key, { what: describe(world, action), atMs: this.#core.clock.monotonic() });
    } catch (error) {
      const count = (this.#failures.get(key)?.count ?? 0) + 1;
      this.#failures.set(key, {
        count,
        notBeforeMs: this.#core.clock.monotonic() + backoffMs(count - 1, { firstMs: 250, maxMs: 10_000 }),
      });
      this.#core.log.warn({ action: key, error: describeError(error), count }, 'an action failed; trying again');
      if (isFatal(error) || (action.kind === 'publish' && count >= MAX_PUBLISH_FAILURES)) this.#fatal = error;
    } finally {
      this.#underWay.delete(key);
      this.wake();
    }
  }

  /** The time until the next AWS poll or the next due action; callbacks and finished actions wake the loop earlier. */
  #pauseMs(world: World | null): number {
    const pause = Math.min(this.#observer.nextLookMs, this.#nextTryMs) - this.#core.clock.monotonic();
    const longest = world?.limits.heartbeatMs ?? 1_000;
    return Math.min(longest, Math.max(50, pause));
  }
}

/** Part of the minimum pause for each instance: a round reads and judges every one. */
const PAUSE_EACH_MS = 0.5;

/** Minimum pause, however often callbacks wake the loop of a large fleet. At most a tenth of a heartbeat. */
function leastPauseMs(world: World | null): number {
  if (world === null) return 0;
  const { heartbeatMs } = world.limits;
  const usual = Math.min(250, Math.max(20, heartbeatMs / 30));
  return Math.max(usual, Math.min(heartbeatMs / 10, world.fleet.latest.size * PAUSE_EACH_MS));
}

/** Two actions with the same text would do the same; an offer also depends on who can take it. */
function describe(world: World, action: Action): string {
  return JSON.stringify(action.kind === 'offer' ? [action, ...world.targets] : action);
}

/** Another main server holds the lock: going on would do harm. All else is retried until the run's own limits. */
function isFatal(error: unknown): boolean {
  return error instanceof AppError && error.code === 'lock-held';
}
