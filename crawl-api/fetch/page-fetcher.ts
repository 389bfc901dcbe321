/** Gets one page: sends the request, judges the reply, and streams the text of a good one into an extractor. */
import type { Agent } from 'undici';
import type { Clock } from '../../shared/ports/clock.ts';
import { describeError } from '../../shared/domain/errors.ts';
import type { PageExtractor, PageKind } from '../extract/page-extractor.ts';
import { ACCEPT_ENCODING } from './content-decoder.ts';
import { Exchange } from './exchange.ts';
import type { FetchHooks, FetchSettings, PageResult } from './page-result.ts';

export class PageFetcher {
  readonly #dispatcher: Agent;
  readonly #settings: FetchSettings;
  readonly #clock: Clock;
  readonly #openExtractor: (kind: PageKind) => PageExtractor;

  constructor(
    dispatcher: Agent,
    settings: FetchSettings,
    clock: Clock,
    openExtractor: (kind: PageKind) => PageExtractor,
  ) {
    this.#dispatcher = dispatcher;
    this.#settings = settings;
    this.#clock = clock;
    this.#openExtractor = openExtractor;
  }

  /** Never rejects, except with what `onStart` throws. No redirect is followed. */
  async fetch(url: string, hooks: FetchHooks, signal: AbortSignal): Promise<PageResult> {
    const parts = splitUrl(url);
    if (!parts)
      return { kind: 'failed', reason: 'network', detail: `${url.slice(0, 300)} is not an http or https URL` };
    if (signal.aborted) return { kind: 'stopped' };
    const { maxPageBytes, userAgent } = this.#settings;
    const exchange = new Exchange({ maxPageBytes, hooks, openExtractor: this.#openExtractor });
    const timer = new AbortController();
    const onAbort = (): void => exchange.stop({ kind: 'stopped' });
    signal.addEventListener('abort', onAbort, { once: true });
    void this.#stopLater(exchange, timer.signal);
    try {
      this.#dispatcher.dispatch(
        {
          origin: parts.origin,
          path: parts.path,
          method: 'GET',
          headers: {
            'user-agent': userAgent,
            accept: 'text/html,application/xhtml+xml,application/xml;q=0.9,application/json;q=0.8,*/*;q=0.1',
            'accept-encoding': ACCEPT_ENCODING,
          },
          // One clock rules: the timer above covers connecting, waiting and reading.
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
      timer.abort();
      signal.removeEventListener('abort', onAbort);
    }
  }

  async #stopLater(exchange: Exchange, done: AbortSignal): Promise<void> {
    const { timeoutMs } = this.#settings;
    await this.#clock.sleep(timeoutMs, done);
    if (!done.aborted) exchange.stop({ kind: 'failed', reason: 'timeout', detail: timeoutDetail(exchange, timeoutMs) });
  }
}

function timeoutDetail(exchange: Exchange, timeoutMs: number): string {
  const stage = exchange.sent ? (exchange.status === null ? 'no reply' : 'the reply did not end') : 'no connection';
  return `${stage} within ${timeoutMs} ms`;
}

/**
 * Splits by hand: a URL parser would read `%2E%2E` as a step up the path, and an ID may be just that.
 * Returns null for anything but http and https.
 */
export function splitUrl(url: string): { origin: string; path: string } | null {
  const match = /^(https?:\/\/[^/?#]+)([^#]*)/i.exec(url);
  if (!match || !URL.canParse(match[1]!)) return null;
  const path = match[2]!.replace(/[^\x21-\x7e]+/g, (text) => encodeURIComponent(text.toWellFormed()));
  return { origin: new URL(match[1]!).origin, path: path.startsWith('/') ? path : `/${path}` };
}
