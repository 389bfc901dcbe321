/** The URLs of a site's sitemaps, read one after the other at the pace of the crawl. */
import { readText, withVersion } from '../../../shared/adapters/robots-fetcher.ts';
import { readSiteFile, type SiteRequest } from '../../../shared/adapters/site-file.ts';
import { systemClock } from '../../../shared/adapters/system-clock.ts';
import { isAllowed, policyFrom, ROBOTS_PATH, sitemapsOf } from '../../../shared/domain/robots.ts';
import { isSameSite, sharesRobots } from '../../../shared/domain/same-site.ts';
import { oneLine } from '../../../shared/domain/terminal-text.ts';
import { readSitemap, type SitemapItem } from './sitemap.ts';
import type { DiscoveryConfig } from './discovery-config.ts';
import { siteSettingsOf } from '../../core/config/site-section.ts';

/** Sitemaps of one site: an index names up to 50,000. */
const MAX_SITEMAPS = 1_000;
/** A sitemap of 50 MB takes longer than a page. */
const TIMEOUT_FACTOR = 20;

export interface SitemapUrl {
  url: string;
  modifiedMs: number | null;
}

interface SitemapOptions {
  sitemaps: 'auto' | readonly string[];
  signal: AbortSignal;
  say: (text: string) => void;
}

/** A sitemap that cannot be read is reported and skipped: it costs what only it names. */
export async function* readSitemaps(
  { values: { site }, discovery: { origin } }: Pick<DiscoveryConfig, 'values' | 'discovery'>,
  options: SitemapOptions,
): AsyncGenerator<SitemapUrl> {
  const { signal, say } = options;
  const settings = siteSettingsOf(site);
  const request: SiteRequest = {
    ...settings,
    timeoutMs: settings.timeoutMs * TIMEOUT_FACTOR,
    clock: systemClock,
  };
  const robots = await readRobots(origin, request);
  const isUnruled = site.robots === 'ignore';
  const pauseMs = Math.max(site.interval, isUnruled ? 0 : (robots.policy.crawlDelayMs ?? 0));
  const pause = (): Promise<void> => systemClock.sleep(pauseMs, signal);
  // The rules of pages.
  const beforeRedirect = async (to: string): Promise<string | null> => {
    if (!(isUnruled ? isSameSite(origin, to) : sharesRobots(origin, to))) return 'another site';
    const { pathname, search } = new URL(to);
    if (!isUnruled && !isAllowed(robots.policy, pathname + search)) return 'which robots.txt forbids';
    await pause();
    return null;
  };
  const named = options.sitemaps === 'auto' ? robots.sitemaps : options.sitemaps;
  let hasMore = named.length > MAX_SITEMAPS;
  const waiting = named.slice(0, MAX_SITEMAPS);
  if (named.length === 0) waiting.push(`${origin}/sitemap.xml`);
  // No more than will be read: an index of indexes names 50,000 in each.
  const known = new Set(waiting);
  for (let url = waiting.shift(); url !== undefined && !signal.aborted; url = waiting.shift()) {
    await pause();
    for (const entry of await entriesOf(url, { ...request, beforeRedirect })) {
      if (entry.kind === 'cut') say(`! the sitemap ${oneLine(url)} was not read to its end: ${entry.why}`);
      else if (entry.kind === 'url') yield { url: entry.loc, modifiedMs: entry.lastModMs };
      else if (known.has(entry.loc) || !sharesRobots(origin, entry.loc)) continue;
      else if (known.size >= MAX_SITEMAPS) hasMore = true;
      else {
        known.add(entry.loc);
        waiting.push(entry.loc);
      }
    }
  }
  if (hasMore) say(`! there are more than ${MAX_SITEMAPS} sitemaps: the others are not read`);
}

/** The rules of robots.txt, and the sitemaps that it names on this host. */
async function readRobots(origin: string, request: SiteRequest) {
  const url = `${origin}${ROBOTS_PATH}`;
  const reply = await readSiteFile(url, { 'accept-encoding': 'identity' }, request, readText);
  const outcome = reply.kind === 'reply' ? { ...reply, text: reply.value ?? '' } : reply;
  const named = 'text' in outcome ? sitemapsOf(outcome.text) : [];
  return {
    policy: withVersion(policyFrom(outcome, request.userAgent, url)),
    sitemaps: named.filter((sitemap) => sharesRobots(origin, sitemap)),
  };
}

/** The entries of one sitemap: at most 50,000, its limit. */
async function entriesOf(url: string, request: SiteRequest): Promise<SitemapItem[]> {
  const entries: SitemapItem[] = [];
  const headers = { accept: 'application/xml,text/xml,*/*;q=0.1', 'accept-encoding': 'identity' };
  const reply = await readSiteFile(url, headers, request, async (body) => {
    for await (const entry of readSitemap(body)) entries.push(entry);
    return true;
  });
  const why = reply.kind !== 'reply' ? reply.detail : reply.value === null ? `status ${reply.status}` : null;
  return why === null ? entries : [...entries, { kind: 'cut', why }];
}
