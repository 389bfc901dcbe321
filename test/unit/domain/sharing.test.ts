import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { MAX_CHUNK, chunkSize, cutChunks, dueChunks } from '../../../shared/domain/sharing.ts';

describe('chunkSize', () => {
  it.each([
    [400, 3, 7],
    [30_000, 22, 69],
    [1_000_000, 10, MAX_CHUNK],
    [5, 3, 1],
    [0, 0, 1],
  ])('%i products on %i slots are offered in chunks of %i', (products, slots, size) => {
    expect(chunkSize(products, slots)).toBe(size);
  });
});

describe('cutChunks', () => {
  it('covers every product number once, in order', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 2_000 }), fc.integer({ min: 1, max: 500 }), (products, size) => {
        const numbers = cutChunks(products, size).flatMap((c) =>
          Array.from({ length: c.last - c.first + 1 }, (_, i) => c.first + i),
        );
        expect(numbers).toEqual(Array.from({ length: products }, (_, i) => i + 1));
      }),
    );
  });
});

describe('dueChunks', () => {
  it('keeps shards even to within one chunk, whatever the order of the slots', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 12 }),
        fc.integer({ min: 1, max: 200 }),
        fc.infiniteStream(fc.nat()),
        (slots, total, order) => {
          const held = Array.from({ length: slots }, () => 0);
          const asks = order[Symbol.iterator]();
          let granted = 0;
          while (granted < total) {
            const slot = asks.next().value! % slots;
            // When the slot is full, the next one with room takes the chunk, as in a round robin.
            const limit = dueChunks(total, slots, granted);
            const taker = [...held.keys()].map((i) => (slot + i) % slots).find((i) => held[i]! < limit);
            expect(taker).toBeDefined();
            held[taker!]!++;
            granted++;
          }
          expect(Math.max(...held) - Math.min(...held)).toBeLessThanOrEqual(1);
        },
      ),
    );
  });

  it('is zero without slots', () => {
    expect(dueChunks(10, 0, 0)).toBe(0);
  });
});
