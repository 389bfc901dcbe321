/** Whatever hosts share an address, it has one request under way, and a second between the end of one and the next. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { VirtualClock } from '../../support/virtual-clock.ts';
import { ADDRESS_GAP_MS, AddressTurns } from '../../../crawl-api/politeness/address-turns.ts';

describe('the turns of an address', () => {
  it('begin a second after the end of the last one, and never while a request is under way', () => {
    const turns = new AddressTurns();
    expect(turns.waitMs('192.0.2.1', 50)).toBe(0);
    turns.begin('192.0.2.1', 50);
    expect(turns.waitMs('192.0.2.1', 10_000)).toBe(Infinity);
    expect(() => turns.begin('192.0.2.1', 10_000)).toThrow('192.0.2.1 has no turn now');
    turns.end('192.0.2.1', 10_000);
    expect(turns.waitMs('192.0.2.1', 10_300)).toBe(700);
    expect(() => turns.begin('192.0.2.1', 10_999)).toThrow('no turn');
    expect(turns.waitMs('192.0.2.1', 11_000)).toBe(0);
    turns.begin('192.0.2.1', 11_000);
  });

  it('do not hold up other addresses', () => {
    const turns = new AddressTurns();
    turns.begin('192.0.2.1', 0);
    expect(turns.waitMs('192.0.2.2', 0)).toBe(0);
    turns.begin('192.0.2.2', 0);
    turns.end('192.0.2.2', 0);
    turns.end('192.0.2.3', 0);
    expect(turns.waitMs('192.0.2.1', 0)).toBe(Infinity);
  });

  it('are taken in the order of the calls, before who asks whether there is one', async () => {
    const turns = new AddressTurns();
    const clock = new VirtualClock(0);
    const began: [string, number][] = [];
    const { signal } = new AbortController();
    const visit = async (name: string): Promise<void> => {
      await turns.take('192.0.2.1', clock, signal);
      began.push([name, clock.monotonic()]);
      await clock.sleep(500);
      turns.end('192.0.2.1', clock.monotonic());
    };
    const from = clock.monotonic();
    const visits = ['a', 'b', 'c'].map(visit);
    await clock.advance(600);
    // The first one has ended, but the turn is the second one's.
    expect(turns.waitMs('192.0.2.1', clock.monotonic())).toBe(Infinity);
    await clock.advance(10_000);
    await Promise.all(visits);
    expect(began.map(([name, at]) => [name, at - from])).toEqual([
      ['a', 0],
      ['b', 1_500],
      ['c', 3_000],
    ]);
    expect(turns.waitMs('192.0.2.1', clock.monotonic())).toBe(0);
  });

  it('are forgotten once an address is idle', () => {
    const turns = new AddressTurns();
    turns.begin('slow', 0);
    for (let i = 0; i < 10_000; i++) {
      turns.begin(`a${i}`, i * 100);
      turns.end(`a${i}`, i * 100);
    }
    // The slow one, and those of the last second.
    expect(turns.size).toBe(1 + ADDRESS_GAP_MS / 100);
    turns.end('slow', 1_999_000);
    turns.begin('last', 2_000_000);
    turns.end('last', 2_000_000);
    expect(turns.size).toBe(1);
  });

  it('keep both promises, whoever asks for what in which order', () => {
    const step = fc.record({
      address: fc.constantFrom('a', 'b', 'c'),
      does: fc.constantFrom('ask', 'end'),
      afterMs: fc.integer({ min: 0, max: 700 }),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const turns = new AddressTurns();
        const endedMs = new Map<string, number>();
        const underWay = new Set<string>();
        let nowMs = 0;
        for (const { address, does, afterMs } of steps) {
          nowMs += afterMs;
          if (does === 'end') {
            turns.end(address, nowMs);
            if (underWay.delete(address)) endedMs.set(address, nowMs);
            continue;
          }
          const freeMs = (endedMs.get(address) ?? -Infinity) + ADDRESS_GAP_MS;
          const waitMs = turns.waitMs(address, nowMs);
          expect(waitMs).toBe(underWay.has(address) ? Infinity : Math.max(0, freeMs - nowMs));
          if (waitMs > 0) continue;
          turns.begin(address, nowMs);
          underWay.add(address);
        }
        for (const address of underWay) expect(turns.waitMs(address, nowMs)).toBe(Infinity);
      }),
    );
  });
});
