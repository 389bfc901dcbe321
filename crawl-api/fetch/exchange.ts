/** One request and its reply, as undici's dispatch handler. Ends with exactly one result, whatever events follow. */
import type { Dispatcher } from 'undici';
import type { Validators } from '../../shared/domain/validators.ts';
import { describeNetworkError } from '../../shared/adapters/http/network-faults.ts';
import { KeptConnectionClosed } from '../../shared/adapters/http/reply-normaliser.ts';
import type { Clock } from '../../shared/ports/clock.ts';
import type { PageExtractor, PageKind } from '../extract/page-extractor.ts';
import { type CookieJar, cookiesOf } from '../../shared/adapters/http/cookie-jar.ts';
import { PageBody } from './page-body.ts';
import type { PageBudget } from './page-budget.ts';
import { classifyContent } from './page-kind.ts';
import type { FetchHooks, PageAnswer, Reply } from './page-result.ts';
import { type Finding, judgeHead, plainHeaders, resultOf } from './reply-head.ts';

export interface ExchangeOptions {
  url: string;
  maxPageBytes: number;
  /** What the bodies of all exchanges share. */
  budget: PageBudget;
  /** The validators sent with the request; null: it is unconditional. */
  validators: Validators | null;
  /** The jar for the cookies of the reply; null: none are kept. */
  cookies: CookieJar | null;
  hooks: FetchHooks;
  clock: Clock;
  openExtractor: (kind: PageKind) => PageExtractor;
}

/** Maximum bytes read of a reply that is no page, for the ban rules and to reuse the connection. */
const MAX_NOTE_BYTES = 65_536;

/** The server has ended the connection before the declared end of the reply. */
const ENDINGS = new Set(['UND_ERR_SOCKET', 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH']);

export class Exchange implements Dispatcher.DispatchHandler {
  readonly result: Promise<PageAnswer>;
  readonly #options: ExchangeOptions;
  readonly #settle: (result: PageAnswer) => void;
  readonly #reject: (error: unknown) => void;
  #settled = false;
  /** Known from the head of the reply; returned when its body is read or dropped. */
  #verdict: Finding | null = null;
  #controller: Dispatcher.DispatchController | null = null;
  #reply: Omit<Reply, 'body' | 'bytes' | 'complete' | 'shape'> | null = null;
  #body: PageBody | null = null;
  #startedMs = 0;
  #waitMs = 0;
  #bytes = 0;
  sent = false;

  constructor(options: ExchangeOptions) {
    this.#options = options;
    const { promise, resolve, reject } = Promise.withResolvers<PageAnswer>();
    this.result = promise;
    this.#settle = resolve;
    this.#reject = reject;
  }

  /** True once the head of the reply has arrived. */
  get answered(): boolean {
    return this.#reply !== null;
  }

  /** How long the reply has waited for others to be read. Milliseconds. */
  get waitedMs(): number {
    return this.#body === null ? 0 : this.#options.budget.waitedMs(this.#body);
  }

  /** Ends the exchange with this finding, unless the head has decided; drops the connection of an open reply. */
  stop(finding: Finding): void {
    if (this.#settled) return;
    this.#settled = true;
    this.#body?.destroy();
    const body = this.#body;
    const reply = this.#reply && {
      ...this.#reply,
      bytes: this.#bytes,
      body: body?.kept ?? '',
      complete: body?.complete ?? false,
      shape: () => body?.shape() ?? null,
    };
    this.#settle(resultOf(this.#verdict ?? finding, reply));
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
      this.#startedMs = this.#options.clock.monotonic();
    } catch (error) {
      this.#settled = true;
      this.#reject(error);
      controller.abort(new Error('the request was not to be sent'));
    }
  }

  onResponseStarted(): void {
    if (this.#settled) return;
    this.#waitMs = this.#options.clock.monotonic() - this.#startedMs;
    this.#options.hooks.onFirstByte();
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: Record<string, string | string[] | undefined>,
  ): void {
    if (this.#settled || status < 200) return;
    const { url, clock, maxPageBytes, budget, openExtractor, validators, cookies } = this.#options;
    const plain = plainHeaders(headers);
    const header = (name: string): string => plain[name] ?? '';
    this.#reply = {
      url,
      status,
      headers: plain,
      cookies: cookiesOf(headers['set-cookie'], url, cookies),
      waitMs: this.#waitMs,
    };
    this.#verdict =
      status === 304 && validators !== null
        ? { kind: 'unchanged', validators }
        : judgeHead(status, header, url, clock.now());
    const isEmpty = status === 204 || status === 205 || status === 304;
    const contentType = isEmpty ? '' : header('content-type');
    const content = classifyContent(contentType, header('content-disposition'));
    if (content === 'other') {
      // Of any length, so it is not read at all.
      this.stop({ kind: 'failed', reason: 'content-type', detail: `content-type ${contentType.slice(0, 200)}` });
      return;
    }
    const isNote = this.#verdict !== null;
    this.#body = new PageBody({
      contentType,
      encoding: isEmpty ? '' : header('content-encoding'),
      content,
      maxBytes: isNote ? MAX_NOTE_BYTES : maxPageBytes,
      budget,
      openExtractor: isNote ? null : openExtractor,
      onDrain: () => this.#controller?.resume(),
      onDone: (finding) => this.stop(finding ?? { kind: 'failed', reason: 'network', detail: 'an empty reply' }),
    });
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Uint8Array): void {
    if (this.#settled || !this.#body) return;
    this.#bytes += chunk.length;
    if (!this.#body.push(chunk)) controller.pause();
  }

  onResponseEnd(): void {
    if (this.#settled) return;
    this.#controller = null;
    this.#body?.end();
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.#controller = null;
    const detail = describeNetworkError(error);
    const declaredBytes = Number(this.#reply?.headers['content-length']);
    // Some servers declare the length that the page had before it was compressed, and end the connection; browsers
    // accept this.
    if (this.#body && declaredBytes > this.#bytes && ENDINGS.has((error as NodeJS.ErrnoException).code ?? ''))
      return this.#body.endAt(declaredBytes, detail);
    const finding: Finding = { kind: 'failed', reason: 'network', detail };
    this.stop(error instanceof KeptConnectionClosed ? { ...finding, unread: true } : finding);
  }
}
