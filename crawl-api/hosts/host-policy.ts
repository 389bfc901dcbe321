/**
 * What one of many hosts may be asked, and when: under the robots.txt of each of its origins, which the owner of the
 * host reads first and then hourly; only while this instance owns it; and not while it rests.
 */
import { DEAD_AFTER, restOfSilentMs, ROBOTS_EVERY_MS } from '../../shared/domain/host-policy.ts';
import { hostGroupOf } from '../../shared/domain/host-key.ts';
import type { FollowRules } from '../../shared/domain/follow-rules.ts';
import { isAllowed, ROBOTS_PATH } from '../../shared/domain/robots.ts';
import type { RobotsPolicy } from '../../shared/domain/robots-matcher.ts';
import { MAX_REDIRECTS } from '../../shared/domain/same-site.ts';
import type { RobotsAnswer, RobotsRequest } from '../../shared/adapters/robots-fetcher.ts';
import type { Clock } from '../../shared/ports/clock.ts';
import { MAX_LINK_CHARS, type Move } from '../../shared/wire/part.ts';
import type { SiteSettings } from '../../shared/wire/site-settings.ts';
import type { PageResult } from '../fetch/page-result.ts';
import { createEvidence, type Judgement, unremarkable } from '../politeness/judgement.ts';
import type { Links } from '../politeness/link-judge.ts';
import type { Barrier, DomainPolicy } from '../queue/domain-policy.ts';
import { DISK_RETRY_MS, untilWritten } from '../queue/journal-writer.ts';
import type { Origins } from '../queue/origins.ts';
import type { Queue } from '../queue/queue.ts';
import { atDomain, type JournalRecord } from '../queue/records.ts';
import type { HostRefusals } from './host-refusals.ts';
import type { NetworkWatch } from './network-watch.ts';

/** Asks for a robots.txt once. Never rejects. */
type AskRobots = (
  origin: string,
  url: string,
  how: Required<Pick<RobotsRequest, 'timeoutMs' | 'onConnected'>>,
) => Promise<RobotsAnswer>;

/** The most that a host has for its first answer, connection included: most of those that take longer never answer. */
const FIRST_ANSWER_MS = 5_000;
/** As for all files of a site that are no page. */
const ANSWER_MS = 15_000;

export interface HostPolicyParts {
  queue: Queue;
  domain: number;
  site: SiteSettings;
  follow: FollowRules;
  clock: Clock;
  askRobots: AskRobots;
  refusals: HostRefusals;
  network: NetworkWatch;
  /** From the start of the run to its deadline. */
  runMs: number;
  /** The main server must know something of the host before that is asked again. */
  onNews: () => void;
  /** The origin does not answer: until it is asked again, its products leave the turn to those of others. */
  onSilence: (origin: string) => void;
  atAddress: DomainPolicy['atAddress'];
  /** True when an open product of the host is at another origin than this. */
  hasOther: (origin: string) => boolean;
}

/** Why nothing more is asked of an origin, while others of its host are. */
interface ClosedOrigin {
  reason: 'network' | 'robots';
  detail: string;
}

export class HostPolicy implements DomainPolicy {
  readonly links: Links;
  /** The host is scarce: each request that is not needed is one for another record. */
  readonly extent = 'wanted';
  /** Requests in a row without an answer. */
  silent = 0;
  readonly #parts: HostPolicyParts;
  /** Where the robots.txt of an origin has moved, and by how many redirects. */
  readonly #moved = new Map<string, { to: string; hops: number }>();
  /** The origins that have answered. */
  readonly #alive = new Set<string>();
  /** By origin: tries in a row without an answer, or without rules that can be read, and when the next one may be. */
  readonly #misses = new Map<string, { times: number; freeAtMs: number }>();
  readonly #closed = new Map<string, ClosedOrigin>();

  constructor(parts: HostPolicyParts) {
    this.#parts = parts;
    const { site, follow } = parts;
    const isHere = (to: string): boolean => this.#isHere(to);
    this.links = {
      mayFollow: (_, to) => isHere(to),
      isAllowed: (url) => this.closedAt(url) === null && (site.robots === 'ignore' || this.#isAllowed(url)),
      // A page of an origin whose rules are not read yet waits for them.
      judgeLink: (_, link) => {
        if (!follow.mayFollow(link)) return 'unwanted';
        if (!isHere(link)) return 'elsewhere';
        return this.unread(link) !== null || this.links.isAllowed(link) ? 'further' : 'robots';
      },
    };
  }

  /** When the origin of this URL may be asked again, by the monotonic clock, as far as that is up to it alone. */
  freeAtMs(url: string): number {
    return this.#misses.get(this.#originOf(url))?.freeAtMs ?? -Infinity;
  }

  /** Why nothing is asked of the origin of this URL; null where it may be. */
  closedAt(url: string): ClosedOrigin | null {
    return this.#closed.get(this.#originOf(url)) ?? null;
  }

  atAddress<T>(url: string, work: AbortSignal, ask: () => Promise<T>): Promise<T> {
    return this.#parts.atAddress(url, work, ask);
  }

  barrier(): Barrier | null {
    const { queue, domain, clock, site } = this.#parts;
    const { pausedUntilMs, givenUp } = queue.state.domains.at(domain);
    const untilMs = Math.max(pausedUntilMs, queue.pausedUntilMs);
    if (givenUp !== null) return { kind: 'given-up', untilMs: null };
    if (!queue.isLeased) return { kind: 'lease', untilMs: null };
    if (queue.state.domains.news.has(domain)) return { kind: 'news', untilMs: null };
    if (untilMs > clock.now()) return { kind: 'pause', untilMs };
    if (queue.state.requests >= (site.maxRequests ?? Infinity)) return { kind: 'requests', untilMs: null };
    return queue.hasRoom() ? null : { kind: 'disk', untilMs: clock.now() + DISK_RETRY_MS };
  }

  unread(url: string): string | null {
    const { site } = this.#parts;
    const parsed = URL.parse(url);
    if (site.robots === 'ignore' || parsed === null || !this.#isHere(url) || this.#closed.has(parsed.origin))
      return null;
    const { origins } = this.#parts.queue.state;
    if (this.#isKnown(parsed.origin) || origins.foreignOf(this.#parts.domain, parsed.origin) !== null) return null;
    return this.#moved.get(parsed.origin)?.to ?? parsed.origin + ROBOTS_PATH;
  }

  foreignRobots(url: string): string | null {
    const { queue, domain, site } = this.#parts;
    const parsed = URL.parse(url);
    if (site.robots === 'ignore' || parsed === null || this.#isKnown(parsed.origin)) return null;
    return queue.state.origins.foreignOf(domain, parsed.origin)?.url ?? null;
  }

  moveOf(to: string): Move | null {
    const isPage = !this.#isHere(to) && /^https?:/.test(to) && to.length <= MAX_LINK_CHARS;
    return isPage && !this.#parts.follow.denies(to) ? { page: to } : null;
  }

  /** Where a product goes on that its robots.txt does not allow: that of another host holds for it. Null: nowhere. */
  moveUnder(url: string): Move | null {
    const parsed = URL.parse(url);
    const robots = (parsed && this.#rulesOf(parsed.origin)?.movedTo) ?? null;
    return robots === null ? null : { page: url, robots };
  }

  async read(robotsUrl: string, work: AbortSignal): Promise<string> {
    const { site, askRobots, clock } = this.#parts;
    const origin = this.#originOf(robotsUrl);
    const timeoutMs = Math.min(site.timeoutMs, this.silent === 0 ? FIRST_ANSWER_MS : ANSWER_MS);
    const atMs = clock.now();
    let isOver = false;
    // The lease may have ended while the connection was made.
    const onConnected = (): void => {
      isOver = !this.#parts.queue.isLeased;
      if (isOver) throw new Error('the lease is over');
    };
    const answer = await askRobots(origin, robotsUrl, { timeoutMs, onConnected });
    if (work.aborted || isOver) return 'aborted';
    if (answer.kind === 'moved') {
      await this.#noteMove(origin, answer.to, atMs, work);
      return String(answer.status);
    }
    if (answer.status === null) this.#noteSilence(origin, answer.policy.source);
    else await this.#noteRules(origin, answer.policy, answer.status, { atMs, work });
    return String(answer.status ?? 'network');
  }

  noteTry(page: PageResult, url: string): boolean {
    const { queue, network } = this.#parts;
    const origin = this.#originOf(url);
    if (page.kind === 'failed' && page.reply === null && isSilence(page)) {
      this.#noteSilence(origin, page.detail);
      return !network.isDown;
    }
    this.#noteAnswer(origin);
    this.#misses.delete(origin);
    queue.tally.noteTry(page, false);
    return true;
  }

  /** The host does not answer whose robots.txt holds here. */
  giveUpUnder(host: string, work: AbortSignal): Promise<void> {
    return this.#giveUp('robots', `the robots.txt that holds here is at ${host}, which cannot be asked`, work);
  }

  /** Its name could not be looked up, so no request was sent. */
  noteNoAddress(url: string, why: string): void {
    this.#noteSilence(this.#originOf(url), why);
  }

  /**
   * A redirect to another host says nothing about this one: its owner asks there. With one to the home page many sites
   * answer for pages that they no longer have; it may be a refusal only where a page was right before.
   */
  review(judgement: Judgement, page: PageResult, url: string): Judgement {
    const { queue, domain } = this.#parts;
    if (judgement.rule === 'redirect-home' && queue.state.domains.at(domain).lastStored === null)
      return { ...unremarkable('failed'), rule: judgement.rule };
    if (judgement.rule !== 'redirect-elsewhere' || page.kind !== 'redirect') return judgement;
    return unremarkable(this.#isHere(page.to) && page.to !== url ? 'hop' : 'failed');
  }

  #isHere(url: string): boolean {
    const { queue, domain, site } = this.#parts;
    const parsed = URL.parse(url);
    if (parsed === null || !/^https?:$/.test(parsed.protocol)) return false;
    return hostGroupOf(parsed, site.hostKey) === queue.state.numbers.hostOf(domain);
  }

  #isAllowed(url: string): boolean {
    const parsed = URL.parse(url);
    const known = parsed && this.#rulesOf(parsed.origin);
    return parsed !== null && known != null && isAllowed(known.policy, parsed.pathname + parsed.search);
  }

  #rulesOf(origin: string): ReturnType<Origins['rulesOf']> {
    const { queue, domain } = this.#parts;
    return queue.state.origins.rulesOf(domain, origin);
  }

  #isKnown(origin: string): boolean {
    const known = this.#rulesOf(origin);
    return known !== undefined && this.#parts.clock.now() - known.atMs < ROBOTS_EVERY_MS;
  }

  /** That of a URL; of a robots.txt the one for which it is asked, before redirects. */
  #originOf(url: string): string {
    for (const [origin, { to }] of this.#moved) if (to === url) return origin;
    return URL.parse(url)?.origin ?? '';
  }

  async #noteMove(origin: string, to: string, atMs: number, work: AbortSignal): Promise<void> {
    this.#noteAnswer(origin);
    const hops = (this.#moved.get(origin)?.hops ?? 0) + 1;
    if (this.#isHere(to) && hops <= MAX_REDIRECTS) {
      this.#moved.set(origin, { to, hops });
      return;
    }
    // RFC 9309, 2.3.1.2: redirects that lead nowhere count as no robots.txt. Rules at another host are its owner's to
    // read: here nothing is allowed, and what is to be asked goes on there.
    const isHere = this.#isHere(to);
    const source = `${origin}${ROBOTS_PATH} leads to ${to.slice(0, 300)}`;
    const access = isHere ? 'all' : 'none';
    const policy: RobotsPolicy = { version: source, access, rules: [], crawlDelayMs: null, source };
    const isRobots = !isHere && URL.parse(to)?.pathname === ROBOTS_PATH && to.length <= MAX_LINK_CHARS;
    await this.#keep(origin, { policy, atMs, ...(isRobots ? { movedTo: to } : {}) }, work);
  }

  async #noteRules(
    origin: string,
    policy: RobotsPolicy & { retryAfterMs?: number },
    status: number,
    { atMs, work }: { atMs: number; work: AbortSignal },
  ): Promise<void> {
    const { domain, refusals, clock, runMs } = this.#parts;
    const { retryAfterMs = 0, ...rules } = policy;
    this.#noteAnswer(origin);
    if (rules.access !== 'none') {
      this.#misses.delete(origin);
      await this.#keep(origin, { policy: rules, atMs }, work);
      // No page has its turn before the end: the run must not wait for that.
      if ((rules.crawlDelayMs ?? 0) >= runMs)
        await this.#giveUp('robots', `its Crawl-delay is longer than the run: ${rules.source}`, work);
      return;
    }
    const before = this.#rulesOf(origin);
    // Rules of an hour ago are better than none.
    if (before !== undefined) return this.#keep(origin, { policy: before.policy, atMs }, work);
    if (status === 429 || retryAfterMs > 0) {
      const evidence = { ...createEvidence(`robots-${status}`, origin + ROBOTS_PATH, null), status };
      await untilWritten(() => refusals.begin('banned', evidence, { domain, minMs: retryAfterMs }), clock, work);
      return;
    }
    await this.#noteMiss(origin, { reason: 'robots', detail: rules.source }, work);
  }

  async #keep(
    origin: string,
    rules: { policy: RobotsPolicy; atMs: number; movedTo?: string },
    work: AbortSignal,
  ): Promise<void> {
    const { queue, domain, onNews } = this.#parts;
    this.#moved.delete(origin);
    await this.#write({ t: 'origin-robots', origin, ...rules, ...atDomain(domain) }, work);
    if (queue.state.domains.news.has(domain)) onNews();
  }

  #noteAnswer(origin: string): void {
    this.silent = 0;
    this.#alive.add(origin);
    this.#parts.network.answered();
  }

  /** While no host answers at all, this one is only tried again. */
  #noteSilence(origin: string, why: string): void {
    const { network, domain, clock, runMs, queue } = this.#parts;
    if (this.silent === 0) network.silent(domain, this.#alive.size > 0);
    queue.tally.noteSilence(network.isDown);
    if (network.isDown) {
      const { times } = this.#misses.get(origin) ?? NO_MISS;
      this.#misses.set(origin, { times, freeAtMs: clock.monotonic() + restOfSilentMs(2, runMs) });
      return;
    }
    this.silent++;
    void this.#noteMiss(origin, { reason: 'network', detail: `the host does not answer: ${why}` }, NEVER);
  }

  /** One origin says nothing about the others of its host: it alone is closed where there are others. */
  #noteMiss(origin: string, why: ClosedOrigin, work: AbortSignal): Promise<void> {
    const { clock, runMs, hasOther, onSilence } = this.#parts;
    const times = (this.#misses.get(origin) ?? NO_MISS).times + 1;
    if (times < DEAD_AFTER) {
      const restMs = restOfSilentMs(why.reason === 'robots' ? times + 1 : times, runMs);
      this.#misses.set(origin, { times, freeAtMs: clock.monotonic() + restMs });
      onSilence(origin);
      return Promise.resolve();
    }
    const isOnly = [...this.#alive].every((each) => each === origin) && !hasOther(origin);
    if (isOnly) return this.#giveUp(why.reason, why.detail, work);
    this.#misses.delete(origin);
    this.#closed.set(origin, { ...why, detail: why.detail.slice(0, 300) });
    return Promise.resolve();
  }

  #giveUp(reason: 'network' | 'robots', detail: string, work: AbortSignal): Promise<void> {
    const { domain } = this.#parts;
    return this.#write({ t: 'given-up', reason, detail: detail.slice(0, 300), ...atDomain(domain) }, work);
  }

  async #write(record: JournalRecord, work: AbortSignal): Promise<void> {
    const { queue, clock } = this.#parts;
    await untilWritten(() => queue.note(record), clock, work);
  }
}

const NO_MISS = { times: 0, freeAtMs: -Infinity };

const NEVER = new AbortController().signal;

const isSilence = ({ reason }: { reason: string }): boolean => reason === 'network' || reason === 'timeout';
