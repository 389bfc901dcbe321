/** The Bloom filter of seen URLs: its guarantees for every set, and its rate of false positives. */
import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { BloomSeen, PAGE_BYTES } from '../../../../orchestrator/features/discovery/seen-urls.ts';
import { HASH_BYTES, hashOf } from '../../../../orchestrator/core/db/key-hash.ts';

const filled = (capacity: number, urls: number): BloomSeen => {
  const seen = new BloomSeen(capacity);
  for (let i = 0; i < urls; i++) seen.add(hashOf(`/item/${i}`));
  return seen;
};

/** The measured share of 20,000 unseen URLs that the filter takes for seen. */
const measuredRate = (seen: BloomSeen): number => {
  let hits = 0;
  for (let i = 0; i < 20_000; i++) if (seen.has(hashOf(`/other/${i}`))) hits++;
  return hits / 20_000;
};

describe('hashOf', () => {
  it('gives the first 16 bytes of the SHA-256 of the UTF-8 text', () => {
    for (const key of ['', '/item/1', '/商品?色=赤', 'x'.repeat(768)])
      expect(hashOf(key)).toEqual(createHash('sha256').update(key).digest().subarray(0, HASH_BYTES));
  });
});

describe('BloomSeen', () => {
  it('knows every hash that was added, at any capacity', () => {
    const hashes = fc.array(fc.uint8Array({ minLength: HASH_BYTES, maxLength: HASH_BYTES }), { maxLength: 200 });
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 500 }), hashes, (capacity, hashes) => {
        const seen = new BloomSeen(capacity);
        for (const hash of hashes) seen.add(hash);
        expect(hashes.every((hash) => seen.has(hash))).toBe(true);
      }),
    );
  });

  it('knows nothing at first', () => {
    const seen = new BloomSeen(10);
    expect(seen.has(hashOf('/a'))).toBe(false);
    expect([seen.count, seen.falsePositiveRate()]).toEqual([0, 0]);
  });

  it('counts a URL once, and returns whether it was new', () => {
    const seen = new BloomSeen(1_000);
    expect([seen.add(hashOf('/a')), seen.add(hashOf('/a')), seen.add(hashOf('/b'))]).toEqual([true, false, true]);
    expect(seen.count).toBe(2);
  });

  it('takes at most one unseen URL in a hundred for seen when it is full', () => {
    const seen = filled(50_000, 50_000);
    expect(seen.falsePositiveRate()).toBeLessThanOrEqual(0.01);
    expect(measuredRate(seen)).toBeLessThan(0.012);
    expect(seen.count).toBeGreaterThan(49_500);
  });

  it.each([
    ['half full', 10_000],
    ['full', 20_000],
    ['three times overfull', 60_000],
  ])('estimates its rate of false positives when it is %s', (_, urls) => {
    const seen = filled(20_000, urls);
    const rate = seen.falsePositiveRate();
    // Five standard deviations of 20,000 trials.
    expect(Math.abs(measuredRate(seen) - rate)).toBeLessThan(5 * Math.sqrt((rate * (1 - rate)) / 20_000));
  });

  it('stays within its bytes for the extreme hashes', () => {
    for (const capacity of [1, 7, 1_000]) {
      const seen = new BloomSeen(capacity);
      for (const byte of [0, 255]) seen.add(new Uint8Array(HASH_BYTES).fill(byte));
      expect(seen.has(new Uint8Array(HASH_BYTES).fill(255))).toBe(true);
      expect(BloomSeen.from(capacity, seen.count, seen.pages()).falsePositiveRate()).toBe(seen.falsePositiveRate());
    }
  });

  it('has 10 bits per URL', () => {
    const bytes = [...new BloomSeen(1_000_000).pages()].reduce((sum, page) => sum + page.length, 0);
    expect(bytes).toBe(1_250_000);
  });

  it('refuses a hash of another length, and an impossible capacity', () => {
    expect(() => new BloomSeen(10).has(new Uint8Array(32))).toThrow('a hash of 32 bytes instead of 16');
    for (const capacity of [0, -1, 1.5, NaN, 2e9]) expect(() => new BloomSeen(capacity)).toThrow(RangeError);
  });
});

describe('a stored filter', () => {
  it('is restored unchanged from its pages', () => {
    const seen = filled(60_000, 20_000);
    const pages = [...seen.pages()].map((page) => Uint8Array.from(page));
    expect(pages.map((page) => page.length)).toEqual([PAGE_BYTES, 75_000 - PAGE_BYTES]);
    const again = BloomSeen.from(60_000, seen.count, pages);
    expect([again.count, again.capacity]).toEqual([seen.count, 60_000]);
    expect(again.falsePositiveRate()).toBe(seen.falsePositiveRate());
    const hashes = Array.from({ length: 20_000 }, (_, i) => hashOf(`/item/${i}`));
    expect(hashes.every((hash) => again.has(hash))).toBe(true);
    expect(measuredRate(again)).toBe(measuredRate(seen));
  });

  it('does not share memory with its source', () => {
    const page = new Uint8Array(125);
    const seen = BloomSeen.from(100, 0, [page]);
    seen.add(hashOf('/a'));
    expect(page.every((byte) => byte === 0)).toBe(true);
  });

  it.each([
    ['a missing page', [new Uint8Array(PAGE_BYTES)]],
    ['a page too many', [new Uint8Array(125_000), new Uint8Array(1)]],
    ['none', []],
  ])('with %s is refused', (_, pages) => {
    expect(() => BloomSeen.from(100_000, 0, pages)).toThrow(/the stored set of seen URLs has \d+ bytes/);
  });
});
