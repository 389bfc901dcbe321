/** When the shop bans an address, for how long, and how it counts the behaviour of the address. */
import { describe, expect, it } from 'vitest';
import type { Ban, BanPolicy } from '../../support/shop/bans.ts';
import { Bans } from '../../support/shop/bans.ts';

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

describe('bans ordered by a test', () => {
  it.each<[Ban['addresses'], string, boolean]>([
    ['all', A, true],
    [[A], A, true],
    [[B], A, false],
  ])('of %j apply to %s: %s', (addresses, address, refused) => {
    const bans = new Bans();
    bans.ban({ addresses, answer: ANSWER, forMs: null }, 0);
    expect(bans.take(address, 1) !== null).toBe(refused);
  });

  it('expire for every address at the same time', () => {
    const bans = new Bans();
    bans.ban({ addresses: 'all', answer: ANSWER, forMs: 100 }, 0);
    expect(refusals(bans, [50, 99, 100, 200])).toEqual([50, 99]);
    expect(refusals(bans, [100], B)).toEqual([]);
  });

  it('end when the address is unbanned', () => {
    const bans = new Bans();
    bans.ban({ addresses: 'all', answer: ANSWER, forMs: null }, 0);
    bans.take(A, 1);
    bans.unban([A]);
    expect(bans.take(A, 2)).toBeNull();
    expect(bans.take(B, 2)).toEqual(ANSWER);
    bans.unban('all');
    expect(bans.take(B, 3)).toBeNull();
  });
});

describe('policies', () => {
  it('ban at the nth request within the window, and again after the cool-down', () => {
    const bans = bansOf({ when: { requests: 3, withinMs: 100 }, coolDownMs: 50, answer: ANSWER });
    expect(refusals(bans, [0, 60, 120, 180, 190, 195, 240, 246, 250, 260])).toEqual([190, 195, 250, 260]);
    expect(bans.stats()[A]).toMatchObject({ bans: 2, refused: 4, mostRefused: 2 });
  });

  it('ban for a request too soon after the previous one', () => {
    const bans = bansOf({ when: { gapMs: 100 }, coolDownMs: null, answer: ANSWER });
    expect(refusals(bans, [0, 100, 300, 399, 10_000])).toEqual([399, 10_000]);
  });

  it('ban at the nth request of an address, once', () => {
    const bans = bansOf({ when: { request: 3 }, coolDownMs: 10, answer: ANSWER });
    expect(refusals(bans, [0, 1, 2, 11, 12, 13])).toEqual([2, 11]);
    expect(refusals(bans, [0, 1], B)).toEqual([]);
  });

  it('ban every address once after n requests in total', () => {
    const bans = bansOf({ when: { total: 3 }, coolDownMs: 10, answer: ANSWER });
    expect([bans.take(A, 0), bans.take(B, 1)]).toEqual([null, null]);
    expect([bans.take(A, 2), bans.take(B, 3)]).toEqual([ANSWER, ANSWER]);
    expect([bans.take(A, 20), bans.take(B, 20)]).toEqual([null, null]);
  });

  it('apply only to the named addresses', () => {
    const bans = bansOf({ addresses: [B], when: { request: 1 }, coolDownMs: null, answer: ANSWER });
    expect([bans.take(A, 0), bans.take(B, 0)]).toEqual([null, ANSWER]);
  });

  it('ban at most n addresses', () => {
    const bans = bansOf({ when: { gapMs: 10 }, coolDownMs: 5, atMost: 1, answer: ANSWER });
    expect(refusals(bans, [0, 1])).toEqual([1]);
    expect(refusals(bans, [2, 3], B)).toEqual([]);
    expect(refusals(bans, [10, 11])).toEqual([10, 11]);
  });

  it('extend the ban with each request when renew is set', () => {
    const policy: BanPolicy = { when: { request: 1 }, coolDownMs: 100, renew: true, answer: ANSWER };
    expect(refusals(bansOf(policy), [0, 90, 180, 279, 400])).toEqual([0, 90, 180, 279]);
  });

  it.each([[{ when: { request: 1 }, coolDownMs: null }], [{ when: {}, coolDownMs: null, answer: ANSWER }], ['all']])(
    'refuse %j',
    (policy) => {
      expect(() => new Bans().setPolicies([policy])).toThrow();
    },
  );
});

describe('the counts', () => {
  it('include the start of the ban and the last refused request', () => {
    const bans = new Bans();
    bans.ban({ addresses: [A], answer: ANSWER, forMs: null }, 0);
    for (const atMs of [5, 6, 9]) bans.take(A, atMs);
    expect(bans.stats()).toEqual({
      [A]: { bans: 1, refused: 3, mostRefused: 3, bannedAtMs: 5, lastRefusedAtMs: 9 },
    });
  });

  it('exclude peeks', () => {
    const bans = new Bans();
    bans.ban({ addresses: [A], answer: ANSWER, forMs: null }, 0);
    expect(bans.peek(A, 1)).toBeNull();
    bans.take(A, 2);
    expect(bans.peek(A, 3)).toEqual(ANSWER);
    expect(bans.stats()[A]?.refused).toBe(1);
  });

  it('are cleared with everything else', () => {
    const bans = bansOf({ when: { request: 1 }, coolDownMs: null, answer: ANSWER });
    bans.take(A, 0);
    bans.clear();
    expect(bans.take(A, 1)).toBeNull();
    expect(bans.stats()).toEqual({});
  });
});
