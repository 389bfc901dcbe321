/** What comes back for one request for a page, and what the fetchers (HTTP and browser) are told and tell. */
import type { FailureReason } from '../../shared/domain/outcome.ts';
import type { Extraction } from '../extract/page-extractor.ts';
import type { PageShape } from '../politeness/page-shape.ts';

/** Of a reply's body, so many characters are kept as evidence and for the words that the ban rules look for. */
export const KEPT_BODY_CHARS = 65_536;

/** The reply itself, whatever is made of it. */
export interface Reply {
  /** The URL asked for; with a browser the one it ended at. */
  url: string;
  status: number;
  /** Lower-case names; several of one name are joined with `, `. */
  headers: Record<string, string>;
  /** The beginning of the decoded body, at most KEPT_BODY_CHARS; '' when it was not read. */
  body: string;
  /** True when `body` is all of it. */
  complete: boolean;
  /** What the whole page is made of, whatever was kept of it; null when it was not read to its end. */
  shape(): PageShape | null;
  /** From the request to the first byte. */
  waitMs: number;
}

export type PageResult =
  /** A page that could be read; which of its values are there, the extraction says. */
  | { kind: 'page'; reply: Reply; extraction: Extraction }
  /** The site says that the product does not exist: 404 or 410. */
  | { kind: 'gone'; reply: Reply }
  /** Elsewhere, absolute. Nothing was followed: every hop is a request of its own, at the pace. */
  | { kind: 'redirect'; reply: Reply; to: string }
  /** `retryAfterMs` is the reply's Retry-After, where it has a readable one. */
  | { kind: 'failed'; reason: FailureReason; detail: string; reply: Reply | null; retryAfterMs: number | null }
  /** The caller's signal aborted: nothing is known about the product. */
  | { kind: 'stopped' };

export interface FetchSettings {
  userAgent: string;
  /** From the first try to connect to the last byte. */
  timeoutMs: number;
  /** Of the decoded page. */
  maxPageBytes: number;
}

/** What a fetcher tells while it works, at the exact moments. */
export interface FetchHooks {
  /** The head is about to be written to the socket. If this throws, nothing is sent. */
  onStart(): void;
  onFirstByte(): void;
}

/** Gets one page by one request of ours (a browser may ask for more on its behalf). */
export interface PageSource {
  /** Never rejects, except with what `onStart` throws. */
  fetch(url: string, hooks: FetchHooks, signal: AbortSignal): Promise<PageResult>;
  /** Ends what it holds; nothing of it is left running. */
  close(): Promise<void>;
}
