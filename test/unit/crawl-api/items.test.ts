/** What an instance keeps in memory of its products: those without an outcome, and the last ones with one. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { NumberSet } from '../../../crawl-api/queue/number-set.ts';
import type { Queue } from '../../../crawl-api/queue/queue.ts';
import { QueueState } from '../../../crawl-api/queue/queue-state.ts';
import type { JournalRecord } from '../../../crawl-api/queue/records.ts';
import { createQueue, failed, give, orders, products, stored } from './fakes.ts';

const CHUNK = 500;
/** More than stay in memory once they have an outcome. */
const MANY = 12_000;

async function crawlAll(queue: Queue): Promise<void> {
  for (let first = 1; first <= MANY; first += CHUNK)
    await give(queue, `${first}-1`, [first, first + CHUNK - 1], { intervalMs: 1 });
  for (let item = queue.state.peek(false); item !== null; item = queue.state.peek(false)) {
    queue.recordStart(item.n, 1_000 * item.n);
    queue.recordResult(item, stored(item.n));
  }
}

/** Uploads all results in parts of 1,000. */
async function uploadAll(queue: Queue): Promise<void> {
  for (let cut = await queue.cut(1_000); cut !== null; cut = await queue.cut(1_000)) {
    const part = { seq: cut.seq, key: `part-${cut.seq}`, sha256: '', sizeBytes: 1, products: cut.to - cut.from };
    queue.note({ t: 'part', part });
  }
}

const inMemory = (state: QueueState): number[] => Array.from(state.items.values(), ({ n }) => n);

describe('products with an outcome', () => {
  it('leave memory once the main server has their part, but for the last 10,000', async () => {
    const { queue, journal } = createQueue({ intervalMs: 1 });
    await crawlAll(queue);
    await uploadAll(queue);
    expect(inMemory(queue.state)).toHaveLength(MANY);
    await queue.follow(orders({ partsAck: 0 }));
    expect(inMemory(queue.state)[0]).toBe(1_001);
    await queue.follow(orders({ partsAck: 11 }));
    expect(inMemory(queue.state)[0]).toBe(2_001);
    expect(queue.progress(null)).toMatchObject({ assigned: MANY, pending: 0, stored: MANY });
    const again = journal.replay();
    expect(inMemory(again)).toEqual(inMemory(queue.state));
    expect([again.items.assigned, again.held]).toEqual([MANY, MANY]);
  });

  it('are not crawled again when they are offered again, in the same chunk or another one', async () => {
    const { queue } = createQueue({ intervalMs: 1 });
    await crawlAll(queue);
    await uploadAll(queue);
    await queue.follow(orders({ partsAck: 11 }));
    expect(await queue.offer({ chunk: '1-1', share: 99_999, products: products(1, CHUNK) })).toMatchObject({
      taken: true,
    });
    await give(queue, '1-2', [1, 3]);
    expect(queue.state.offeredChunks()).toEqual([]);
    expect([queue.state.peek(true), queue.state.held]).toEqual([null, MANY]);
  });

  it('stay in memory while their part is not confirmed', async () => {
    const { queue } = createQueue({ intervalMs: 1 });
    await crawlAll(queue);
    await uploadAll(queue);
    await queue.follow(orders({ partsAck: -1 }));
    expect(inMemory(queue.state)).toHaveLength(MANY);
  });
});

describe('the products of a chunk', () => {
  const begun: [string, JournalRecord][] = [
    ['was requested', { t: 'started', n: 2, atMs: 1_000 }],
    ['killed the process', { t: 'died', n: 2 }],
    ['failed at first', { t: 'postponed', result: failed(2) }],
    ['has an outcome', { t: 'result', result: stored(2) }],
    ['waits for a proof', { t: 'held', result: stored(2) }],
  ];

  it.each(begun)('are no longer untouched when one of them %s', (_, record) => {
    const state = new QueueState();
    state.apply({ t: 'offered', chunk: '1-1', products: products(1, 3) });
    state.apply({ t: 'granted', chunks: ['1-1'] });
    expect(state.isUntouched('1-1')).toBe(true);
    state.apply(record);
    expect(state.isUntouched('1-1')).toBe(false);
  });

  it('are not untouched when one of them is here under an older generation', () => {
    const state = new QueueState();
    state.apply({ t: 'offered', chunk: '1-1', products: products(1, 1) });
    state.apply({ t: 'offered', chunk: '1-2', products: products(1, 2) });
    state.apply({ t: 'granted', chunks: ['1-1', '1-2'] });
    expect([state.isUntouched('1-1'), state.isUntouched('1-2')]).toEqual([true, false]);
  });
});

describe('a set of numbers', () => {
  it('has what was added to it, and nothing else', () => {
    const numbers = fc.array(fc.oneof(fc.nat(20), fc.nat(70_000), fc.nat({ max: 10_000_000 })));
    fc.assert(
      fc.property(numbers, numbers, (added, asked) => {
        const set = new NumberSet();
        for (const n of added) set.add(n);
        expect(set.size).toBe(new Set(added).size);
        for (const n of [...added, ...asked]) expect(set.has(n)).toBe(added.includes(n));
      }),
    );
  });
});
