/**
 * Sends a heartbeat every interval, and immediately when something changes. A change during a heartbeat goes into the
 * next one, sent right after. Replies without a valid signature of the run's key are ignored.
 */
import { backoffMs } from '../../shared/domain/backoff.ts';
import { describeError } from '../../shared/domain/errors.ts';
import { type Heartbeat, HEARTBEAT_PATH, type Orders, ordersSchema } from '../../shared/wire/callbacks.ts';
import type { MainServerClient, Reply } from './main-server-client.ts';
import { logDoubling, type Retry } from '../process/retry.ts';
import { SignalFlag } from '../process/signal-flag.ts';

export interface HeartbeatParts extends Retry {
  client: Pick<MainServerClient, 'sendSigned'>;
  describe: () => Heartbeat;
  /**
   * Carries out orders that have just arrived. May throw when they cannot be journalled; the main server then repeats
   * them.
   */
  follow: (orders: Orders, answered: AnsweredHeartbeat) => Promise<void>;
  intervalMs: number;
}

/** The heartbeat that orders answer. */
export interface AnsweredHeartbeat {
  message: Heartbeat;
  /** When it was sent, by both clocks. */
  wallMs: number;
  monotonicMs: number;
  /** From then until the answer. */
  roundTripMs: number;
}

export class HeartbeatLoop {
  readonly #parts: HeartbeatParts;
  readonly #wake = new SignalFlag();
  #failures = 0;

  constructor(parts: HeartbeatParts) {
    this.#parts = parts;
  }

  /** Something changed: send a heartbeat as soon as the current one has ended. */
  poke(): void {
    this.#wake.raise();
  }

  /** Runs until the signal aborts. */
  async run(stop: AbortSignal): Promise<void> {
    const { clock, random, log, intervalMs } = this.#parts;
    while (!stop.aborted) {
      const problem = await this.#speak();
      if (problem === null) {
        this.#failures = 0;
        await this.#wake.wait(clock, intervalMs, stop);
        continue;
      }
      if (stop.aborted) return;
      logDoubling(log, this.#failures, problem, 'heartbeat failed');
      // Changes do not shorten this wait: do not flood a main server that is failing.
      await clock.sleep(
        backoffMs(this.#failures++, { firstMs: Math.min(250, intervalMs), maxMs: intervalMs }, random.next()),
        stop,
      );
    }
  }

  /** Sends a heartbeat. Null when orders were received and carried out, otherwise what went wrong. */
  async #speak(): Promise<string | null> {
    const { client, describe, follow, clock } = this.#parts;
    let reply: Reply;
    const message = describe();
    const sent = { message, wallMs: clock.now(), monotonicMs: clock.monotonic() };
    try {
      reply = await client.sendSigned(HEARTBEAT_PATH, message);
    } catch (error) {
      return `no answer: ${describeError(error)}`;
    }
    if (reply.status !== 200) return `status ${reply.status}: ${reply.body.slice(0, 300)}`;
    if (!reply.authentic) return 'the reply is not signed by the run';
    try {
      await follow(ordersSchema.parse(JSON.parse(reply.body)), {
        ...sent,
        roundTripMs: clock.monotonic() - sent.monotonicMs,
      });
    } catch (error) {
      return `orders not carried out: ${describeError(error)}`;
    }
    return null;
  }
}
