/** Navigates the browser's page to a URL, and judges a navigation that yielded no page. */
import { textBefore } from '../../../shared/domain/text-before.ts';
import type { Response } from 'playwright';
import type { Clock } from '../../../shared/ports/clock.ts';
import type { PageExtractor, PageKind } from '../../extract/page-extractor.ts';
import type { BrowserSession } from './browser-session.ts';
import type { DocumentReport } from './document-gate.ts';
import type { Expected } from './expected-elements.ts';
import { firstLineOf } from '../../../shared/domain/errors.ts';
import { declaredKind } from '../page-kind.ts';
import type { FetchSettings, PageResult } from '../page-result.ts';
import { PROXY_ANSWER } from './filter-proxy.ts';
import { firstRequestOf, type GateReport } from './proxy-gate.ts';
import { failed, replyOf } from './rendered-reply.ts';

/** The dependencies of a visit of the browser's page. */
export interface VisitOptions {
  session: BrowserSession;
  settings: FetchSettings;
  clock: Clock;
  openExtractor: (kind: PageKind, url: string) => PageExtractor;
  /** What to wait for on the page of this URL. */
  expect: (url: string) => Expected;
  /** The proxy's report of this visit. */
  report: GateReport;
  /** The navigations that the page attempted. */
  documents: Readonly<DocumentReport>;
  /** When the address may send its next request at the earliest (monotonic); -Infinity without a pace. */
  turnMs: () => number;
  /** Default 3 s; see page-visit.ts. */
  patienceMs?: number;
  /** The time from the request to the first byte, as far as it is known. */
  waitMs: () => number;
}

/** Playwright's error, or null once the document has begun. Rejects when the browser is gone. */
export async function navigate(url: string, { session }: VisitOptions): Promise<string | null> {
  try {
    // Playwright's own timeout is off; the visit's timer is the only one.
    await session.page.goto(url, { waitUntil: 'commit', timeout: 0 });
    return null;
  } catch (error) {
    if (session.dead.aborted) throw error;
    return firstLineOf(error).replace(/^page\.goto: /, '');
  }
}

/** The replies to the page's own requests, as reported by the browser. */
export interface Replies {
  /** The latest document's reply: scripts may navigate. */
  latest: Response | null;
  /** The latest redirect. */
  redirect: Response | null;
}

/** The result when there is no page to read, or null. `problem`: the result of `navigate`. */
export function judgeNavigation(
  url: string,
  problem: string | null,
  replies: Replies,
  options: VisitOptions,
): PageResult | null {
  const { latest } = replies;
  const refusal = latest?.headers()[PROXY_ANSWER] ?? null;
  if (problem !== null || refusal !== null) {
    const away = findRedirect(url, replies, options);
    if (away !== null) return away;
  }
  if (refusal !== null) return failed('network', refusal);
  if (latest !== null && (latest.status() === 204 || latest.status() === 205)) {
    const extractor = options.openExtractor('html', url);
    return { kind: 'page', reply: replyOf(latest, url, null, options.waitMs()), extraction: extractor.end() };
  }
  if (problem === null && latest !== null) return null;
  if (problem !== null && /interrupted by another navigation/.test(problem)) return null;
  const reply = latest === null ? null : replyOf(latest, url, null, options.waitMs());
  if (problem !== null && reply !== null && isDownload(problem, reply.headers))
    return failed('content-type', mediaTypeOf(reply.headers) || 'a download', reply);
  return failed('network', faultOf([url, wayOf(replies.redirect)], options) ?? problem ?? 'no reply');
}

/** A redirect, reported as by the HTTP fetcher: that the proxy blocked it is no network fault. */
function findRedirect(url: string, { redirect }: Replies, { waitMs }: VisitOptions): PageResult | null {
  const to = wayOf(redirect);
  return redirect === null || to === null
    ? null
    : { kind: 'redirect', reply: replyOf(redirect, url, null, waitMs()), to };
}

/** Absolute target of a redirect. */
function wayOf(redirect: Response | null): string | null {
  return URL.parse(redirect?.headers().location ?? ':', redirect?.url())?.href ?? null;
}

/**
 * The proxy's fault for one of the URLs: it knows more than Chromium. A fault of another host is no fault of the page.
 */
function faultOf(urls: (string | null)[], { report }: VisitOptions): string | null {
  for (const url of urls) {
    const authority = url === null ? undefined : firstRequestOf(url)?.authority;
    const fault = authority === undefined ? undefined : report.faults.get(authority);
    if (fault !== undefined) return `${authority}: ${fault}`;
  }
  return null;
}

/** Chromium downloads what it does not show. A page whose process dies just then is aborted, too. */
function isDownload(problem: string, headers: Readonly<Record<string, string>>): boolean {
  if (/Download is starting/.test(problem)) return true;
  const isOffered = /^\s*attachment/i.test(headers['content-disposition'] ?? '');
  return /ERR_ABORTED/.test(problem) && (isOffered || declaredKind(mediaTypeOf(headers)) === null);
}

/** Lower-case, without parameters; '' without a header. */
export function mediaTypeOf(headers: Readonly<Record<string, string>>): string {
  return textBefore(headers['content-type'] ?? '', ';')
    .trim()
    .toLowerCase();
}
