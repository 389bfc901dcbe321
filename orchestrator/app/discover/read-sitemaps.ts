/** The URLs of a site's sitemaps, read one after the other at the pace of the crawl. */
import { readText } from '../../../shared/adapters/robots-fetcher.ts';
import { readSiteFile, type SiteRequest } from '../../../shared/adapters/site-file.ts';
import { systemClock } from '../../../shared/adapters/system-clock.ts';
import { ROBOTS_PATH, sitemapsOf } from '../../../shared/domain/robots.ts';
import { sharesRobots } from '../../../shared/domain/same-site.ts';
import { oneLine } from '../../../shared/domain/terminal-text.ts';
import { readSitemap, type SitemapItem } from '../../discovery/sitemap.ts';
import type { Config } from '../config/load-config.ts';
import { userAgentOf } from '../plan/target.ts';

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
export async function* readSitemaps(config: Config, options: SitemapOptions): AsyncGenerator<SitemapUrl> {
  const { signal, say } = options;
  const { site } = config.values;
  const { origin } = config.discovery!;
  const request: SiteRequest = {
    userAgent: userAgentOf(config),
    timeoutMs: site.timeout * TIMEOUT_FACTOR,
    clock: systemClock,
    allowPrivate: site.allow_private,
    productUrl: site.product_url,
  };
  const waiting = options.sitemaps === 'auto' ? await findSitemaps(origin, request) : [...options.sitemaps];
  const known = new Set(waiting);
  let read = 0;
  for (let url = waiting.shift(); url !== undefined && !signal.aborted; url = waiting.shift()) {
    if (++read > MAX_SITEMAPS) {
      say(`! there are more than ${MAX_SITEMAPS} sitemaps: the others are not read`);
      return;
    }
    await systemClock.sleep(site.interval, signal);
    for (const entry of await entriesOf(url, request)) {
      if (entry.kind === 'cut') say(`! the sitemap ${oneLine(url)} was not read to its end: ${entry.why}`);
      else if (entry.kind === 'url') yield { url: entry.loc, modifiedMs: entry.lastModMs };
      else if (!known.has(entry.loc) && sharesRobots(origin, entry.loc)) {
        known.add(entry.loc);
        waiting.push(entry.loc);
      }
    }
  }
}

/** Those that robots.txt names on this host, else the usual place. */
async function findSitemaps(origin: string, request: SiteRequest): Promise<string[]> {
  const reply = await readSiteFile(`${origin}${ROBOTS_PATH}`, { 'accept-encoding': 'identity' }, request, readText);
  const named = reply.kind === 'reply' ? sitemapsOf(reply.value ?? '').filter((url) => sharesRobots(origin, url)) : [];
  return named.length > 0 ? named : [`${origin}/sitemap.xml`];
}

/** At most 50,000: the limit of one sitemap. */
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
