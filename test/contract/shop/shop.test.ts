/** The demo shop as a measuring instrument: its log of visitors, by which every test of politeness judges. */
import { request } from 'node:http';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { productUrl } from '../../../shared/domain/product.ts';
import { type Shop, startShop } from '../../support/shop/start-shop.ts';

let shop: Shop;
beforeAll(async () => {
  shop = await startShop({ products: 10, seed: 3 });
});
afterAll(() => shop?.stop());
beforeEach(() => shop.reset());

/** One request from a chosen address of this machine. */
const visit = (url: string, localAddress = '127.0.5.1'): Promise<void> =>
  new Promise((resolve, reject) => {
    request(url, { localAddress, agent: false }, (response) => response.resume().on('end', resolve))
      .on('error', reject)
      .end();
  });

describe('the log', () => {
  it('tells addresses apart and counts only requests of visitors', async () => {
    await visit(productUrl(shop.productUrl, 'P00001'));
    await visit(productUrl(shop.productUrl, 'P00001'), '127.0.5.2');
    await visit(productUrl(shop.productUrl, '日本語の商品'));
    const stats = await shop.stats();
    expect(Object.keys(stats.addresses).sort()).toEqual(['127.0.5.1', '127.0.5.2']);
    expect(stats.addresses['127.0.5.1']?.requests).toBe(2);
    expect(stats.paths['/item/P00001']).toBe(2);
    const log = await shop.log();
    expect(log.map((entry) => [entry.seq, entry.address, entry.id, entry.status])).toEqual([
      [1, '127.0.5.1', 'P00001', 200],
      [2, '127.0.5.2', 'P00001', 200],
      [3, '127.0.5.1', '日本語の商品', 200],
    ]);
    expect(stats.minGapMs).toBe(log[2]!.atMs - log[0]!.atMs);
  });

  it('has the requests for robots.txt, which do not count as requests for a page', async () => {
    for (const url of [`${shop.url}/robots.txt`, productUrl(shop.productUrl, 'P00001'), `${shop.url}/robots.txt`])
      await visit(url);
    const stats = await shop.stats();
    expect(stats).toMatchObject({ requests: 1, minGapMs: null, robotsRequests: 2 });
    expect(stats.addresses['127.0.5.1']?.requests).toBe(1);
    expect((await shop.log()).map((entry) => entry.kind)).toEqual(['robots', 'page', 'robots']);
  });
});
