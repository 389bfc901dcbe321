/** Which URLs may be requested, and where a link of a product's page leads. */
import type { FollowRules } from '../../shared/domain/follow-rules.ts';
import type { LeftOutReason } from '../../shared/domain/left-out.ts';
import { isAllowed } from '../../shared/domain/robots.ts';
import type { RobotsPolicy } from '../../shared/domain/robots-matcher.ts';
import { isSameSite, sharesRobots } from '../../shared/domain/same-site.ts';
import type { SiteSettings } from '../../shared/wire/site-settings.ts';

export interface LinkJudgeParts {
  site: Pick<SiteSettings, 'robots' | 'follow'>;
  /** There are other domains. */
  isOneOfMany: boolean;
  /** The user's own rules for links and redirects. */
  follow: FollowRules;
  /** The rules as they are now, of the domain and of each further host; null before the first. */
  policies: () => { own: RobotsPolicy | null; further: readonly RobotsPolicy[] | undefined };
}

/** Which URLs may be requested for a product, and where the links of its page lead. */
export type Links = Pick<LinkJudge, 'judgeLink' | 'mayFollow' | 'isAllowed'>;

export class LinkJudge {
  readonly #parts: LinkJudgeParts;

  constructor(parts: LinkJudgeParts) {
    this.#parts = parts;
  }

  /**
   * Where a link of a product's page leads: to a further page; to one that is left out; or to none, because the user
   * does not want it.
   */
  judgeLink(site: string, link: string): 'further' | 'unwanted' | Extract<LeftOutReason, 'robots' | 'elsewhere'> {
    if (!this.#parts.follow.mayFollow(link)) return 'unwanted';
    if (!this.mayFollow(site, link)) return 'elsewhere';
    return this.isAllowed(link) ? 'further' : 'robots';
  }

  /**
   * Whether a redirect or link may be followed: only to the same site or a further host, and only under rules that were
   * read. With several domains only on the same host, because another one may be a domain of its own, with its own
   * pace.
   */
  mayFollow(site: string, to: string): boolean {
    const { site: settings, isOneOfMany } = this.#parts;
    if (this.#furtherHostOf(to) !== -1) return true;
    return isSameSite(site, to) && ((settings.robots === 'ignore' && !isOneOfMany) || sharesRobots(site, to));
  }

  /** Whether robots.txt, as it is known now, allows a request. */
  isAllowed(url: string): boolean {
    const { own: policy, further } = this.#parts.policies();
    if (this.#parts.site.robots === 'ignore' || policy === null) return true;
    const host = this.#furtherHostOf(url);
    const own = host === -1 ? policy : further?.[host];
    // While that of the site cannot be read, nothing is sent anyway, and its products wait.
    if (own === policy && policy.access !== 'rules') return true;
    const target = URL.parse(url);
    return target === null || (own !== undefined && isAllowed(own, target.pathname + target.search));
  }

  /** The place of its host among the further ones; -1 for a host of the site. */
  #furtherHostOf(url: string): number {
    const { hosts = [] } = this.#parts.site.follow ?? {};
    return hosts.findIndex((origin) => sharesRobots(origin, url));
  }
}
