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
import { type ProbeAnswer, probePage } from './page-probe.ts';
import { failed, type Failure, replyOf } from './rendered-reply.ts';
import type { Expected } from './expected-elements.ts';
import { withTimeout } from './with-timeout.ts';

/** After this long without a change, the page is taken as it is, though something required is missing. */
const STILL_MS = 3_000;
/** Time without a change after loading, where the mapping requires nothing. */
const QUIET_MS = 200;
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

class Visit {
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
      const answer = await this.#probe(Math.min(waitMs, leftMs), this.#options.expect(this.#pageUrl));
      if (hasMoved) return this.#judgeMove(answer);
      if (answer === null) continue;
      const nowMs = clock.monotonic();
      if (answer.length !== seen.length || report.receivedBytes !== seen.bytes)
        seen = { length: answer.length, bytes: report.receivedBytes, sinceMs: nowMs };
      const isStill = answer.state === 'complete' && nowMs - seen.sinceMs >= STILL_MS;
      // Extraction costs more than testing for the signs, so it waits for them unless no more changes are expected.
      if (answer.html === null && answer.length === 0) continue;
      if (!answer.ready && !isStill && nowMs < end) continue;
      last = this.#extract(answer);
      if (isStill || last.kind !== 'page' || last.extraction.missing === null) return last;
      await clock.sleep(Math.min(waitMs, Math.max(0, end - clock.monotonic())), this.#options.session.dead);
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
      const answer = await this.#probe(ERROR_PAGE_MS, { signs: [], required: true });
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
  async #judgeMove(answer: ProbeAnswer | null): Promise<PageResult> {
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

  #extract(answer: ProbeAnswer): PageResult {
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

  /** Null when the document has just changed. A page that keeps the processor busy does not answer at all. */
  async #probe(waitMs: number, expected: Expected): Promise<ProbeAnswer | null> {
    const { session, settings, clock } = this.#options;
    const options = {
      signs: expected.signs,
      untilLoaded: !expected.required,
      quietMs: QUIET_MS,
      waitMs,
      maxChars: settings.maxPageBytes,
    };
    try {
      return await withTimeout(clock, settings.timeoutMs, 'reading the page', probePage(session.cdp, options));
    } catch (error) {
      if (session.dead.aborted) throw error;
      await clock.sleep(Math.min(waitMs, 50), session.dead);
      return null;
    }
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
