/**
 * The only way to one domain of a site: pages, through redirects within it and with the browser where needed, each
 * judged. One request at a time, at the pace, and none that robots.txt, a barrier or the disk forbids. Every request
 * (product, redirect hop, further page, canary page, retry with the browser) goes through here.
 */
import type { FollowRules } from '../../shared/domain/follow-rules.ts';
import type { PageRequest, PostBody } from '../../shared/adapters/requests/page-requests.ts';
import type { Requested } from '../../shared/domain/landing.ts';
import { headerForbids } from '../../shared/domain/nofollow.ts';
import { productToken } from '../../shared/domain/robots.ts';
import { hostNameOf } from '../../shared/domain/same-site.ts';
import type { Validators } from '../../shared/domain/validators.ts';
import type { CookieJar } from '../../shared/adapters/http/cookie-jar.ts';
import type { Clock } from '../../shared/ports/clock.ts';
import type { Move } from '../../shared/wire/part.ts';
import type { Purpose } from '../../shared/wire/request-log.ts';
import type { SiteSettings } from '../../shared/wire/site-settings.ts';
import type { SignalFlag } from '../process/signal-flag.ts';
import { hasValues } from '../extract/page-extractor.ts';
import type { UserHeaders } from '../fetch/user-headers.ts';
import type { FetchHooks, NotNow, PageAnswer, PageResult, PageSource } from '../fetch/page-result.ts';
import { keepsMethod, RedirectTrail } from '../fetch/redirect-trail.ts';
import { judge } from '../politeness/ban-rules.ts';
import type { Links } from '../politeness/link-judge.ts';
import { accused, type Judgement, named, type SeenPage } from '../politeness/judgement.ts';
import type { Places } from '../politeness/places.ts';
import type { Pacer, PageTimes } from '../politeness/pacer.ts';
import type { RenderChoice } from '../politeness/render-choice.ts';
import type { SiteRules } from '../politeness/site-rules.ts';
import { DISK_RETRY_MS } from './journal-writer.ts';
import type { DomainPolicy } from './domain-policy.ts';
import type { LeftPages } from './further-pages.ts';
import { answerOf, type Queue } from './queue.ts';
import { CANARY_PAGE } from './records.ts';

export interface PagesParts {
  queue: Queue;
  /** Its place in `site.product_url`. */
  domain: number;
  policy: DomainPolicy;
  /** The pace of this domain alone. */
  pacer: Pacer;
  /** Where the pages of all domains are under way. */
  places: Places;
  clock: Clock;
  pageTimes: PageTimes;
  /** Its limit of requests counts over all domains and processes. */
  site: SiteSettings;
  /** The user's own rules for links and redirects. */
  follow: FollowRules;
  rules: SiteRules;
  render: RenderChoice;
  http: PageSource;
  browser: PageSource | null;
  /** The jar of this domain alone; null when no cookies are kept. */
  cookies: CookieJar | null;
  /** Headers and cookies of the user; omitted: none. */
  userHeaders?: UserHeaders;
  /** Raised when the queue or the orders have changed. */
  changed: SignalFlag;
}

export interface PageTarget {
  /** The product's number, or CANARY_PAGE. */
  n: number;
  url: string;
  /** The page is requested by POST. */
  post?: PostBody | undefined;
  /** Its own URL decides whether a redirect may be followed. */
  product: Requested;
  /** The first request gives up its turn when something changes during the wait: the caller then chooses again. */
  interruptible: boolean;
  /** It is a further page of the product. */
  isFurther?: true;
  /** Makes the first request conditional, unless it is a POST or a browser sends it. */
  validators?: Validators | undefined;
}

export type JudgedFetch =
  /**
   * `url` is the final URL, after redirects. `doubtful`: every page that was judged is right, but a part of the product
   * was missing, for a reason that may be a ban. `alone`: the whole product came from one request. `left`: further
   * pages that it comes without. `request`: the one that led to the page, if it is no GET.
   */
  | {
      kind: 'judged';
      page: PageResult;
      url: string;
      judgement: Judgement;
      doubtful?: true;
      alone?: boolean;
      left?: LeftPages;
      request?: PageRequest;
      /** It is a further page that decides for the product. */
      isFurther?: true;
    }
  /**
   * The URL is forbidden by robots.txt or, behind a redirect, by site.follow.deny; nothing was sent. `missing`: the
   * required field that only this page can have.
   */
  | { kind: 'disallowed'; url: string; by: 'robots' | 'deny'; missing?: string; isFurther?: true }
  | NotNow;

type Request = PageTarget & { via: 'http' | 'browser'; trail: RedirectTrail; what: Exclude<Purpose, 'canary'> };

const NOT_NOW: NotNow = { kind: 'not-now' };

/** How often it looks whether the main server has heard what was learned of a host. */
const NEWS_MS = 1_000;

export class Pages {
  readonly links: Links;
  readonly #parts: PagesParts;

  constructor(parts: PagesParts) {
    this.#parts = parts;
    this.links = parts.policy.links;
  }

  /** Fetches and judges one page. `work` aborts a request in flight. */
  async fetch(target: PageTarget, work: AbortSignal): Promise<JudgedFetch> {
    const fetched = await this.#fetchAsked(target, work);
    if (target.post === undefined || fetched.kind !== 'judged') return fetched;
    const request = { url: target.url, post: target.post };
    return { ...fetched, request, judgement: named(fetched.judgement, request) };
  }

  async #fetchAsked(target: PageTarget, work: AbortSignal): Promise<JudgedFetch> {
    const trail = new RedirectTrail(target.url, this.#parts.cookies);
    let fetched = await this.#follow(target, trail, work);
    while (endedElsewhere(fetched, target.url) && trail.beginsAgain())
      fetched = await this.#follow({ ...target, interruptible: false, validators: undefined }, trail, work);
    if (fetched.kind !== 'judged' || !isAccused(fetched.judgement)) return fetched;
    trail.forget();
    return { ...fetched, judgement: this.#withCookie(fetched.judgement, trail) };
  }

  /** Names the cookie that may be why a redirect led nowhere: in a loop, or because none are kept. */
  #withCookie(judgement: Judgement, trail: RedirectTrail): Judgement {
    const { evidence, rule } = judgement;
    const mayBe = rule === 'redirect-loop' || (rule === 'redirect-home' && this.#parts.cookies === null);
    const cookie = mayBe ? trail.cookie() : null;
    return evidence === null || cookie === null ? judgement : { ...judgement, evidence: { ...evidence, cookie } };
  }

  async #follow(target: PageTarget, trail: RedirectTrail, work: AbortSignal): Promise<JudgedFetch> {
    const via = this.#parts.render.first();
    let { url, interruptible } = target;
    let what: Request['what'] = target.isFurther === true ? 'further' : 'product';
    // What a site answers to them says nothing of a POST (RFC 9110, 13.2.1).
    let validators = target.post === undefined ? target.validators : undefined;
    for (;;) {
      trail.note(url);
      const fetched = await this.#fetchOnce({ ...target, url, via, interruptible, validators, trail, what }, work);
      if (fetched.kind !== 'judged' || fetched.judgement.kind !== 'hop' || fetched.page.kind !== 'redirect')
        return fetched;
      const { to, reply } = fetched.page;
      // Clients make a GET of it, which is another request than the one that was configured.
      if (target.post !== undefined && !keepsMethod(reply.status))
        return { ...fetched, judgement: accused('refusal', 'redirect-post', url, reply) };
      if (!trail.mayFollow(to)) return { ...fetched, judgement: accused('refusal', 'redirect-loop', url, reply) };
      // Checking each hop against the previous one would let sub-domains lead from one tenant of a host to any other.
      if (!this.links.mayFollow(target.product.url, to))
        return { ...fetched, judgement: this.#review(accused('refusal', 'redirect-elsewhere', url, reply), fetched) };
      if (this.#parts.follow.denies(to)) return { kind: 'disallowed', url: to, by: 'deny' };
      url = to;
      what = 'redirect';
      interruptible = false;
      validators = undefined;
    }
  }

  /** Fetches a page, but follows no redirect; a second time with the browser if that may find what is missing. */
  async #fetchOnce(request: Request, work: AbortSignal): Promise<JudgedFetch> {
    const { render } = this.#parts;
    const first = await this.#send(request, work);
    if (request.via === 'browser' || first.kind !== 'judged') return first;
    if (first.judgement.kind === 'right') render.httpSufficed();
    if (!render.mayRender || first.judgement.kind !== 'odd' || first.judgement.rule === 'mapping-missing') return first;
    const rendered = await this.#send({ ...request, via: 'browser', interruptible: false }, work);
    if (rendered.kind === 'judged' && rendered.judgement.kind === 'right') render.browserNeeded();
    return rendered;
  }

  async #send(request: Request, work: AbortSignal): Promise<JudgedFetch> {
    const { url } = request;
    const { policy } = this.#parts;
    for (let mayRepeat = true; ;) {
      // It is read in the turn of that host.
      if (policy.foreignRobots(url) !== null) return NOT_NOW;
      const robotsUrl = policy.unread(url);
      if (robotsUrl !== null) {
        if (!(await this.readRobots(robotsUrl, request.interruptible, work))) return NOT_NOW;
        continue;
      }
      if (!this.links.isAllowed(url)) return { kind: 'disallowed', url, by: 'robots' };
      if (!(await this.#waitForTurn(request.interruptible, work))) return NOT_NOW;
      // The rules may have changed during the wait; the rest of the conditions while a page of another domain was under
      // way.
      if (!this.links.isAllowed(url)) return { kind: 'disallowed', url, by: 'robots' };
      const visitor = { domain: this.#parts.domain, host: nameOf(url) };
      const look = await policy.atAddress(url, work, () =>
        this.#parts.places.use(visitor, async () => (this.#isTurn(work) ? this.#ask(request, mayRepeat, work) : null)),
      );
      if (look === 'unread') mayRepeat = false;
      else if (look !== null) return look;
    }
  }

  /** Where the product goes on whose page ended so, at another host; null: nowhere. */
  moveOf(fetched: JudgedFetch): Move | null {
    const { policy } = this.#parts;
    if (fetched.kind === 'disallowed') return fetched.by === 'robots' ? policy.moveUnder(fetched.url) : null;
    return fetched.kind === 'judged' && fetched.page.kind === 'redirect' ? policy.moveOf(fetched.page.to) : null;
  }

  /** Reads a robots.txt in a turn of its own. False when the page behind it must not be requested now. */
  async readRobots(url: string, interruptible: boolean, work: AbortSignal): Promise<boolean> {
    const { queue, domain, pacer, places, policy, clock } = this.#parts;
    if (!(await this.#waitForTurn(interruptible, work))) return false;
    const host = nameOf(url);
    const ask = async (): Promise<boolean> => {
      if (!this.#isTurn(work)) return true;
      try {
        queue.recordStart(CANARY_PAGE, queue.localMs, { domain, host, what: 'robots', beside: places.used > 1 });
      } catch {
        return false;
      }
      pacer.requestStarted();
      queue.recordAnswer(await policy.read(url, work), domain);
      pacer.requestEnded(null);
      return true;
    };
    const isWritten = await policy.atAddress(url, work, () => places.use({ domain, host }, ask));
    if (!isWritten) await clock.sleep(DISK_RETRY_MS, work);
    // The page has its turn later: until then the place is free for others.
    return isWritten && !interruptible;
  }

  #review(judgement: Judgement, { page, url }: Extract<JudgedFetch, { kind: 'judged' }>): Judgement {
    return this.#parts.policy.review(judgement, page, url);
  }

  async #ask(request: Request, mayRepeat: boolean, work: AbortSignal): Promise<JudgedFetch | 'unread'> {
    const { url } = request;
    const page = this.#withoutLinks(await this.#fetch(request, work));
    if (page.kind === 'not-now') return page;
    // It says nothing about the page: the request is sent again, in a turn of its own.
    if (page.kind === 'failed' && page.unread && mayRepeat) return 'unread';
    const { queue, rules, policy } = this.#parts;
    if (!policy.noteTry(page, url)) return NOT_NOW;
    request.trail.keep(page.reply?.cookies);
    const judgement = policy.review(judge(toSeenPage(page), request, rules), page, url);
    queue.tally.noteJudgement(judgement.kind);
    return { kind: 'judged', page, url, judgement };
  }

  /** The page itself, or without the links that its X-Robots-Tag asks not to follow; the extractor reads meta tags. */
  #withoutLinks(page: PageAnswer): PageAnswer {
    const { follow, userAgent } = this.#parts.site;
    if (follow?.nofollow !== 'obey' || page.kind !== 'page') return page;
    const header = page.reply.headers['x-robots-tag'];
    if (header === undefined || !headerForbids(header, productToken(userAgent))) return page;
    return { ...page, extraction: { ...page.extraction, links: [] } };
  }

  async #fetch({ n, url, post, via, validators, what }: Request, work: AbortSignal): Promise<PageAnswer> {
    const { queue, domain, pacer, places, policy, clock, pageTimes, http, browser, cookies, userHeaders } = this.#parts;
    const source = via === 'browser' ? browser : http;
    if (source === null) return NOT_NOW;
    const beganMs = clock.monotonic();
    const host = nameOf(url);
    let sent = false;
    const hooks: FetchHooks = {
      onStart: () => {
        // What forbids a request may have begun while the connection was made.
        const kind = policy.barrier()?.kind;
        if (kind === 'lease' || kind === 'given-up') throw new Error(`no request any more: ${kind}`);
        queue.recordStart(n, queue.localMs, {
          domain,
          host,
          what,
          browser: via === 'browser',
          beside: places.used > 1,
        });
        pacer.requestStarted();
        sent = true;
      },
      onFirstByte: () => pacer.replyStarted(),
      turnMs: () => pacer.turnMs(),
    };
    const page = await source
      .fetch(url, hooks, work, { validators, cookies, post, sends: userHeaders?.at(url) })
      .catch(() => null);
    if (sent) queue.recordAnswer(page === null ? 'none' : answerOf(page), domain);
    // A try that sent nothing (no connection, no such name) keeps the pace too, counted from its end: do not hammer a
    // shop that is down.
    if (!sent) pacer.requestStarted();
    pacer.requestEnded(page && kindOf(via, page));
    // Nearly always a journal write that failed before anything was sent: the product keeps its place until the disk
    // accepts writes again.
    if (page === null) await clock.sleep(DISK_RETRY_MS, work);
    else if (sent && page.kind !== 'not-now') pageTimes.add(clock.monotonic() - beganMs);
    return page ?? NOT_NOW;
  }

  /** True when the request may be sent at this moment. */
  #isTurn(work: AbortSignal): boolean {
    return !this.#isStopped(work) && this.#parts.pacer.waitMs() <= 0;
  }

  #isStopped(work: AbortSignal): boolean {
    const { queue, policy } = this.#parts;
    return work.aborted || queue.isDraining || policy.barrier() !== null;
  }

  /** False when the request must not be sent now. */
  async #waitForTurn(interruptible: boolean, work: AbortSignal): Promise<boolean> {
    const { queue, policy, pacer, clock, changed, places } = this.#parts;
    for (;;) {
      // What the main server must know first is on its way to it: to begin again would cost more requests.
      const isNews = !interruptible && policy.barrier()?.kind === 'news';
      if (isNews ? work.aborted || queue.isDraining : this.#isStopped(work)) return false;
      const ms = Math.max(pacer.waitMs(), isNews ? NEWS_MS : 0);
      if (ms <= 0) return true;
      const news = await places.away(() => changed.wait(clock, Math.ceil(ms), work));
      if (news && interruptible) return false;
    }
  }
}

/** The host of a URL, in `Places` and in the request log. */
function nameOf(url: string): string {
  const parsed = URL.parse(url);
  return parsed === null ? url : hostNameOf(parsed);
}

/** Refusals by a redirect whose target is no refusal itself: with its cookies, the site may answer with the page. */
const OPEN_ENDS = new Set(['redirect-loop', 'redirect-home', 'redirect-elsewhere', 'redirect-post']);

/**
 * True where redirects led to another URL than the page's own: to a page, to none, or to where they are not followed.
 */
function endedElsewhere(fetched: JudgedFetch, url: string): boolean {
  if (fetched.kind === 'not-now') return false;
  if (fetched.kind === 'disallowed') return fetched.url !== url;
  const { page, judgement } = fetched;
  if (isAccused(judgement)) return judgement.kind === 'refusal' && OPEN_ENDS.has(judgement.rule ?? '');
  return fetched.url !== url && (page.kind === 'page' || page.kind === 'gone');
}

const isAccused = ({ kind }: Judgement): boolean => kind === 'refusal' || kind === 'banned';

/** Groups answers that take a site the same time: by status class, and by client. */
function kindOf(via: Request['via'], page: PageAnswer): string | null {
  if (page.kind === 'not-now' || page.reply === null) return null;
  return `${via} ${Math.floor(page.reply.status / 100)}`;
}

export function toSeenPage(page: PageResult): SeenPage {
  if (page.kind !== 'page') return page;
  const { reply, extraction } = page;
  return { kind: 'page', reply, missing: extraction.missing, hasValues: hasValues(extraction) };
}
