import { describe, expect, it } from 'vitest';
import { CrawlQueue } from '../../../orchestrator/simulation/crawl-queue.ts';
import type { Chunk } from '../../../orchestrator/simulation/work.ts';
import { Work } from '../../../orchestrator/simulation/work.ts';

const PACE = { gapMs: 1_000, pageMs: 200 };
const chunksOf = (sizes: number): readonly Chunk[] => new Work(sizes * 10, 10, 0).chunks;

function queueWith(count: number): { queue: CrawlQueue; chunks: readonly Chunk[] } {
  const chunks = chunksOf(count);
  const queue = new CrawlQueue();
  for (const chunk of chunks) queue.add(chunk, { ...PACE }, 0);
  return { queue, chunks };
}

const crawledAt = (queue: CrawlQueue, ms: number): number => {
  queue.advance(ms);
  return queue.crawled;
};

describe('CrawlQueue', () => {
  it('has a result one page after each start, product by product, chunk by chunk', () => {
    const { queue } = queueWith(2);
    expect([199, 200, 1_199, 1_200, 10_200, 19_200].map((ms) => crawledAt(queue, ms))).toEqual([0, 1, 1, 2, 11, 20]);
    expect(queue.pending).toBe(0);
  });

  it('knows when the last result and when the n-th one come', () => {
    const { queue } = queueWith(2);
    expect(queue.emptyAtMs).toBe(19_200);
    expect(queue.resultMs(1)).toBe(200);
    expect(queue.resultMs(11)).toBe(10_200);
    expect(queue.resultMs(21)).toBe(Infinity);
    expect(crawledAt(queue, queue.emptyAtMs)).toBe(20);
  });

  it('keeps the pace between a chunk and one that comes while it is under way', () => {
    const [first, second] = chunksOf(2);
    const queue = new CrawlQueue();
    queue.add(first!, { ...PACE }, 0);
    queue.add(second!, { ...PACE }, 9_500);
    expect(crawledAt(queue, 10_199)).toBe(10);
    expect(crawledAt(queue, 10_200)).toBe(11);
  });

  it('does nothing while it pauses, and goes on with the product that it was at', () => {
    const { queue } = queueWith(1);
    queue.pause(3_500);
    expect(crawledAt(queue, 60_000)).toBe(4);
    expect(queue.emptyAtMs).toBe(Infinity);
    queue.resume(60_000);
    expect(crawledAt(queue, 60_200)).toBe(5);
    expect(queue.emptyAtMs).toBe(65_200);
  });

  it('crawls on at another pace', () => {
    const { queue } = queueWith(1);
    queue.pause(3_500);
    queue.resume(3_500, 10);
    expect(queue.emptyAtMs).toBe(3_500 + 5 * 10_000 + 2_000);
  });

  it('cuts parts that reach from one to the next without a gap', () => {
    const { queue, chunks } = queueWith(2);
    const first = queue.cut(4_200)!;
    expect(first).toMatchObject({ products: 5, reaches: [{ chunk: chunks[0], next: 6 }] });
    expect(queue.cut(4_300)).toBeNull();
    const second = queue.cut(12_200)!;
    expect(second.products).toBe(8);
    expect(second.reaches.map((r) => r.next)).toEqual([11, 14]);
  });

  it('cuts what it had before and after a pause', () => {
    const { queue } = queueWith(1);
    queue.pause(2_500);
    queue.resume(10_000);
    expect(queue.cut(20_000)).toMatchObject({ products: 10, reaches: [{ next: 4 }, { next: 11 }] });
  });

  it('forgets only what is not crawled', () => {
    const { queue } = queueWith(2);
    queue.forget(4_300);
    expect(queue.assigned).toBe(5);
    expect(queue.pending).toBe(0);
    expect(queue.cut(60_000)).toMatchObject({ products: 5 });
  });

  it('gives up chunks that are not begun, and what stands behind them moves up', () => {
    const { queue, chunks } = queueWith(4);
    const given = queue.giveUp(new Set([chunks[0]!.id, chunks[1]!.id, chunks[3]!.id]), 2_000);
    expect(given).toEqual([chunks[1], chunks[3]]);
    expect(queue.assigned).toBe(20);
    expect(queue.emptyAtMs).toBe(19_200);
    expect(queue.openChunks()).toEqual([chunks[0], chunks[2]]);
  });
});
