/**
 * What a crawl may follow by `site.follow.allow` and `deny`: the one answer for links, further pages and redirects.
 * Pure.
 */
import { canonicalPath } from './canonical-url.ts';
import type { DenyList } from './deny-list.ts';

export interface FollowLists {
  /** A path must match one of these patterns. None: any path may be followed. */
  allow: readonly { isIn(path: string): boolean }[];
  deny: DenyList;
}

/** `isNamed`: a pattern of `allow` names the path. */
export type FollowJudgement = { denied: 'list' | 'allow' } | { isNamed: boolean };

export class FollowRules {
  readonly #lists: FollowLists;

  constructor(lists: FollowLists) {
    this.#lists = lists;
  }

  /** @param path canonical, of the site */
  judge(path: string): FollowJudgement {
    return this.#lists.deny.has(path) ? { denied: 'list' } : this.#judgeAllowed(path);
  }

  /** Whether a link to this URL, on any host, may be followed. */
  mayFollow(url: string): boolean {
    if (this.denies(url)) return false;
    if (this.#lists.allow.length === 0) return true;
    const base = URL.parse(url);
    const path = base && canonicalPath(url, base);
    return path !== null && !('denied' in this.#judgeAllowed(path));
  }

  /** Whether `deny` forbids this URL, by which a redirect is judged: a site that moves a page is not in `allow`. */
  denies(url: string): boolean {
    return this.#lists.deny.hasUrl(url);
  }

  #judgeAllowed(path: string): FollowJudgement {
    const { allow } = this.#lists;
    const isNamed = allow.some((pattern) => pattern.isIn(path));
    return allow.length > 0 && !isNamed ? { denied: 'allow' } : { isNamed };
  }
}
