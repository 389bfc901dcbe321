/** When the shop bans an address, and how it counts the behaviour of the address. */
import { describe, expect, it } from 'vitest';
import { type BanPolicy, Bans } from '../../support/shop/bans.ts';

const A = '127.0.0.2';
const B = '127.0.0.3';
const answer = { type: 'captcha' } as const;

function bansOf(...policies: BanPolicy[]): Bans {
  const bans = new Bans();
  bans.setPolicies(policies);
  return bans;
}

/** Which of the address's next requests are refused, from 1. */
const refusals = (bans: Bans, address: string, requests: number): number[] =>
  Array.from({ length: requests }, (_, i) => i + 1).filter(() => bans.take(address) !== null);

describe('policies', () => {
  it('ban from the nth request of an address on', () => {
    const bans = bansOf({ when: { request: 3 }, answer });
    expect(refusals(bans, A, 5)).toEqual([3, 4, 5]);
    expect(refusals(bans, B, 2)).toEqual([]);
  });

  it('ban at most n addresses', () => {
    const bans = bansOf({ when: { request: 2 }, atMost: 1, answer });
    expect(refusals(bans, A, 3)).toEqual([2, 3]);
    expect(refusals(bans, B, 3)).toEqual([]);
  });

  it('count only requests that come sooner than the policy names', () => {
    let nowMs = 0;
    const bans = new Bans(() => nowMs);
    bans.setPolicies([{ when: { request: 3, underMs: 8_000 }, answer }]);
    const isRefused = (atMs: number): boolean => {
      nowMs = atMs;
      return bans.take(A) !== null;
    };
    expect([0, 5_000, 15_000, 25_000, 30_000].map(isRefused)).toEqual([false, false, false, false, false]);
    expect(isRefused(35_000)).toBe(true);
  });

  it('end bans after their time, and count anew then', () => {
    let nowMs = 0;
    const bans = new Bans(() => nowMs);
    bans.setPolicies([{ when: { request: 2 }, answer, forMs: 1_000 }]);
    expect(refusals(bans, A, 3)).toEqual([2, 3]);
    nowMs = 1_000;
    expect(bans.peek(A)).toBeNull();
    expect(refusals(bans, A, 2)).toEqual([2]);
    expect(bans.refused()).toEqual({ [A]: 3 });
  });

  it.each([[{ when: { request: 1 } }], [{ when: {}, answer }], ['all']])('refuse %j', (policy) => {
    expect(() => new Bans().setPolicies([policy])).toThrow();
  });
});

describe('the counts', () => {
  it('include the start of the ban, and no peeks', () => {
    const bans = bansOf({ when: { request: 1 }, answer });
    expect(bans.peek(A)).toBeNull();
    refusals(bans, A, 3);
    expect(bans.peek(A)).toEqual(answer);
    expect(bans.refused()).toEqual({ [A]: 3 });
  });

  it('are cleared with everything else', () => {
    const bans = bansOf({ when: { request: 1 }, answer });
    bans.take(A);
    bans.clear();
    expect(bans.take(A)).toBeNull();
    expect(bans.refused()).toEqual({});
  });
});
