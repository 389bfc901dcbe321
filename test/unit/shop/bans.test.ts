/** When the shop bans an address, for how long, and how it counts the behaviour of the address. */
import { describe, expect, it } from 'vitest';
import { type BanPolicy, Bans } from '../../support/shop/bans.ts';

const A = '127.0.0.2';
const B = '127.0.0.3';
const ANSWER = { type: 'login' } as const;

function bansOf(...policies: BanPolicy[]): Bans {
  const bans = new Bans();
  bans.setPolicies(policies);
  return bans;
}

/** Which of the requests at these times are refused. */
function refusals(bans: Bans, times: readonly number[], address = A): number[] {
  return times.filter((atMs) => bans.take(address, atMs) !== null);
}

describe('policies', () => {
  it('ban at the nth request of an address, once, for the cool-down', () => {
    const bans = bansOf({ when: { request: 3 }, coolDownMs: 10, answer: ANSWER });
    expect(refusals(bans, [0, 1, 2, 11, 12, 13])).toEqual([2, 11]);
    expect(refusals(bans, [0, 1], B)).toEqual([]);
  });

  it('ban at most n addresses', () => {
    const bans = bansOf({ when: { request: 2 }, coolDownMs: null, atMost: 1, answer: ANSWER });
    expect(refusals(bans, [0, 1, 2])).toEqual([1, 2]);
    expect(refusals(bans, [2, 3, 4], B)).toEqual([]);
  });

  it.each([[{ when: { request: 1 }, coolDownMs: null }], [{ when: {}, coolDownMs: null, answer: ANSWER }], ['all']])(
    'refuse %j',
    (policy) => {
      expect(() => new Bans().setPolicies([policy])).toThrow();
    },
  );
});

describe('the counts', () => {
  it('include the start of the ban, and no peeks', () => {
    const bans = bansOf({ when: { request: 1 }, coolDownMs: null, answer: ANSWER });
    expect(bans.peek(A, 1)).toBeNull();
    for (const atMs of [5, 6, 9]) bans.take(A, atMs);
    expect(bans.peek(A, 10)).toEqual(ANSWER);
    expect(bans.stats()).toEqual({ [A]: { bans: 1, refused: 3, mostRefused: 3, bannedAtMs: 5 } });
  });

  it('are cleared with everything else', () => {
    const bans = bansOf({ when: { request: 1 }, coolDownMs: null, answer: ANSWER });
    bans.take(A, 0);
    bans.clear();
    expect(bans.take(A, 1)).toBeNull();
    expect(bans.stats()).toEqual({});
  });
});
