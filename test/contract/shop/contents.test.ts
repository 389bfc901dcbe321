/** The shop's odd answers, byte for byte: the tests that crawl them rely on it. */
import { once } from 'node:events';
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { get } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { createGunzip, brotliDecompressSync, gunzipSync, inflateSync, zstdDecompressSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { startCanary } from '../../support/shop/canary.ts';
import { renderPage } from '../../support/shop/page.ts';
import { expectedProduct, expectedRow } from '../../support/shop/product.ts';
import { SEED, useShop } from './shop-stage.ts';

const stage = useShop();
const page = (id: string): string => renderPage(expectedProduct(SEED, id));

/** The answer as sent over the wire, nothing decoded. */
async function raw(id: string): Promise<{ headers: IncomingHttpHeaders; body: Buffer }> {
  const asked = get(`${stage.shop.url}/item/${id}`, { agent: false });
  const [response] = (await once(asked, 'response')) as [IncomingMessage];
  return { headers: response.headers, body: await buffer(response) };
}

describe('compressed answers', () => {
  it.each([
    ['gzip', gunzipSync],
    ['deflate', inflateSync],
    ['br', brotliDecompressSync],
    ['zstd', zstdDecompressSync],
  ] as const)('unpack by %s to the page', async (encoding, unpack) => {
    const { headers, body } = await raw(`${encoding}-x`);
    expect(headers['content-encoding']).toBe(encoding);
    expect(unpack(body).toString()).toBe(page(`${encoding}-x`));
  });

  it('are cut short, or are not compressed at all', async () => {
    const cut = await raw('cutgzip-x');
    expect(cut.body).toHaveLength(1_000);
    expect(() => gunzipSync(cut.body)).toThrow('unexpected end of file');
    const plain = await raw('falsegzip-x');
    expect([plain.headers['content-encoding'], plain.body.toString()]).toEqual(['gzip', page('falsegzip-x')]);
  });

  it('expand two megabytes to a gigabyte', async () => {
    const { headers, body } = await raw('bomb-x');
    expect(headers['content-encoding']).toBe('gzip');
    expect(body.length).toBeLessThan(2_000_000);
    const unpacking = createGunzip();
    unpacking.end(body);
    let bytes = 0;
    for await (const piece of unpacking) bytes += (piece as Buffer).length;
    expect(bytes).toBe(1_000_001_000);
  });
});

describe('charsets', () => {
  it.each([
    ['sjis-x', 'shift_jis', 'text/html; charset=shift_jis', false],
    ['sjismeta-x', 'shift_jis', 'text/html', true],
    ['sjisnone-x', 'shift_jis', 'text/html', false],
    ['sjiswrong-x', 'shift_jis', 'text/html; charset=utf-8', false],
    ['sjisclash-x', 'shift_jis', 'text/html; charset=utf-8', true],
    ['jis-x', 'iso-2022-jp', 'text/html; charset=iso-2022-jp', false],
    ['utf16lebom-x', 'utf-16le', 'text/html', false],
  ])('%s is in %s as %s', async (id, charset, contentType, meta) => {
    const { headers, body } = await raw(id);
    expect(headers['content-type']).toBe(contentType);
    const text = new TextDecoder(charset).decode(body);
    expect(text).toContain(`<h1 class="title">\n  ${expectedProduct(SEED, id).title}\n</h1>`);
    expect(/<meta [^>]*charset=/.test(text)).toBe(meta);
    const jsonLd = /<script type="application\/ld\+json">([^<]*)/.exec(text)?.[1] ?? '';
    expect(JSON.parse(jsonLd)).toMatchObject({ brand: { name: expectedRow(SEED, id).brand } });
  });
});

describe('floods', () => {
  it.each([
    ['nodes-x', 3_000_000],
    ['nested-x', 500_000],
    ['redos-x', 300_000],
  ])('%s holds the product behind %i bytes', async (id, bytes) => {
    const { body } = await raw(id);
    expect(body.length).toBeGreaterThanOrEqual(bytes);
    const html = body.toString();
    expect(html.slice(-page(id).length / 2)).toBe(page(id).slice(-page(id).length / 2));
  });

  it('never end', async () => {
    const response = await stage.get('endless-x');
    const reader = response.body!.getReader();
    let bytes = 0;
    while (bytes < 30_000_000) bytes += (await reader.read()).value!.length;
    await reader.cancel();
  });

  it('arrive slowly', async () => {
    await stage.shop.setRules([{ id: 'P00001', do: { type: 'trickle', everyMs: 5, bytes: 3 } }]);
    const reader = (await stage.get('P00001')).body!.getReader();
    const pieces = [await reader.read(), await reader.read(), await reader.read()];
    const sizes = pieces.map((piece) => piece.value!.length);
    expect(Math.max(...sizes)).toBeLessThan(100);
    await reader.cancel();
  });
});

describe('redirects', () => {
  it.each([
    ['chain5-x', 5, 200],
    ['chain6-x', 6, 200],
  ])('%s takes %i hops', async (id, hops, status) => {
    const response = await fetch(`${stage.shop.url}/item/${id}`);
    expect(response.status).toBe(status);
    expect(await response.text()).toBe(page(id));
    expect((await stage.shop.stats()).requests).toBe(hops + 1);
  });

  it('lead to themselves, elsewhere, and to URLs that are no web pages', async () => {
    await using canary = await openCanary();
    await stage.shop.setCanary(canary.url);
    const targets = await Promise.all(
      ['loop-x', 'offsite-x', 'imds-x', 'tofile-x', 'todata-x'].map(async (id) => {
        const response = await stage.get(id);
        await response.text();
        return response.headers.get('location');
      }),
    );
    expect(targets).toEqual([
      '/item/loop-x',
      `${canary.url}/item/x`,
      'http://169.254.169.254/latest/meta-data/iam/security-credentials/',
      'file:///etc/passwd',
      'data:text/html,<h1>data</h1>',
    ]);
    expect(canary.visits()).toEqual([]);
  });
});

describe('other contents', () => {
  it('are JSON and XML with the values of the row', async () => {
    const json = await stage.get('json-x');
    expect(json.headers.get('content-type')).toBe('application/json');
    expect(await json.json()).toMatchObject({ product: expectedRow(SEED, 'json-x') });
    const xml = await stage.get('xml-x');
    expect(xml.headers.get('content-type')).toBe('application/xml');
    expect(await xml.text()).toContain(`<price currency="JPY">${expectedRow(SEED, 'xml-x').price}</price>`);
  });

  it.each([
    ['realpdf-x', 'application/pdf', '%PDF-1.7'],
    ['hiddenpdf-x', 'text/html', '%PDF-1.7'],
    ['video-x', 'video/mp4', 'ftyp'],
  ])('%s is %s', async (id, type, start) => {
    const { headers, body } = await raw(id);
    expect(headers['content-type']).toBe(type);
    expect(body.subarray(0, 20).toString('latin1')).toContain(start);
  });

  it('are a product on two pages', async () => {
    const first = await (await stage.get('parts-x')).text();
    expect(first).not.toContain('application/ld+json');
    const next = /rel="next" href="([^"]*)"/.exec(first)?.[1] ?? '';
    expect(await (await fetch(stage.shop.url + next)).text()).toBe(page('parts-x'));
  });

  it('name a date to wait for', async () => {
    const after = Date.parse((await stage.get('waitdate-x')).headers.get('retry-after') ?? '');
    expect(Math.abs(after - Date.now() - 2_000)).toBeLessThan(2_000);
  });
});

describe('the canary', () => {
  it('counts every connection, and records what is sent on it', async () => {
    await using canary = await openCanary();
    expect(await (await fetch(`${canary.url}/secret`)).text()).toBe('secret');
    expect(canary.visits()).toHaveLength(1);
    expect(canary.visits()[0]?.said).toMatch(/^GET \/secret HTTP/);
  });
});

async function openCanary() {
  const canary = await startCanary();
  return Object.assign(canary, { [Symbol.asyncDispose]: () => canary.stop() });
}
