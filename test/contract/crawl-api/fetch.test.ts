/** The fetcher against real HTTP servers: what each kind of reply becomes. */
import type http from 'node:http';
import net from 'node:net';
import zlib from 'node:zlib';
import { afterEach, describe, expect, it } from 'vitest';
import { compileMapping } from '../../../crawl-api/extract/compile-mapping.ts';
import { PageExtractor } from '../../../crawl-api/extract/page-extractor.ts';
import { createAddressGuard } from '../../../crawl-api/fetch/address-guard.ts';
import { PageFetcher } from '../../../crawl-api/fetch/page-fetcher.ts';
import type { FetchHooks, PageResult } from '../../../crawl-api/fetch/page-result.ts';
import { createTargetDispatcher } from '../../../crawl-api/fetch/target-dispatcher.ts';
import { systemClock } from '../../../shared/adapters/system-clock.ts';
import type { Stub } from './http-stub.ts';
import { freePort, ownAddress, startStub } from './http-stub.ts';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

const mapping = compileMapping({
  fields: [
    { name: 't', select: { type: 'css', selector: 'h1' }, process: [{ type: 'trim' }], all: false, required: true },
  ],
});
const html = { 'content-type': 'text/html; charset=utf-8' };
const PAGE = '<h1>Tea 茶</h1>';
const found = { kind: 'page', extraction: { row: { t: 'Tea 茶' }, missing: null } };

async function serve(handle: (request: http.IncomingMessage, response: http.ServerResponse) => void): Promise<Stub> {
  const stub = await startStub((request, _body, response) => handle(request, response));
  cleanups.push(stub.close);
  return stub;
}

interface FetchOptions {
  template?: string;
  timeoutMs?: number;
  maxPageBytes?: number;
  localAddress?: string;
  allowPrivate?: boolean;
  hooks?: FetchHooks;
  signal?: AbortSignal;
}

function createFetcher(
  template: string,
  { timeoutMs = 5_000, maxPageBytes = 100_000, localAddress, allowPrivate = false }: FetchOptions,
): PageFetcher {
  const guard = createAddressGuard({ productUrl: template, allowPrivate, forbidden: [] });
  const dispatcher = createTargetDispatcher({
    localAddress: localAddress ?? ownAddress(),
    guard,
    connectTimeoutMs: timeoutMs,
  });
  cleanups.push(() => dispatcher.destroy());
  const settings = { userAgent: 'testbot/1.0', timeoutMs, maxPageBytes };
  return new PageFetcher(dispatcher, settings, systemClock, (kind) => new PageExtractor(mapping, kind));
}

const noHooks: FetchHooks = { onStart: () => undefined, onFirstByte: () => undefined };

function fetchPage(url: string, options: FetchOptions = {}): Promise<PageResult> {
  const fetcher = createFetcher(options.template ?? url, options);
  return fetcher.fetch(url, options.hooks ?? noHooks, options.signal ?? new AbortController().signal);
}

describe('a good page', () => {
  it('is read from the own address, with the user agent, and without following anything', async () => {
    const seen: { from: string | undefined; headers: http.IncomingHttpHeaders }[] = [];
    const shop = await serve((request, response) => {
      seen.push({ from: request.socket.remoteAddress, headers: request.headers });
      response.writeHead(200, html).end(PAGE);
    });
    const localAddress = ownAddress();
    expect(await fetchPage(`${shop.url}/1`, { localAddress })).toEqual(found);
    expect(seen).toHaveLength(1);
    expect(seen[0]!.from).toBe(localAddress);
    expect(seen[0]!.headers).toMatchObject({
      'user-agent': 'testbot/1.0',
      'accept-encoding': expect.stringContaining('gzip') as string,
    });
  });

  it.each<[string, (text: string) => Buffer]>([
    ['gzip', (text) => zlib.gzipSync(text)],
    ['x-gzip', (text) => zlib.gzipSync(text)],
    ['br', (text) => zlib.brotliCompressSync(text)],
    ['deflate', (text) => zlib.deflateSync(text)],
    ['deflate', (text) => zlib.deflateRawSync(text)],
    ['zstd', (text) => zlib.zstdCompressSync(text)],
    ['identity', (text) => Buffer.from(text)],
  ])('is decoded from %s', async (encoding, compress) => {
    const shop = await serve((_request, response) => {
      response.writeHead(200, { ...html, 'content-encoding': encoding }).end(compress(PAGE + ' '.repeat(50_000)));
    });
    expect(await fetchPage(shop.url)).toEqual(found);
  });

  it('is read in whatever pieces it comes', async () => {
    const shop = await serve((_request, response) => {
      const bytes = Buffer.from(PAGE);
      response.writeHead(200, html);
      const write = (at: number): void => {
        if (at >= bytes.length) response.end();
        else response.write(bytes.subarray(at, at + 1), () => setImmediate(write, at + 1));
      };
      write(0);
    });
    expect(await fetchPage(shop.url)).toEqual(found);
  });

  it('is taken for HTML when the server does not say what it is', async () => {
    const shop = await serve((_request, response) => void response.writeHead(200).end(PAGE));
    expect(await fetchPage(shop.url)).toEqual(found);
  });

  it('tells its start before the server has the request, and its first byte before the end', async () => {
    const events: string[] = [];
    const shop = await serve((_request, response) => {
      events.push('arrived');
      response.writeHead(200, html).end(PAGE);
    });
    await fetchPage(shop.url, {
      hooks: { onStart: () => events.push('start'), onFirstByte: () => events.push('first byte') },
    });
    expect(events).toEqual(['start', 'arrived', 'first byte']);
  });

  it('uses one connection for one page after the other', async () => {
    const ports = new Set<number | undefined>();
    const shop = await serve((request, response) => {
      ports.add(request.socket.remotePort);
      const status = request.url === '/2' ? 404 : 200;
      response.writeHead(status, html).end(PAGE);
    });
    const fetcher = createFetcher(shop.url, {});
    for (const path of ['/1', '/2', '/3']) await fetcher.fetch(shop.url + path, noHooks, new AbortController().signal);
    expect(ports.size).toBe(1);
  });

  it('keeps an ID of dots as it is in the path', async () => {
    const paths: string[] = [];
    const shop = await serve((request, response) => {
      paths.push(request.url!);
      response.writeHead(200, html).end(PAGE);
    });
    await fetchPage(`${shop.url}/item/%2E%2E`, { template: `${shop.url}/item/{id}` });
    expect(paths).toEqual(['/item/%2E%2E']);
  });
});

describe('other replies', () => {
  it.each<[string, number, http.OutgoingHttpHeaders, string, object]>([
    ['404', 404, html, 'x', { kind: 'gone', status: 404 }],
    ['410', 410, html, '', { kind: 'gone', status: 410 }],
    ['500', 500, html, 'x', { kind: 'failed', reason: 'http-status', detail: 'status 500' }],
    ['403', 403, html, 'x', { kind: 'failed', reason: 'http-status', detail: 'status 403' }],
    ['429', 429, {}, '', { kind: 'failed', reason: 'http-status' }],
    ['a redirect', 302, { location: '/login' }, '', { kind: 'failed', reason: 'redirect', detail: '302 to /login' }],
    ['a permanent redirect', 308, { ...html, location: 'http://169.254.169.254/' }, 'x', { reason: 'redirect' }],
    ['a redirect to nowhere', 301, {}, '', { reason: 'redirect', detail: '301 without a location' }],
    [
      'an image',
      200,
      { 'content-type': 'image/png' },
      'x',
      { kind: 'failed', reason: 'content-type', detail: 'content-type image/png' },
    ],
    ['an unknown encoding', 200, { ...html, 'content-encoding': 'lzma' }, 'x', { reason: 'content-type' }],
    ['broken gzip', 200, { ...html, 'content-encoding': 'gzip' }, 'not gzip at all', { reason: 'network' }],
    [
      'a page without the required field',
      200,
      html,
      '<h2>x</h2>',
      { kind: 'page', extraction: { row: null, missing: 't' } },
    ],
    ['an empty page', 200, html, '', { kind: 'page', extraction: { row: null, missing: 't' } }],
    ['a page that nests too deep', 200, html, '<b>'.repeat(5_000), { kind: 'failed', reason: 'too-large' }],
  ])('%s', async (_name, status, headers, body, expected) => {
    const shop = await serve((_request, response) => void response.writeHead(status, headers).end(body));
    expect(await fetchPage(shop.url)).toMatchObject(expected);
  });

  it('stops reading what is no page', async () => {
    let sent = 0;
    const shop = await serve((_request, response) => {
      response.writeHead(200, { 'content-type': 'video/mp4' });
      const pour = (): void => {
        if (response.destroyed) return;
        sent += 65_536;
        response.write(Buffer.alloc(65_536), () => setImmediate(pour));
      };
      pour();
    });
    expect(await fetchPage(shop.url)).toMatchObject({ reason: 'content-type' });
    expect(sent).toBeLessThan(20_000_000);
  });
});

describe('pages that are too much', () => {
  it.each(['identity', 'gzip', 'br', 'zstd'])('fail when their text is over the cap, as %s', async (encoding) => {
    const text = `<h1>x</h1>${' '.repeat(2_000_000)}`;
    const body = {
      identity: Buffer.from(text),
      gzip: zlib.gzipSync(text),
      br: zlib.brotliCompressSync(text),
      zstd: zlib.zstdCompressSync(text),
    }[encoding];
    const shop = await serve(
      (_request, response) => void response.writeHead(200, { ...html, 'content-encoding': encoding }).end(body),
    );
    expect(await fetchPage(shop.url)).toEqual({
      kind: 'failed',
      reason: 'too-large',
      detail: 'more than 100000 bytes',
    });
  });

  it('fail at a gzip bomb without unpacking it', async () => {
    const bomb = zlib.gzipSync(Buffer.alloc(200_000_000));
    const shop = await serve(
      (_request, response) => void response.writeHead(200, { ...html, 'content-encoding': 'gzip' }).end(bomb),
    );
    const before = process.memoryUsage().rss;
    expect(await fetchPage(shop.url)).toMatchObject({ reason: 'too-large' });
    expect(process.memoryUsage().rss - before).toBeLessThan(100_000_000);
  });

  it('fail at a page that never ends', async () => {
    const shop = await serve((_request, response) => {
      response.writeHead(200, html);
      const pour = (): void =>
        void (response.destroyed || response.write('<p>more</p>'.repeat(1_000), () => setImmediate(pour)));
      pour();
    });
    expect(await fetchPage(shop.url)).toMatchObject({ reason: 'too-large' });
  });
});

describe('servers in trouble', () => {
  it('times out when no reply comes', async () => {
    const shop = await serve(() => undefined);
    expect(await fetchPage(shop.url, { timeoutMs: 150 })).toEqual({
      kind: 'failed',
      reason: 'timeout',
      detail: 'no reply within 150 ms',
    });
  });

  it('times out when the reply does not end', async () => {
    const shop = await serve((_request, response) => void response.writeHead(200, html).write('<h1>x'));
    expect(await fetchPage(shop.url, { timeoutMs: 150 })).toMatchObject({
      reason: 'timeout',
      detail: 'the reply did not end within 150 ms',
    });
  });

  it.each<[string, (socket: net.Socket) => void]>([
    ['resets the connection', (socket) => socket.resetAndDestroy()],
    ['closes the connection', (socket) => socket.end()],
    ['answers nonsense', (socket) => socket.end('SMTP ready\r\n\r\n')],
    [
      'ends the body early',
      (socket) => socket.end('HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 100\r\n\r\n<h1>x</h1>'),
    ],
  ])('fails with network when the server %s', async (_what, act) => {
    const address = ownAddress();
    const server = net.createServer((socket) => {
      socket.on('error', () => undefined);
      socket.once('data', () => act(socket));
    });
    await new Promise<void>((resolve) => server.listen(0, address, resolve));
    cleanups.push(() => new Promise((resolve) => server.close(resolve)));
    const url = `http://${address}:${(server.address() as net.AddressInfo).port}/`;
    expect(await fetchPage(url)).toMatchObject({ kind: 'failed', reason: 'network' });
  });

  it('fails with network, and nothing started, when nobody listens', async () => {
    const address = ownAddress();
    let started = false;
    const hooks = { onStart: () => void (started = true), onFirstByte: () => undefined };
    expect(await fetchPage(`http://${address}:${await freePort(address)}/`, { hooks })).toMatchObject({
      reason: 'network',
    });
    expect(started).toBe(false);
  });

  it('fetches the next page after a time-out and after a reset', async () => {
    let calls = 0;
    const shop = await serve((request, response) => {
      calls++;
      if (calls === 1) return;
      if (calls === 2) request.socket.resetAndDestroy();
      else response.writeHead(200, html).end(PAGE);
    });
    const fetcher = createFetcher(shop.url, { timeoutMs: 200 });
    const signal = new AbortController().signal;
    expect(await fetcher.fetch(shop.url, noHooks, signal)).toMatchObject({ reason: 'timeout' });
    expect(await fetcher.fetch(shop.url, noHooks, signal)).toMatchObject({ reason: 'network' });
    expect(await fetcher.fetch(shop.url, noHooks, signal)).toEqual(found);
  });

  it('says nothing about a product when it was told to stop', async () => {
    const stop = new AbortController();
    const shop = await serve(() => stop.abort());
    expect(await fetchPage(shop.url, { signal: stop.signal })).toEqual({ kind: 'stopped' });
  });

  it('sends nothing when the start cannot be written down', async () => {
    let calls = 0;
    const shop = await serve((_request, response) => {
      calls++;
      response.writeHead(200, html).end(PAGE);
    });
    const hooks = {
      onStart: () => {
        throw new Error('disk full');
      },
      onFirstByte: () => undefined,
    };
    await expect(fetchPage(shop.url, { hooks })).rejects.toThrow('disk full');
    expect(calls).toBe(0);
  });
});

describe('addresses that are not the shop', () => {
  it('are not connected to: only the literal one of product_url is', async () => {
    let calls = 0;
    const other = await serve((_request, response) => {
      calls++;
      response.writeHead(200, html).end(PAGE);
    });
    expect(await fetchPage(other.url, { template: 'https://shop.example/{id}' })).toMatchObject({
      reason: 'network',
      detail: expect.stringContaining('not a public address') as string,
    });
    expect(calls).toBe(0);
  });

  it('are not reached through a name, unless private ones are allowed', async () => {
    let calls = 0;
    const shop = await startStub((_request, _body, response) => {
      calls++;
      response.writeHead(200, html).end(PAGE);
    }, '127.0.0.1');
    cleanups.push(shop.close);
    const url = `http://localhost:${shop.port}/`;
    expect(await fetchPage(url)).toMatchObject({
      reason: 'network',
      detail: expect.stringContaining('site.allow_private') as string,
    });
    expect(calls).toBe(0);
    expect(await fetchPage(url, { allowPrivate: true })).toEqual(found);
  });
});
