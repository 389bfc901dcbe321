/** The crawl loop with all its parts on a virtual clock, against a site that the test simulates. */
import type { PageShape } from '../../../crawl-api/politeness/judgement.ts';
import { readShape } from '../../../crawl-api/fetch/shape-reader.ts';
import type {
  FetchHooks,
  PageAnswer,
  PageResult,
  PageSource,
  Reply,
  RequestParts,
} from '../../../crawl-api/fetch/page-result.ts';
import type { RowPages } from '../../../crawl-api/extract/row-pages.ts';
import type { Sends, UserHeaders } from '../../../crawl-api/fetch/user-headers.ts';
import { PageTimes } from '../../../crawl-api/politeness/pacer.ts';
import { RenderChoice } from '../../../crawl-api/politeness/render-choice.ts';
import { compileFollowRules } from '../../../crawl-api/politeness/follow-rules.ts';
import { compileRequests } from '../../../crawl-api/fetch/compile-requests.ts';
import { compileSiteRules } from '../../../crawl-api/politeness/site-rules.ts';
import { SiteCrawl } from '../../../crawl-api/queue/crawl.ts';
import type { CrawlEnd } from '../../../crawl-api/queue/crawl-ending.ts';
import type { Queue } from '../../../crawl-api/queue/queue.ts';
import type { IncidentTracker } from '../../../crawl-api/queue/incident-tracker.ts';
import { cookiesOf } from '../../../shared/adapters/http/cookie-jar.ts';
import { oneTitle } from '../../support/one-title.ts';
import type { VirtualClock } from '../../support/virtual-clock.ts';
import type { PostBody } from '../../../shared/adapters/requests/page-requests.ts';
import type { ProductUrl } from '../../../shared/domain/domains.ts';
import type { Validators } from '../../../shared/domain/validators.ts';
import type { PageMapping, Row } from '../../../shared/domain/mapping.ts';
import type { RequestTemplate } from '../../../shared/domain/request-template.ts';
import type { Canary } from '../../../shared/domain/verdict.ts';
import type { Orders } from '../../../shared/wire/callbacks.ts';
import type { SiteSettings } from '../../../shared/wire/site-settings.ts';
import type { ItemResult } from '../../../shared/wire/part.ts';
import { createGranted, type createQueue, type MemoryJournal, orders } from './fakes.ts';

export const SHOP = 'http://shop.example';

/** The site's response; `tries` counts the requests for this URL, including this one. */
export type Site = (
  path: string,
  tries: number,
  via: 'http' | 'browser',
  sent: {
    validators: Validators | undefined;
    /** '' without one. */
    cookie: string;
    post: PostBody | undefined;
    sends: Sends | undefined;
  },
) => (PageResult & { sets?: string[] }) | 'no-connection';

export interface Scene {
  run(ms: number): Promise<void>;
  /** `body` is that of a POST. */
  starts: { url: string; at: number; via: 'http' | 'browser'; body?: string }[];
  end: () => CrawlEnd | null;
  follow(changes: Partial<Orders>): Promise<void>;
  incidents: IncidentTracker;
  /** What is wrong with the canaries. */
  problem: () => string | null;
  stop: AbortController;
}

export interface SceneOptions {
  pageMs?: number;
  canaries?: Canary[];
  coolDownMs?: number;
  robots?: 'respect' | 'ignore';
  maxRequests?: number;
  render?: 'http' | 'browser' | 'auto';
  keepCookies?: boolean;
  /** With a host other than SHOP, paths are whole URLs. */
  productUrl?: ProductUrl;
  follow?: SiteSettings['follow'];
  request?: RequestTemplate;
  /** Sections of the mapping with a request of their own, before the one of products. */
  sections?: Pick<PageMapping, 'urlPatterns' | 'request'>[];
  /** What is not followed, as `DenyList` takes it. */
  deny?: string[];
  maxPages?: number;
  pagesAtOnce?: number;
  /** The mapping has `rows`. */
  rowPages?: RowPages | null;
  userHeaders?: UserHeaders;
}

export function reply(url: string, status: number, changes: Partial<Reply> = {}): Reply {
  const shape = (): PageShape => readShape(changes.body ?? '');
  return { url: `${SHOP}${url}`, status, headers: {}, body: '', complete: true, shape, waitMs: 50, ...changes };
}

export const fine = (url = '/', row: Row = { t: 'x' }, links: string[] = [], waitMs = 50): PageResult => ({
  kind: 'page',
  reply: reply(url, 200, { waitMs }),
  extraction: { rows: [{ key: null, row }], missing: null, links },
});
export const odd = (body = '<p>nothing here</p>'): PageResult => ({
  kind: 'page',
  reply: reply('/', 200, { body }),
  extraction: { rows: null, missing: 't', links: [] },
});
export const notFound: PageResult = { kind: 'gone', reply: reply('/', 404) };
export const refused = (status = 403, retryAfterMs: number | null = null, body = ''): PageResult => ({
  kind: 'failed',
  reason: 'http-status',
  detail: `status ${status}`,
  reply: reply('/', status, { body }),
  retryAfterMs,
});
export const broken = (reason: 'timeout' | 'network' = 'timeout'): PageResult => ({
  kind: 'failed',
  reason,
  detail: reason,
  reply: null,
  retryAfterMs: null,
});
export const toElsewhere = (to: string): PageResult => ({
  kind: 'redirect',
  reply: reply('/', 302),
  to: to.startsWith('/') ? `${SHOP}${to}` : to,
});
export const shell = odd('<script>location.href="/check"</script>');

/** The same with Set-Cookie headers. */
export const setting = (result: PageResult, ...sets: string[]): PageResult & { sets: string[] } => ({
  ...result,
  sets,
});

/** The reply to this request, with its URL. */
function answerTo(
  url: string,
  { sets, ...result }: PageResult & { sets?: string[] },
  request?: RequestParts,
): PageAnswer {
  if (result.reply === null) return result;
  const cookies = cookiesOf(sets, url, request?.cookies ?? null);
  return { ...result, reply: { ...result.reply, url, cookies } };
}

const NO_RULES = { statuses: [], redirects: [], patterns: [] };

/** Runs the loop; a page takes `pageMs` from the start to its last byte. Product p1 has the path /p1. */
export async function createScene(
  { queue, clock }: { queue: Queue; clock: VirtualClock },
  site: Site = (path) => fine(path),
  {
    pageMs = 100,
    canaries = [],
    coolDownMs = 1_800_000,
    robots = 'ignore',
    maxRequests,
    render = 'http',
    keepCookies = true,
    productUrl = `${SHOP}/{id}`,
    deny = [],
    follow,
    request,
    sections = [],
    maxPages,
    pagesAtOnce,
    rowPages = null,
    userHeaders,
  }: SceneOptions = {},
): Promise<Scene> {
  const starts: Scene['starts'] = [];
  const tries = new Map<string, number>();
  const createSource = (via: 'http' | 'browser'): PageSource => ({
    fetch: async (url: string, hooks: FetchHooks, signal: AbortSignal, request?: RequestParts): Promise<PageAnswer> => {
      const path = url.startsWith(SHOP) ? url.slice(SHOP.length) : url;
      tries.set(path, (tries.get(path) ?? 0) + 1);
      const cookie = request?.cookies?.header(url) ?? '';
      const result = site(path, tries.get(path)!, via, {
        validators: request?.validators,
        cookie,
        post: request?.post,
        sends: request?.sends,
      });
      if (result === 'no-connection') return broken('network');
      hooks.onStart();
      const sent = request?.post && { body: request.post.body };
      starts.push({ url: path.replace(/^\//, ''), at: clock.now(), via, ...sent });
      await clock.sleep(pageMs / 2, signal);
      hooks.onFirstByte();
      await clock.sleep(pageMs / 2, signal);
      return signal.aborted ? { kind: 'not-now' } : answerTo(url, result, request);
    },
    close: () => Promise.resolve(),
  });
  const { site: base, mapping } = oneTitle(SHOP);
  const page = mapping.pages[0]!;
  const toSection = (section: Partial<PageMapping>): PageMapping => ({ ...page, ...section });
  const settings: SiteSettings = {
    ...base,
    productUrl,
    robots,
    canaries,
    conditional: true,
    ban: { ...NO_RULES, coolDownMs },
    ...(maxRequests === undefined ? {} : { maxRequests }),
    ...(keepCookies ? {} : { keepCookies }),
    ...(follow && { follow }),
    ...(request && { request }),
    ...(maxPages === undefined ? {} : { maxPages }),
    ...(pagesAtOnce === undefined ? {} : { pagesAtOnce }),
  };
  const crawling = new SiteCrawl({
    queue,
    clock,
    pageTimes: new PageTimes(),
    site: settings,
    http: createSource('http'),
    browser: createSource('browser'),
    follow: await compileFollowRules({ site: settings, deny }),
    requests: await compileRequests({ site: settings, mapping: { pages: [...sections.map(toSection), page] } }),
    reportsLinks: false,
    rowPages,
    sectionOf: () => page,
    rules: await compileSiteRules(NO_RULES, true),
    render: new RenderChoice(render),
    ...(userHeaders && { userHeaders }),
    onIncident: () => undefined,
    onResult: () => undefined,
    onEmpty: () => undefined,
    idleMs: 5_000,
  });
  const stop = new AbortController();
  let end: CrawlEnd | null = null;
  const running = crawling.run(stop.signal).then((result) => (end = result));
  return {
    starts,
    stop,
    incidents: crawling.incidents,
    problem: () => crawling.problem,
    end: () => end,
    run: async (ms) => {
      await clock.advance(ms);
      if (end !== null) await running;
    },
    follow: async (changes) => {
      await queue.follow(orders(changes));
      crawling.wake();
    },
  };
}

/** A crawl of the products 1 to `last`, after `ms`; with its queue. */
export async function crawl(
  last: number,
  site?: Site,
  { ms = 60_000, sealed = true, ...options }: SceneOptions & { ms?: number; sealed?: boolean } = {},
): Promise<Scene & ReturnType<typeof createQueue>> {
  const world = await createGranted(last, { sealed }, options.productUrl);
  const scene = await createScene(world, site, options);
  await scene.run(ms);
  return { ...world, ...scene };
}

export const gaps = (starts: { at: number }[]): number[] => starts.slice(1).map((s, i) => s.at - starts[i]!.at);
export const urls = (scene: Scene): string[] => scene.starts.map((s) => s.url);

/** The outcomes of the products in journal order. */
export const outcomes = (journal: MemoryJournal): string[] =>
  results(journal).map((r) => `${r.id} ${r.outcome === 'failed' ? r.reason : r.outcome}`);

export const results = (journal: MemoryJournal): ItemResult[] => {
  const { lines } = journal.replay();
  return lines.linesOf(lines.uncut()).map((line) => JSON.parse(line) as ItemResult);
};
