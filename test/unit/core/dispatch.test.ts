import { describe, expect, it } from 'vitest';
import { VirtualClock } from '../../support/virtual-clock.ts';
import type { Offer } from '../../../shared/wire/instance-api.ts';
import type { OfferResult } from '../../../orchestrator/core/cloud/offers.ts';
import { Dispatcher } from '../../../orchestrator/core/act/shares/dispatch.ts';
import type { WorkStore } from '../../../orchestrator/core/model/stores.ts';
import { START_MS, aPlan, aRun } from './builders.ts';
import { aCore } from './fake-core.ts';

const HEARTBEAT_MS = 500;
/** How long an offered chunk is withheld: two heartbeats and five seconds. */
const HOLD_MS = 6_000;
const TARGETS = 3;
const CONCURRENCY = 8;

const taken = (chunk: string): OfferResult => ({
  kind: 'taken',
  receipt: { chunk, run: 'r', slot: 0, epoch: 1, instanceId: 'i-1', held: 1 },
});
const refused: OfferResult = { kind: 'refused', refusal: { refused: 'share', room: 0 } };
const unknown: OfferResult = { kind: 'unknown', message: 'time-out' };
const notReady: OfferResult = { kind: 'not-ready', message: 'HTTP 503' };
const unreachable: OfferResult = { kind: 'unreachable', message: 'ENOTFOUND' };
const invalid: OfferResult = { kind: 'invalid', message: 'HTTP 400' };

/** Chunks `1-1`, `2-1` … that wait until the test removes them from `waiting`. */
function stage(chunks: number, answer: (chunk: string) => OfferResult | Promise<OfferResult> = taken) {
  const clock = new VirtualClock(START_MS);
  const waiting = Array.from({ length: chunks }, (_, i) => `${i + 1}-1`);
  const offers: Offer[] = [];
  const flow = { underWay: 0, most: 0 };
  const work = {
    waiting: (limit: number, except: ReadonlySet<string>) =>
      Promise.resolve(
        waiting
          .filter((id) => !except.has(id))
          .slice(0, limit)
          .map((id) => ({ id, products: [{ n: 1, id: 'p1' }] })),
      ),
  } as Partial<WorkStore> as WorkStore;
  const core = aCore({
    clock,
    work,
    offers: {
      async send(_url, _run, offer) {
        offers.push(offer);
        flow.most = Math.max(flow.most, ++flow.underWay);
        try {
          return await answer(offer.chunk);
        } finally {
          flow.underWay--;
        }
      },
    },
  });
  const dispatcher = new Dispatcher(core);
  const abort = new AbortController();
  const pump = (limitChunks = 4): Promise<void> =>
    dispatcher.pump(aRun({ plan: aPlan({ chunkSize: 5 }) }), limitChunks * 5, {
      heartbeatMs: HEARTBEAT_MS,
      balancers: [{ url: 'http://127.0.0.1:2', healthy: TARGETS }],
      targets: TARGETS,
      signal: abort.signal,
    });
  /** Pumps once and returns the offered chunks. */
  const pumped = async (): Promise<string[]> => {
    const before = offers.length;
    await pump();
    return offers.slice(before).map((o) => o.chunk);
  };
  return { clock, waiting, offers, flow, core, dispatcher, abort, pump, pumped };
}

describe('Dispatcher', () => {
  it('offers every waiting chunk once, in order, with the share of one slot', async () => {
    const { pump, offers, core } = stage(200);
    await pump(4);
    expect(offers.map((o) => o.chunk)).toEqual(Array.from({ length: 200 }, (_, i) => `${i + 1}-1`));
    expect(offers.every((o) => o.share === 20)).toBe(true);
    expect(core.processState.firstOfferMs).toBe(START_MS);
  });

  it.each([
    ['refuses', refused],
    ['is not ready', notReady],
    ['rejects the offer as invalid', invalid],
  ])('stops soon when every instance %s, and tries again in the next round', async (_what, result) => {
    const { pump, offers } = stage(200, () => result);
    await pump();
    // Every target received an offer; beyond that only calls already in flight.
    expect(offers.length).toBeGreaterThanOrEqual(TARGETS);
    expect(offers.length).toBeLessThan(TARGETS + 2 * CONCURRENCY);
    const first = offers.length;
    await pump();
    expect(offers.length).toBeGreaterThan(first);
  });

  it('stops when the balancer is unreachable, records since when, and retries the same chunks', async () => {
    let answer: OfferResult = unreachable;
    const { clock, pumped, core } = stage(200, () => answer);
    const first = await pumped();
    expect(first.length).toBeLessThanOrEqual(CONCURRENCY);
    expect(core.processState.unansweredOffers).toMatchObject({
      sinceMs: START_MS,
      kind: 'unreachable',
      message: 'ENOTFOUND',
    });
    await clock.advance(1_000);
    expect(await pumped()).toEqual(first);
    expect(core.processState.unansweredOffers).toMatchObject({ sinceMs: START_MS });
    answer = refused;
    await pumped();
    expect(core.processState.unansweredOffers).toBeNull();
  });

  it('logs unanswered offers when the message changes and at each doubling of their number', async () => {
    const { clock, pump, core } = stage(1, () => unreachable);
    let lines = 0;
    core.log.warn = () => void lines++;
    for (let i = 0; i < 100; i++) {
      await pump();
      await clock.advance(HEARTBEAT_MS);
    }
    expect(lines).toBe(7);
  });

  it('tries every target again after an offer was taken', async () => {
    // Three of four refuse: never enough in a row to stop.
    let calls = 0;
    const { pump, offers } = stage(40, (chunk) => (++calls % 4 === 0 ? taken(chunk) : refused));
    await pump();
    expect(new Set(offers.map((o) => o.chunk)).size).toBe(40);
  });

  it('pauses the longer the more of its offers were refused, at most a heartbeat', async () => {
    const full = stage(20, () => refused);
    await full.pump();
    const refusals = full.offers.length;
    expect(full.dispatcher.nextRoundMs - full.clock.monotonic()).toBe(5 * refusals);
    let offered = 0;
    const crowded = stage(60, (chunk) => (++offered % 6 === 0 ? taken(chunk) : refused));
    await crowded.pump();
    expect(crowded.offers.length).toBeGreaterThan(300);
    expect(crowded.dispatcher.nextRoundMs - crowded.clock.monotonic()).toBe(HEARTBEAT_MS);
  });

  it('raises an alarm when an instance rejects an offer as invalid', async () => {
    const { pump, core } = stage(1, () => invalid);
    await pump();
    expect(core.alarms[0]).toContain('1-1');
  });

  it.each([
    ['was taken', taken],
    ['got no answer', () => unknown],
  ])('does not offer a chunk again that %s until the hold has expired', async (_what, answer) => {
    const { clock, pumped } = stage(3, answer);
    expect(await pumped()).toEqual(['1-1', '2-1', '3-1']);
    expect(await pumped()).toEqual([]);
    await clock.advance(HOLD_MS - 1);
    expect(await pumped()).toEqual([]);
    await clock.advance(1);
    expect(await pumped()).toEqual(['1-1', '2-1', '3-1']);
  });

  it('offers the next generation of a chunk while the previous one is withheld', async () => {
    const { waiting, pumped } = stage(1);
    expect(await pumped()).toEqual(['1-1']);
    waiting[0] = '1-2';
    expect(await pumped()).toEqual(['1-2']);
  });

  it('immediately offers a chunk again that an instance was ordered to drop', async () => {
    const { dispatcher, pumped } = stage(3);
    await pumped();
    dispatcher.release(['2-1', 'never-offered']);
    expect(await pumped()).toEqual(['2-1']);
  });

  it('immediately offers a chunk again that was dropped before the reply to its offer arrived', async () => {
    let dropped = false;
    const { dispatcher, pumped } = stage(3, (chunk) => {
      // The heartbeat arrives before the 202 has passed through the balancer.
      if (chunk === '2-1' && !dropped) dispatcher.release([chunk]);
      dropped ||= chunk === '2-1';
      return taken(chunk);
    });
    expect(await pumped()).toEqual(['1-1', '2-1', '3-1', '2-1']);
    expect(await pumped()).toEqual([]);
  });

  it('ends even when every taken chunk is dropped again', async () => {
    const { dispatcher, pumped } = stage(3, (chunk) => {
      dispatcher.release([chunk]);
      return taken(chunk);
    });
    expect((await pumped()).length).toBeLessThanOrEqual(3 + TARGETS + 2 * CONCURRENCY);
  });

  it('never has more than eight offers in flight', async () => {
    const { clock, pump, flow, offers } = stage(100, async (chunk) => {
      await clock.sleep(chunk.length * 3);
      return taken(chunk);
    });
    const done = pump();
    await clock.advance(10_000);
    await done;
    expect(flow.most).toBe(CONCURRENCY);
    expect(offers).toHaveLength(100);
  });

  it('starts no offer after the abort, and ends when those in flight have ended', async () => {
    const { clock, pump, offers, abort } = stage(100, async (chunk) => {
      await clock.sleep(10);
      return taken(chunk);
    });
    const done = pump();
    await clock.advance(25);
    const sent = offers.length;
    expect(sent).toBe(3 * CONCURRENCY);
    abort.abort();
    await clock.advance(1_000);
    await done;
    expect(offers).toHaveLength(sent);
    await pump();
    expect(offers).toHaveLength(sent);
  });

  it('offers a chunk again after the hold when sending it failed', async () => {
    const { clock, pump, pumped, core } = stage(1);
    const sender = core.offers;
    core.offers = { send: () => Promise.reject(new Error('no route')) };
    await pump().catch(() => undefined);
    core.offers = sender;
    await clock.advance(HOLD_MS);
    expect(await pumped()).toEqual(['1-1']);
  });
});
