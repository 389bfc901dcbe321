/** The demo shop over HTTP: pages, misbehaviour, and its log of visitors. */
import { describe, expect, it } from 'vitest';
import { findLeftovers, waitFor } from '../../support/processes.ts';
import { renderPage } from '../../support/shop/page.ts';
import { STRANGE_IDS, expectedProduct } from '../../support/shop/product.ts';
import { startShop } from '../../support/shop/start-shop.ts';
import { SEED, useShop } from './shop-stage.ts';

const stage = useShop();
const { get, visitFrom } = stage;

/** Error code with which a fetch or the reading of its body ends. */
async function failureOf(id: string): Promise<unknown> {
  const failed = await get(id)
    .then((response) => response.text())
    .then(
      () => null,
      (error: unknown) => error,
    );
  return ((failed as Error | null)?.cause as { code?: string } | undefined)?.code;
}

describe('product pages', () => {
  it.each(['P00001', 'P00010', ...STRANGE_IDS])('shows the page of %j', async (id) => {
    const response = await get(id);
    expect(response.status).toBe(200);
    expect(response.headers.get('content-type')).toBe('text/html; charset=utf-8');
    expect(await response.text()).toBe(renderPage(expectedProduct(SEED, id)));
  });

  it.each(['/item/P00011', '/item/nobody', '/item/', '/', '/item/slash/and/slash', '/item/%E0%A4%A'])(
    'answers %s with 404',
    async (path) => {
      const response = await fetch(stage.shop.url + path);
      expect(response.status).toBe(404);
      await response.text();
    },
  );

  it('sells more IDs when configured to', async () => {
    await stage.shop.addProducts(['new one']);
    expect(await (await get('new one')).text()).toBe(renderPage(expectedProduct(SEED, 'new one')));
  });

  it('refuses other methods', async () => {
    expect((await fetch(`${stage.shop.url}/item/P00001`, { method: 'POST', body: 'x' })).status).toBe(405);
  });
});

describe('misbehaviour', () => {
  it.each([403, 404, 410, 429, 500, 503])('answers %i', async (status) => {
    const response = await get(`${status}-x`);
    expect(response.status).toBe(status);
    expect(response.headers.get('retry-after')).toBe(status === 429 ? '5' : null);
    await response.text();
  });

  it('redirects', async () => {
    const response = await get('redirect-x');
    expect([response.status, response.headers.get('location')]).toEqual([302, '/verify']);
    await response.text();
  });

  it.each(['reset-x', 'cut-x'])('breaks the connection for %s', async (id) => {
    expect(await failureOf(id)).toBe('ECONNRESET');
  });

  it('stops in the middle of the page and stays silent', async () => {
    const response = await fetch(`${stage.shop.url}/item/stall-x`);
    const reader = response.body!.getReader();
    let bytes = 0;
    while (bytes < 2_000) bytes += (await reader.read()).value!.length;
    expect(bytes).toBe(2_000);
    await reader.cancel();
    await waitFor(async () => (await stage.shop.log()).at(-1)?.status === 200, {
      what: 'the shop to see the client leave',
    });
  });

  it('never answers, and records that the client left without an answer', async () => {
    const leave = new AbortController();
    const asked = fetch(`${stage.shop.url}/item/hang-x`, { signal: leave.signal }).catch((error: unknown) => error);
    await waitFor(async () => (await stage.shop.log()).length === 1, { what: 'the request to arrive' });
    expect((await stage.shop.log())[0]?.status).toBeNull();
    leave.abort();
    expect(await asked).toBeInstanceOf(DOMException);
    await waitFor(async () => (await stage.shop.log())[0]?.status === 0, { what: 'the shop to see the client leave' });
  });

  it('answers late', async () => {
    await stage.shop.setRules([{ id: 'P00001', do: { type: 'slow', ms: 120 } }]);
    const startMs = performance.now();
    expect((await get('P00001')).status).toBe(200);
    expect(performance.now() - startMs).toBeGreaterThanOrEqual(115);
  });

  it('leaves out fields, sends a wrong content type, sends nothing', async () => {
    const untitled = await (await get('untitled-x')).text();
    expect(untitled).toBe(renderPage(expectedProduct(SEED, 'untitled-x'), ['title']));
    expect((await get('pdf-x')).headers.get('content-type')).toBe('application/pdf');
    expect(await (await get('empty-x')).text()).toBe('');
  });

  it('sends as many bytes as a rule requires', async () => {
    await stage.shop.setRules([{ prefix: 'P', do: { type: 'huge', bytes: 3_000_000 } }]);
    expect((await (await get('P00001')).arrayBuffer()).byteLength).toBe(3_000_000);
  });

  it('misbehaves on the first requests only and then answers normally', async () => {
    await stage.shop.setRules([{ id: 'P00001', times: 2, do: { type: 'status', status: 500 } }]);
    const statuses: number[] = [];
    for (let i = 0; i < 3; i++) statuses.push((await get('P00001')).status);
    expect(statuses).toEqual([500, 500, 200]);
  });

  it('names the fault of a rule', async () => {
    await expect(stage.shop.setRules([{ id: 'a', do: { type: 'status', status: 42 } }])).rejects.toThrow('status');
  });
});

describe('the log', () => {
  it('tells addresses apart and counts only requests of visitors', async () => {
    await visitFrom('127.0.5.1', 'P00001');
    await visitFrom('127.0.5.2', 'P00001');
    await visitFrom('127.0.5.1', '日本語の商品');
    const stats = await stage.shop.stats();
    expect(Object.keys(stats.addresses).sort()).toEqual(['127.0.5.1', '127.0.5.2']);
    expect(stats.addresses['127.0.5.1']?.requests).toBe(2);
    expect(stats.paths['/item/P00001']).toBe(2);
    const log = await stage.shop.log();
    expect(log.map((entry) => [entry.seq, entry.address, entry.id, entry.status])).toEqual([
      [1, '127.0.5.1', 'P00001', 200],
      [2, '127.0.5.2', 'P00001', 200],
      [3, '127.0.5.1', '日本語の商品', 200],
    ]);
    expect(stats.minGapMs).toBe(log[2]!.atMs - log[0]!.atMs);
  });
});

describe('the process', () => {
  it('is gone after stop, port and all', async () => {
    const other = await startShop({ address: '127.0.5.9', products: 1 });
    expect(other.url).toMatch(/^http:\/\/127\.0\.5\.9:\d+$/);
    await other.stop();
    await expect(fetch(other.url)).rejects.toThrow('fetch failed');
    expect(findLeftovers('--address 127.0.5.9')).toEqual([]);
  });

  it('listens on loopback only', async () => {
    await expect(startShop({ address: '0.0.0.0' })).rejects.toThrow('ended before it was ready');
  });
});
