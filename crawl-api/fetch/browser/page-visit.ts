/** One visit of the browser's page to a URL: navigates, waits until the page is ready, and determines the result. */
import type { Response } from 'playwright';
import { describeError } from '../../../shared/domain/errors.ts';
import { parseRetryAfter } from '../../../shared/domain/reply-fields.ts';
import { isSameSite } from '../../../shared/domain/same-site.ts';
import { type Extraction, hasValues, type PageKind } from '../../extract/page-extractor.ts';
import { declaredKind } from '../page-kind.ts';
import type { PageResult, Reply } from '../page-result.ts';
import { readText } from '../text-reader.ts';
import { PROXY_ANSWER } from './filter-proxy.ts';
import { judgeNavigation, mediaTypeOf, navigate, type Replies, type VisitOptions } from './navigate-page.ts';
import { PageHabits } from './page-habits.ts';
import { type PageSnapshot, takeSnapshot } from './page-snapshot.ts';
import { failed, type Failure, replyOf } from './rendered-reply.ts';
import type { Expected } from './expected-elements.ts';
import { withTimeout } from './with-timeout.ts';

/** A page without a change for this long is taken as it is, though something required is missing. */
const STILL_MS = 3_000;
/** A page is read when none of its values has changed, and the site has sent no script or data, for this long. */
const QUIET_MS = 200;
/** A page with its required values is read after this long at the latest, unless the next request is due later. */
const PATIENCE_MS = 3_000;
/** The time reserved for reading and clearing the page before the next request is due. */
const READING_MS = 300;
/** Share of the time until the next request is due in which any page is watched for changes: it costs no time. */
const FREE_SHARE = 2 / 3;
const SHORTEST_WAIT_MS = 20;
/** Time for an answer beyond the snapshot's own wait. */
const ANSWER_MS = 2_000;
const FIRST_WAIT_MS = 250;
const LONGEST_WAIT_MS = 2_000;
/** Timeout for reading the text of an error page. */
const ERROR_PAGE_MS = 2_000;
/** Timeout for reading a document that has already arrived. */
const SOURCE_MS = 2_000;
/** Share of the page's time that is reserved, so that a page that still answers is read and not killed. */
const RESERVE_SHARE = 0.1;

/** Rejects only when the browser has become unusable. It may never end: the caller enforces the timeout. */
export async function visitPage(url: string, options: VisitOptions): Promise<PageResult> {
  const { page } = options.session;
  const replies: Replies = { latest: null, redirect: null };
  const onResponse = (response: Response): void => {
    if (!response.request().isNavigationRequest() || response.frame() !== page.mainFrame()) return;
    replies.latest = response;
    if (response.headers().location !== undefined && response.status() >= 300 && response.status() < 400)
      replies.redirect = response;
  };
  page.on('response', onResponse);
  try {
    const problem = await navigate(url, options);
    return judgeNavigation(url, problem, replies, options) ?? (await new Visit(url, options, replies).read());
  } finally {
    page.off('response', onResponse);
  }
}

type PageRead = Extract<PageResult, { kind: 'page' }>;

interface SettleOptions {
  expected: Expected;
  /** When the page must have been read. */
  end: number;
}

/** An error page is taken as soon as it has been read to its end. */
const NOTHING_EXPECTED = { signs: [], required: true, habits: new PageHabits() };

class Visit {
  /** When all required values were there for the first time. */
  #firstMs: number | null = null;
  readonly #url: string;
  readonly #options: VisitOptions;
  readonly #replies: Readonly<Replies>;

  constructor(url: string, options: VisitOptions, replies: Readonly<Replies>) {
    this.#url = url;
    this.#options = options;
    this.#replies = replies;
  }

  async read(): Promise<PageResult> {
    const early = await this.#judgeHead();
    if (early !== null) return early;
    const { clock, settings, report, documents } = this.#options;
    const end = clock.monotonic() + settings.timeoutMs * (1 - RESERVE_SHARE);
    let last: PageResult | null = null;
    let seen = { length: -1, bytes: -1, sinceMs: 0 };
    for (let waitMs = FIRST_WAIT_MS; ; waitMs = Math.min(waitMs * 2, LONGEST_WAIT_MS)) {
      const leftMs = end - clock.monotonic();
      if (leftMs <= 0) return last ?? this.#failed('timeout', `the page did not end within ${settings.timeoutMs} ms`);
      const hasMoved = documents.move !== null;
      const expected = this.#options.expect(this.#pageUrl);
      const answer = await this.#snapshot(Math.min(waitMs, leftMs), expected);
      if (hasMoved) return this.#judgeMove(answer);
      if (answer === null) continue;
      const nowMs = clock.monotonic();
      if (answer.length !== seen.length || report.receivedBytes !== seen.bytes)
        seen = { length: answer.length, bytes: report.receivedBytes, sinceMs: nowMs };
      const isStill = answer.state === 'complete' && nowMs - seen.sinceMs >= STILL_MS;
      // Extraction costs more than testing for the signs, so it waits for them unless no more changes are expected.
      if (answer.html === null && answer.length === 0) continue;
      if (answer.presentForMs === null && !isStill && nowMs < end) continue;
      last = this.#extract(answer);
      if (isStill || last.kind !== 'page') return last;
      if (last.extraction.missing === null) {
        const settled = await this.#settle(last, answer, { expected, end });
        if (settled !== null) return settled;
      }
      await clock.sleep(Math.min(waitMs, Math.max(0, end - clock.monotonic())), this.#options.session.dead);
    }
  }

  /**
   * Waits until the values of a complete page no longer change. The result is the last reading; null when the page has
   * lost a required value again.
   */
  async #settle(page: PageRead, first: PageSnapshot, { expected, end }: SettleOptions): Promise<PageResult | null> {
    const { clock, documents, turnMs, session, patienceMs = PATIENCE_MS } = this.#options;
    const { habits, fields } = expected;
    const firstMs = (this.#firstMs ??= clock.monotonic() - (first.presentForMs ?? 0));
    const freeMs = Math.min(patienceMs, (turnMs() - firstMs) * FREE_SHARE);
    const windowEndMs = firstMs + Math.max(habits.windowMs(patienceMs), freeMs);
    let answer = first;
    let readVersion = first.version;
    for (;;) {
      const nowMs = clock.monotonic();
      const rows = page.extraction.rows ?? [];
      const latestMs = Math.min(end, Math.max(firstMs + patienceMs, turnMs() - READING_MS));
      const isComplete = habits.missing(rows, fields).length === 0;
      const quietMs = nowMs + this.#quietMs(expected) - Math.min(answer.quietForMs, session.traffic.quietForMs());
      const readyMs = answer.isStatic
        ? nowMs
        : Math.min(latestMs, Math.max(quietMs, isComplete ? windowEndMs : latestMs));
      if (nowMs >= end || (readyMs <= nowMs && answer.version === readVersion)) {
        habits.note(rows, answer.changedAfterMs);
        return page;
      }
      if (documents.move !== null) return hasValues(page.extraction) ? page : this.#judgeMove(null);
      const isLast = readyMs >= latestMs;
      const next = await this.#snapshot(Math.max(SHORTEST_WAIT_MS, readyMs - nowMs), expected, {
        version: readVersion,
        isLast,
      });
      if (next === null) continue;
      answer = next;
      if (answer.presentForMs === null) return null;
      if (answer.html === null || (answer.version === readVersion && isComplete)) continue;
      const again = this.#extract(answer);
      if (again.kind !== 'page') return again;
      if (again.extraction.missing !== null) return null;
      page = again;
      readVersion = answer.version;
    }
  }

  /** The result that status and headers decide already. */
  async #judgeHead(): Promise<PageResult | null> {
    const response = this.#replies.latest;
    if (response === null) return null;
    // A script has navigated to a URL that the proxy blocks: the page shown is the proxy's own, not the site's.
    if (response.headers()[PROXY_ANSWER] !== undefined) return null;
    const status = response.status();
    if (status >= 400) {
      const answer = await this.#snapshot(ERROR_PAGE_MS, NOTHING_EXPECTED);
      const reply = this.#reply(answer?.html ?? null);
      if (status === 404 || status === 410) return { kind: 'gone', reply };
      const wait = status === 429 || status === 503 ? (reply.headers['retry-after'] ?? '') : '';
      const retryAfterMs = parseRetryAfter(wait, this.#options.clock.now());
      return { kind: 'failed', reason: 'http-status', detail: `status ${status}`, reply, retryAfterMs };
    }
    const mediaType = mediaTypeOf(response.headers());
    const kind = mediaType === '' ? 'html' : declaredKind(mediaType);
    if (kind === null) return this.#failed('content-type', mediaType);
    return kind === 'html' ? null : this.#readData(kind, response);
  }

  /** The page wants to navigate away: with everything that is required it is a page, else a redirect. */
  async #judgeMove(answer: PageSnapshot | null): Promise<PageResult> {
    const shown = answer?.html ? this.#extract(answer) : null;
    if (shown?.kind === 'page' && shown.extraction.missing === null && hasValues(shown.extraction)) return shown;
    const source = (await this.#readSource()) ?? answer?.html ?? null;
    return { kind: 'redirect', reply: this.#reply(source), to: this.#options.documents.move! };
  }

  /** The document as the site sent it: a script may have emptied it by now. Null when the browser no longer has it. */
  async #readSource(): Promise<string | null> {
    const response = this.#replies.latest;
    if (response === null) return null;
    try {
      return await withTimeout(this.#options.clock, SOURCE_MS, 'reading the source', response.text());
    } catch {
      return null;
    }
  }

  /** JSON and XML are taken as they arrived: the browser shows them in a page of its own making. */
  async #readData(kind: PageKind, response: Response): Promise<PageResult> {
    const { maxPageBytes } = this.#options.settings;
    const body = await response.body();
    if (body.byteLength > maxPageBytes) return this.#failed('too-large', `${body.byteLength} bytes`);
    return this.#pageFrom(kind, readText(response.headers()['content-type'] ?? '', body));
  }

  #extract(answer: PageSnapshot): PageResult {
    const { maxPageBytes } = this.#options.settings;
    if (answer.html === null)
      return this.#failed('too-large', `${answer.length} characters, ${maxPageBytes} are allowed`);
    const kind = declaredKind(answer.contentType);
    if (kind === null) return this.#failed('content-type', answer.contentType);
    return this.#pageFrom('html', answer.html);
  }

  #pageFrom(kind: PageKind, text: string): PageResult {
    const url = this.#pageUrl;
    const reply = this.#reply(text);
    if (!/^https?:/.test(url)) return failed('redirect', `the page leads to ${url.slice(0, 300)}`, reply);
    if (!isSameSite(this.#url, url)) return { kind: 'redirect', reply, to: url };
    const extractor = this.#options.openExtractor(kind, url);
    let extraction: Extraction;
    try {
      extractor.write(text);
      extraction = extractor.end();
    } catch (error) {
      return failed('too-large', describeError(error), reply);
    }
    return { kind: 'page', reply, extraction };
  }

  /**
   * Reads the page; null when the document has just changed. A page that keeps the processor busy does not answer at
   * all.
   * @param after the version of the last reading: the HTML is left out unless the page is ready again, or `isLast`
   */
  async #snapshot(
    waitMs: number,
    expected: Pick<Expected, 'signs' | 'required' | 'habits'>,
    after: { version: number; isLast: boolean } | null = null,
  ): Promise<PageSnapshot | null> {
    const { session, settings, clock } = this.#options;
    const options = {
      signs: expected.signs,
      untilLoaded: !expected.required,
      quietMs: this.#quietMs(expected),
      seen: after?.version ?? null,
      onlyReady: after !== null && !after.isLast,
      waitMs,
      maxChars: settings.maxPageBytes,
    };
    try {
      // A page that was read once is not lost because its scripts keep the processor busy now.
      const limitMs = after === null ? settings.timeoutMs : waitMs + ANSWER_MS;
      return await withTimeout(
        clock,
        limitMs,
        'reading the page',
        takeSnapshot(session.cdp, session.documents.mainFrame, options),
      );
    } catch (error) {
      if (session.dead.aborted) throw error;
      await clock.sleep(Math.min(waitMs, 50), session.dead);
      return null;
    }
  }

  /**
   * How long a page must be quiet: 0 where pages show their values at once, if this one's scripts are all in its
   * document.
   */
  #quietMs({ habits }: Pick<Expected, 'habits'>): number {
    const { patienceMs = PATIENCE_MS, session } = this.#options;
    return habits.windowMs(patienceMs) === 0 && !session.traffic.hasAny ? 0 : QUIET_MS;
  }

  /** The current URL, after redirects and scripts. */
  get #pageUrl(): string {
    return this.#options.session.page.url();
  }

  #failed(reason: Failure['reason'], detail: string): Failure {
    return failed(reason, detail, this.#reply(null));
  }

  #reply(text: string | null): Reply {
    return replyOf(this.#replies.latest, this.#pageUrl, text, this.#options.waitMs());
  }
}
