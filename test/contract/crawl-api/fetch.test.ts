/** The fetcher against real HTTP servers: how each kind of reply is reported. */
import type http from 'node:http';
import type net from 'node:net';
import { CookieJar } from '../../../shared/adapters/http/cookie-jar.ts';
import { systemClock } from '../../../shared/adapters/system-clock.ts';
import { describe, expect, it } from 'vitest';
import { createFetcher, fetchPage, html, noHooks, page, pour, serve, serveBytes, serveRaw } from './fetch-stage.ts';
import { ownAddress } from './http-stub.ts';
import { freePort } from '../../support/free-port.ts';

const PAGE = '<h1>Tea 茶</h1>';
const found = page(PAGE);

describe('a conditional request', () => {
  const VALIDATORS = { etag: 'W/"tea"', modified: 'Sat, 21 Nov 2026 02:15:30 GMT' };
  const asked = async (headers: http.OutgoingHttpHeaders, validators?: typeof VALIDATORS) => {
    const seen: http.IncomingHttpHeaders[] = [];
    const shop = await serve((request, response) => {
      seen.push(request.headers);
      const known = request.headers['if-none-match'] === VALIDATORS.etag;
      response.writeHead(known ? 304 : 200, { ...html, ...(known && headers) }).end(known ? '' : PAGE);
    });
    const fetcher = createFetcher(shop.url, {});
    const first = await fetcher.fetch(`${shop.url}/1`, noHooks, new AbortController().signal, { validators });
    // The connection is still good.
    expect(await fetcher.fetch(`${shop.url}/2`, noHooks, new AbortController().signal)).toMatchObject(found);
    expect(seen[1]).not.toHaveProperty('if-none-match');
    return { first, sent: seen[0]! };
  };

  it.each([{}, { 'content-encoding': 'gzip', 'content-type': 'image/png', 'content-length': '4711' }])(
    'answered 304 yields no page, whatever its headers contain: %j',
    async (headers) => {
      const { first, sent } = await asked(headers, VALIDATORS);
      expect(sent).toMatchObject({ 'if-none-match': VALIDATORS.etag, 'if-modified-since': VALIDATORS.modified });
      expect(first).toMatchObject({ kind: 'unchanged', validators: VALIDATORS, reply: { status: 304, bytes: 0 } });
    },
  );

  it('yields a changed page, and the number of bytes transferred', async () => {
    const { first } = await asked({}, { ...VALIDATORS, etag: '"coffee"' });
    expect(first).toMatchObject({ ...found, reply: { status: 200, bytes: Buffer.byteLength(PAGE) } });
  });

  it('is required for a 304: without one the fetch fails', async () => {
    const shop = await serveBytes({ etag: '"tea"' }, '', 304);
    expect(await fetchPage(`${shop.url}/1`)).toMatchObject({ kind: 'failed', reason: 'redirect' });
  });
});

describe('cookies', () => {
  it('of the jar are sent, and those of a reply wait to be kept', async () => {
    const seen: (string | undefined)[] = [];
    const shop = await serve((request, response) => {
      seen.push(request.headers.cookie);
      response.writeHead(200, { ...html, 'set-cookie': ['s=caf\u00e9; Path=/', 'r=2'] }).end(PAGE);
    });
    const cookies = new CookieJar(systemClock);
    const fetcher = createFetcher(shop.url, {});
    const fetch = () => fetcher.fetch(`${shop.url}/1`, noHooks, new AbortController().signal, { cookies });
    const first = await fetch();
    const second = await fetch();
    if (first.kind !== 'page' || second.kind !== 'page') throw new Error(first.kind);
    second.reply.cookies?.keep();
    await fetch();
    expect(seen).toEqual([undefined, undefined, 's=caf\u00e9; r=2']);
    expect(first.reply.cookies?.names()).toEqual(['s', 'r']);
    expect(JSON.stringify(first)).not.toContain('caf');
  });
});

describe('a good page', () => {
  it('is read from its own address, with the user agent, and without following anything', async () => {
    const seen: { from: string | undefined; headers: http.IncomingHttpHeaders }[] = [];
    const shop = await serve((request, response) => {
      seen.push({ from: request.socket.remoteAddress, headers: request.headers });
      response.writeHead(200, html).end(PAGE);
    });
    const localAddress = ownAddress();
    expect(await fetchPage(`${shop.url}/1`, { localAddress })).toMatchObject(found);
    expect(seen).toHaveLength(1);
    expect(seen[0]!.from).toBe(localAddress);
    expect(seen[0]!.headers).toMatchObject({
      'user-agent': 'testbot/1.0',
      'accept-encoding': expect.stringContaining('gzip') as string,
    });
  });

  it('includes its reply', async () => {
    const headers = { ...html, 'X-Shop': 'tea', 'Set-Cookie': ['a=1', 'b=2'], Vary: ['a', 'b'] };
    const shop = await serveBytes(headers, PAGE);
    const result = await fetchPage(`${shop.url}/1`);
    expect(result).toMatchObject({
      reply: {
        url: `${shop.url}/1`,
        status: 200,
        headers: { 'content-type': 'text/html; charset=utf-8', 'x-shop': 'tea', vary: 'a, b' },
        body: PAGE,
        complete: true,
        waitMs: expect.any(Number) as number,
      },
    });
    expect(JSON.stringify(result)).not.toMatch(/a=1|set-cookie/i);
  });

  it('keeps the beginning of a long one with the reply', async () => {
    const long = '<p>' + 'x'.repeat(80_000);
    const shop = await serveBytes(html, long);
    const result = await fetchPage(shop.url);
    expect(result).toMatchObject({ ...page(long), reply: { body: long.slice(0, 65_536), complete: false } });
  });

  it('is read in whatever pieces it arrives', async () => {
    const shop = await serve((_request, response) => {
      const bytes = Buffer.from(PAGE);
      response.writeHead(200, html);
      const write = (at: number): void => {
        if (at >= bytes.length) response.end();
        else response.write(bytes.subarray(at, at + 1), () => setImmediate(write, at + 1));
      };
      write(0);
    });
    expect(await fetchPage(shop.url)).toMatchObject(found);
  });

  it('is taken for HTML when the server sends no content type', async () => {
    const shop = await serve((_request, response) => void response.writeHead(200).end(PAGE));
    expect(await fetchPage(shop.url)).toMatchObject(found);
  });

  it('reports its start before the server has the request, and its first byte before the end', async () => {
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

  it('uses one connection for consecutive pages', async () => {
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
  const failed = (reason: string, detail: string, retryAfterMs: number | null = null): object => ({
    kind: 'failed',
    reason,
    detail,
    retryAfterMs,
  });

  it.each<[string, number, http.OutgoingHttpHeaders, object]>([
    ['404', 404, html, { kind: 'gone' }],
    ['410', 410, html, { kind: 'gone' }],
    ['404 with a picture', 404, { 'content-type': 'image/gif' }, { kind: 'gone', reply: { body: '' } }],
    ['500', 500, html, failed('http-status', 'status 500')],
    ['403', 403, html, failed('http-status', 'status 403')],
    ['999', 999, html, failed('http-status', 'status 999')],
    ['600', 600, html, failed('http-status', 'status 600')],
    ['429', 429, html, failed('http-status', 'status 429')],
    ['429 with Retry-After', 429, { ...html, 'retry-after': '5' }, failed('http-status', 'status 429', 5_000)],
    ['503 with Retry-After', 503, { ...html, 'retry-after': '36000' }, failed('http-status', 'status 503', 36_000_000)],
    ['503 with rubbish for it', 503, { ...html, 'retry-after': 'soon' }, failed('http-status', 'status 503')],
    ['500 with Retry-After', 500, { ...html, 'retry-after': '5' }, failed('http-status', 'status 500')],
    ['a redirect to nowhere', 302, {}, failed('redirect', '302 without a location that can be read')],
    ['304', 304, {}, { ...failed('redirect', '304 without a location that can be read'), reply: { body: '' } }],
  ])('%s', async (_name, status, headers, expected) => {
    const shop = await serveBytes(headers, '<p>Sorry', status);
    const reply = { status, ...(status === 200 ? {} : { body: '<p>Sorry', complete: true }) };
    const result = await fetchPage(shop.url);
    expect(result).toMatchObject('reply' in expected ? expected : { ...expected, reply });
    expect(shop.requests).toBe(1);
  });

  it.each([
    ['/login?next=1', (origin: string) => `${origin}/login?next=1`],
    ['other', (origin: string) => `${origin}/item/other`],
    ['//cdn.example/x', () => 'http://cdn.example/x'],
    ['https://shop.example/a b', () => 'https://shop.example/a%20b'],
    ['http://169.254.169.254/latest/', () => 'http://169.254.169.254/latest/'],
    ['javascript:alert(1)', () => 'javascript:alert(1)'],
  ])('a redirect to %s is reported, not followed', async (location, to) => {
    const shop = await serveBytes({ ...html, location }, 'moved', 302);
    expect(await fetchPage(`${shop.url}/item/1`)).toMatchObject({
      kind: 'redirect',
      to: to(shop.url),
      reply: { status: 302, body: 'moved', headers: { location } },
    });
    expect(shop.requests).toBe(1);
  });

  it('understands an unencoded location in UTF-8', async () => {
    const { url } = await serveRaw((socket) =>
      socket.end('HTTP/1.1 301 Moved\r\nlocation: /商品\r\ncontent-length: 0\r\n\r\n'),
    );
    expect(await fetchPage(url)).toMatchObject({ kind: 'redirect', to: `${url}%E5%95%86%E5%93%81` });
  });

  it.each([204, 205, 200, 203])('%i without a body is a page without values', async (status) => {
    const shop = await serveBytes(status === 204 ? {} : html, '', status);
    expect(await fetchPage(shop.url)).toMatchObject({ ...page(''), reply: { status, body: '', complete: true } });
  });

  it('of errors are read at their beginning only', async () => {
    const shop = await serve((_request, response) => {
      response.writeHead(503, html);
      pour(response, '<p>more</p>'.repeat(1_000));
    });
    const result = await fetchPage(shop.url);
    expect(result).toMatchObject({ reason: 'http-status', detail: 'status 503', reply: { complete: false } });
    expect((result as { reply: { body: string } }).reply.body.length).toBeGreaterThan(60_000);
  });

  it('of an error that does not end is reported with what arrived', async () => {
    const shop = await serve((_request, response) => void response.writeHead(403, html).write('<title>Blocked'));
    expect(await fetchPage(shop.url, { timeoutMs: 1_500 })).toMatchObject({
      detail: 'status 403',
      reply: { body: '<title>Blocked', complete: false },
    });
  });
});

describe('faulty servers', () => {
  it('times out when no reply comes', async () => {
    const shop = await serve(() => undefined);
    expect(await fetchPage(shop.url, { timeoutMs: 1_500 })).toEqual({
      kind: 'failed',
      reason: 'timeout',
      detail: 'no reply within 1500 ms',
      reply: null,
      retryAfterMs: null,
    });
  });

  it('times out when the reply does not end', async () => {
    const shop = await serve((_request, response) => void response.writeHead(200, html).write('<h1>x'));
    expect(await fetchPage(shop.url, { timeoutMs: 1_500 })).toMatchObject({
      reason: 'timeout',
      detail: 'the reply did not end within 1500 ms',
      reply: { status: 200, body: '<h1>x', complete: false },
    });
  });

  it.each([
    ['reply', 'HTTP/1.1 200 OK\r\ncontent-type: text/html\r\n\r\n', { reason: 'timeout', reply: { status: 200 } }],
    ['head', 'HTTP/1.1 200 OK\r\nx-slow: ', { reason: 'timeout', reply: null }],
  ])('times out when the %s trickles in', async (_what, begin, expected) => {
    const { url } = await serveRaw((socket) => {
      socket.write(begin);
      const drip = (): void => void (socket.destroyed || socket.write('x', () => setTimeout(drip, 20)));
      drip();
    });
    expect(await fetchPage(url, { timeoutMs: 300 })).toMatchObject(expected);
  });

  it.each<[string, (socket: net.Socket) => void]>([
    ['resets the connection', (socket) => socket.resetAndDestroy()],
    ['closes the connection', (socket) => socket.end()],
    ['answers nonsense', (socket) => socket.end('SMTP ready\r\n\r\n')],
    [
      'ends the body early',
      (socket) => socket.end('HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 100\r\n\r\n<h1>x</h1>'),
    ],
    [
      'breaks off a chunked body',
      (socket) =>
        socket.end('HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ntransfer-encoding: chunked\r\n\r\n5\r\n<h1>x'),
    ],
  ])('fails with network when the server %s', async (_what, act) => {
    const { url } = await serveRaw(act);
    expect(await fetchPage(url)).toMatchObject({ kind: 'failed', reason: 'network' });
  });

  it('keeps what arrived before a reply broke off', async () => {
    const { url } = await serveRaw((socket) =>
      socket.end('HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 100\r\n\r\n<h1>x</h1>'),
    );
    expect(await fetchPage(url)).toMatchObject({
      reason: 'network',
      reply: { status: 200, body: '<h1>x</h1>', complete: false },
    });
  });

  it('fails with network, and starts nothing, when the connection is refused', async () => {
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
    const fetcher = createFetcher(shop.url, { timeoutMs: 1_500 });
    const signal = new AbortController().signal;
    expect(await fetcher.fetch(shop.url, noHooks, signal)).toMatchObject({ reason: 'timeout' });
    expect(await fetcher.fetch(shop.url, noHooks, signal)).toMatchObject({ reason: 'network' });
    expect(await fetcher.fetch(shop.url, noHooks, signal)).toMatchObject(found);
  });

  it('reports no outcome for a product when it was aborted', async () => {
    const stop = new AbortController();
    const shop = await serve(() => stop.abort());
    expect(await fetchPage(shop.url, { signal: stop.signal })).toEqual({ kind: 'not-now' });
  });

  it('sends nothing when the start cannot be journalled', async () => {
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
