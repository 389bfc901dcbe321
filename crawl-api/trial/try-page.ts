/** Reads one page with a mapping, from a site or from a file, and records how each field got its value. */
import { describeStep } from '../../shared/domain/describe-step.ts';
import { systemClock } from '../../shared/adapters/system-clock.ts';
import type { PageTrial, TrialAnswer } from '../../shared/wire/page-trial.ts';
import { type CompiledMapping, compileMapping } from '../extract/compile-mapping.ts';
import { PageExtractor, type PageKind } from '../extract/page-extractor.ts';
import type { Trace } from '../extract/chain.ts';
import { UserHeaders } from '../fetch/user-headers.ts';
import type { PageResult, PageSource } from '../fetch/page-result.ts';
import { keepsMethod, RedirectTrail } from '../fetch/redirect-trail.ts';
import type { PageRequest } from '../../shared/adapters/requests/page-requests.ts';
import { isSameSite, MAX_REDIRECTS } from '../../shared/domain/same-site.ts';
import { randomUUID } from 'node:crypto';
import { readFile, mkdtemp, rm } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { listen } from '../server/listen.ts';
import { tmpdir } from 'node:os';
import { closeServer } from '../../shared/adapters/http/listening.ts';
import { createAddressGuard } from '../../shared/adapters/http/address-guard.ts';
import { type CookieJar, openJar } from '../../shared/adapters/http/cookie-jar.ts';
import { createTargetDispatcher } from '../../shared/adapters/http/target-dispatcher.ts';
import { type OpenExtractor, PageFetcher } from '../fetch/page-fetcher.ts';
import { type PageSurvey, surveyPage } from './survey-page.ts';
import { findBrowser, openBrowser } from '../open-sources.ts';
import { type FetchedPage, type FurtherParts, readFurther } from './read-further.ts';

/** The last extractor to read the page: a browser's page is read several times while it builds itself. */
interface LastReading {
  kind: PageKind;
  extractor: PageExtractor;
}

/** Throws AppError for an invalid mapping, an unreadable file or a missing browser. */
export async function tryPage(trial: PageTrial): Promise<TrialAnswer> {
  const mapping = await compileMapping(trial.mapping);
  const cleanUps: (() => Promise<void>)[] = [];
  try {
    const served = trial.file === null ? null : await serveFile(trial.file);
    if (served) cleanUps.push(() => served.close());
    const scratch = await mkdtemp(path.join(tmpdir(), 'crawlfleet-extract-'));
    cleanUps.push(() => rm(scratch, { recursive: true, force: true, maxRetries: 5 }));
    const url = served?.url ?? trial.url;
    let last: LastReading | null = null;
    const Extractor = trial.survey === true ? SurveyingExtractor : PageExtractor;
    const openExtractor: OpenExtractor = (kind, fetched) => {
      const extractor = new Extractor(mapping, kind, served ? trial.url : fetched, { trace: true });
      last = { kind, extractor };
      return extractor;
    };
    const source = await openSource(trial, url, { mapping, openExtractor, scratch });
    cleanUps.push(() => source.close());
    const cookies = openJar(trial.site, systemClock);
    const userHeaders = new UserHeaders(trial.site);
    if (trial.secrets !== undefined) userHeaders.take('trial', trial.secrets);
    const sent = { cookies, userHeaders };
    const masked = (answer: TrialAnswer): TrialAnswer =>
      userHeaders.maskAll(answer, ['rows', 'links', 'survey', 'trace']);
    const first = await fetchOnce(source, { url, ...(trial.post && { post: trial.post }) }, sent);
    const answer = describe(first.result, served ? [] : first.requests, last);
    const { further } = trial;
    if (further === undefined || answer.outcome !== 'read' || answer.links.length === 0) return masked(answer);
    const fetch: FurtherParts['fetch'] = (request, mayFollow) => fetchOnce(source, request, sent, mayFollow);
    return masked({ ...answer, further: await readFurther({ trial, further, first, fetch }) });
  } finally {
    for (const cleanUp of cleanUps.reverse()) await cleanUp();
  }
}

/** Keeps the text of its page. */
class SurveyingExtractor extends PageExtractor {
  #text = '';

  override write(text: string): void {
    this.#text += text;
    super.write(text);
  }

  survey(kind: PageKind): PageSurvey & { text: string } {
    return { text: this.#text, ...(kind === 'html' ? surveyPage(this.#text) : { heading: [], price: [] }) };
  }
}

function describe(result: PageResult, requests: Hop[], last: LastReading | null): TrialAnswer {
  switch (result.kind) {
    case 'page': {
      const { rows, missing, links } = result.extraction;
      const trace = last === null ? [] : describeTrace(last.extractor.trace());
      return {
        outcome: 'read',
        requests,
        kind: last?.kind ?? 'html',
        mapping: last?.extractor.mappingName ?? null,
        rows,
        missing,
        links,
        trace,
        paths: last === null ? [] : [...last.extractor.paths()].map(([source, paths]) => ({ source, paths })),
        ...(last?.extractor instanceof SurveyingExtractor ? { survey: last.extractor.survey(last.kind) } : {}),
      };
    }
    case 'gone':
      return { outcome: 'failed', requests, reason: 'gone', detail: `status ${result.reply.status}` };
    case 'failed':
      return { outcome: 'failed', requests, reason: result.reason, detail: result.detail };
    case 'redirect':
    case 'unchanged':
      throw new Error(`a trial cannot end as ${result.kind}`);
  }
}

function describeTrace(trace: Trace): (TrialAnswer & { outcome: 'read' })['trace'] {
  return [...trace].map(([field, { steps, source }]) => ({
    field,
    source,
    steps: steps.map(({ step, ...made }) => ({ ...made, step: describeStep(step) })),
  }));
}

/** Delay between two hops: no pace is configured here, and one second harms no site. */
const HOP_MS = 1_000;

const NOT_FOLLOWED = { kind: 'failed', reason: 'redirect', retryAfterMs: null } as const;

type Hop = Extract<TrialAnswer, { outcome: 'read' }>['requests'][number];

/** The result of the last request; never a redirect that was followed. */
async function fetchOnce(
  source: PageSource,
  { url, post }: PageRequest,
  { cookies, userHeaders }: { cookies: CookieJar | null; userHeaders: UserHeaders },
  mayFollow: (to: string, from: string) => boolean = (to, from) => isSameSite(from, to),
): Promise<FetchedPage> {
  const requests: Hop[] = [];
  const signal = new AbortController().signal;
  const hooks = { onStart: () => undefined, onFirstByte: () => undefined };
  const trail = new RedirectTrail(url, cookies);
  for (let target = url; ;) {
    trail.note(target);
    const result = await source.fetch(target, hooks, signal, { cookies, post, sends: userHeaders.at(target) });
    requests.push({ url: target, status: result.kind === 'not-now' ? null : (result.reply?.status ?? null) });
    if (result.kind === 'not-now') throw new Error('a trial cannot end as not-now');
    trail.keep(result.reply?.cookies);
    const isRedirect = result.kind === 'redirect';
    const isOtherRequest = isRedirect && post !== undefined && !keepsMethod(result.reply.status);
    const isOff = isRedirect && !mayFollow(result.to, target);
    const refusal = !isRedirect
      ? null
      : isOtherRequest
        ? `${result.reply.status} to ${result.to}: after a POST it asks for a GET, so it is not followed`
        : isOff
          ? `leaves the site: to ${result.to}`
          : whyNotFollowed(result.to, trail, cookies !== null);
    const isAgain = result.kind === 'failed' && result.unread === true && requests.at(-2)?.url !== target;
    if (isRedirect && refusal === null) target = result.to;
    else if ((isRedirect || target !== url) && trail.beginsAgain()) target = url;
    else if (!isAgain)
      return {
        result: refusal === null ? result : { ...NOT_FOLLOWED, detail: refusal, reply: result.reply },
        requests,
        refusedTo: isOff ? result.to : null,
      };
    await systemClock.sleep(HOP_MS);
  }
}

/** Why a redirect within the site is not followed; null for one that is. */
function whyNotFollowed(to: string, trail: RedirectTrail, keepsCookies: boolean): string | null {
  if (trail.mayFollow(to)) return null;
  const cookie = trail.cookie();
  const why =
    cookie === null
      ? ''
      : `. The site sets the cookie ${cookie}${keepsCookies ? '' : ': set site.keep_cookies to true'}`;
  return `in a circle, or more than ${MAX_REDIRECTS} redirects: the next one leads to ${to}${why}`;
}

/** A saved page has lost its headers; its format is detected as for a site that sends none. */
const TYPES: Record<string, string> = {
  '.html': 'text/html',
  '.htm': 'text/html',
  '.xhtml': 'application/xhtml+xml',
  '.xml': 'application/xml',
  '.json': 'application/json',
};

/** Rejects when the file cannot be read. */
async function serveFile(file: string): Promise<{ url: string; close(): Promise<void> }> {
  const bytes = await readFile(file);
  const type = TYPES[path.extname(file).toLowerCase()];
  // Other programs on the machine must not get the file by guessing the port.
  const route = `/${randomUUID()}`;
  const server = await listen(
    (request, response) => {
      if (request.url !== route) {
        response.writeHead(404).end();
        return;
      }
      response.writeHead(200, {
        'content-length': bytes.length,
        ...(type === undefined ? {} : { 'content-type': type }),
      });
      response.end(bytes);
    },
    '127.0.0.1',
    0,
  );
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}${route}`, close: () => closeServer(server) };
}

/** Any address of this machine: no fleet shares it. */
const ANY_ADDRESS = '0.0.0.0';

interface SourceParts {
  mapping: CompiledMapping;
  openExtractor: OpenExtractor;
  scratch: string;
}

/** A private ip:port in `url` itself is allowed, as in a crawl. Rejects when no browser is installed. */
async function openSource(
  { site, chromiumPath }: PageTrial,
  url: string,
  { mapping, openExtractor, scratch }: SourceParts,
): Promise<PageSource> {
  const guard = createAddressGuard({ productUrl: url, allowPrivate: site.allowPrivate, forbidden: [] });
  const common = { localAddress: ANY_ADDRESS, guard };
  if (site.render === 'http') {
    const dispatcher = createTargetDispatcher({ ...common, connectTimeoutMs: site.timeoutMs });
    return new PageFetcher(dispatcher, site, systemClock, openExtractor);
  }
  return openBrowser(await findBrowser(chromiumPath), mapping, {
    ...common,
    settings: site,
    openExtractor,
    clock: systemClock,
    profileDirectory: scratch,
    userOrigins: (site.userHeaders ?? []).map(({ origin }) => origin),
    onProblem: (problem) => void process.stderr.write(`${problem}\n`),
  });
}
