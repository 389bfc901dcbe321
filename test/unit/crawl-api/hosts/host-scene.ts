/** The crawl of many hosts with all its parts on a virtual clock, against hosts that the test simulates. */
import type { FetchHooks, PageAnswer, PageResult, PageSource } from '../../../../crawl-api/fetch/page-result.ts';
import { compileRequests } from '../../../../crawl-api/fetch/compile-requests.ts';
import { HostsCrawl, type HostsCrawlParts } from '../../../../crawl-api/hosts/hosts-crawl.ts';
import { compileSections } from '../../../../crawl-api/extract/row-pages.ts';
import { compileFollowRules } from '../../../../crawl-api/politeness/follow-rules.ts';
import { PageTimes } from '../../../../crawl-api/politeness/pacer.ts';
import { RenderChoice } from '../../../../crawl-api/politeness/render-choice.ts';
import { compileSiteRules } from '../../../../crawl-api/politeness/site-rules.ts';
import type { CrawlEnd } from '../../../../crawl-api/queue/crawl-ending.ts';
import { isOpen } from '../../../../crawl-api/queue/items.ts';
import { toFailure } from '../../../../crawl-api/queue/item-result.ts';
import type { Queue } from '../../../../crawl-api/queue/queue.ts';
import type { RobotsAnswer } from '../../../../shared/adapters/robots-fetcher.ts';
import { ANY_HOST } from '../../../../shared/domain/domains.ts';
import { hostGroupOf } from '../../../../shared/domain/host-key.ts';
import type { Mapping } from '../../../../shared/domain/mapping.ts';
import type { Product } from '../../../../shared/domain/product.ts';
import type { RobotsPolicy } from '../../../../shared/domain/robots-matcher.ts';
import type { Heartbeat, Orders } from '../../../../shared/wire/callbacks.ts';
import type { SiteSettings } from '../../../../shared/wire/site-settings.ts';
import { oneTitle } from '../../../support/one-title.ts';
import type { VirtualClock } from '../../../support/virtual-clock.ts';
import { fine } from '../crawl-scene.ts';
import { createQueue, type MemoryJournal, orders, robots, START_MS } from '../fakes.ts';

export const INTERVAL_MS = 15_000;
export const LEASE_MS = 360_000;

/** What a host does: a page, or nothing at all. */
type World = (url: string, tries: number) => PageResult | 'silence';
/** What its robots.txt is; omitted: there is none. */
type Rules = (url: string, tries: number) => RobotsAnswer | 'silence' | undefined;

interface Sent {
  url: string;
  host: string;
  at: number;
}

export interface HostScene {
  queue: Queue;
  clock: VirtualClock;
  journal: MemoryJournal;
  sent: Sent[];
  /** Seconds since the start of each request to the host, with its path. */
  of(host: string): [number, string][];
  run(ms: number): Promise<void>;
  /** @param robots the robots.txt of another host that holds for these */
  give(urls: readonly string[], changes?: Partial<Orders>, robots?: string): Promise<void>;
  /** A heartbeat is sent and accepted. */
  beat(): Heartbeat['hosts'];
  follow(changes: Partial<Orders>): Promise<void>;
  /** Outcomes by URL: `stored`, or the reason of the failure. */
  outcomes(): Record<string, string>;
  end(): CrawlEnd | null;
  problem(): string | null;
  stop: AbortController;
  most(): number;
}

export interface HostSceneOptions {
  world?: World;
  rules?: Rules;
  pagesAtOnce?: number;
  pageMs?: number;
  silentMs?: number;
  /** Until a connection stands. */
  connectMs?: number;
  /** Addresses by name; the name itself unless given. A name without one: null. */
  addresses?: (name: string) => string | null;
  journal?: MemoryJournal;
  clock?: VirtualClock;
  site?: Partial<SiteSettings>;
  /** The mapping; omitted: the title of each page. */
  sections?: Mapping;
  /** What is not followed, as `DenyList` takes it. */
  deny?: string[];
  news?: () => void;
  /** No heartbeat of its own, every 15 s. */
  isMute?: boolean;
}

const { site: base, mapping } = oneTitle('http://shop.example/{id}');

export const rulesOf = (changes: Partial<RobotsPolicy>): RobotsAnswer => ({
  kind: 'read',
  status: 200,
  policy: robots(changes),
});

export async function openHostScene({
  world = (url) => fine(url),
  rules = () => undefined,
  pagesAtOnce = 2,
  pageMs = 200,
  silentMs = 5_000,
  connectMs = 0,
  addresses = (name) => name,
  journal,
  clock: given,
  site: changes = {},
  sections = mapping,
  deny = [],
  news = () => undefined,
  isMute = false,
}: HostSceneOptions = {}): Promise<HostScene> {
  const deadlineMs = START_MS + 4 * 3_600_000;
  const {
    queue,
    clock,
    journal: kept,
  } = createQueue({
    productUrl: ANY_HOST,
    intervalMs: INTERVAL_MS,
    deadlineMs,
    leaseMs: LEASE_MS,
    ...(changes.hostKey && { hostKey: changes.hostKey }),
    ...(given && { clock: given }),
    ...(journal && { journal }),
  });
  queue.recordProcess();
  queue.recoverDeath((item) => toFailure({ item, url: item.id, nowMs: clock.now() }, 'poison', 'it died twice'));
  const sent: Sent[] = [];
  const tries = new Map<string, number>();
  const triesOf = (url: string): number => {
    tries.set(url, (tries.get(url) ?? 0) + 1);
    return tries.get(url)!;
  };
  let underWay = 0;
  let most = 0;
  const note = (url: string): void => {
    sent.push({ url, host: hostGroupOf(new URL(url)), at: clock.now() });
  };
  const during = async <T>(work: () => Promise<T>): Promise<T> => {
    most = Math.max(most, ++underWay);
    return work().finally(() => underWay--);
  };
  const http: PageSource = {
    fetch: (url: string, hooks: FetchHooks, signal: AbortSignal): Promise<PageAnswer> =>
      during(async () => {
        const result = world(url, triesOf(url));
        await clock.sleep(connectMs, signal);
        hooks.onStart();
        note(url);
        if (result === 'silence') {
          await clock.sleep(silentMs, signal);
          return { kind: 'failed', reason: 'timeout', detail: 'no reply', reply: null, retryAfterMs: null };
        }
        await clock.sleep(pageMs / 2, signal);
        hooks.onFirstByte();
        await clock.sleep(pageMs / 2, signal);
        if (signal.aborted) return { kind: 'not-now' };
        return result.reply === null ? result : { ...result, reply: { ...result.reply, url } };
      }),
    close: () => Promise.resolve(),
  };
  const askRobots: HostsCrawlParts['askRobots'] = (_origin, url, { timeoutMs, onConnected }) =>
    during(async () => {
      const answer = rules(url, triesOf(url));
      const unavailable = robots({ access: 'none', source: `${url} is unavailable` });
      await clock.sleep(connectMs);
      try {
        onConnected();
      } catch {
        return { kind: 'read', status: null, policy: unavailable };
      }
      note(url);
      await clock.sleep(answer === 'silence' ? timeoutMs : pageMs);
      if (answer === 'silence') return { kind: 'read', status: null, policy: unavailable };
      return answer ?? rulesOf({ source: `${url} does not exist` });
    });
  const site: SiteSettings = {
    ...base,
    productUrl: ANY_HOST,
    intervalMs: INTERVAL_MS,
    robots: 'respect',
    timeoutMs: 30_000,
    ...(pagesAtOnce === 1 ? {} : { pagesAtOnce }),
    ...changes,
  };
  const crawl = new HostsCrawl({
    queue,
    clock,
    pageTimes: new PageTimes(),
    site,
    http,
    browser: null,
    follow: await compileFollowRules({ site, deny }),
    requests: await compileRequests({ site, mapping: sections }),
    reportsLinks: false,
    rowPages: null,
    sectionOf: await compileSections(sections),
    rules: await compileSiteRules({ statuses: [], redirects: [], patterns: [] }, true),
    render: new RenderChoice('http'),
    onResult: () => undefined,
    onEmpty: () => undefined,
    idleMs: 5_000,
    runMs: 4 * 3_600_000,
    askRobots,
    resolve: async (name) => {
      await clock.sleep(10);
      const address = addresses(name);
      if (address === null) throw Object.assign(new Error(`look-up ENOTFOUND ${name}`), { code: 'ENOTFOUND' });
      return [{ address }];
    },
    onNews: news,
  });
  const stop = new AbortController();
  const isOver = new AbortController();
  let end: CrawlEnd | null = null;
  const beat = (): Heartbeat['hosts'] => {
    const hosts = queue.hostNews(1_000);
    queue.noteAccepted({ wallMs: clock.now(), monotonicMs: clock.monotonic(), message: { hosts } });
    crawl.wake();
    return hosts;
  };
  const beatOn = async (): Promise<void> => {
    for (; !isOver.signal.aborted; await clock.sleep(15_000, isOver.signal)) beat();
  };
  if (!isMute) void beatOn();
  const running = crawl
    .run(stop.signal)
    .then((result) => (end = result))
    .finally(() => isOver.abort());
  let chunks = 0;
  let products = kept.records.flatMap((record) => (record.t === 'offered' ? record.products : [])).length;
  return {
    queue,
    clock,
    journal: kept,
    sent,
    of: (host) =>
      sent
        .filter((each) => each.host === host)
        .map(({ url, at }) => [(at - START_MS) / 1_000, new URL(url).pathname] as [number, string]),
    run: async (ms) => {
      await clock.advance(ms);
      if (end !== null) await running;
    },
    give: async (urls, ordered = {}, robotsUrl) => {
      const chunk = `${++chunks + 100 * products}-1`;
      const own = urls.map((id): Product => ({
        n: ++products,
        id,
        ...(robotsUrl === undefined ? {} : { robots: robotsUrl }),
      }));
      await queue.offer({ chunk, share: 100_000, products: own });
      const deadline = new Date(deadlineMs).toISOString();
      await queue.follow(orders({ grants: [chunk], intervalMs: INTERVAL_MS, deadline, ...ordered }));
      crawl.wake();
    },
    beat,
    follow: async (ordered) => {
      const deadline = new Date(deadlineMs).toISOString();
      await queue.follow(orders({ intervalMs: INTERVAL_MS, deadline, ...ordered }));
      crawl.wake();
    },
    outcomes: () =>
      Object.fromEntries(
        [...queue.state.items.values()]
          .filter(({ state }) => !isOpen(state))
          .map(({ id, state, reason }) => [id, reason ?? state]),
      ),
    end: () => end,
    problem: () => crawl.problem,
    stop,
    most: () => most,
  };
}
