/** The URLs of a site's sitemaps, read one after the other at the pace of the crawl. */
import { fetchRobotsFile } from '../../../shared/adapters/robots-fetcher.ts';
import { readSiteFile, type SiteRequest } from '../../../shared/adapters/site-file.ts';
import { systemClock } from '../../../shared/adapters/system-clock.ts';
import type { RobotsReading } from '../../../shared/domain/robots-matcher.ts';
import { isAllowed } from '../../../shared/domain/robots.ts';
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

/**
 * The URLs of the site's sitemaps, as they are written, on any host. A sitemap that cannot be read is reported and
 * skipped: it costs what only it names. On another host are read those that the site's robots.txt or an index of the
 * site names, and those of its own host that such an index names.
 */
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
  const hosts = new Hosts(request, { intervalMs: site.interval, signal });
  const isOwn = (url: string): boolean => sharesRobots(origin, url);
  // Permission to ignore robots.txt is the site's own.
  const isUnruled = (url: string): boolean => site.robots === 'ignore' && isSameSite(origin, url);
  /** The policy that forbids it, or null. */
  const refusing = async (url: string): Promise<RobotsReading | null> => {
    if (isUnruled(url)) return null;
    const { policy } = await hosts.at(url);
    const { pathname, search } = new URL(url);
    return isAllowed(policy, pathname + search) ? null : policy;
  };
  const named = options.sitemaps === 'auto' ? (await hosts.at(origin)).sitemaps : options.sitemaps;
  let hasMore = named.length > MAX_SITEMAPS;
  const waiting = named.slice(0, MAX_SITEMAPS);
  if (named.length === 0) waiting.push(`${origin}/sitemap.xml`);
  // No more than will be read: an index of indexes names 50,000 in each.
  const known = new Set(waiting);
  for (let url = waiting.shift(); url !== undefined && !signal.aborted; url = waiting.shift()) {
    const from = url;
    // The rules of pages.
    const beforeRedirect = async (to: string): Promise<string | null> => {
      if (!isOwn(to) && !sharesRobots(from, to) && !isUnruled(to)) return 'another site';
      if ((await refusing(to)) !== null) return 'which robots.txt forbids';
      await hosts.pause();
      return null;
    };
    const policy = isOwn(from) ? null : await refusing(from);
    if (policy !== null) {
      const why = policy.access === 'none' ? oneLine(policy.source) : 'robots.txt of its host forbids it';
      say(`! the sitemap ${oneLine(from)} is not read: ${why}`);
      continue;
    }
    await hosts.pause();
    const elsewhere: string[] = [];
    for (const entry of await entriesOf(from, { ...request, beforeRedirect })) {
      if (entry.kind === 'cut') say(`! the sitemap ${oneLine(from)} was not read to its end: ${entry.why}`);
      else if (entry.kind === 'url') yield { url: entry.loc, modifiedMs: entry.lastModMs };
      else if (known.has(entry.loc)) continue;
      else if (!isOwn(from) && !isOwn(entry.loc) && !sharesRobots(from, entry.loc)) elsewhere.push(entry.loc);
      else if (known.size >= MAX_SITEMAPS) hasMore = true;
      else {
        known.add(entry.loc);
        waiting.push(entry.loc);
      }
    }
    const [example] = elsewhere;
    if (example !== undefined)
      say(
        `! the sitemap ${oneLine(from)} is not on the site and names ${elsewhere.length} of other hosts, such as ${oneLine(example)}: they are not read`,
      );
  }
  if (hasMore) say(`! there are more than ${MAX_SITEMAPS} sitemaps: the others are not read`);
}

type RobotsFile = Awaited<ReturnType<typeof fetchRobotsFile>>;

/** The robots.txt of each host, asked for once; and the pace over all hosts, which is that of the slowest. */
class Hosts {
  readonly #request: SiteRequest;
  readonly #signal: AbortSignal;
  readonly #files: { origin: string; file: RobotsFile }[] = [];
  #pauseMs: number;

  constructor(request: SiteRequest, { intervalMs, signal }: { intervalMs: number; signal: AbortSignal }) {
    this.#request = request;
    this.#signal = signal;
    this.#pauseMs = intervalMs;
  }

  async at(url: string): Promise<RobotsFile> {
    const known = this.#files.find(({ origin }) => sharesRobots(origin, url));
    if (known !== undefined) return known.file;
    if (this.#files.length > 0) await this.pause();
    const { origin } = new URL(url);
    const file = await fetchRobotsFile({ ...this.#request, origin });
    this.#files.push({ origin, file });
    this.#pauseMs = Math.max(this.#pauseMs, file.policy.crawlDelayMs ?? 0);
    return file;
  }

  pause(): Promise<void> {
    return systemClock.sleep(this.#pauseMs, this.#signal);
  }
}

/** The entries of one sitemap: at most 50,000, its limit. */
async function entriesOf(url: string, request: SiteRequest): Promise<SitemapItem[]> {
  const entries: SitemapItem[] = [];
  const headers = { accept: 'application/xml,text/xml,*/*;q=0.1', 'accept-encoding': 'identity' };
  const reply = await readSiteFile(url, headers, request, async (body) => {
    for await (const entry of readSitemap(body, { base: url })) entries.push(entry);
    return true;
  });
  const why = reply.kind !== 'reply' ? reply.detail : reply.value === null ? `status ${reply.status}` : null;
  return why === null ? entries : [...entries, { kind: 'cut', why }];
}
