/** Reads one file of a site for the whole fleet, such as robots.txt or a sitemap, within the limits of the crawl. */
import type { Readable } from 'node:stream';
import type { ProductUrl } from '../domain/domains.ts';
import { parseRetryAfter, resolveLocation } from '../domain/reply-fields.ts';
import { MAX_REDIRECTS } from '../domain/same-site.ts';
import type { Clock } from '../ports/clock.ts';
import type { SiteSettings } from '../wire/site-settings.ts';
import { createAddressGuard, type GuardOptions } from './http/address-guard.ts';
import type { Lookup } from './http/guarded-lookup.ts';
import { CookieJar, cookiesOf } from './http/cookie-jar.ts';
import { describeNetworkError } from './http/network-faults.ts';
import { KeptConnectionClosed } from './http/reply-normaliser.ts';
import { createTargetDispatcher } from './http/target-dispatcher.ts';

export interface SiteRequest {
  /** The whole header; its product token selects the rules of robots.txt. */
  userAgent: string;
  /** The time limit in total, including redirects. */
  timeoutMs: number;
  clock: Clock;
  /** Private addresses may be connected to, as for the crawl. */
  allowPrivate: boolean;
  productUrl: ProductUrl;
  /** Its hosts are the user's own choice, as `productUrl` is. */
  follow?: SiteSettings['follow'];
  /** Addresses that are never connected to: the caller's own listeners. */
  forbidden?: GuardOptions['forbidden'];
  /** Called before a redirect is followed, and waits until it may be; why it must not be, or null. */
  beforeRedirect?: (to: string) => Promise<string | null>;
  /** Source address; chosen by the system when not given. */
  localAddress?: string;
  lookup?: Lookup;
  /** Called when a connection stands; throws when nothing may be sent any more. */
  onConnected?: () => void;
}

export type SiteReply<T> =
  /**
   * `value`: what `read` returned for a 2xx; null for any other status. `skewMs`: how far the site's clock is ahead of
   * ours; null where it does not say the time.
   */
  | { kind: 'reply'; status: number; value: T | null; retryAfterMs: number | null; skewMs: number | null }
  | { kind: 'lost' | 'unreachable'; detail: string };

/**
 * Follows redirects; never rejects. @param read gets the body of a 2xx and its content-encoding, and reads what it
 * needs
 */
export async function readSiteFile<T>(
  url: string,
  headers: Readonly<Record<string, string>>,
  request: SiteRequest,
  read: (body: Readable, encoding: string) => Promise<T>,
): Promise<SiteReply<T>> {
  const { allowPrivate, productUrl, timeoutMs, clock, lookup } = request;
  const dispatcher = createTargetDispatcher({
    localAddress: request.localAddress ?? null,
    guard: createAddressGuard({
      productUrl,
      further: request.follow?.hosts,
      allowPrivate,
      forbidden: request.forbidden ?? [],
    }),
    connectTimeoutMs: timeoutMs,
    ...(lookup ? { lookup } : {}),
    onConnected: request.onConnected,
  });
  // Some sites answer only once they get their cookie back. It ends with this file.
  const cookies = new CookieJar(clock);
  const timeUp = new AbortController();
  const done = new AbortController();
  void clock.sleep(timeoutMs, done.signal).then(() => timeUp.abort());
  const hop: Hop<T> = async (at) => {
    const { origin, pathname, search } = new URL(at);
    const cookie = cookies.header(at);
    const ask = (): ReturnType<typeof dispatcher.request> =>
      dispatcher.request({
        origin,
        path: pathname + search,
        method: 'GET',
        headers: { 'user-agent': request.userAgent, ...headers, ...(cookie !== '' && { cookie }) },
        headersTimeout: 0,
        bodyTimeout: 0,
        signal: timeUp.signal,
      });
    const reply = await ask().catch((error: unknown) => {
      if (error instanceof KeptConnectionClosed) return ask();
      throw error;
    });
    const header = (name: string): string => String(reply.headers[name] ?? '');
    const status = reply.statusCode;
    const set = cookiesOf(reply.headers['set-cookie'], at, cookies);
    set?.keep();
    const skewMs = skewOf(header('date'), header('age'), clock.now());
    if (status >= 200 && status < 300)
      return { status, value: await read(reply.body, header('content-encoding')), skewMs };
    // A short body is read to keep the connection for the next hop.
    await reply.body.dump({ limit: 65_536 }).catch(() => undefined);
    const retryAfterMs = parseRetryAfter(header('retry-after'), clock.now());
    return { status, value: null, location: header('location'), retryAfterMs, cookie: set?.names()[0], skewMs };
  };
  try {
    return await followHops(url, hop, request.beforeRedirect);
  } catch (error) {
    const detail = timeUp.signal.aborted ? `no answer within ${timeoutMs} ms` : describeNetworkError(error);
    return { kind: 'unreachable', detail };
  } finally {
    done.abort();
    await dispatcher.destroy();
  }
}

/** A cache repeats the old date, with its age. */
function skewOf(date: string, age: string, nowMs: number): number | null {
  const ms = Date.parse(date) + 1_000 * Number(age) - nowMs;
  return Number.isFinite(ms) ? ms : null;
}

interface HopReply<T> {
  status: number;
  value: T | null;
  skewMs: number | null;
  location?: string;
  retryAfterMs?: number | null;
  /** Name of a cookie that it sets. */
  cookie?: string | undefined;
}

type Hop<T> = (url: string) => Promise<HopReply<T>>;

async function followHops<T>(
  url: string,
  hop: Hop<T>,
  beforeRedirect: SiteRequest['beforeRedirect'],
): Promise<SiteReply<T>> {
  let at = url;
  let lastCookie: string | undefined;
  for (let hops = 0; hops <= MAX_REDIRECTS; hops++) {
    const { status, value, location = '', retryAfterMs = null, cookie, skewMs } = await hop(at);
    lastCookie = cookie ?? lastCookie;
    if (status < 300 || status >= 400) return { kind: 'reply', status, value, retryAfterMs, skewMs };
    const next = resolveLocation(location, at);
    if (next === null || !/^https?:/.test(next))
      return { kind: 'lost', detail: `${at} answers ${status} without a target` };
    const refusal = (await beforeRedirect?.(next)) ?? null;
    if (refusal !== null) return { kind: 'lost', detail: `${at} leads to ${next}, ${refusal}` };
    at = next;
  }
  const because = lastCookie ? `; the site sets the cookie ${lastCookie.slice(0, 100)}` : '';
  return { kind: 'lost', detail: `more than ${MAX_REDIRECTS} redirects${because}` };
}
