/**
 * Sends waiting chunks through the load balancers, in turn by their healthy instances. A POST is only an offer: a 202
 * means that some instance has journalled the chunk and will claim it in its next heartbeat; until then the chunk is
 * not offered again. The same holds without an answer: an instance may hold the chunk. Only a failure to connect proves
 * that no instance does.
 */
import { describeError } from '../../../../shared/domain/errors.ts';
import type { Core } from '../../model/core.ts';
import type { OfferResult } from '../../cloud/offers.ts';
import type { OpenChunk, RunRecord } from '../../model/stores.ts';
import { type OfferTarget, OfferTurns } from '../../decide/shares/offer-targets.ts';

/** Enough to keep a dozen instances and the balancer busy; more would only queue. */
const CONCURRENCY = 8;
const BATCH = 64;
/** Pause between two rounds of offers; doubled for each round that all instances refused, up to a heartbeat. */
const REST_MS = 250;
/**
 * Pause for each refusal of a round: where most instances are full, the balancer needs many offers to hit one with
 * room. Without it a fleet of 300 that boots got 300,000 offers for 5,600 chunks.
 */
const REST_PER_REFUSAL_MS = 5;

interface OfferRound {
  heartbeatMs: number;
  /** Where offers go; never empty. */
  balancers: readonly OfferTarget[];
  /** Instances behind them. */
  targets: number;
  signal: AbortSignal;
}

export class Dispatcher {
  readonly #core: Core;
  /** Chunks in flight or recently offered, and until when they are not offered again. */
  readonly #offeredUntil = new Map<string, number>();
  /** Chunks dropped while an offer of them was on its way: the heartbeat may overtake the 202. */
  readonly #dropped = new Set<string>();
  /**
   * The time before which another pump would do the same as the last one, unless the share or the targets have changed.
   */
  restUntilMs = 0;
  /** No round begins before, whatever has changed. */
  nextRoundMs = 0;
  readonly #turns = new OfferTurns();
  /** Balancers that could not be reached, and until when offers go to the others. */
  readonly #avoidedUntil = new Map<string, number>();
  #fruitless = 0;
  #refusalsOfRound = 0;
  /** Offers in a row without an answer, and what was last logged about them. */
  #silent = { count: 0, message: '' };

  constructor(core: Core) {
    this.#core = core;
  }

  /** Offers waiting chunks until none is left, all instances refuse, or the signal aborts. */
  async pump(run: RunRecord, share: number, round: OfferRound): Promise<void> {
    this.restUntilMs = 0;
    this.#refusalsOfRound = 0;
    const refused = await this.#offerAll(run, share, round);
    this.#fruitless = refused ? this.#fruitless + 1 : 0;
    const restMs = Math.min(round.heartbeatMs, REST_MS * 2 ** Math.max(0, this.#fruitless - 1));
    const now = this.#core.clock.monotonic();
    this.restUntilMs = now + restMs;
    this.nextRoundMs = now + Math.min(round.heartbeatMs, this.#refusalsOfRound * REST_PER_REFUSAL_MS);
  }

  /** True when it ended because all instances refused. */
  async #offerAll(run: RunRecord, share: number, round: OfferRound): Promise<boolean> {
    const { heartbeatMs, balancers, targets, signal } = round;
    const core = this.#core;
    // One round robin reaches every target once; a few more offers cover the balancer's own nodes.
    const patience = targets + CONCURRENCY;
    let refusals = 0;
    const now = core.clock.monotonic();
    const usual = balancers.filter(({ url }) => (this.#avoidedUntil.get(url) ?? -Infinity) <= now);
    /** A second offer to one that cannot be reached would wait for the same time-out. */
    let reachable = usual.length === 0 ? balancers : usual;
    // Shares may have shrunk since: then taken chunks are dropped again, and only another observation helps.
    const taken = new Set<string>();
    this.#forgetOld();
    while (!signal.aborted) {
      const chunks = await core.work.waiting(BATCH, this.#offeredUntil);
      if (chunks.length === 0) return false;
      const queue = [...chunks];
      const offerNext = async (): Promise<void> => {
        for (let chunk = queue.shift(); chunk && refusals < patience && !signal.aborted; chunk = queue.shift()) {
          const target = this.#turns.next(reachable);
          if (target === undefined) return;
          const end = await this.#offer(run, { chunk, share }, target.url, heartbeatMs);
          if (end === 'unreachable') {
            reachable = reachable.filter((t) => t !== target);
            this.#avoidedUntil.set(target.url, core.clock.monotonic() + heartbeatMs);
            continue;
          }
          if (end === 'refused') this.#refusalsOfRound++;
          refusals = end === 'taken' && !taken.has(chunk.id) ? 0 : refusals + 1;
          if (end === 'taken') taken.add(chunk.id);
        }
      };
      await Promise.all(Array.from({ length: Math.min(CONCURRENCY, queue.length) }, offerNext));
      if (reachable.length === 0 || refusals >= patience) return true;
    }
    return false;
  }

  /** `taken`: an instance has it, or may have it. */
  async #offer(
    run: RunRecord,
    { chunk, share }: { chunk: OpenChunk; share: number },
    url: string,
    heartbeatMs: number,
  ): Promise<'taken' | 'refused' | 'unreachable'> {
    const core = this.#core;
    core.processState.firstOfferMs ??= core.clock.now();
    this.#offeredUntil.set(chunk.id, Infinity);
    this.#dropped.delete(chunk.id);
    const offer = { chunk: chunk.id, share, products: chunk.products };
    // An exception proves nothing about where the chunk is.
    const unknown = (error: unknown): OfferResult => ({ kind: 'unknown', message: describeError(error) });
    const result = await core.offers.send(url, run, offer).catch(unknown);
    this.#noteAnswer(url, result);
    switch (result.kind) {
      case 'taken':
      case 'unknown':
        this.#hold(chunk.id, heartbeatMs);
        return 'taken';
      case 'unreachable':
        this.#offeredUntil.delete(chunk.id);
        return 'unreachable';
      case 'refused':
      case 'not-ready':
        this.#offeredUntil.delete(chunk.id);
        return 'refused';
      case 'invalid':
        this.#offeredUntil.delete(chunk.id);
        await core.alarm(`an instance rejects chunk ${chunk.id} as invalid: ${result.message}`);
        return 'refused';
    }
  }

  /** Keeps since when no offer was answered; logs it when the message changes, and at each doubling of the count. */
  #noteAnswer(url: string, result: OfferResult): void {
    const { processState, clock, log } = this.#core;
    if (result.kind !== 'unreachable' && result.kind !== 'unknown') {
      processState.unansweredOffers = null;
      this.#silent = { count: 0, message: '' };
      return;
    }
    const { kind, message } = result;
    const sinceMs = processState.unansweredOffers?.sinceMs ?? clock.now();
    processState.unansweredOffers = { sinceMs, url, kind, message };
    const count = message === this.#silent.message ? this.#silent.count + 1 : 1;
    this.#silent = { count, message };
    if ((count & (count - 1)) === 0)
      log.warn(
        { url, message, count },
        kind === 'unreachable'
          ? 'the load balancer cannot be reached: no offer was delivered'
          : 'no answer to an offer: an instance may hold the chunk, so it is not offered again for a while',
      );
  }

  #hold(id: string, heartbeatMs: number): void {
    // Longer than a heartbeat and its reply may take: the grant normally comes within milliseconds.
    const holdMs = 2 * heartbeatMs + 5_000;
    if (this.#dropped.delete(id)) this.#offeredUntil.delete(id);
    else this.#offeredUntil.set(id, this.#core.clock.monotonic() + holdMs);
  }

  #forgetOld(): void {
    const now = this.#core.clock.monotonic();
    for (const [id, until] of this.#offeredUntil) if (until <= now) this.#offeredUntil.delete(id);
  }

  /** Chunks that an instance was ordered to drop: they may be offered again at once. */
  release(chunkIds: readonly string[]): void {
    if (chunkIds.length > 0) this.restUntilMs = 0;
    for (const id of chunkIds) {
      if (this.#offeredUntil.get(id) === Infinity) this.#dropped.add(id);
      else this.#offeredUntil.delete(id);
    }
  }
}
