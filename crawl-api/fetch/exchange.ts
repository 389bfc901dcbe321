/** One request and its reply, as undici's dispatch handler. Ends with exactly one result, whatever events come after. */
import type { Dispatcher } from 'undici';
import { describeError } from '../../shared/domain/errors.ts';
import type { PageExtractor, PageKind } from '../extract/page-extractor.ts';
import { TooDeepError } from '../extract/selector-matcher.ts';
import { TextReader } from './charset.ts';
import type { ContentDecoder } from './content-decoder.ts';
import { createContentDecoder } from './content-decoder.ts';
import type { FetchHooks, PageResult } from './page-result.ts';

export interface ExchangeOptions {
  maxPageBytes: number;
  hooks: FetchHooks;
  openExtractor: (kind: PageKind) => PageExtractor;
}

/** A body nobody needs is read up to here, because that keeps the connection; a longer one costs the connection. */
const MAX_DISCARDED = 65_536;

export class Exchange implements Dispatcher.DispatchHandler {
  readonly result: Promise<PageResult>;
  readonly #options: ExchangeOptions;
  readonly #settle: (result: PageResult) => void;
  readonly #fail: (error: unknown) => void;
  #settled = false;
  /** Known from the head of the reply; given out when its body is read or dropped. */
  #verdict: PageResult | null = null;
  #controller: Dispatcher.DispatchController | null = null;
  #decoder: ContentDecoder | null = null;
  #bytes = 0;
  /** True once the head of the request was written. */
  sent = false;
  status: number | null = null;

  constructor(options: ExchangeOptions) {
    this.#options = options;
    const { promise, resolve, reject } = Promise.withResolvers<PageResult>();
    this.result = promise;
    this.#settle = resolve;
    this.#fail = reject;
  }

  /** Ends the exchange with this result, unless it has one, and drops the connection if the reply is not complete. */
  stop(result: PageResult): void {
    if (this.#settled) return;
    this.#settled = true;
    this.#decoder?.destroy();
    this.#settle(this.#verdict ?? result);
    this.#controller?.abort(new Error('the exchange has ended'));
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#settled) {
      controller.abort(new Error('the exchange has ended'));
      return;
    }
    try {
      this.#options.hooks.onStart();
      this.sent = true;
    } catch (error) {
      this.#settled = true;
      this.#fail(error);
      controller.abort(new Error('the request was not to be sent'));
    }
  }

  onResponseStarted(): void {
    if (!this.#settled) this.#options.hooks.onFirstByte();
  }

  onResponseStart(
    controller: Dispatcher.DispatchController,
    status: number,
    headers: Record<string, string | string[] | undefined>,
  ): void {
    if (this.#settled || status < 200) return;
    this.status = status;
    const header = (name: string): string => String(headers[name] ?? '');
    this.#verdict = judgeHead(status, header);
    const kind = kindOf(header('content-type'));
    if (this.#verdict || kind === null) {
      this.#verdict ??= { kind: 'failed', reason: 'content-type', detail: `content-type ${header('content-type')}` };
      const isShort =
        header('transfer-encoding') !== '' || Number(header('content-length') || Infinity) <= MAX_DISCARDED;
      // What is no page may be of any length: a video, an archive. It is not read at all.
      if (!isShort || kind === null) this.stop(this.#verdict);
      return;
    }
    const extractor = this.#options.openExtractor(kind);
    const text = new TextReader(header('content-type'), (piece) => extractor.write(piece));
    const encoding = header('content-encoding').trim().toLowerCase();
    this.#decoder = createContentDecoder(encoding, {
      onBytes: (bytes) => this.#read(bytes, text),
      onDrain: () => controller.resume(),
      onEnd: () => this.#finish(text, extractor),
      onError: (error) =>
        this.stop({ kind: 'failed', reason: 'network', detail: `broken ${encoding}: ${error.message}` }),
    });
    if (!this.#decoder)
      this.stop({
        kind: 'failed',
        reason: 'content-type',
        detail: `content-encoding ${encoding.slice(0, 100)} is not supported`,
      });
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Uint8Array): void {
    if (this.#settled) return;
    if (this.#decoder) {
      if (!this.#decoder.push(chunk)) controller.pause();
      return;
    }
    this.#bytes += chunk.length;
    if (this.#verdict && this.#bytes > MAX_DISCARDED) this.stop(this.#verdict);
  }

  onResponseEnd(): void {
    if (this.#settled) return;
    this.#controller = null;
    if (this.#decoder) this.#decoder.end();
    else this.stop(this.#verdict ?? { kind: 'failed', reason: 'network', detail: 'an empty reply' });
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.#controller = null;
    this.stop({ kind: 'failed', reason: 'network', detail: describeError(error) || error.name });
  }

  #read(bytes: Uint8Array, text: TextReader): void {
    if (this.#settled) return;
    this.#bytes += bytes.length;
    if (this.#bytes > this.#options.maxPageBytes) {
      this.stop({ kind: 'failed', reason: 'too-large', detail: `more than ${this.#options.maxPageBytes} bytes` });
      return;
    }
    this.#guarded(() => text.push(bytes));
  }

  #finish(text: TextReader, extractor: PageExtractor): void {
    if (this.#settled) return;
    this.#guarded(() => {
      text.end();
      this.stop({ kind: 'page', extraction: extractor.end() });
    });
  }

  #guarded(parse: () => void): void {
    try {
      parse();
    } catch (error) {
      const reason = error instanceof TooDeepError ? 'too-large' : 'parse';
      this.stop({ kind: 'failed', reason, detail: describeError(error) });
    }
  }
}

/** The result that status and location decide alone; null for a good reply. */
function judgeHead(status: number, header: (name: string) => string): PageResult | null {
  if (status === 404 || status === 410) return { kind: 'gone', status };
  if (status >= 300 && status < 400) {
    const location = header('location');
    return {
      kind: 'failed',
      reason: 'redirect',
      detail: `${status} ${location === '' ? 'without a location' : `to ${location}`}`,
    };
  }
  if (status >= 400) return { kind: 'failed', reason: 'http-status', detail: `status ${status}` };
  return null;
}

/** How to read a content-type; null for what is no page. Without one it is taken for HTML, as browsers do. */
function kindOf(contentType: string): PageKind | null {
  const type = contentType.split(';')[0]!.trim().toLowerCase();
  if (type === '' || type === 'text/html' || type === 'application/xhtml+xml') return 'html';
  if (type.startsWith('image/')) return null;
  if (type === 'application/xml' || type === 'text/xml' || type.endsWith('+xml')) return 'xml';
  if (type === 'application/json' || type === 'text/json' || type.endsWith('+json')) return 'json';
  return null;
}
