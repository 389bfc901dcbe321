/** Reads a site's robots.txt as RFC 9309 requires: follows redirects, limits the size, and always returns a policy. */
import { createHash } from 'node:crypto';
import type { Readable } from 'node:stream';
import { describeError } from '../domain/errors.ts';
import { MAX_REDIRECTS } from '../domain/same-site.ts';
import { policyFrom, ROBOTS_PATH, type RobotsOutcome } from '../domain/robots.ts';
import type { RobotsPolicy } from '../domain/robots-matcher.ts';
import type { Clock } from '../ports/clock.ts';
import { createAddressGuard, type GuardOptions } from './http/address-guard.ts';
import { ACCEPT_ENCODING, createContentDecoder } from './http/content-decoder.ts';
import type { Lookup } from './http/guarded-lookup.ts';
import { createTargetDispatcher } from './http/target-dispatcher.ts';

export interface RobotsRequest {
  /** Such as `https://shop.example`. */
  origin: string;
  /** The whole header; its product token selects the rules. */
  userAgent: string;
  /** In total, including redirects. */
  timeoutMs: number;
  clock: Clock;
  /** As for the crawl: the private addresses that may be connected to. */
  allowPrivate: boolean;
  productUrl: string;
  /** Never connected to: the caller's own listeners. */
  forbidden?: GuardOptions['forbidden'];
  /** Source address; chosen by the system when not given. */
  localAddress?: string;
  lookup?: Lookup;
}

/** Nothing beyond the 500 KiB that count is read. */
const MAX_READ_BYTES = 524_288;

/** The policy of robots.txt at this time. Never rejects: an unavailable robots.txt yields a policy too. */
export async function fetchRobots(request: RobotsRequest): Promise<RobotsPolicy> {
  const url = `${request.origin}${ROBOTS_PATH}`;
  const outcome = await ask(url, request);
  return withVersion(policyFrom(outcome, request.userAgent, url));
}

/** Adds the version, computed from the content, to a policy. */
export function withVersion(policy: Omit<RobotsPolicy, 'version'>): RobotsPolicy {
  const { access, rules, crawlDelayMs, source } = policy;
  const content = JSON.stringify([access, rules.map(({ allow, pattern }) => [allow, pattern]), crawlDelayMs, source]);
  return { version: createHash('sha256').update(content).digest('hex'), access, rules, crawlDelayMs, source };
}

async function ask(url: string, request: RobotsRequest): Promise<RobotsOutcome> {
  const { allowPrivate, productUrl, timeoutMs, clock, lookup } = request;
  const dispatcher = createTargetDispatcher({
    localAddress: request.localAddress ?? null,
    guard: createAddressGuard({ productUrl, allowPrivate, forbidden: request.forbidden ?? [] }),
    connectTimeoutMs: timeoutMs,
    ...(lookup ? { lookup } : {}),
  });
  const timeUp = new AbortController();
  const done = new AbortController();
  void clock.sleep(timeoutMs, done.signal).then(() => timeUp.abort());
  const hop: Hop = async (at) => {
    const { origin, pathname, search } = new URL(at);
    const reply = await dispatcher.request({
      origin,
      path: pathname + search,
      method: 'GET',
      headers: { 'user-agent': request.userAgent, accept: 'text/plain,*/*;q=0.1', 'accept-encoding': ACCEPT_ENCODING },
      headersTimeout: 0,
      bodyTimeout: 0,
      signal: timeUp.signal,
    });
    const header = (name: string): string => String(reply.headers[name] ?? '');
    const isWanted = reply.statusCode >= 200 && reply.statusCode < 300;
    if (isWanted) return { status: reply.statusCode, text: await readText(reply.body, header('content-encoding')) };
    // A short body is read to keep the connection for the next hop.
    await reply.body.dump({ limit: 65_536 }).catch(() => undefined);
    return { status: reply.statusCode, location: header('location') };
  };
  try {
    return await followHops(url, hop);
  } catch (error) {
    const detail = timeUp.signal.aborted ? `no answer within ${timeoutMs} ms` : describeError(error);
    return { kind: 'unreachable', detail };
  } finally {
    done.abort();
    await dispatcher.destroy();
  }
}

type Hop = (url: string) => Promise<{ status: number; text?: string; location?: string }>;

async function followHops(url: string, hop: Hop): Promise<RobotsOutcome> {
  let at = url;
  for (let hops = 0; hops <= MAX_REDIRECTS; hops++) {
    const { status, text = '', location = '' } = await hop(at);
    if (status < 300 || status >= 400) return { kind: 'reply', status, text };
    const next = location === '' ? null : URL.parse(location, at);
    if (!next || !/^https?:$/.test(next.protocol))
      return { kind: 'lost', detail: `${at} answers ${status} without a target` };
    at = next.href;
  }
  return { kind: 'lost', detail: `more than ${MAX_REDIRECTS} redirects` };
}

/** The beginning of the body; rejects when it breaks off before its end or the limit. */
async function readText(body: Readable, encoding: string): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const decoder = createContentDecoder(encoding, {
    onBytes(chunk) {
      chunks.push(chunk);
      bytes += chunk.length;
      if (bytes >= MAX_READ_BYTES) resolve();
      return bytes < MAX_READ_BYTES;
    },
    onDrain: () => body.resume(),
    onEnd: resolve,
    onError: reject,
  });
  if (!decoder) throw new Error(`content-encoding ${encoding.slice(0, 100)} is not supported`);
  body.on('data', (chunk: Uint8Array) => {
    if (!decoder.push(chunk)) body.pause();
  });
  body.on('end', () => decoder.end());
  body.on('error', reject);
  try {
    await promise;
  } finally {
    decoder.destroy();
    body.destroy();
  }
  return new TextDecoder().decode(Buffer.concat(chunks));
}
