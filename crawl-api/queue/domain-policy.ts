/** What a domain may be asked, and when: each of one site, and each host of many, has a policy. */
import { policyAt } from '../../shared/domain/robots-matcher.ts';
import type { Clock } from '../../shared/ports/clock.ts';
import type { Move } from '../../shared/wire/part.ts';
import type { SiteSettings } from '../../shared/wire/site-settings.ts';
import type { PageResult } from '../fetch/page-result.ts';
import type { UserHeaders } from '../fetch/user-headers.ts';
import type { Judgement } from '../politeness/judgement.ts';
import { LinkJudge, type LinkJudgeParts, type Links } from '../politeness/link-judge.ts';
import { DISK_RETRY_MS } from './journal-writer.ts';
import type { Queue } from './queue.ts';

/** `untilMs` (wall clock) is null when only an order ends the barrier. */
export interface Barrier {
  kind: 'incident' | 'pause' | 'robots' | 'secrets' | 'requests' | 'disk' | 'lease' | 'news' | 'given-up';
  untilMs: number | null;
}

/**
 * How much of a product a visit requests: all of its further pages; or of those with a section in the mapping as many
 * as it takes until each field that they may fill has a value.
 */
export type VisitExtent = 'all' | 'wanted';

export interface DomainPolicy {
  links: Links;
  /** How much of a product a visit requests. */
  extent: VisitExtent;
  /** What keeps the instance from sending a request; null when requests may be sent to the domain, at the pace. */
  barrier(): Barrier | null;
  /** The URL of a robots.txt that must be read before this page; null: none. */
  unread(url: string): string | null;
  /** Reads it; returns the status, or why there was none. */
  read(robotsUrl: string, work: AbortSignal): Promise<string>;
  /** Asks when no other request is under way to the address of this URL. */
  atAddress<T>(url: string, work: AbortSignal, ask: () => Promise<T>): Promise<T>;
  /** A request for this URL has ended. False: that says nothing about the page, which is asked for again later. */
  noteTry(page: PageResult, url: string): boolean;
  /** Where a product goes on whose page redirects there; null: nowhere. */
  moveOf(to: string): Move | null;
  /** Where a product goes on that robots.txt does not allow here; null: nowhere. */
  moveUnder(url: string): Move | null;
  /** The robots.txt of another host that holds for this URL and must be read first; null: none. */
  foreignRobots(url: string): string | null;
  /** What the judgement of a page means at this domain. */
  review(judgement: Judgement, page: PageResult, url: string): Judgement;
}

export interface SiteDomainParts extends Pick<LinkJudgeParts, 'follow' | 'isOneOfMany'> {
  queue: Queue;
  /** Its place in `site.product_url`. */
  domain: number;
  site: SiteSettings;
  clock: Pick<Clock, 'now'>;
  /** Headers and cookies of the user; omitted: none. */
  userHeaders?: UserHeaders;
}

/** The policy of a domain of one site, whose rules and pace the main server orders. */
export const siteDomain = (parts: SiteDomainParts): DomainPolicy => {
  const { queue, domain, clock } = parts;
  return {
    links: new LinkJudge({
      ...parts,
      policies: () => ({ own: policyAt(queue.state.robots, domain), further: queue.state.robots?.further }),
    }),
    extent: 'all',
    barrier: () => findBarrier(parts, clock.now()),
    // The main server reads that of a site.
    unread: () => null,
    read: () => Promise.resolve(''),
    // Its pace is that of the address.
    atAddress: (_, __, ask) => ask(),
    noteTry: (page) => {
      queue.tally.noteTry(page);
      return true;
    },
    moveOf: () => null,
    moveUnder: () => null,
    foreignRobots: () => null,
    review: (judgement) => judgement,
  };
};

/**
 * An incident at one domain stops the address at all of them: sites that share their owner may share what they know
 * about an address.
 */
function findBarrier({ queue, domain, site, userHeaders }: SiteDomainParts, nowMs: number): Barrier | null {
  const { robots, maxRequests = Infinity } = site;
  const { incident } = queue.state;
  const pausedUntilMs = Math.max(queue.state.domains.at(domain).pausedUntilMs, queue.pausedUntilMs);
  const policy = policyAt(queue.state.robots, domain);
  if (incident) return { kind: 'incident', untilMs: incident.untilMs };
  if (pausedUntilMs > nowMs) return { kind: 'pause', untilMs: pausedUntilMs };
  if (robots === 'respect' && (policy === null || policy.access === 'none')) return { kind: 'robots', untilMs: null };
  if (userHeaders?.isComplete === false) return { kind: 'secrets', untilMs: null };
  if (queue.state.requests >= maxRequests) return { kind: 'requests', untilMs: null };
  return queue.hasRoom() ? null : { kind: 'disk', untilMs: nowMs + DISK_RETRY_MS };
}
