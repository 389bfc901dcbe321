/** A clock that jumps from one event to the next: nothing happens in between, so no time is spent on it. */
import { TimeHeap } from '../../../shared/domain/time-heap.ts';
import type { Clock } from '../../../shared/ports/clock.ts';

/** An event to come. `cancelled`: it will not happen. */
export interface Timer {
  readonly atMs: number;
  cancelled: boolean;
}

/** What happens. Returns `settled` when no promise waits for it. */
type Happening = () => unknown;

interface Entry extends Timer {
  order: number;
  run: Happening;
}

/** Immediates let signals and timers of this process through: one in 5,000 events costs nothing. */
const EVENTS_BETWEEN_TURNS = 5_000;

export class EventClock implements Clock {
  #nowMs: number;
  readonly #startMs: number;
  readonly #heap = new TimeHeap<Entry>();
  #added = 0;
  #taken = 0;
  /** Events before the last turn of Node's loop. */
  #turnedAt = 0;
  #held = 0;
  /** Nothing has begun since the last `settle`. */
  isSettled = false;

  constructor(startMs: number) {
    this.#nowMs = startMs;
    this.#startMs = startMs;
  }

  now(): number {
    return this.#nowMs;
  }

  monotonic(): number {
    return this.#nowMs - this.#startMs;
  }

  /** Events that have happened so far. */
  get events(): number {
    return this.#taken;
  }

  /** Calls `run` at that time; at once in the order of events when the time has passed. */
  at(atMs: number, run: Happening): Timer {
    const entry: Entry = { atMs: Math.max(this.#nowMs, atMs), order: this.#added++, cancelled: false, run };
    this.#heap.push(entry);
    return entry;
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    if (!(ms > 0) || signal?.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const wake = (): void => {
        timer.cancelled = true;
        signal?.removeEventListener('abort', wake);
        resolve();
      };
      const timer = this.at(this.#nowMs + ms, wake);
      signal?.addEventListener('abort', wake);
    });
  }

  /** Time stands still until this call, which waits for more than promises, has settled. */
  async hold<T>(call: Promise<T>): Promise<T> {
    this.#held++;
    try {
      return await call;
    } finally {
      this.#held--;
    }
  }

  /** Settles, jumps to the next event, makes it happen, and settles again; false when no event is left. */
  async step(): Promise<boolean> {
    // What was begun between two steps may be due before the next event.
    await this.settle();
    const isMore = this.next();
    if (isMore) await this.settle();
    return isMore;
  }

  /**
   * Jumps to the next event and makes it happen; false when none is left. What follows from it runs with the next
   * `settle`.
   */
  next(): boolean {
    let next = this.#heap.pop();
    while (next?.cancelled) next = this.#heap.pop();
    if (next === undefined) return false;
    this.#taken++;
    this.#nowMs = next.atMs;
    this.isSettled = next.run() === 'settled' && this.isSettled;
    return true;
  }

  /** Lets everything run that can without time passing: what was begun between two events, such as a main server. */
  settle(): Promise<void> {
    // Node takes the next tick when its queue of promises is empty, and all that a modelled world waits for are
    // promises.
    const isTurn = this.#taken - this.#turnedAt >= EVENTS_BETWEEN_TURNS;
    if (isTurn) this.#turnedAt = this.#taken;
    this.isSettled = true;
    return new Promise((resolve) => {
      const look = (): void => void (this.#held > 0 ? setImmediate(look) : resolve());
      if (isTurn) setImmediate(look);
      else process.nextTick(look);
    });
  }
}
