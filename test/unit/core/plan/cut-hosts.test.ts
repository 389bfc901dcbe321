import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { cutByHost, type HostProducts, inCrawlOrder } from '../../../../orchestrator/core/plan/cut-hosts.ts';
import { type ChunkRange, MAX_CHUNK } from '../../../../shared/domain/sharing.ts';
import '../../../support/property-seed.ts';

const HOUR = 3_600_000;
const GAP_MS = 15_000;
/** A twentieth of four hours: 48 products. */
const SLICE = 48;
const host = (products: number, gapMs = GAP_MS): HostProducts => ({ products, gapMs });
const cut = (hosts: HostProducts[], size = 100): ChunkRange[] => cutByHost(hosts, 4 * HOUR, size);

describe('cutting chunks by host', () => {
  it('puts whole hosts into a chunk, with a request for the robots.txt of each', () => {
    expect(cut([host(3), host(2), host(1)], 7)).toEqual([
      { index: 1, first: 1, last: 5, hosts: { sliceOf: null, leftMs: 3 * GAP_MS } },
      { index: 2, first: 6, last: 6, hosts: { sliceOf: null, leftMs: GAP_MS } },
    ]);
  });

  it('cuts a long host into slices of its own, each with the time that is left from it on', () => {
    expect(cut([host(100), host(1)])).toEqual([
      { index: 1, first: 1, last: SLICE, hosts: { sliceOf: 1, leftMs: 100 * GAP_MS } },
      { index: 2, first: 49, last: 96, hosts: { sliceOf: 1, leftMs: 52 * GAP_MS } },
      { index: 3, first: 97, last: 100, hosts: { sliceOf: 1, leftMs: 4 * GAP_MS } },
      { index: 4, first: 101, last: 101, hosts: { sliceOf: null, leftMs: GAP_MS } },
    ]);
  });

  it('cuts slices of at most 20 minutes, however long the run is', () => {
    const [first] = cutByHost([host(5_000)], 48 * HOUR, 100);
    expect(first?.last).toBe(80);
  });

  it('leaves out hosts without products', () => {
    expect(cut([host(0), host(2), host(0)])).toMatchObject([{ first: 1, last: 2 }]);
    expect(cut([])).toEqual([]);
  });

  it('orders hosts by how long they take', () => {
    expect(inCrawlOrder([host(1), host(9), host(4, 60_000)])).toEqual([host(4, 60_000), host(9), host(1)]);
  });

  it('gives each product to one chunk, and each host to one chunk or to its own slices', () => {
    const anyHost = fc.record({
      products: fc.integer({ min: 0, max: 400 }),
      gapMs: fc.integer({ min: 1, max: 60_000 }),
    });
    fc.assert(
      fc.property(fc.array(anyHost, { maxLength: 40 }), fc.integer({ min: 1, max: 600 }), (hosts, size) => {
        const chunks = cut(hosts, size);
        const total = hosts.reduce((sum, { products }) => sum + products, 0);
        expect(chunks.map(({ index }) => index)).toEqual(chunks.map((_, i) => i + 1));
        expect(chunks.map(({ first }) => first)).toEqual(
          [1, ...chunks.map(({ last }) => last + 1)].slice(0, chunks.length),
        );
        expect(chunks.at(-1)?.last ?? 0).toBe(total);
        for (const { first, last } of chunks) expect(last - first + 1).toBeLessThanOrEqual(MAX_CHUNK);
        let from = 1;
        for (const { products } of hosts) {
          const own = chunks.filter(({ first, last }) => products > 0 && first < from + products && last >= from);
          if (own.length > 1) {
            expect(own[0]).toMatchObject({ first: from, hosts: { sliceOf: own[0]?.index } });
            expect(own.at(-1)?.last).toBe(from + products - 1);
            for (const { hosts: of } of own) expect(of?.sliceOf).toBe(own[0]?.index);
          }
          from += products;
        }
      }),
    );
  });
});
