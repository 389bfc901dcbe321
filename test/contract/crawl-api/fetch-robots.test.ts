/** robots.txt read from real servers: every server behaviour results in a policy (F30). */
import type http from 'node:http';
import zlib from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { fetchRobots, type RobotsRequest, withVersion } from '../../../shared/adapters/robots-fetcher.ts';
import { systemClock } from '../../../shared/adapters/system-clock.ts';
import type { RobotsReading } from '../../../shared/domain/robots-matcher.ts';
import { pour, serve, serveBytes, serveRaw } from './fetch-stage.ts';
import { ownAddress } from './http-stub.ts';
import { freePort } from '../../support/free-port.ts';

const TEXT = 'User-agent: *\nDisallow: /private\nCrawl-delay: 3';
const plain = { 'content-type': 'text/plain' };

function read(origin: string, options: Partial<RobotsRequest> = {}): Promise<RobotsReading> {
  return fetchRobots({
    origin,
    userAgent: 'examplebot/1.0 (+https://example.jp/bot)',
    timeoutMs: 5_000,
    clock: systemClock,
    allowPrivate: false,
    productUrl: `${origin}/item/{id}`,
    ...options,
  });
}

describe('robots.txt', () => {
  it('is read from its standard path, with our user agent', async () => {
    const seen: http.IncomingMessage[] = [];
    const localAddress = ownAddress();
    const shop = await serve((request, response) => {
      seen.push(request);
      response.writeHead(200, plain).end(TEXT);
    });
    const policy = await read(shop.url, { localAddress });
    expect(policy).toEqual({
      version: expect.stringMatching(/^[0-9a-f]{64}$/) as string,
      access: 'rules',
      rules: [{ allow: false, pattern: '/private' }],
      crawlDelayMs: 3_000,
      source: `${shop.url}/robots.txt: 1 rule for examplebot, Crawl-delay 3 s`,
    });
    expect(seen).toHaveLength(1);
    expect(seen[0]).toMatchObject({ method: 'GET', url: '/robots.txt' });
    expect(seen[0]!.headers['user-agent']).toBe('examplebot/1.0 (+https://example.jp/bot)');
  });

  it.each([
    ['a right clock', 0, {}, undefined],
    ['a copy of an hour ago', -3_600_000, { age: '3600' }, undefined],
    ['a clock that is an hour ahead', 3_600_000, {}, 3_600_000],
    ['a clock that is a year behind', -31_536_000_000, {}, -31_536_000_000],
  ])('shows how far the clocks differ: %s', async (_, aheadMs, more, skewMs) => {
    const shop = await serve((_request, response) => {
      const date = new Date(systemClock.now() + aheadMs).toUTCString();
      response.writeHead(200, { ...plain, ...more, date }).end(TEXT);
    });
    const found = (await read(shop.url)).skewMs;
    if (skewMs === undefined) expect(found).toBeUndefined();
    else expect(Math.abs(found! - skewMs)).toBeLessThan(60_000);
  });

  it.each<[string, (text: string) => Buffer]>([
    ['gzip', (text) => zlib.gzipSync(text)],
    ['br', (text) => zlib.brotliCompressSync(text)],
    ['gzip', (text) => Buffer.from(text)],
  ])('is decoded from %s', async (encoding, compress) => {
    const shop = await serveBytes({ ...plain, 'content-encoding': encoding }, compress(TEXT));
    expect(await read(shop.url)).toMatchObject({ access: 'rules', crawlDelayMs: 3_000 });
  });

  it.each([
    [404, 'all'],
    [403, 'all'],
    [429, 'none'],
    [500, 'none'],
    [503, 'none'],
  ])('of status %i gives access to %s', async (status, access) => {
    const shop = await serveBytes(plain, TEXT, status);
    expect(await read(shop.url)).toMatchObject({ access, rules: [], crawlDelayMs: null });
  });

  it('of a site that asks for a pause has its length', async () => {
    const shop = await serveBytes({ ...plain, 'retry-after': '90' }, '', 429);
    expect(await read(shop.url)).toMatchObject({ access: 'none', retryAfterMs: 90_000 });
  });

  it('has a version that changes only with its rules', async () => {
    let text = TEXT;
    const shop = await serve((_request, response) => void response.writeHead(200, plain).end(text));
    const first = await read(shop.url);
    text = `# another comment\n${TEXT}`;
    expect((await read(shop.url)).version).toBe(first.version);
    text = TEXT.replace('/private', '/');
    expect((await read(shop.url)).version).not.toBe(first.version);
    expect(withVersion(first)).toEqual(first);
  });

  it('is read only to its limit when it is larger', async () => {
    let sent = (): number => 0;
    const shop = await serve((_request, response) => {
      response.writeHead(200, plain).write('User-agent: *\n');
      sent = pour(response, 'Disallow: /aaaa\n'.repeat(4_096));
    });
    const { access, rules } = await read(shop.url);
    expect(access).toBe('rules');
    expect(rules.length).toBe(Math.floor((512_000 - 14) / 16));
    expect(sent()).toBeLessThan(20_000_000);
  });

  it('is read only to its limit when it is a bomb', async () => {
    const bomb = zlib.gzipSync(Buffer.alloc(100_000_000, 'Disallow: /a\n'));
    const shop = await serveBytes({ ...plain, 'content-encoding': 'gzip' }, bomb);
    expect(await read(shop.url)).toMatchObject({ access: 'all', rules: [] });
  });
});

it('sends no request for robots.txt on a connection that came too late', async () => {
  let requests = 0;
  const shop = await serve((_request, response) => {
    requests++;
    response.writeHead(200, plain).end(TEXT);
  });
  const onConnected = (): void => {
    throw new Error('the lease is over');
  };
  expect(await read(shop.url, { onConnected })).toMatchObject({ access: 'none' });
  expect(requests).toBe(0);
  expect(await read(shop.url, { onConnected: () => undefined })).toMatchObject({ access: 'rules' });
  expect(requests).toBe(1);
});

describe('redirects of robots.txt', () => {
  it('are followed, also to other hosts', async () => {
    const other = await serveBytes(plain, TEXT);
    const shop = await serve((request, response) => {
      const hop = Number(/\d+$/.exec(request.url!)?.[0] ?? 0);
      const location = hop === 4 ? `http://localhost:${other.port}/r.txt` : `/hop/${hop + 1}`;
      response.writeHead(302, { location }).end();
    });
    const lookup: RobotsRequest['lookup'] = (_host, _options, callback) =>
      callback(null, [{ address: other.address, family: 4 }]);
    expect(await read(shop.url, { allowPrivate: true, lookup })).toMatchObject({ access: 'rules' });
    expect([shop.requests, other.requests]).toEqual([5, 1]);
  });

  it('get back the cookie that they set, and only they', async () => {
    const seen: (string | undefined)[] = [];
    const shop = await serve((request, response) => {
      seen.push(request.headers.cookie);
      if (request.headers.cookie === 's=1') response.writeHead(200, plain).end(TEXT);
      else response.writeHead(302, { location: '/robots.txt', 'set-cookie': 's=1; Path=/' }).end();
    });
    for (let i = 0; i < 2; i++) expect(await read(shop.url)).toMatchObject({ access: 'rules' });
    expect(seen).toEqual([undefined, 's=1', undefined, 's=1']);
  });

  it('name the cookie that leads nowhere', async () => {
    const shop = await serveBytes({ location: '/robots.txt', 'set-cookie': 's=secret; Domain=other.example' }, '', 302);
    const { source } = await read(shop.url);
    expect(source).toMatch(/more than 5 redirects; the site sets the cookie s$/);
  });

  it('are given up after five', async () => {
    const shop = await serveBytes({ location: '/robots.txt' }, '', 301);
    expect(await read(shop.url)).toMatchObject({
      access: 'all',
      source: `the redirects of ${shop.url}/robots.txt fail: more than 5 redirects`,
    });
    expect(shop.requests).toBe(6);
  });

  it.each(['', 'ftp://shop.example/robots.txt', 'http://'])('to %j are not followed', async (location) => {
    const shop = await serveBytes({ location }, '', 302);
    expect(await read(shop.url)).toMatchObject({ access: 'all' });
    expect(shop.requests).toBe(1);
  });

  it('to private addresses are refused', async () => {
    const trap = await serveBytes(plain, TEXT);
    const shop = await serveBytes({ location: `${trap.url}/robots.txt` }, '', 302);
    const { access, source } = await read(shop.url);
    expect(access).toBe('none');
    expect(source).toContain('not a public address');
    expect(trap.requests).toBe(0);
  });
});

describe('a server that returns no robots.txt', () => {
  it.each<[string, Parameters<typeof serveRaw>[0]]>([
    ['never answers', () => undefined],
    ['never ends', (socket) => socket.write('HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\nUser-agent: *\n')],
    ['never ends a refusal', (socket) => socket.write('HTTP/1.1 500 No\r\ncontent-length: 99\r\n\r\nx')],
  ])('is not crawled when it %s', async (_what, act) => {
    const { url } = await serveRaw(act);
    const policy = await read(url.slice(0, -1), { timeoutMs: 200 });
    expect(policy).toMatchObject({ access: 'none', rules: [] });
  });

  it.each<[string, Parameters<typeof serveRaw>[0]]>([
    ['resets', (socket) => socket.resetAndDestroy()],
    ['speaks no HTTP', (socket) => socket.end('SMTP ready\r\n\r\n')],
    ['breaks off', (socket) => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\nUser-agent: *\n')],
    [
      'sends broken gzip',
      (socket) =>
        socket.end('HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 6\r\n\r\n\x1f\x00', 'latin1'),
    ],
    ['sends lzma', (socket) => socket.end('HTTP/1.1 200 OK\r\ncontent-encoding: lzma\r\ncontent-length: 2\r\n\r\n]\0')],
  ])('is not crawled when it %s', async (_what, act) => {
    const { url } = await serveRaw(act);
    const { access, source } = await read(url.slice(0, -1));
    expect(access).toBe('none');
    expect(source).toMatch(/robots\.txt is unavailable: ./);
  });

  it('is not crawled when the connection is refused, and when its name is unknown', async () => {
    const address = ownAddress();
    expect(await read(`http://${address}:${await freePort(address)}`)).toMatchObject({ access: 'none' });
    const lookup: RobotsRequest['lookup'] = (_host, _options, callback) =>
      callback(Object.assign(new Error('getaddrinfo ENOTFOUND shop.example'), { code: 'ENOTFOUND' }), []);
    const { access, source } = await read('http://shop.example', { lookup });
    expect(access).toBe('none');
    expect(source).toContain('ENOTFOUND');
  });
});
