/**
 * Fetches pages with a real browser. One Chromium with one page serves one product after another; it is killed and
 * restarted when it hangs, crashes, has grown too large or has served its number of pages.
 */
import { mkdir, readdir, rm } from 'node:fs/promises';
import path from 'node:path';
import { chromium } from 'playwright';
import { firstLineOf } from '../../../shared/domain/errors.ts';
import type { AddressGuard } from '../../../shared/adapters/http/address-guard.ts';
import type { Clock } from '../../../shared/ports/clock.ts';
import type { PageExtractor, PageKind } from '../../extract/page-extractor.ts';
import type { Sends } from '../user-headers.ts';
import { type BrowserCookie, cookiesInBrowser } from '../../../shared/adapters/http/cookie-jar.ts';
import type { FetchHooks, FetchSettings, PageAnswer, PageResult, PageSource, RequestParts } from '../page-result.ts';
import { BrowserSession, PROFILE_PREFIX } from './browser-session.ts';
import { type FilterProxy, startFilterProxy } from './filter-proxy.ts';
import { firstRequestOf } from './proxy-gate.ts';
import type { VisitOptions } from './navigate-page.ts';
import { visitPage } from './page-visit.ts';
import { failed } from './rendered-reply.ts';
import type { Expected } from './expected-elements.ts';
import { withTimeout } from './with-timeout.ts';

export { expectBy } from './expected-elements.ts';

const RECYCLE_PAGES = 100;
/** Attempts to start: one may fail temporarily because of low memory or a slow machine. */
const START_TRIES = 2;
const MEMORY_BYTES = 600 * 1024 * 1024;
/** Number of pages between two memory checks, which take some milliseconds. */
const MEMORY_EACH_PAGES = 10;
/** Maximum bytes of all replies of one product, beside its own page. */
const ASSETS_BYTES = 64 * 1024 * 1024;
const BLANK_MS = 3_000;
/** How soon the next page must follow, without a pace, for the last one not to be cleared first. */
const UNPACED_MS = 100;

export interface BrowserSourceOptions {
  executablePath: string;
  localAddress: string;
  guard: AddressGuard;
  settings: FetchSettings;
  openExtractor: (kind: PageKind, url: string) => PageExtractor;
  /** What to wait for on the page of this URL; see expected-elements.ts. */
  expect: (url: string) => Expected;
  clock: Clock;
  /** Folder for this source only: profiles left there by a killed program are deleted. */
  profileDirectory: string;
  /** Called with problems of the browser that were fixed by a restart. */
  onProblem: (text: string) => void;
  /** Where requests have headers of the user. Omitted: nowhere. */
  userOrigins?: readonly string[];
  recycle?: { pages?: number; memoryBytes?: number };
  /** How long a page with its required values may take to fill the others. Default 3 s. */
  patienceMs?: number;
  /**
   * True when products follow one another immediately: the next page replaces the last one. Otherwise the page is
   * cleared first, because a request of its scripts would pass for the beginning of the next product.
   */
  unpaced?: boolean;
}

/** Statistics of a source's browsers. */
export interface BrowserCounts {
  pages: number;
  /** Requests and tunnels of pages, with everything they load. */
  requests: number;
  /** Starts after the first one. */
  restarts: number;
}

export class BrowserSource implements PageSource {
  readonly #options: BrowserSourceOptions;
  readonly #proxy: FilterProxy;
  readonly #counts: BrowserCounts = { pages: 0, requests: 0, restarts: 0 };
  #session: BrowserSession | null = null;
  /** Serialises products: there is only one page. */
  #turn: Promise<unknown> = Promise.resolve();
  /** Aborts when a product comes in before the last one's page was cleared. */
  #idle = new AbortController();
  /** No more pages are fetched: the source was closed, or its browser does not restart. */
  #closed = false;
  readonly #broken = Promise.withResolvers<never>();

  constructor(options: BrowserSourceOptions, proxy: FilterProxy) {
    this.#options = options;
    this.#proxy = proxy;
    // Avoids an unhandled rejection when the caller does not await it.
    this.#broken.promise.catch(() => {});
  }

  /** Rejects when the browser does not restart; from then on every page is `stopped`. */
  get broken(): Promise<never> {
    return this.#broken.promise;
  }

  get counts(): Readonly<BrowserCounts> {
    return this.#counts;
  }

  async start(): Promise<BrowserSession> {
    const { executablePath, profileDirectory, settings, userOrigins = [], clock } = this.#options;
    const { userAgent } = settings;
    this.#session ??= await BrowserSession.open({
      executablePath,
      profileDirectory,
      userAgent,
      userOrigins,
      clock,
      proxy: this.#proxy,
    });
    return this.#session;
  }

  fetch(
    url: string,
    hooks: FetchHooks,
    signal: AbortSignal,
    { cookies = null, sends }: RequestParts = {},
  ): Promise<PageAnswer> {
    this.#idle.abort();
    const result = this.#turn.then(() => this.#fetchInTurn(url, hooks, signal, { cookies, sends }));
    this.#turn = result.then(
      () => this.#settle(),
      () => this.#settle(),
    );
    return result;
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#idle.abort();
    // A visit in progress ends with its browser.
    await this.#endSession('');
    await this.#turn;
    await this.#endSession('');
    await this.#proxy.close();
  }

  async #fetchInTurn(
    url: string,
    hooks: FetchHooks,
    signal: AbortSignal,
    { cookies = null, sends }: RequestParts,
  ): Promise<PageAnswer> {
    if (signal.aborted || this.#closed) return { kind: 'not-now' };
    const first = firstRequestOf(url);
    if (first === null) return failed('network', `${url.slice(0, 300)} is not an http or https URL`);
    if (this.#session?.dead.aborted) await this.#endSession('the browser ended between two pages');
    const session = await this.#startAgain(START_TRIES);
    if (session === null || this.#isClosed()) return { kind: 'not-now' };
    const { settings, clock } = this.#options;
    const times = { startMs: clock.monotonic(), waitMs: null as number | null };
    const timed: FetchHooks = {
      onStart() {
        hooks.onStart();
        times.startMs = clock.monotonic();
      },
      onFirstByte() {
        times.waitMs = clock.monotonic() - times.startMs;
        hooks.onFirstByte();
      },
    };
    const hasCookies = (sends?.cookies.length ?? 0) > 0;
    const report = this.#proxy.gate.open(first, timed, settings.maxPageBytes + ASSETS_BYTES, hasCookies);
    const documents = session.documents.open(url, () => this.#proxy.gate.exhaust(), sends);
    session.traffic.open(url);
    const over = new AbortController();
    try {
      const watch = watchVisit({
        clock,
        timeoutMs: settings.timeoutMs,
        memoryLimitBytes: this.#memoryLimit,
        session,
        stop: signal,
        over: over.signal,
      }).then((end) => this.#endVisit(session, end));
      const waitMs = (): number => times.waitMs ?? clock.monotonic() - times.startMs;
      const turnMs = (): number => hooks.turnMs?.() ?? -Infinity;
      const options = { ...this.#options, session, report, documents, waitMs, turnMs };
      const visit = visitWithCookies(url, options, { cookies, sends });
      // When the browser is gone, the watch knows the reason.
      const judged = visit.catch((error: unknown) => (session.dead.aborted ? watch : this.#judgeEnd(session, error)));
      const result = await Promise.race([watch, judged]);
      if (report.startError !== null) throw report.startError.thrown;
      return result;
    } finally {
      over.abort();
      this.#counts.pages++;
      this.#counts.requests += report.requests;
      session.pages++;
      this.#proxy.gate.shut();
      session.documents.shut();
    }
  }

  /** Starts the browser again; null when it does not start: no page is to blame. */
  async #startAgain(tries: number): Promise<BrowserSession | null> {
    try {
      return await this.start();
    } catch (error) {
      if (this.#closed) return null;
      this.#options.onProblem(firstLineOf(error));
      if (tries > 1) return this.#startAgain(tries - 1);
      this.#closed = true;
      this.#broken.reject(error);
      return null;
    }
  }

  /** The product's result after the watch has ended the visit; kills the browser. */
  async #endVisit(session: BrowserSession, end: VisitEnd): Promise<PageAnswer> {
    const { timeoutMs } = this.#options.settings;
    switch (end) {
      case 'over':
        return { kind: 'not-now' };
      case 'stopped':
        await this.#endSession('');
        return { kind: 'not-now' };
      case 'dead':
        return this.#judgeEnd(session, null);
      case 'late':
        await this.#endSession(`a page did not end within ${timeoutMs} ms: the browser was killed`);
        return failed('timeout', `the page did not load within ${timeoutMs} ms`);
      case 'too-large':
        await this.#endSession('one page took too much memory: the browser was killed');
        return failed('too-large', `the page took more than ${this.#memoryLimit} bytes of memory`);
    }
  }

  async #judgeEnd(session: BrowserSession, error: unknown): Promise<PageAnswer> {
    if (this.#closed) return { kind: 'not-now' };
    const why = session.dead.aborted ? 'the page or the browser crashed' : firstLineOf(error);
    if (this.#session === session) await this.#endSession(`${why}: the browser was killed`);
    return failed('network', why);
  }

  /** Clears the browser after a product: nothing of its page may keep running. */
  async #settle(): Promise<void> {
    const session = this.#session;
    if (session === null || this.#closed) return;
    const { clock, recycle, unpaced = false } = this.#options;
    const isOld = session.pages >= (recycle?.pages ?? RECYCLE_PAGES);
    const isLarge = session.pages % MEMORY_EACH_PAGES === 0 && session.memoryBytes() > this.#memoryLimit;
    if (isOld || isLarge || session.dead.aborted) return this.#endSession('');
    if (unpaced) {
      this.#idle = new AbortController();
      await clock.sleep(UNPACED_MS, this.#idle.signal);
      if (this.#idle.signal.aborted) return;
    }
    try {
      await withTimeout(clock, BLANK_MS, 'clearing the page', session.clear());
    } catch (error) {
      await this.#endSession(`${firstLineOf(error)}: the browser was killed`);
    }
  }

  /** Kills the browser; the next product starts a new one. */
  async #endSession(problem: string): Promise<void> {
    const session = this.#session;
    if (session === null) return;
    this.#session = null;
    if (!this.#closed) this.#counts.restarts++;
    if (problem !== '') this.#options.onProblem(problem);
    const left = await session.end();
    if (left !== null) this.#options.onProblem(left);
  }

  /** A method, because the value changes during awaits. */
  #isClosed(): boolean {
    return this.#closed;
  }

  get #memoryLimit(): number {
    return this.#options.recycle?.memoryBytes ?? MEMORY_BYTES;
  }
}

/**
 * A visit whose cookies are those of the jar and of the user: the browser has no others before, and gives its own back.
 * What the site sets under a name of the user's holds until the visit ends.
 */
async function visitWithCookies(
  url: string,
  options: VisitOptions,
  { cookies: jar = null, sends }: RequestParts,
): Promise<PageResult> {
  const { session } = options;
  const names = new Set(sends?.cookies.map(({ name }) => name));
  const isKept = ({ name }: BrowserCookie): boolean => !names.has(name);
  const before = (jar?.all() ?? []).filter(isKept);
  await session.giveCookies([...before, ...(sends === undefined ? [] : browserCookiesOf(sends))]);
  const result = await visitPage(url, options);
  const after = (await session.takeCookies()).filter(isKept);
  if (result.reply !== null) result.reply.cookies = cookiesInBrowser({ url, before, after }, jar);
  return result;
}

/** Cookies of the user, for their host alone; the proxy keeps them from its other ports. */
const browserCookiesOf = ({ origin, cookies }: Sends): BrowserCookie[] =>
  cookies.map(({ name, value, isSecret }) => ({
    name,
    value,
    domain: new URL(origin).hostname,
    path: '/',
    expires: -1,
    httpOnly: isSecret,
    secure: origin.startsWith('https:'),
  }));

/** Where Playwright would install its own browser. */
export const playwrightPath = (): string => chromium.executablePath();

/** Starts the proxy and the browser; throws an AppError with a hint when the browser does not start. */
export async function createBrowserSource(options: BrowserSourceOptions): Promise<BrowserSource> {
  const { profileDirectory, localAddress, guard, settings } = options;
  await mkdir(profileDirectory, { recursive: true, mode: 0o700 });
  for (const name of await readdir(profileDirectory))
    if (name.startsWith(PROFILE_PREFIX)) await rm(path.join(profileDirectory, name), { recursive: true, force: true });
  const proxy = await startFilterProxy({ localAddress, guard, timeoutMs: settings.timeoutMs });
  const source = new BrowserSource(options, proxy);
  try {
    await source.start();
    return source;
  } catch (error) {
    await source.close();
    throw error;
  }
}

const WATCH_MS = 1_000;

/** Why the source stops waiting for a visit; `over` when it has ended on its own. */
export type VisitEnd = 'over' | 'stopped' | 'dead' | 'late' | 'too-large';

interface WatchedVisit {
  clock: Clock;
  timeoutMs: number;
  memoryLimitBytes: number;
  session: { readonly dead: AbortSignal; memoryBytes(): number };
  /** The caller no longer wants the page. */
  stop: AbortSignal;
  /** The visit has ended. */
  over: AbortSignal;
}

/** Resolves at the first of these ends. */
async function watchVisit(visit: WatchedVisit): Promise<VisitEnd> {
  const { clock, timeoutMs, memoryLimitBytes, session, stop, over } = visit;
  const deadline = clock.monotonic() + timeoutMs;
  const wake = AbortSignal.any([stop, session.dead, over]);
  for (;;) {
    await clock.sleep(Math.min(WATCH_MS, Math.max(0, deadline - clock.monotonic())), wake);
    if (over.aborted) return 'over';
    if (stop.aborted) return 'stopped';
    if (session.dead.aborted) return 'dead';
    if (clock.monotonic() >= deadline) return 'late';
    if (session.memoryBytes() > memoryLimitBytes) return 'too-large';
  }
}
