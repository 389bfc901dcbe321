import { describe, expect, it } from 'vitest';
import { NO_EFFECTS, ordersFor } from '../../../orchestrator/core/callbacks/orders.ts';
import { drainAtMs } from '../../../orchestrator/core/model/run-deadlines.ts';
import { type Heartbeat, NO_PROGRESS } from '../../../shared/wire/callbacks.ts';
import {
  ALL_GRANTED,
  ALLOW_ALL,
  aHeartbeat,
  anIncident,
  anInstance,
  aRun,
  aWorld,
  type WorldChange,
} from './builders.ts';

type Sender = Parameters<typeof ordersFor>[1];

const crawling = anInstance(0, { phase: 'crawling', progress: { ...NO_PROGRESS, assigned: 10, pending: 4 } });
const GRANTED = { work: ALL_GRANTED };

const orders = (sender: Partial<Sender>, heartbeat: Partial<Heartbeat> = {}, world: WorldChange = {}) =>
  ordersFor(aWorld({ instances: [crawling], ...world }), {
    ...NO_EFFECTS,
    record: crawling,
    heartbeat: aHeartbeat({ progress: crawling.progress!, ...heartbeat }),
    robots: null,
    maxProducts: null,
    awaited: false,
    fenced: false,
    ...sender,
  });

const idle = { progress: { ...NO_PROGRESS, assigned: 10, stored: 10, requests: 10 } };

describe('ordersFor', () => {
  it('names the next slices of hosts until their grants are asked for, and none to one that takes nothing more', () => {
    const nextSlices = [{ id: '4-1', products: [{ n: 7, id: 'p7' }] }];
    const named = [{ chunk: '4-1', products: [{ n: 7, id: 'p7' }] }];
    expect(orders({ nextSlices }).nextSlices).toEqual(named);
    expect(orders({ nextSlices, granted: ['4-1'] }, { offered: ['4-1'] }).nextSlices).toEqual([]);
    expect(orders({ nextSlices, record: { ...crawling, sealed: true } })).not.toHaveProperty('nextSlices');
    expect(orders({ nextSlices }, {}, { run: aRun({ request: 'stop' }) })).not.toHaveProperty('nextSlices');
    expect(orders({})).not.toHaveProperty('nextSlices');
  });

  it('leaves an instance open while a part may have records that go on at another host', () => {
    const totals = { stored: 0, gone: 0, failed: 0, seen: 2, loaded: 1 };
    const work = { ...ALL_GRANTED, byHost: { products: 0, longestMs: 0, restUntilMs: 0 } };
    expect(orders({}, idle, { work, totals }).sealed).toBe(false);
    expect(orders({}, idle, { work, totals: { ...totals, loaded: 2 } }).sealed).toBe(true);
    expect(orders({}, idle, { work: ALL_GRANTED, totals }).sealed).toBe(true);
  });

  it('says what holds for granted hosts, and what an operator asks of others', () => {
    const note = { delayMs: null, paceMs: null, notBeforeMs: null, refusals: null, denied: null };
    const wish = { paceMs: null, denied: null, wishedAtMs: 1 };
    const wished = {
      version: 'v1',
      wishes: [
        { ...wish, host: 'a.example', denied: true },
        { ...wish, host: 'b.example', paceMs: 60_000 },
        { ...wish, host: 'c.example' },
        { ...wish, host: 'd.example', denied: true },
      ],
    };
    const hosts = [
      { ...note, host: 'd.example', delayMs: 9_000, paceMs: 5_000, notBeforeMs: 0 },
      { ...note, host: 'e.example', delayMs: 20_000 },
    ];
    expect(orders({ wished, hosts })).toMatchObject({
      wishes: 'v1',
      hosts: [
        { host: 'a.example', denied: true },
        { host: 'b.example', paceMs: 60_000 },
        { host: 'c.example' },
        { host: 'd.example', delayMs: 9_000, paceMs: 5_000 },
        { host: 'e.example', delayMs: 20_000 },
      ],
    });
    expect(orders({ hosts })).not.toHaveProperty('wishes');
    expect(orders({})).not.toHaveProperty('hosts');
  });

  it('drops every offered chunk that was not granted', () => {
    const reply = orders({ granted: ['1-0'] }, { offered: ['1-0', '2-0'] });
    expect(reply).toMatchObject({ grants: ['1-0'], drops: ['2-0'] });
  });

  it('seals an idle instance only when no chunk waits', () => {
    expect(orders({}, idle).sealed).toBe(false);
    expect(orders({}, idle, GRANTED).sealed).toBe(true);
  });

  it('does not seal an instance that still has products, has just been granted some, or is to receive some', () => {
    expect(orders({}, {}, GRANTED).sealed).toBe(false);
    expect(orders({ granted: ['1-0'] }, { ...idle, offered: ['1-0'] }, GRANTED).sealed).toBe(false);
    expect(orders({ awaited: true }, idle, GRANTED).sealed).toBe(false);
  });

  it('keeps an instance sealed', () => {
    expect(orders({ record: { ...crawling, sealed: true } }).sealed).toBe(true);
  });

  it('drains at the deadline minus the tail, and after a stop request', () => {
    const run = aRun();
    expect(orders({}, {}, { nowMs: drainAtMs(run) - 1 }).drain).toBe(false);
    expect(orders({}, {}, { nowMs: drainAtMs(run) })).toMatchObject({ drain: true, sealed: true });
    expect(orders({}, {}, { run: aRun({ request: 'stop' }) }).drain).toBe(true);
  });

  it('does not seal an idle instance while an address with an open incident may return products', () => {
    const banned = anInstance(1, { phase: 'banned', incident: anIncident(), progress: crawling.progress });
    expect(orders({}, idle, { ...GRANTED, instances: [crawling, banned] }).sealed).toBe(false);
  });

  it('sends robots.txt only to instances with another version', () => {
    const robots = { ...ALLOW_ALL, version: 'b' };
    expect(orders({ robots }, { robots: 'a' }).robots).toEqual(robots);
    expect(orders({ robots }, { robots: 'b' }).robots).toBeNull();
    expect(orders({ robots: null }, { robots: null }).robots).toBeNull();
  });

  it('applies a longer Crawl-delay instead of the interval, but not a shorter one', () => {
    const under = (crawlDelayMs: number) => orders({ robots: { ...ALLOW_ALL, crawlDelayMs } }).intervalMs;
    expect(under(30_000)).toBe(30_000);
    expect(under(1_000)).toBe(10_000);
  });
});
