/** What becomes of one request for a page, and what the fetcher is told and tells. */
import type { FailureReason } from '../../shared/domain/outcome.ts';
import type { Extraction } from '../extract/page-extractor.ts';

export type PageResult =
  | { kind: 'page'; extraction: Extraction }
  /** The site says that the product does not exist: 404 or 410. */
  | { kind: 'gone'; status: number }
  | { kind: 'failed'; reason: FailureReason; detail: string }
  /** The caller's signal aborted: nothing is known about the product. */
  | { kind: 'stopped' };

export interface FetchSettings {
  userAgent: string;
  /** From the first try to connect to the last byte. */
  timeoutMs: number;
  /** Of the decoded page. */
  maxPageBytes: number;
}

/** What the fetcher tells while it works, at the exact moments. */
export interface FetchHooks {
  /** The head is about to be written to the socket. If this throws, nothing is sent. */
  onStart(): void;
  onFirstByte(): void;
}
