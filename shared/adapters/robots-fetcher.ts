/** Reads a site's robots.txt as RFC 9309 requires: follows redirects, limits the size, and always returns a policy. */
import { createHash } from 'node:crypto';
import type { Readable } from 'node:stream';
import { WRONG_CLOCK_MS } from '../domain/limits.ts';
import { policyFrom, ROBOTS_PATH, sitemapsOf } from '../domain/robots.ts';
import type { RobotsPolicy, RobotsReading } from '../domain/robots-matcher.ts';
import { ACCEPT_ENCODING, decoded, isBinary, isUnsupported } from './http/content-decoder.ts';
import { readSiteFile, type SiteRequest } from './site-file.ts';

export interface RobotsRequest extends SiteRequest {
  /** Such as `https://shop.example`. */
  origin: string;
}

/** Nothing beyond the 500 KiB that count is read. */
const MAX_READ_BYTES = 524_288;

const ROBOTS_HEADERS = { accept: 'text/plain,*/*;q=0.1', 'accept-encoding': ACCEPT_ENCODING };

/** The policy of robots.txt at this time. Never rejects: an unavailable robots.txt yields a policy too. */
export const fetchRobots = async (request: RobotsRequest): Promise<RobotsReading> =>
  (await fetchRobotsFile(request)).policy;

/** The policy, and the sitemaps that the file names, as `sitemapsOf` gives them. Never rejects. */
export async function fetchRobotsFile(request: RobotsRequest): Promise<{ policy: RobotsReading; sitemaps: string[] }> {
  const url = `${request.origin}${ROBOTS_PATH}`;
  const reply = await readSiteFile(url, ROBOTS_HEADERS, request, readText);
  const outcome = reply.kind === 'reply' ? { ...reply, text: reply.value ?? '' } : reply;
  const { retryAfterMs, ...policy } = policyFrom(outcome, request.userAgent, url);
  const skewMs = reply.kind === 'reply' ? (reply.skewMs ?? 0) : 0;
  return {
    policy: {
      ...withVersion(policy),
      ...(retryAfterMs !== undefined && { retryAfterMs }),
      ...(Math.abs(skewMs) > WRONG_CLOCK_MS && { skewMs }),
    },
    sitemaps: 'text' in outcome ? sitemapsOf(outcome.text, url) : [],
  };
}

/** What one request for a robots.txt brings, whose redirect is not followed. */
export type RobotsAnswer =
  | { kind: 'moved'; status: number; to: string }
  /** `status` is null where there was no reply. */
  | { kind: 'read'; status: number | null; policy: RobotsReading };

/**
 * Asks for a robots.txt once. Never rejects.
 * @param url where the robots.txt of the origin is, after redirects
 */
export async function askRobots(request: RobotsRequest, url: string): Promise<RobotsAnswer> {
  let to: string | null = null;
  const beforeRedirect = (next: string): Promise<string> => {
    to = next;
    return Promise.resolve('which is asked in its own turn');
  };
  const reply = await readSiteFile(url, ROBOTS_HEADERS, { ...request, beforeRedirect }, readText);
  if (to !== null) return { kind: 'moved', status: 302, to };
  const outcome = reply.kind === 'reply' ? { ...reply, text: reply.value ?? '' } : reply;
  const { retryAfterMs, ...policy } = policyFrom(outcome, request.userAgent, url);
  return {
    kind: 'read',
    status: outcome.kind === 'reply' ? outcome.status : null,
    policy: { ...withVersion(policy), ...(retryAfterMs !== undefined && { retryAfterMs }) },
  };
}

/** Adds the version, computed from the content, to a policy. */
export function withVersion(policy: Omit<RobotsPolicy, 'version'>): RobotsPolicy {
  const { access, rules, crawlDelayMs, source } = policy;
  const content = JSON.stringify([access, rules.map(({ allow, pattern }) => [allow, pattern]), crawlDelayMs, source]);
  return { version: createHash('sha256').update(content).digest('hex'), access, rules, crawlDelayMs, source };
}

/** The beginning of the body; rejects when it breaks off before its end or the limit. */
async function readText(body: Readable, encoding: string): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of decoded(body, encoding)) {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes >= MAX_READ_BYTES) break;
  }
  const whole = Buffer.concat(chunks);
  if (isUnsupported(encoding) && isBinary(whole))
    throw new Error(`content-encoding ${encoding.slice(0, 100)} is not supported`);
  return new TextDecoder().decode(whole);
}
