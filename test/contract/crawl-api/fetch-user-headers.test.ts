/** Headers and cookies of the user over HTTP: what arrives. */
import type { IncomingHttpHeaders } from 'node:http';
import { describe, expect, it } from 'vitest';
import { UserHeaders } from '../../../crawl-api/fetch/user-headers.ts';
import { CookieJar } from '../../../shared/adapters/http/cookie-jar.ts';
import { systemClock } from '../../../shared/adapters/system-clock.ts';
import { createFetcher, html, noHooks, serve } from './fetch-stage.ts';

const headers = { 'x-currency': 'JPY', accept: 'application/json', 'accept-language': 'de' };
const sendsTo = (origin: string) =>
  new UserHeaders({ userHeaders: [{ origin, headers, cookies: { currency: 'JPY' } }] });

async function stage() {
  const got: IncomingHttpHeaders[] = [];
  const shop = await serve((request, response) => {
    got.push(request.headers);
    response.writeHead(200, { ...html, 'set-cookie': ['currency=EUR; Path=/', 'visit=7; Path=/'] }).end('a page');
  });
  const fetcher = createFetcher(shop.url, {});
  const jar = new CookieJar(systemClock);
  const fetch = async (
    userHeaders: UserHeaders | null,
    cookies: CookieJar | null = jar,
  ): Promise<IncomingHttpHeaders> => {
    const request = { cookies, sends: userHeaders?.at(shop.url) };
    const page = await fetcher.fetch(shop.url, noHooks, new AbortController().signal, request);
    if (page.kind === 'page') page.reply.cookies?.keep();
    return got.at(-1)!;
  };
  return { shop, fetch };
}

describe('PageFetcher with headers of the user', () => {
  it('sends them, in place of its own Accept, and says itself who it is and which encodings it reads', async () => {
    const { shop, fetch } = await stage();
    expect(await fetch(sendsTo(new URL(shop.url).origin))).toMatchObject({
      ...headers,
      'user-agent': 'testbot/1.0',
      'accept-encoding': expect.stringContaining('gzip'),
    });
  });

  it('sends cookies of the user first, and not what the site sets under their names', async () => {
    const { shop, fetch } = await stage();
    const sends = sendsTo(new URL(shop.url).origin);
    expect((await fetch(sends)).cookie).toBe('currency=JPY');
    expect((await fetch(sends)).cookie).toBe('currency=JPY; visit=7');
    expect((await fetch(sends, null)).cookie).toBe('currency=JPY');
    expect((await fetch(null)).cookie).toBe('currency=EUR; visit=7');
  });

  it('sends none to another authority, and no header that it did not send before', async () => {
    const { fetch } = await stage();
    const names = Object.keys(await fetch(sendsTo('https://shop.example'), null)).toSorted();
    expect(names).toEqual(['accept', 'accept-encoding', 'connection', 'host', 'user-agent']);
  });
});
