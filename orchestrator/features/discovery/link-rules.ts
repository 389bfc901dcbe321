/** Which of the URLs that a discovery finds it may take, and as what. Pure. */
import { compilePattern, type Pattern } from '../../../shared/adapters/steps/regex.ts';
import type { Mapping } from '../../../shared/domain/mapping.ts';
import { canonicalPath, findPathFault, patternOf } from '../../../shared/domain/canonical-url.ts';
import { DenyList } from '../../../shared/domain/deny-list.ts';
import { FollowRules } from '../../../shared/domain/follow-rules.ts';
import { denyPrefixes } from '../../core/config/deny-lines.ts';
import { type Denial, type DiscoverSettings, firstGroup } from '../../core/model/discovery.ts';

/** A URL that may be taken. */
export interface Candidate {
  /** Canonical, relative to the origin. */
  path: string;
  /** What it is known by: two URLs with one key are one. */
  key: string;
  /** The ID of the product that it shows; null for a page that only has links. */
  id: string | null;
  depth: number;
}

export type LinkJudgement = Candidate | { denied: Denial };

export class LinkRules {
  readonly traps: TrapWatch;
  readonly #settings: DiscoverSettings;
  readonly #base: URL;
  readonly #id: Pattern | null;
  readonly #pages: { patterns: Pattern[]; hasFields: boolean }[];
  readonly #follow: FollowRules;

  /** @param deny lines of site.follow.deny @param cut patterns that were found to be traps */
  constructor(
    settings: DiscoverSettings,
    mapping: Mapping,
    lists: { deny: readonly string[]; cut: readonly string[] },
  ) {
    this.#settings = settings;
    this.#base = new URL(settings.origin);
    this.#id = settings.id === null ? null : compilePattern(settings.id);
    this.#pages = mapping.pages.map(({ urlPatterns, fields }) => ({
      patterns: urlPatterns.map(compilePattern),
      hasFields: fields.length > 0,
    }));
    this.#follow = new FollowRules({
      allow: settings.allow.map(compilePattern),
      deny: new DenyList(denyPrefixes(lists.deny, [settings.origin]), this.#base),
    });
    this.traps = new TrapWatch(lists.cut);
  }

  /** @param link an absolute URL @param depth links from a seed to it */
  judge(link: string, depth: number): LinkJudgement {
    const path = canonicalPath(link, this.#base);
    if (path === null) return { denied: 'site' };
    const follow = this.#follow.judge(path);
    if ('denied' in follow) return follow;
    const url = this.#settings.origin + path;
    const page = this.#pages.find(({ patterns }) => patterns.length === 0 || patterns.some((p) => p.isIn(url)));
    if (page === undefined) return { denied: 'mapping' };
    const id = page.hasFields ? this.#idOf(path) : null;
    if (page.hasFields && id === null) return { denied: 'mapping' };
    if (depth > this.#settings.depth) return { denied: 'depth' };
    // A user who allows a path by name knows it.
    if (!follow.isNamed && (findPathFault(path) !== null || this.traps.isCut(path))) return { denied: 'trap' };
    return { path, key: id === null ? `page ${path}` : `item ${id}`, id, depth };
  }

  #idOf(path: string): string | null {
    return this.#id === null ? path : firstGroup(this.#id, path);
  }
}

/** Pages of one pattern that may lead to no new product, one after the other, before the pattern is cut. */
const FRUITLESS = 50;

/**
 * Notices patterns of pages that lead to nothing but more of themselves, such as a calendar or the same list in another
 * order. Counts in this process only; what it cuts is stored.
 */
export class TrapWatch {
  readonly #cut: Set<string>;
  /** Cut by this process and not stored yet. */
  readonly fresh = new Set<string>();
  readonly #patterns = new Map<string, { fruitless: number; shown: Set<string> }>();

  constructor(cut: readonly string[]) {
    this.#cut = new Set(cut);
  }

  isCut(path: string): boolean {
    return this.#cut.has(patternOf(path));
  }

  /**
   * Call for each page without a product.
   * @param targets what the page links to
   */
  note(path: string, targets: readonly Pick<Candidate, 'path' | 'key' | 'id'>[]): void {
    const pattern = patternOf(path);
    if (this.#cut.has(pattern)) return;
    let seen = this.#patterns.get(pattern);
    if (seen === undefined) this.#patterns.set(pattern, (seen = { fruitless: 0, shown: new Set() }));
    const before = seen.shown.size;
    // A product, or a page of another kind: new for pages of this pattern, whether or not it is known already.
    for (const { path: target, key, id } of targets)
      if (id !== null || patternOf(target) !== pattern) seen.shown.add(id === null ? patternOf(target) : key);
    seen.fruitless = seen.shown.size > before ? 0 : seen.fruitless + 1;
    if (seen.fruitless < FRUITLESS) return;
    this.#cut.add(pattern);
    this.fresh.add(pattern);
    this.#patterns.delete(pattern);
  }
}
