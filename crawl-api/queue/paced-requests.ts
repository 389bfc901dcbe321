/**
 * The only way to a site: one request at a time, at the pace, and none that robots.txt, a barrier or the disk forbids.
 * Every request (product, redirect hop, further page, canary page, retry with the browser) goes through here.
 */
import { isAllowed } from '../../shared/domain/robots.ts';
import { isSameSite, sharesRobots } from '../../shared/domain/same-site.ts';
import type { Clock } from '../../shared/ports/clock.ts';
import type { SignalFlag } from '../control/signal-flag.ts';
import type { FetchHooks, PageResult, PageSource } from '../fetch/page-result.ts';
import type { JudgementKind } from '../politeness/judgement.ts';
import type { Pacer } from '../politeness/pacer.ts';
import type { PageTimes } from '../politeness/page-times.ts';
import { findBarrier } from './barrier.ts';
import type { Queue } from './queue.ts';

export interface RequestParts {
  queue: Queue;
  pacer: Pacer;
  clock: Clock;
  pageTimes: PageTimes;
  robots: 'respect' | 'ignore';
  http: PageSource;
  /** Null when nothing is rendered. */
  browser: PageSource | null;
  /** Raised when the queue or the orders have changed. */
  changed: SignalFlag;
}

export interface PageRequest {
  /** The product's number, or CANARY_PAGE. */
  n: number;
  url: string;
  via: 'http' | 'browser';
  /** Give up the turn when something changes during the wait: the caller then chooses again. */
  interruptible: boolean;
}

export type Answer =
  | { kind: 'page'; page: Exclude<PageResult, { kind: 'stopped' }> }
  /** Forbidden by robots.txt; nothing was sent. */
  | { kind: 'disallowed' }
  /** An order, a barrier, the disk or the deadline prevented the request: nothing is known. */
  | { kind: 'not-now' };

/**
 * Groups answers that take a site the same time: by status class, and by client, because each measures its first byte
 * differently.
 */
function kindOf({ via }: PageRequest, page: PageResult | null): string | null {
  if (page === null || page.kind === 'stopped' || page.reply === null) return null;
  return `${via} ${Math.floor(page.reply.status / 100)}`;
}

/** Delay before retrying a failed disk write. */
const DISK_RETRY_MS = 1_000;

export class PacedRequests {
  readonly #parts: RequestParts;
  /**
   * Wall-clock time of monotonic zero: start times keep fractions, and setting the system clock does not change their
   * gaps.
   */
  readonly #wallMs: number;

  constructor(parts: RequestParts) {
    this.#parts = parts;
    this.#wallMs = parts.clock.now() - parts.clock.monotonic();
  }

  /** `work` aborts a request in flight. */
  async send(request: PageRequest, work: AbortSignal): Promise<Answer> {
    if (!this.#isAllowed(request.url)) return { kind: 'disallowed' };
    if (!(await this.#waitForTurn(request.interruptible, work))) return { kind: 'not-now' };
    // The rules may have changed during the wait.
    if (!this.#isAllowed(request.url)) return { kind: 'disallowed' };
    const { queue, pacer, clock, pageTimes } = this.#parts;
    const source = request.via === 'browser' ? this.#parts.browser : this.#parts.http;
    if (source === null) return { kind: 'not-now' };
    const beganMs = clock.monotonic();
    let sent = false;
    const hooks: FetchHooks = {
      onStart: () => {
        queue.recordStart(request.n, this.#wallMs + clock.monotonic(), request.via === 'browser');
        pacer.requestStarted();
        sent = true;
      },
      onFirstByte: () => pacer.replyStarted(),
    };
    const page = await source.fetch(request.url, hooks, work).catch(() => null);
    // A try that sent nothing (no connection, no such name) keeps the pace too, counted from its end: do not hammer a
    // shop that is down.
    if (!sent) pacer.requestStarted();
    pacer.requestEnded(kindOf(request, page));
    if (page === null) {
      // Nearly always a journal write that failed before anything was sent: the product keeps its place until the disk
      // accepts writes again.
      await clock.sleep(DISK_RETRY_MS, work);
      return { kind: 'not-now' };
    }
    if (page.kind === 'stopped') return { kind: 'not-now' };
    queue.tally.noteTry(page);
    if (sent) pageTimes.add(clock.monotonic() - beganMs);
    return { kind: 'page', page };
  }

  /** Counts the judgement of a page. */
  noteJudgement(kind: JudgementKind): void {
    this.#parts.queue.tally.noteJudgement(kind);
  }

  /**
   * Whether a redirect or a link of the product at `site` may be followed: only to the same site, and only under rules
   * that were read.
   */
  mayFollow(site: string, to: string): boolean {
    return isSameSite(site, to) && (this.#parts.robots === 'ignore' || sharesRobots(site, to));
  }

  #isAllowed(url: string): boolean {
    const { queue, robots } = this.#parts;
    const policy = queue.state.robots;
    if (robots === 'ignore' || policy === null || policy.access !== 'rules') return true;
    const target = URL.parse(url);
    return target === null || isAllowed(policy, target.pathname + target.search);
  }

  /** False when the request must not be sent now. */
  async #waitForTurn(interruptible: boolean, work: AbortSignal): Promise<boolean> {
    const { queue, pacer, clock, changed, robots } = this.#parts;
    for (;;) {
      if (work.aborted || queue.isDraining || findBarrier(queue, robots, clock.now())) return false;
      const ms = pacer.waitMs();
      if (ms <= 0) return true;
      const news = await changed.wait(clock, Math.ceil(ms), work);
      if (news && interruptible) return false;
    }
  }
}
