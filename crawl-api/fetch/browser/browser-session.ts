/**
 * One Chromium with its one page, from start to kill. Always ended with SIGKILL for the whole process group: its
 * profile is discarded, so there is nothing to save, and a graceful shutdown can hang.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import path from 'node:path';
import { type BrowserContext, type CDPSession, chromium, type Page } from 'playwright';
import { AppError, firstLineOf } from '../../../shared/domain/errors.ts';
import type { BrowserCookie } from '../../../shared/adapters/http/cookie-jar.ts';
import type { Clock } from '../../../shared/ports/clock.ts';
import { BLOCKED_URLS, chromiumFlags } from './chromium-flags.ts';
import { DocumentGate } from './document-gate.ts';
import { SiteTraffic } from './site-traffic.ts';
import { CHECK_URL, type FilterProxy } from './filter-proxy.ts';
import { findChild, groupMemory, killGroup } from './process-group.ts';
import { withTimeout } from './with-timeout.ts';

const START_MS = 30_000;
const KILL_MS = 5_000;
export const PROFILE_PREFIX = 'chromium-';

export interface SessionOptions {
  executablePath: string;
  /** Folder for the profile; deleted at the end. */
  profileDirectory: string;
  proxy: FilterProxy;
  userAgent: string;
  /** Where visits send headers of the user. */
  userOrigins: readonly string[];
  clock: Clock;
}

export class BrowserSession {
  readonly page: Page;
  readonly cdp: CDPSession;
  /** Controls which documents the page may request. */
  readonly documents: DocumentGate;
  /** What the page loads from its own site. */
  readonly traffic: SiteTraffic;
  /** The ID of the browser's process, and of its process group. */
  readonly pid: number;
  /** Aborts when the page or the browser has crashed or ended. */
  readonly dead: AbortSignal;
  /** Pages fetched so far; counted by the owner. */
  pages = 0;
  readonly #profile: string;
  readonly #clock: Clock;
  /** The cookies that the browser has, as one text; null when a page may have changed them. */
  #cookies: string | null = null;

  private constructor(
    parts: {
      page: Page;
      cdp: CDPSession;
      documents: DocumentGate;
      traffic: SiteTraffic;
      pid: number;
      dead: AbortSignal;
    },
    profile: string,
    clock: Clock,
  ) {
    this.page = parts.page;
    this.cdp = parts.cdp;
    this.documents = parts.documents;
    this.traffic = parts.traffic;
    this.pid = parts.pid;
    this.dead = parts.dead;
    this.#profile = profile;
    this.#clock = clock;
  }

  /** Starts the browser. Throws an AppError when it does not start, and leaves nothing behind then. */
  static async open(options: SessionOptions): Promise<BrowserSession> {
    const { clock, executablePath } = options;
    const profile = await mkdtemp(path.join(options.profileDirectory, PROFILE_PREFIX));
    try {
      const context = await withTimeout(clock, START_MS, 'starting the browser', launch(options, profile));
      return new BrowserSession(
        await withTimeout(clock, START_MS, 'preparing the page', prepare(context, options, profile)),
        profile,
        clock,
      );
    } catch (error) {
      await endProcesses(findChild(`--user-data-dir=${profile}`), profile, clock);
      throw new AppError('platform', `${executablePath} did not start: ${firstLineOf(error)}`, {
        hint: 'Start it by hand with --headless to see what it lacks; on Debian: apt-get install --no-install-recommends chromium-headless-shell.',
        cause: error,
      });
    }
  }

  /** Stops everything that the last product's page started: the page itself, and the windows that it opened. */
  async clear(): Promise<void> {
    await this.page.goto('about:blank', { waitUntil: 'commit' });
    // A navigation that the page began while it was being replaced outlives it.
    await this.cdp.send('Page.stopLoading');
    const windows = this.page
      .context()
      .pages()
      .filter((page) => page !== this.page);
    await Promise.allSettled(windows.map((window) => window.close()));
  }

  /** Makes these the browser's only cookies, without any that it refuses. */
  async giveCookies(cookies: readonly BrowserCookie[]): Promise<void> {
    const context = this.page.context();
    if (this.#cookies !== textOf(cookies)) {
      await context.clearCookies();
      // It takes all of them or none.
      if (cookies.length > 0)
        await context
          .addCookies(cookies)
          .catch(() => Promise.allSettled(cookies.map((cookie) => context.addCookies([cookie]))));
    }
    this.#cookies = null;
  }

  async takeCookies(): Promise<BrowserCookie[]> {
    const cookies = await this.page.context().cookies();
    this.#cookies = textOf(cookies);
    return cookies;
  }

  memoryBytes(): number {
    return groupMemory(this.pid);
  }

  /** Kills the browser and deletes its profile; returns what could not be done, null when all was. */
  async end(): Promise<string | null> {
    return endProcesses(this.pid, this.#profile, this.#clock);
  }
}

/** Equal for the same cookies in any order. A jar counts in milliseconds, and a browser more finely. */
function textOf(cookies: readonly BrowserCookie[]): string {
  const texts = cookies.map(({ name, value, domain, path, expires, httpOnly, secure, sameSite }) =>
    JSON.stringify([name, value, domain, path, Math.round(expires), httpOnly, secure, sameSite]),
  );
  return texts.toSorted().join();
}

/** A leftover profile is harmless: the next start of the program deletes it. */
async function endProcesses(pid: number | null, profile: string, clock: Clock): Promise<string | null> {
  const isGone = pid === null || (await killGroup(pid, clock, KILL_MS));
  const left = await rm(profile, { recursive: true, force: true, maxRetries: 5 }).then(
    () => null,
    (error: unknown) => `the browser's profile cannot be removed: ${firstLineOf(error)}`,
  );
  return isGone ? left : `a process of the browser (group ${pid}) cannot be killed`;
}

/** Opens an incognito context, without the services that Chromium has for people. */
async function launch({ executablePath, proxy, userAgent }: SessionOptions, profile: string): Promise<BrowserContext> {
  const isRoot = process.getuid?.() === 0;
  const browser = await chromium.launch({
    executablePath,
    headless: true,
    ignoreDefaultArgs: true,
    args: chromiumFlags({ userAgent, profile, proxyUrl: proxy.url, isRoot }),
    artifactsDir: path.join(profile, 'artifacts'),
    timeout: START_MS,
    // The program handles its signals itself.
    handleSIGINT: false,
    handleSIGTERM: false,
    handleSIGHUP: false,
  });
  return browser.newContext({ userAgent, serviceWorkers: 'block', acceptDownloads: false });
}

async function prepare(context: BrowserContext, { proxy, userOrigins, clock }: SessionOptions, profile: string) {
  const pid = findChild(`--user-data-dir=${profile}`);
  if (pid === null) throw new Error('its process cannot be found');
  const page = await context.newPage();
  const died = new AbortController();
  page.once('crash', () => died.abort());
  page.once('close', () => died.abort());
  context.once('close', () => died.abort());
  context.on('page', (popup) => void popup.close().catch(() => {}));
  const cdp = await context.newCDPSession(page);
  await giveCredential(page, cdp, proxy);
  await cdp.send('Network.enable');
  await cdp.send('Network.setBlockedURLs', { urls: [...BLOCKED_URLS] });
  const documents = await DocumentGate.install(cdp, userOrigins);
  return { page, cdp, documents, traffic: SiteTraffic.watch(cdp, clock), pid, dead: died.signal };
}

/** Gives the credential once, and Chromium keeps it. Playwright's own way would intercept every request. */
async function giveCredential(page: Page, cdp: CDPSession, { username, password }: FilterProxy): Promise<void> {
  const ignore = (): void => {};
  const authChallengeResponse = { response: 'ProvideCredentials' as const, username, password };
  const letThrough = ({ requestId }: { requestId: string }): void =>
    void cdp.send('Fetch.continueRequest', { requestId }).catch(ignore);
  cdp.on('Fetch.requestPaused', letThrough);
  cdp.on(
    'Fetch.authRequired',
    ({ requestId }) => void cdp.send('Fetch.continueWithAuth', { requestId, authChallengeResponse }).catch(ignore),
  );
  await cdp.send('Fetch.enable', { handleAuthRequests: true });
  const response = await page.goto(CHECK_URL);
  if (response?.status() !== 200) throw new Error('it cannot reach the proxy');
  await cdp.send('Fetch.disable');
  cdp.off('Fetch.requestPaused', letThrough);
}
