/** What a run keeps of a discovery: how it judges links, and what it has found. */
import { compilePattern, type Pattern } from '../../../shared/adapters/steps/regex.ts';

/** What a run keeps of `discover`. */
export interface DiscoverSettings {
  /** The origin of the site, such as `https://shop.example`: paths are relative to it. */
  origin: string;
  /** RE2 pattern whose first group is the product ID in a product's path; null: the path is the ID. */
  id: string | null;
  /** Maximum links from a seed to a page. */
  depth: number;
  order: 'breadth' | 'score';
  /** RE2 patterns; a path that matches none of them is not taken. None: any path of the site. */
  allow: string[];
  /** Maximum URLs that wait. */
  keep: number;
  /** Maximum URLs of a run. */
  pages: number;
  /** How known URLs are remembered. */
  seen: 'exact' | 'bloom' | 'auto';
}

/**
 * site     another host, or no page
 * list     in `site.follow.deny`
 * allow    matches no pattern of `site.follow.allow`
 * mapping  no page of the mapping is for it
 * depth    too many links from the seeds
 * trap     endless: steps that repeat, too many parameters, or a pattern that was cut
 */
export const DENIALS = ['site', 'list', 'allow', 'mapping', 'depth', 'trap'] as const;
export type Denial = (typeof DENIALS)[number];

/** Links of the pages of a discovery. found = fresh + known + denied + dropped. */
export interface DiscoveryCounts {
  /** New URLs of seeds, sitemaps and search terms; they are not links. */
  entered: number;
  found: number;
  /** URLs that were taken, or wait. */
  fresh: number;
  known: number;
  denied: Partial<Record<Denial, number>>;
  /** Found, and worse than the `keep` best. */
  dropped: number;
  /** Found by earlier runs, and by now worse than the best. */
  fell: number;
  /** How many new links the Bloom filter has probably hidden. */
  hidden: number;
}

/** The counts before the first page. */
export const noDiscovery = (entered = 0): DiscoveryCounts => ({
  entered,
  found: 0,
  fresh: 0,
  known: 0,
  denied: {},
  dropped: 0,
  fell: 0,
  hidden: 0,
});

/** The ID of the product in a path of the site; null when the pattern finds none. */
export const idIn = (path: string, pattern: string | null): string | null =>
  pattern === null ? path : firstGroup(compilePattern(pattern), path);

/** The first group of the first match in a path; the whole match of a pattern without groups. */
export function firstGroup(pattern: Pattern, path: string): string | null {
  const [span] = pattern.spans(path, Math.min(1, pattern.groupCount), 1, () => undefined);
  return span ? path.slice(...span) : null;
}
