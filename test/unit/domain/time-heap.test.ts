import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { TimeHeap } from '../../../shared/domain/time-heap.ts';
import '../../support/property-seed.ts';

describe('a heap by time', () => {
  it('gives what is due first, of the same time what was added first', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 9 })), (times) => {
        const heap = new TimeHeap<{ atMs: number; order: number }>();
        times.forEach((atMs, order) => heap.push({ atMs, order }));
        const taken = times.map(() => heap.pop());
        expect(taken).toEqual(
          times.map((atMs, order) => ({ atMs, order })).toSorted((a, b) => a.atMs - b.atMs || a.order - b.order),
        );
        expect([heap.first, heap.pop()]).toEqual([undefined, undefined]);
      }),
    );
  });

  it('forgets everything', () => {
    const heap = new TimeHeap<{ atMs: number; order: number }>();
    heap.push({ atMs: 1, order: 0 });
    heap.clear();
    expect(heap.first).toBeUndefined();
  });
});
