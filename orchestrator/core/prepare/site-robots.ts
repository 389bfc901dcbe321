/** robots.txt before and during a run: read for planning, and its rules for the products in words. */
import { fetchRobots, type RobotsRequest } from '../../../shared/adapters/robots-fetcher.ts';
import { systemClock } from '../../../shared/adapters/system-clock.ts';
import { domainOf, isAnyHost, type ProductUrl, templatesOf } from '../../../shared/domain/domains.ts';
import { findUrlFault } from '../../../shared/domain/own-url.ts';
import { productUrl, siteOrigins } from '../../../shared/domain/product.ts';
import { formatDuration } from '../../../shared/domain/quantity.ts';
import { policyAt, type RobotsPolicy, type RobotsReading } from '../../../shared/domain/robots-matcher.ts';
import { combinePolicies, isAllowed, withFurther } from '../../../shared/domain/robots.ts';
import type { RobotsReader } from '../observe/robots-cache.ts';
import { IGNORED_ROBOTS, OWNERS_READ_ROBOTS } from '../model/robots-pace.ts';
import { oneLine } from '../../../shared/domain/terminal-text.ts';
import type { ProductList } from './products.ts';
import type { SiteSettings } from '../../../shared/wire/site-settings.ts';

/** Longest wait for an answer: a person watches the terminal, and a fleet waits. */
const LONGEST_MS = 15_000;
/** Maximum number of products checked against the rules before a run. */
const TRIED = 1_000;

/** Reads the site's robots.txt; the policy in force where that is not requested from here. */
export function robotsReader(site: SiteSettings): RobotsReader | RobotsPolicy {
  if (site.robots === 'ignore') return IGNORED_ROBOTS;
  if (isAnyHost(site.productUrl)) return OWNERS_READ_ROBOTS;
  const requestOf = (origin: string): RobotsRequest => ({
    ...site,
    origin,
    timeoutMs: Math.min(LONGEST_MS, site.timeoutMs),
    clock: systemClock,
  });
  const readAll = (origins: readonly string[]): Promise<RobotsReading[]> =>
    Promise.all(origins.map((origin) => fetchRobots(requestOf(origin))));
  return {
    async read() {
      const [own, further] = await Promise.all([
        readAll(siteOrigins(site.productUrl)),
        readAll(site.follow?.hosts ?? []),
      ]);
      return withFurther(combinePolicies(own), further);
    },
  };
}

/** The current robots.txt; if it is ignored, a policy that allows everything, without a request. */
export async function readRobots(site: SiteSettings): Promise<RobotsReading> {
  const reader = robotsReader(site);
  return 'read' in reader ? reader.read() : reader;
}

/** What robots.txt means for these products, in the words of a plan; `fault`: why a run would be pointless. */
export function findingsOf(
  policy: RobotsPolicy,
  site: { productUrl: ProductUrl; intervalMs: number },
  { ids, urls }: Pick<ProductList, 'ids' | 'urls'>,
): { warnings: string[]; fault: string | null } {
  if (isAnyHost(site.productUrl)) return { warnings: [], fault: null };
  if (policy.version === IGNORED_ROBOTS.version)
    return { warnings: ['robots.txt is ignored (site.robots: ignore)'], fault: null };
  const domains = templatesOf(site.productUrl).map((_, domain) => policyAt(policy, domain));
  const unreadable = domains
    .filter(({ access }) => access === 'none')
    .map(({ source }) => `robots.txt cannot be read, so nothing may be crawled at present: ${oneLine(source)}`);
  for (const { access, source } of policy.further ?? [])
    if (access === 'none')
      unreadable.push(
        `robots.txt of a further host cannot be read, so its pages are not requested: ${oneLine(source)}`,
      );
  if (policy.access === 'none') return { warnings: unreadable, fault: null };
  const tried = ids.slice(0, TRIED).map((id) => urls?.get(id) ?? id);
  const isRefused = (id: string): boolean => {
    if (findUrlFault(site.productUrl, id) !== null) return false;
    const own = policyAt(policy, domainOf(site.productUrl, id));
    return own.access !== 'none' && !isAllowed(own, pathOf(site.productUrl, id));
  };
  const refused = tried.filter(isRefused);
  const warnings = [...unreadable, ...domains.flatMap((own) => delayWarning(own, site.intervalMs))];
  const [first] = refused;
  if (first === undefined) return { warnings, fault: null };
  const example = `for example ${productUrl(site.productUrl, first).slice(0, 200)}`;
  const some = tried.length < ids.length ? `of the first ${tried.length} products` : `of ${tried.length} products`;
  if (refused.length === tried.length)
    return {
      warnings,
      fault: `robots.txt forbids all ${some}, ${example} (${oneLine(policy.source)}).`,
    };
  return {
    warnings: [
      ...warnings,
      `robots.txt forbids ${refused.length} ${some}, ${example}; they will end as failed(robots)`,
    ],
    fault: null,
  };
}

/** Warnings of a wrong clock, for a dry run: a paid one has AWS's clock to compare with. */
export function clockWarnings({ skewMs = 0 }: RobotsReading): string[] {
  if (skewMs === 0) return [];
  const off = `${formatDuration(Math.abs(skewMs))} ${skewMs > 0 ? 'behind' : 'ahead of'}`;
  return [
    `the clock of this machine is ${off} that of the site, by the date of its robots.txt: keep time by NTP (timedatectl set-ntp true); a clock that is corrected in mid-run moves the deadline`,
  ];
}

function delayWarning({ crawlDelayMs, source }: RobotsPolicy, intervalMs: number): string[] {
  if (crawlDelayMs === null || crawlDelayMs <= intervalMs) return [];
  return [
    `robots.txt asks for ${formatDuration(crawlDelayMs)} between two requests: that wins over site.interval (${formatDuration(intervalMs)}); ${oneLine(source)}`,
  ];
}

function pathOf(templates: ProductUrl, id: string): string {
  const url = new URL(productUrl(templates, id));
  return url.pathname + url.search;
}
