/**
 * The process of a modelled instance: what it waits for comes to nothing when it dies, and later while it is frozen.
 */
import type { EventClock, Timer } from '../event-clock.ts';

export class Life {
  /** The machine is gone. */
  isDead = false;
  isFrozen = false;
  readonly #clock: EventClock;
  readonly #act: () => unknown;
  /** Number of the process: promises of an earlier one are dropped. */
  #process = 0;
  #upFromMs = -Infinity;
  /** What came while it was frozen. */
  #late: (() => void)[] = [];
  /** The next time to wake: of several only this one is not cancelled. */
  #timer: Timer | null = null;
  readonly #wake = (): unknown => {
    this.#timer = null;
    return this.#act();
  };

  /**
   * @param act does everything that is due; called when a timer ends; returns `settled` when no promise waits for it
   */
  constructor(clock: EventClock, act: () => unknown) {
    this.#clock = clock;
    this.#act = act;
  }

  now(): number {
    return this.#clock.now();
  }

  /** A process runs, and is not frozen. */
  get isRunning(): boolean {
    return !this.isDead && !this.isFrozen && this.now() >= this.#upFromMs;
  }

  /** The process ends here; the next one begins at that time. */
  restart(atMs: number): void {
    this.#process++;
    this.#upFromMs = atMs;
    this.#cancel();
    this.wakeAt(atMs);
  }

  end(): void {
    this.isDead = true;
    this.#process++;
    this.#cancel();
  }

  thaw(): void {
    this.isFrozen = false;
    for (const act of this.#late.splice(0)) act();
  }

  /** Wakes it at that time, unless it wakes sooner: then it sees what is due. */
  wakeAt(atMs: number): void {
    if (this.isDead || atMs === Infinity) return;
    if (this.#timer && !this.#timer.cancelled && this.#timer.atMs <= atMs) return;
    this.#cancel();
    this.#timer = this.#clock.at(atMs, this.#wake);
  }

  #cancel(): void {
    if (this.#timer) this.#timer.cancelled = true;
  }

  after(ms: number, act: () => void): void {
    const process = this.#process;
    this.#clock.at(this.now() + ms, () => this.#when(process, act));
  }

  /** `then` gets why it has failed, or null and the value. */
  settle<T>(promise: Promise<T>, then: (failure: unknown, value?: T) => void): void {
    const process = this.#process;
    promise.then(
      (value) => this.#when(process, () => then(null, value)),
      (error: unknown) => this.#when(process, () => then(error ?? new Error('failed'))),
    );
  }

  /** Does it unless this process has ended meanwhile; a frozen one goes on with it when it is thawed. */
  #when(process: number, act: () => void): void {
    if (process !== this.#process || this.isDead) return;
    if (this.isFrozen) this.#late.push(() => process === this.#process && act());
    else act();
  }
}
