/** The result of one page request, and the interface of the fetchers (HTTP and browser). */
import type { Validators } from '../../shared/domain/validators.ts';
import type { FailureReason } from '../../shared/domain/outcome.ts';
import type { PostBody } from '../../shared/adapters/requests/page-requests.ts';
import type { Extraction } from '../extract/page-extractor.ts';
import type { SeenReply } from '../politeness/judgement.ts';
import type { Sends } from './user-headers.ts';
import type { CookieJar, ReplyCookies } from '../../shared/adapters/http/cookie-jar.ts';

/** Maximum characters of a reply's body that are kept, as evidence and for the ban rules. */
export const KEPT_BODY_CHARS = 65_536;

/** The reply itself, however it is judged; at most KEPT_BODY_CHARS of its body are kept. */
export interface Reply extends SeenReply {
  /** True when `body` is all of it. */
  complete: boolean;
  /** The size of the body as transferred, as far as it was read; omitted by a browser. */
  bytes?: number;
  /** The cookies that the page sets; omitted when it sets none. Never in `headers`: they may be secrets. */
  cookies?: ReplyCookies | undefined;
}

export type PageResult =
  /** A page that could be read; the extraction says which of its values were found. */
  | { kind: 'page'; reply: Reply; extraction: Extraction }
  /** The site reports that the product does not exist: 404 or 410. */
  | { kind: 'gone'; reply: Reply }
  /** 304 to a conditional request: the page is unchanged. */
  | { kind: 'unchanged'; reply: Reply; validators: Validators }
  /** The absolute target. It was not followed: every hop is a request of its own, at the pace. */
  | { kind: 'redirect'; reply: Reply; to: string }
  /**
   * `retryAfterMs` is the reply's Retry-After, if it has a readable one. `unread`: the server closed a kept connection
   * instead of reading the request, so the same request may be sent once more.
   */
  | {
      kind: 'failed';
      reason: FailureReason;
      detail: string;
      reply: Reply | null;
      retryAfterMs: number | null;
      unread?: true;
    };

/** An order, a barrier, the disk or the deadline has prevented or ended the request: nothing is known. */
export interface NotNow {
  kind: 'not-now';
}

export type PageAnswer = PageResult | NotNow;

export interface FetchSettings {
  userAgent: string;
  /** The time limit from the first attempt to connect to the last byte. */
  timeoutMs: number;
  maxPageBytes: number;
}

/** Callbacks of a fetcher, called at the exact moments. */
export interface FetchHooks {
  /** The head is about to be written to the socket. If this throws, nothing is sent. */
  onStart(): void;
  onFirstByte(): void;
  /**
   * When the address may send its next request at the earliest (monotonic clock): until then a page costs no time.
   * Omitted without a pace.
   */
  turnMs?(): number;
}

/** What a request sends beside its URL. */
export interface RequestParts {
  /** The request is a POST with this body. Only plain HTTP sends one; omitted: a GET. */
  post?: PostBody | undefined;
  /** Makes the request conditional; a browser ignores them. */
  validators?: Validators | undefined;
  /** Its cookies are sent; those of the reply are not kept yet. Null or omitted: none are sent. */
  cookies?: CookieJar | null;
  /** What the user has sent with it; omitted: nothing. */
  sends?: Sends | undefined;
}

/** Fetches one page by one request of ours (a browser may send more on its behalf). */
export interface PageSource {
  /** Requests a page. Never rejects, except with what `onStart` throws. */
  fetch(url: string, hooks: FetchHooks, signal: AbortSignal, request?: RequestParts): Promise<PageAnswer>;
  /** Releases all resources; nothing is left running. */
  close(): Promise<void>;
}
