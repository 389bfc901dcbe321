/**
 * Keeps the pace of one address: records the last request and computes when the next one may start. Uses the monotonic
 * clock.
 */
import { nextStartMs, type PacedRequest } from '../../shared/domain/pacing.ts';
import type { Clock } from '../../shared/ports/clock.ts';

/**
 * Number of recent answers whose minimum is used. More of them find a lower minimum where answer times vary, so every
 * request looks later; and one answer from a cache delays that many requests.
 */
const RECENT_ANSWERS = 16;

/** Minimum number of answers to compare with: the first requests of a machine that has just started may all be late. */
const FEW_ANSWERS = 4;

export class Pacer {
  readonly #clock: Clock;
  readonly #intervalMs: () => number;
  #startedMs: number | null = null;
  #firstByteMs: number | null = null;
  #last: PacedRequest | null = null;
  /** Times from head to first byte by kind of answer, oldest first. */
  readonly #recent = new Map<string, number[]>();

  /**
   * @param intervalMs read at each wait: a changed pace counts from the last start, whatever the earlier wait was for
   * @param resumed an earlier process sent requests from this address. The arrival time of the last one is unknown, so
   * it counts as abandoned now.
   */
  constructor(clock: Clock, intervalMs: () => number, resumed: boolean) {
    this.#clock = clock;
    this.#intervalMs = intervalMs;
    if (resumed) {
      this.requestStarted();
      this.requestEnded(null);
    }
  }

  /** Milliseconds until the next request may start; 0 when it may start now. Call between requests. */
  waitMs(): number {
    if (this.#last === null) return 0;
    return Math.max(0, nextStartMs(this.#last, this.#intervalMs()) - this.#clock.monotonic());
  }

  /** When the request after the one under way may start at the earliest, on the monotonic clock. */
  turnMs(): number {
    return (this.#startedMs ?? this.#clock.monotonic()) + this.#intervalMs();
  }

  /** The head of a request is being written to the socket; or an attempt that sent nothing has ended. */
  requestStarted(): void {
    this.#startedMs = this.#clock.monotonic();
    this.#firstByteMs = null;
  }

  /** The first byte of its reply has arrived. */
  replyStarted(): void {
    this.#firstByteMs = this.#clock.monotonic();
  }

  /**
   * The request has ended; without a first byte it counts as arrived only now. `kind`: the answers to compare with;
   * null for none.
   */
  requestEnded(kind: string | null): void {
    const endedMs = this.#clock.monotonic();
    const startedMs = this.#startedMs ?? endedMs;
    const answeredMs = this.#firstByteMs ?? endedMs;
    const isAnswered = this.#firstByteMs !== null && kind !== null;
    const fastestMs = isAnswered ? this.#compare(kind, answeredMs - startedMs) : 0;
    this.#last = { startedMs, answeredMs, fastestMs };
  }

  /** The fastest of the recent answers of this kind, including this one; 0 while there are too few. */
  #compare(kind: string, answerMs: number): number {
    const earlier = this.#recent.get(kind) ?? [];
    this.#recent.set(kind, [...earlier, answerMs].slice(-RECENT_ANSWERS));
    return earlier.length < FEW_ANSWERS ? 0 : Math.min(answerMs, ...earlier);
  }
}

const KEPT = 101;

/** The median time of the last pages, for the main server's forecast. */
export class PageTimes {
  readonly #times: number[] = [];
  #next = 0;

  add(ms: number): void {
    this.#times[this.#next] = ms;
    this.#next = (this.#next + 1) % KEPT;
  }

  /** Milliseconds; null before the first page. */
  median(): number | null {
    return this.#times.length === 0 ? null : Math.round(median(this.#times) * 10) / 10;
  }
}

/** The upper median; 0 without any value. */
export function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[values.length >> 1] ?? 0;
}
