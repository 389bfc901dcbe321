import { describe, expect, it } from 'vitest';
import { Fingerprint, Repeats, hashOf, isIn, slicesOf } from '../../../orchestrator/db/fingerprint.ts';

const IDS = Array.from({ length: 3_000 }, (_, i) => `商品-${i}`);

function fingerprint(counts: Iterable<readonly [id: string, times: number]>): Fingerprint {
  const sum = new Fingerprint();
  for (const [id, times] of counts) sum.add(hashOf(id), times);
  return sum;
}

const once = (ids: readonly string[]): (readonly [string, number])[] => ids.map((id) => [id, 1]);

describe('A fingerprint', () => {
  const whole = fingerprint(once(IDS));

  it('is the same in any order, and for partial counts added together', () => {
    expect(fingerprint(once(IDS.toReversed())).equals(whole)).toBe(true);
    expect(fingerprint([['a', 3]]).equals(fingerprint(once(['a', 'a', 'a'])))).toBe(true);
    expect(fingerprint([]).equals(fingerprint([['a', 0]]))).toBe(true);
  });

  it.each([
    ['one is missing', once(IDS.slice(1))],
    ['there is one too many', once([...IDS, 'x'])],
    ['one is replaced by another', once([...IDS.slice(1), 'x'])],
    ['one is duplicated instead of another', once([...IDS.slice(1), IDS[7]!])],
    ['one has more rows', [...once(IDS.slice(1)), [IDS[0]!, 2]]],
    ['rows are counted for another', [...once(IDS.slice(2)), [IDS[0]!, 2], [IDS[1]!, 0]]],
    ['a count is off by a large power of two', [...once(IDS.slice(1)), [IDS[0]!, 1 + 2 ** 24]]],
    ['the case of a letter differs', once([...IDS.slice(0, -1), 'A'])],
  ] as const)('differs when %s', (_, counts) => {
    expect(fingerprint(counts).equals(whole)).toBe(false);
    expect(whole.equals(fingerprint(counts))).toBe(false);
  });

  it('distinguishes letters, spaces and bytes', () => {
    const forms = ['a', 'A', 'a ', 'á', 'a\u0301', '\0a'].map((id) => fingerprint(once([id])));
    for (const [i, form] of forms.entries())
      for (const [k, other] of forms.entries()) expect(form.equals(other)).toBe(i === k);
  });
});

describe('Repeats', () => {
  function repeats(ids: readonly string[]): boolean {
    const seen = new Repeats();
    for (const id of ids) seen.add(hashOf(id));
    return seen.any();
  }

  it('finds a duplicate ID at any position', () => {
    expect(repeats([])).toBe(false);
    expect(repeats(IDS)).toBe(false);
    expect(repeats([...IDS, IDS[0]!])).toBe(true);
    expect(repeats([...IDS.slice(0, 1_024), IDS[1_023]!])).toBe(true);
  });
});

describe('Slices', () => {
  it('contain every ID once, in parts of about the same size', () => {
    expect(slicesOf(0, 1_000)).toEqual([{ index: 0, count: 1 }]);
    const slices = slicesOf(IDS.length, 1_000);
    expect(slices).toHaveLength(3);
    const sizes = slices.map((slice) => IDS.filter((id) => isIn(slice, id)).length);
    expect(sizes.reduce((a, b) => a + b)).toBe(IDS.length);
    for (const size of sizes) expect(size).toBeGreaterThan(850);
  });
});
