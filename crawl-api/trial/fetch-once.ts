/** Fetches one page outside a crawl: follows redirects within the site, a second apart. */
import { MAX_REDIRECTS, isSameSite } from '../../shared/domain/same-site.ts';
import type { Clock } from '../../shared/ports/clock.ts';
import type { PageResult, PageSource } from '../fetch/page-result.ts';

/** Delay between two hops: no pace is configured here, and one second harms no site. */
const HOP_MS = 1_000;

export interface Hop {
  url: string;
  /** Null when no reply came. */
  status: number | null;
}

export interface TrialPage {
  /** Of the last request; never a redirect that was followed. */
  result: PageResult;
  requests: Hop[];
}

export async function fetchOnce(source: PageSource, url: string, clock: Clock): Promise<TrialPage> {
  const requests: Hop[] = [];
  const signal = new AbortController().signal;
  const hooks = { onStart: () => undefined, onFirstByte: () => undefined };
  for (let target = url; ;) {
    const result = await source.fetch(target, hooks, signal);
    requests.push({ url: target, status: result.kind === 'stopped' ? null : (result.reply?.status ?? null) });
    if (result.kind !== 'redirect') return { result, requests };
    const { to, reply } = result;
    const refusal = !isSameSite(target, to)
      ? `leaves the site: to ${to}`
      : requests.length > MAX_REDIRECTS
        ? `more than ${MAX_REDIRECTS} redirects: the next one leads to ${to}`
        : null;
    if (refusal !== null)
      return { result: { kind: 'failed', reason: 'redirect', detail: refusal, reply, retryAfterMs: null }, requests };
    target = to;
    await clock.sleep(HOP_MS);
  }
}
