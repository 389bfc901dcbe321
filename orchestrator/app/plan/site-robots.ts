/** robots.txt before and during a run: read for planning, and its rules for the products in words. */
import { fetchRobots } from '../../../shared/adapters/robots-fetcher.ts';
import { systemClock } from '../../../shared/adapters/system-clock.ts';
import { productUrl } from '../../../shared/domain/product.ts';
import { formatDuration } from '../../../shared/domain/quantity.ts';
import type { RobotsPolicy } from '../../../shared/domain/robots-matcher.ts';
import { isAllowed } from '../../../shared/domain/robots.ts';
import { IGNORED_ROBOTS, type RobotsReader } from '../../control/observe/robots-cache.ts';
import type { RunSettings } from '../../control/model/run-settings.ts';
import { oneLine } from '../../../shared/domain/terminal-text.ts';

type Site = Pick<RunSettings['site'], 'productUrl' | 'userAgent' | 'timeoutMs' | 'allowPrivate' | 'robots'>;

/** Longest wait for an answer: a person watches the terminal, and a fleet waits. */
const LONGEST_MS = 15_000;
/** Maximum number of products checked against the rules before a run. */
const TRIED = 1_000;

/** Reads the site's robots.txt; null if it is ignored. */
export function robotsReader(site: Site): RobotsReader | null {
  if (site.robots === 'ignore') return null;
  const request = {
    origin: new URL(productUrl(site.productUrl, 'x')).origin,
    userAgent: site.userAgent,
    timeoutMs: Math.min(LONGEST_MS, site.timeoutMs),
    allowPrivate: site.allowPrivate,
    productUrl: site.productUrl,
    clock: systemClock,
  };
  return { read: () => fetchRobots(request) };
}

/** The current robots.txt; if it is ignored, a policy that allows everything, without a request. */
export async function readRobots(site: Site): Promise<RobotsPolicy> {
  return (await robotsReader(site)?.read()) ?? IGNORED_ROBOTS;
}

/** What robots.txt means for these products, in the words of a plan; `fault`: why a run would be pointless. */
export function findingsOf(
  policy: RobotsPolicy,
  site: { productUrl: string; intervalMs: number },
  ids: readonly string[],
): { warnings: string[]; fault: string | null } {
  if (policy.version === IGNORED_ROBOTS.version)
    return { warnings: ['robots.txt is ignored (site.robots: ignore)'], fault: null };
  if (policy.access === 'none') {
    const warning = `robots.txt cannot be read, so nothing may be crawled at present: ${oneLine(policy.source)}`;
    return { warnings: [warning], fault: null };
  }
  const tried = ids.slice(0, TRIED);
  const refused = tried.filter((id) => !isAllowed(policy, pathOf(site.productUrl, id)));
  const delayMs = policy.crawlDelayMs ?? 0;
  const warnings =
    delayMs > site.intervalMs
      ? [
          `robots.txt asks for ${formatDuration(delayMs)} between two requests: that wins over site.interval (${formatDuration(site.intervalMs)})`,
        ]
      : [];
  if (refused.length === 0) return { warnings, fault: null };
  const example = `for example ${productUrl(site.productUrl, refused[0]!).slice(0, 200)}`;
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

function pathOf(template: string, id: string): string {
  const url = new URL(productUrl(template, id));
  return url.pathname + url.search;
}
