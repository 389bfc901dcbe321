import { describe, expect, it } from 'vitest';
import { type OrderInput, ordersFor } from '../../../orchestrator/control/callbacks/orders.ts';
import { drainAtMs } from '../../../orchestrator/control/model/run-deadlines.ts';
import { type Heartbeat, NO_PROGRESS } from '../../../shared/wire/callbacks.ts';
import { ALLOW_ALL, START_MS, aHeartbeat, aRun, anInstance } from './builders.ts';

function input(change: Partial<OrderInput> = {}, heartbeat: Partial<Heartbeat> = {}): OrderInput {
  return {
    nowMs: START_MS + 1_000,
    run: aRun(),
    record: anInstance(0, { phase: 'crawling' }),
    heartbeat: aHeartbeat({
      progress: { ...NO_PROGRESS, assigned: 10, pending: 4, stored: 6, requests: 6 },
      ...heartbeat,
    }),
    granted: [],
    waiting: 3,
    slowdown: 1,
    returning: false,
    partsAck: -1,
    superseded: false,
    robots: null,
    returnProducts: false,
    rotate: false,
    verdict: null,
    canaryPage: null,
    transfer: [],
    maxProducts: null,
    ...change,
  };
}

const idle = { progress: { ...NO_PROGRESS, assigned: 10, stored: 10, requests: 10 } };

describe('ordersFor', () => {
  it('drops every offered chunk that was not granted', () => {
    expect(ordersFor(input({ granted: ['1-0'] }, { offered: ['1-0', '2-0'] }))).toMatchObject({
      grants: ['1-0'],
      drops: ['2-0'],
    });
  });

  it('seals an idle instance only when no chunk waits', () => {
    expect(ordersFor(input({ waiting: 3 }, idle)).sealed).toBe(false);
    expect(ordersFor(input({ waiting: 0 }, idle)).sealed).toBe(true);
  });

  it('does not seal an instance that still has products or has just been granted some', () => {
    expect(ordersFor(input({ waiting: 0 })).sealed).toBe(false);
    expect(ordersFor(input({ waiting: 0, granted: ['1-0'] }, { ...idle, offered: ['1-0'] })).sealed).toBe(false);
  });

  it('keeps an instance sealed', () => {
    expect(ordersFor(input({ waiting: 9, record: anInstance(0, { sealed: true, phase: 'crawling' }) })).sealed).toBe(
      true,
    );
  });

  it('drains at the deadline minus the tail, and after a stop request', () => {
    const run = aRun();
    expect(ordersFor(input({ run, nowMs: drainAtMs(run) - 1 })).drain).toBe(false);
    expect(ordersFor(input({ run, nowMs: drainAtMs(run) }))).toMatchObject({ drain: true, sealed: true });
    expect(ordersFor(input({ run: aRun({ request: 'stop' }) })).drain).toBe(true);
  });

  it.each(['lost', 'terminating', 'terminated'] as const)('fences an instance that is %s', (phase) => {
    expect(ordersFor(input({ record: anInstance(0, { phase }) })).fenced).toBe(true);
  });

  it('fences an old epoch, but not a finished instance', () => {
    expect(ordersFor(input({ superseded: true })).fenced).toBe(true);
    expect(ordersFor(input({ record: anInstance(0, { phase: 'done' }) })).fenced).toBe(false);
  });

  it('does not seal an idle instance while an address with an open incident may return products', () => {
    expect(ordersFor(input({ waiting: 0, returning: true }, idle)).sealed).toBe(false);
  });

  it('sends robots.txt only to instances with another version', () => {
    const robots = { ...ALLOW_ALL, version: 'b' };
    expect(ordersFor(input({ robots }, { robots: 'a' })).robots).toEqual(robots);
    expect(ordersFor(input({ robots }, { robots: 'b' })).robots).toBeNull();
    expect(ordersFor(input({ robots: null }, { robots: null })).robots).toBeNull();
  });

  it('applies a longer Crawl-delay instead of the interval, but not a shorter one', () => {
    const under = (crawlDelayMs: number) => ordersFor(input({ robots: { ...ALLOW_ALL, crawlDelayMs } })).intervalMs;
    expect(under(30_000)).toBe(30_000);
    expect(under(1_000)).toBe(10_000);
  });
});
