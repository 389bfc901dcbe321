/**
 * Fetches one page over HTTP: sends the request, judges the reply, and streams the text of a good one into an
 * extractor.
 */
import type { Agent } from 'undici';
import type { Clock } from '../../shared/ports/clock.ts';
import { describeError } from '../../shared/domain/errors.ts';
import type { PageExtractor, PageKind } from '../extract/page-extractor.ts';
import type { CookieJar } from '../../shared/adapters/http/cookie-jar.ts';
import { ACCEPT_ENCODING } from '../../shared/adapters/http/content-decoder.ts';
import { Exchange } from './exchange.ts';
import { PageBudget } from './page-budget.ts';
import type { FetchHooks, FetchSettings, PageAnswer, PageSource, RequestParts } from './page-result.ts';
import { resultOf } from './reply-head.ts';
import { splitUrl } from './split-url.ts';
import type { Sends } from './user-headers.ts';
import { conditionsOf } from './validators.ts';

/** A new extractor for one page of this kind and address. */
export type OpenExtractor = (kind: PageKind, url: string) => PageExtractor;

const ACCEPT_PAGE = 'text/html,application/xhtml+xml,application/xml;q=0.9,application/json;q=0.8,*/*;q=0.1';
/** GraphQL servers answer a request that prefers HTML with a page for developers. */
const ACCEPT_DATA = 'application/json,application/graphql-response+json;q=0.9,text/html;q=0.5,*/*;q=0.1';

/** A constant abort reason, which saves creating an error for each page. */
const PAGE_IS_DONE = 'the page is done';

export class PageFetcher implements PageSource {
  readonly #dispatcher: Agent;
  readonly #settings: FetchSettings;
  readonly #clock: Clock;
  readonly #openExtractor: OpenExtractor;
  readonly #budget: PageBudget;

  /** @param dispatcher closed with this fetcher */
  constructor(dispatcher: Agent, settings: FetchSettings, clock: Clock, openExtractor: OpenExtractor) {
    this.#dispatcher = dispatcher;
    this.#settings = settings;
    this.#clock = clock;
    this.#openExtractor = openExtractor;
    this.#budget = new PageBudget(clock);
  }

  async fetch(
    url: string,
    hooks: FetchHooks,
    signal: AbortSignal,
    { validators, cookies = null, post, sends }: RequestParts = {},
  ): Promise<PageAnswer> {
    const parts = splitUrl(url);
    if (!parts) {
      const detail = `${url.slice(0, 300)} is not an http or https URL`;
      return resultOf({ kind: 'failed', reason: 'network', detail }, null);
    }
    if (signal.aborted) return { kind: 'not-now' };
    const { maxPageBytes, userAgent } = this.#settings;
    const exchange = new Exchange({
      url,
      maxPageBytes,
      budget: this.#budget,
      validators: validators ?? null,
      cookies,
      hooks,
      clock: this.#clock,
      openExtractor: (kind) => this.#openExtractor(kind, url),
    });
    const cookie = cookieHeader(url, cookies, sends);
    const timer = new AbortController();
    const onAbort = (): void => exchange.stop({ kind: 'not-now' });
    signal.addEventListener('abort', onAbort, { once: true });
    void this.#stopLater(exchange, timer.signal);
    try {
      this.#dispatcher.dispatch(
        {
          origin: parts.origin,
          path: parts.path,
          method: post === undefined ? 'GET' : 'POST',
          ...(post && { body: post.body }),
          headers: {
            'user-agent': userAgent,
            accept: post === undefined ? ACCEPT_PAGE : ACCEPT_DATA,
            ...(post?.contentType !== undefined && { 'content-type': post.contentType }),
            ...sends?.headers,
            'accept-encoding': ACCEPT_ENCODING,
            ...(cookie !== '' && { cookie }),
            ...(validators && conditionsOf(validators)),
          },
          // The timer above is the only timeout: it covers connecting, waiting and reading.
          headersTimeout: 0,
          bodyTimeout: 0,
        },
        exchange,
      );
    } catch (error) {
      exchange.stop({ kind: 'failed', reason: 'network', detail: describeError(error) });
    }
    try {
      return await exchange.result;
    } finally {
      timer.abort(PAGE_IS_DONE);
      signal.removeEventListener('abort', onAbort);
    }
  }

  async close(): Promise<void> {
    await this.#dispatcher.destroy();
  }

  async #stopLater(exchange: Exchange, done: AbortSignal): Promise<void> {
    const { timeoutMs } = this.#settings;
    // What the reply waits for other pages is not the time of its server.
    for (let sleptMs = 0, dueMs = timeoutMs; sleptMs < dueMs && !done.aborted; dueMs = timeoutMs + exchange.waitedMs) {
      await this.#clock.sleep(dueMs - sleptMs, done);
      sleptMs = dueMs;
    }
    if (!done.aborted) exchange.stop({ kind: 'failed', reason: 'timeout', detail: timeoutDetail(exchange, timeoutMs) });
  }
}

/** Cookies of the user win over those that the site has set under their names. */
function cookieHeader(url: string, jar: CookieJar | null, sends: Sends | undefined): string {
  if (sends === undefined || sends.cookies.length === 0) return jar?.header(url) ?? '';
  const own = sends.cookies.map(({ name, value }) => `${name}=${value}`);
  const kept = jar?.header(url, new Set(sends.cookies.map(({ name }) => name))) ?? '';
  return [...own, ...(kept === '' ? [] : [kept])].join('; ');
}

function timeoutDetail(exchange: Exchange, timeoutMs: number): string {
  const stage = exchange.sent ? (exchange.answered ? 'the reply did not end' : 'no reply') : 'no connection';
  return `${stage} within ${timeoutMs} ms`;
}
