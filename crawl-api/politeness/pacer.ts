/** Keeps the pace of one address: remembers the last request and says when the next one may start. Its clock is monotonic. */
import type { PacedRequest } from '../../shared/domain/pacing.ts';
import { nextStartMs } from '../../shared/domain/pacing.ts';
import type { Clock } from '../../shared/ports/clock.ts';

/**
 * Answers among which the fastest one is looked for. More of them find a faster one where answers vary, so every request looks later;
 * and one answer from a cache delays that many requests.
 */
const RECENT_ANSWERS = 16;

/** Answers before which the fastest one says nothing: the first requests of a machine that has just started may all be late. */
const FEW_ANSWERS = 4;

export class Pacer {
  readonly #clock: Clock;
  readonly #intervalMs: () => number;
  #startedMs: number | null = null;
  #firstByteMs: number | null = null;
  /** The last request, once it is over. */
  #last: PacedRequest | null = null;
  /** Times from head to first byte by kind of answer, the oldest first. */
  readonly #recent = new Map<string, number[]>();

  /**
   * @param intervalMs asked for at each wait: a pace that changes counts from the last start, whatever was waited for before
   * @param resumed an earlier process on this address sent requests. When the last of them arrived is not known: it counts as
   * given up now.
   */
  constructor(clock: Clock, intervalMs: () => number, resumed: boolean) {
    this.#clock = clock;
    this.#intervalMs = intervalMs;
    if (resumed) {
      this.requestStarted();
      this.requestEnded(null);
    }
  }

  /** Milliseconds until the next request may start; 0 when it may start now. Asked between requests. */
  waitMs(): number {
    if (this.#last === null) return 0;
    return Math.max(0, nextStartMs(this.#last, this.#intervalMs()) - this.#clock.monotonic());
  }

  /** The head of a request is being written to the socket; or a try that sent nothing is over. */
  requestStarted(): void {
    this.#startedMs = this.#clock.monotonic();
    this.#firstByteMs = null;
  }

  /** The first byte of its reply has come. */
  replyStarted(): void {
    this.#firstByteMs = this.#clock.monotonic();
  }

  /**
   * The request is over. Without a first byte it counts as arrived only now.
   *
   * @param kind what the answer is compared with: a site redirects or refuses faster than it makes a page. Null: with nothing
   */
  requestEnded(kind: string | null): void {
    const endedMs = this.#clock.monotonic();
    const startedMs = this.#startedMs ?? endedMs;
    const answeredMs = this.#firstByteMs ?? endedMs;
    const isAnswered = this.#firstByteMs !== null && kind !== null;
    const fastestMs = isAnswered ? this.#compare(kind, answeredMs - startedMs) : 0;
    this.#last = { startedMs, answeredMs, fastestMs };
  }

  /** The fastest of the recent answers of this kind, this one among them; 0 while there are few to compare with. */
  #compare(kind: string, answerMs: number): number {
    const earlier = this.#recent.get(kind) ?? [];
    this.#recent.set(kind, [...earlier, answerMs].slice(-RECENT_ANSWERS));
    return earlier.length < FEW_ANSWERS ? 0 : Math.min(answerMs, ...earlier);
  }
}
