/** The statistics of the request log: gaps per address, concurrency, counts. */
import { describe, expect, it } from 'vitest';
import { Arrivals } from '../../support/shop/arrivals.ts';

function arrive(arrivals: Arrivals, address: string, atMs: number, path = '/item/a') {
  return arrivals.add({
    kind: 'page',
    address,
    atMs,
    path,
    id: 'a',
    method: 'GET',
    userAgent: 'test',
    headers: {},
    wallMs: 0,
  });
}

describe('Arrivals', () => {
  it('finds the smallest gap of each address, never across addresses', () => {
    const arrivals = new Arrivals();
    for (const [address, atMs] of [
      ['127.0.0.2', 0],
      ['127.0.0.3', 1],
      ['127.0.0.2', 200],
      ['127.0.0.3', 250],
      ['127.0.0.2', 390],
    ] as const)
      arrivals.end(arrive(arrivals, address, atMs), 200);
    const stats = arrivals.stats();
    expect(stats.addresses['127.0.0.2']).toEqual({ requests: 3, minGapMs: 190, maxConcurrency: 1 });
    expect(stats.addresses['127.0.0.3']).toEqual({ requests: 2, minGapMs: 249, maxConcurrency: 1 });
    expect(stats.minGapMs).toBe(190);
    expect(stats.requests).toBe(5);
  });

  it('has no gap for an address with one request', () => {
    const arrivals = new Arrivals();
    arrive(arrivals, '127.0.0.2', 5);
    expect(arrivals.stats()).toMatchObject({ minGapMs: null, addresses: { '127.0.0.2': { minGapMs: null } } });
  });

  it('counts requests of one address that overlap', () => {
    const arrivals = new Arrivals();
    const first = arrive(arrivals, '127.0.0.2', 0);
    arrive(arrivals, '127.0.0.2', 10);
    arrivals.end(first, 200);
    expect(arrive(arrivals, '127.0.0.2', 20).concurrency).toBe(2);
    expect(arrivals.stats().addresses['127.0.0.2']?.maxConcurrency).toBe(2);
  });

  it('counts requests by path as sent', () => {
    const arrivals = new Arrivals();
    for (const path of ['/item/a%20b', '/item/a%20b', '/item/c']) arrive(arrivals, '127.0.0.2', 0, path);
    expect(arrivals.stats().paths).toEqual({ '/item/a%20b': 2, '/item/c': 1 });
  });

  it('forgets arrivals, but not requests in progress', () => {
    const arrivals = new Arrivals();
    arrive(arrivals, '127.0.0.2', 0);
    arrivals.clear();
    expect(arrivals.list()).toEqual([]);
    expect(arrive(arrivals, '127.0.0.2', 1).concurrency).toBe(2);
  });
});
