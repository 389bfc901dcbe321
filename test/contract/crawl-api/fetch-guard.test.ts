/** Addresses that are not the shop: nothing is ever sent to them, however they are spelled. */
import type { LookupAddress } from 'node:dns';
import { describe, expect, it } from 'vitest';
import type { Lookup } from '../../../shared/adapters/http/guarded-lookup.ts';
import { createFetcher, fetchPage, html, noHooks, page, serve, serveBytes } from './fetch-stage.ts';

const PAGE = '<h1>Tea';

/** A name server that gives these answers one after the other, then repeats the last one. */
function answering(...answers: (string[] | NodeJS.ErrnoException)[]): { lookup: Lookup; asked: () => number } {
  let asked = 0;
  return {
    asked: () => asked,
    lookup: (_hostname, _options, callback) => {
      const answer = answers[Math.min(asked++, answers.length - 1)]!;
      if (answer instanceof Error) callback(answer, []);
      else
        callback(
          null,
          answer.map((address): LookupAddress => ({ address, family: address.includes(':') ? 6 : 4 })),
        );
    },
  };
}

const dnsError = (code: string): NodeJS.ErrnoException =>
  Object.assign(new Error(`getaddrinfo ${code} shop.example`), { code });

const contains = (text: string): string => expect.stringContaining(text) as string;

describe('addresses that are not the shop', () => {
  it('are not connected to: only the literal one of product_url is', async () => {
    const other = await serveBytes(html, PAGE);
    expect(await fetchPage(other.url, { template: 'https://shop.example/{id}' })).toMatchObject({
      reason: 'network',
      detail: contains('not a public address'),
      reply: null,
    });
    expect(other.requests).toBe(0);
  });

  it('are not reached through a name, unless private ones are allowed', async () => {
    const shop = await serve((_request, response) => void response.writeHead(200, html).end(PAGE), '127.0.0.1');
    const url = `http://localhost:${shop.port}/`;
    expect(await fetchPage(url)).toMatchObject({ reason: 'network', detail: contains('site.allow_private') });
    expect(shop.requests).toBe(0);
    expect(await fetchPage(url, { allowPrivate: true })).toMatchObject(page(PAGE));
  });

  it.each('2130706433 0177.0.0.1 0x7f.1 127.1 [::ffff:127.0.0.1] [::ffff:7f00:1]'.split(' '))(
    'are not reached by another notation: %s',
    async (host) => {
      const shop = await serve((_request, response) => void response.end(PAGE), '127.0.0.1');
      const result = await fetchPage(`http://${host}:${shop.port}/`, { template: 'https://shop.example/{id}' });
      expect(result).toMatchObject({ reason: 'network', detail: contains('not a public address') });
      expect(shop.requests).toBe(0);
    },
  );

  it.each('169.254.169.254 [fd00:ec2::254] [::ffff:169.254.169.254] [64:ff9b::a9fe:a9fe] 0.0.0.0 [::]'.split(' '))(
    'are refused even where private ones are allowed and named: %s (F32)',
    async (host) => {
      let started = false;
      const hooks = { ...noHooks, onStart: () => void (started = true) };
      expect(await fetchPage(`http://${host}/latest/meta-data/`, { allowPrivate: true, hooks })).toMatchObject({
        reason: 'network',
        detail: contains('not a public address'),
      });
      expect(started).toBe(false);
    },
  );

  it("are refused when they are the instance's own listeners (F32)", async () => {
    const own = await serveBytes(html, PAGE);
    const forbidden = [{ address: own.address, port: own.port }];
    expect(await fetchPage(own.url, { allowPrivate: true, forbidden })).toMatchObject({ detail: contains('own') });
    const { lookup } = answering([own.address]);
    const url = `http://shop.example:${own.port}/`;
    expect(await fetchPage(url, { allowPrivate: true, forbidden, lookup })).toMatchObject({ detail: contains('own') });
    expect(own.requests).toBe(0);
  });
});

describe('a name', () => {
  it.each(['169.254.169.254', '::ffff:169.254.169.254', 'fd00:ec2::254', '0.0.0.0'])(
    'that changes to %s between two pages is refused at the second, even where private ones are allowed (F31)',
    async (address) => {
      const shop = await serveBytes({ ...html, connection: 'close' }, PAGE);
      const { lookup, asked } = answering([shop.address], [address]);
      const url = `http://shop.example:${shop.port}/`;
      const fetcher = createFetcher(url, { allowPrivate: true, lookup });
      const signal = new AbortController().signal;
      expect(await fetcher.fetch(url, noHooks, signal)).toMatchObject(page(PAGE));
      expect(await fetcher.fetch(url, noHooks, signal)).toMatchObject({
        kind: 'failed',
        reason: 'network',
        detail: contains('the name resolves to'),
        reply: null,
      });
      expect(asked()).toBe(2);
      expect(shop.requests).toBe(1);
    },
  );

  it.each(['127.0.0.1', '10.0.0.8', '::ffff:10.0.0.8', '64:ff9b::7f00:1', '::7f00:1'])(
    'that resolves to %s is refused before anything is sent (F31)',
    async (address) => {
      let started = false;
      const hooks = { ...noHooks, onStart: () => void (started = true) };
      const { lookup } = answering([address]);
      expect(await fetchPage('http://shop.example/', { lookup, hooks })).toMatchObject({
        reason: 'network',
        detail: contains('the name resolves to'),
      });
      expect(started).toBe(false);
    },
  );

  it('with good and bad addresses is reached at a good one', async () => {
    const shop = await serveBytes(html, PAGE);
    const { lookup } = answering(['169.254.169.254', shop.address]);
    const url = `http://shop.example:${shop.port}/`;
    expect(await fetchPage(url, { allowPrivate: true, lookup })).toMatchObject(page(PAGE));
  });

  it.each([
    ['ENOTFOUND', 'the name does not exist'],
    ['EAI_AGAIN', 'no name server answers'],
  ])('that fails with %s gives network, and names the cause (F31)', async (code, meaning) => {
    const { lookup } = answering(dnsError(code));
    const result = await fetchPage('http://shop.example/', { lookup });
    expect(result).toMatchObject({ kind: 'failed', reason: 'network', reply: null });
    expect((result as { detail: string }).detail).toMatch(new RegExp(`^${meaning}.*${code}`));
  });

  it('that no name server ever resolves ends with the time-out (F31)', async () => {
    const result = await fetchPage('http://shop.example/', { lookup: () => undefined, timeoutMs: 150 });
    expect(result).toMatchObject({ kind: 'failed', reason: 'timeout', detail: 'no connection within 150 ms' });
  });

  it('without any address fails with network', async () => {
    const { lookup } = answering([]);
    expect(await fetchPage('http://shop.example/', { lookup })).toMatchObject({
      reason: 'network',
      detail: 'the name has no address',
    });
  });

  it('with addresses of the other family alone says so, and so does such an address', async () => {
    const lookup: Lookup = (_name, { family }, callback) =>
      family === 4 ? callback(dnsError('ENOTFOUND'), []) : callback(null, [{ address: '2606:4700::1', family: 6 }]);
    for (const url of ['http://shop.example/', 'http://[2606:4700::1]/'])
      expect(await fetchPage(url, { lookup })).toMatchObject({
        reason: 'network',
        detail: 'the site has only IPv6 addresses, and the crawl uses IPv4',
      });
  });
});
