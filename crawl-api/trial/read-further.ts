/** Reads the further pages of a product for `orchestrator extract`, by the rules of a crawl. */
import { systemClock } from '../../shared/adapters/system-clock.ts';
import { identityOf, type PageRequest } from '../../shared/adapters/requests/page-requests.ts';
import { isAnyHost } from '../../shared/domain/domains.ts';
import { DEFAULT_MAX_PAGES } from '../../shared/domain/pages-per-product.ts';
import type { FurtherAnswer, PageTrial } from '../../shared/wire/page-trial.ts';
import { compileRowPages, compileSections } from '../extract/row-pages.ts';
import { compileRequests } from '../fetch/compile-requests.ts';
import type { PageResult } from '../fetch/page-result.ts';
import { provesPages } from '../open-sources.ts';
import { judge } from '../politeness/ban-rules.ts';
import { compileFollowRules } from '../politeness/follow-rules.ts';
import { accused } from '../politeness/judgement.ts';
import { LinkJudge } from '../politeness/link-judge.ts';
import { PageBaseline } from '../politeness/page-baseline.ts';
import { compileSiteRules } from '../politeness/site-rules.ts';
import { type JudgedFetch, type PageTarget, toSeenPage } from '../queue/pages.ts';
import { describeForbidden, fetchProduct } from '../queue/product.ts';

/** A page after its redirects. */
export interface FetchedPage {
  result: PageResult;
  requests: FurtherAnswer['requests'];
  /** Where a redirect leads that was not followed; null: each was. */
  refusedTo: string | null;
}

export interface FurtherParts {
  trial: PageTrial;
  further: NonNullable<PageTrial['further']>;
  first: FetchedPage;
  fetch: (request: PageRequest, mayFollow: (to: string) => boolean) => Promise<FetchedPage>;
}

/** The product with its further pages. Sends their requests one by one, at the interval of the site. */
export async function readFurther({ trial, further, first, fetch }: FurtherParts): Promise<FurtherAnswer> {
  const { site, mapping, url, id = url } = trial;
  const { robots, deny, pages } = further;
  const isAny = isAnyHost(site.productUrl);
  const follow = await compileFollowRules({ site: isAny ? site : { ...site, productUrl: url }, deny });
  const policies = () => ({ own: robots, further: robots.further });
  const links = new LinkJudge({ site, isOneOfMany: false, follow, policies });
  const rules = await compileSiteRules(site.ban, provesPages(mapping));
  const product = { id, url };
  const own: PageRequest = { url, ...(trial.post && { post: trial.post }) };
  const compiled = await compileRequests({ site, mapping });
  const requests: FurtherAnswer['requests'] = [];
  const intervalMs = Math.max(site.intervalMs, robots.crawlDelayMs ?? 0);

  const judged = (asked: string, { result: page, requests: hops, refusedTo }: FetchedPage): JudgedFetch => {
    const { reply } = page;
    if (refusedTo !== null && links.mayFollow(url, refusedTo)) {
      const by = links.isAllowed(refusedTo) ? 'deny' : 'robots';
      return { kind: 'disallowed', url: refusedTo, by };
    }
    const judgement =
      refusedTo === null
        ? judge(toSeenPage(page), { url: asked, product }, rules)
        : accused('refusal', 'redirect-elsewhere', asked, reply);
    return { kind: 'judged', page, url: hops.at(-1)?.url ?? asked, judgement };
  };
  const fetchOne = async ({ url: asked, post }: Pick<PageTarget, 'url' | 'post'>): Promise<JudgedFetch> => {
    const request = { url: asked, ...(post && { post }) };
    if (identityOf(request) === identityOf(own)) return judged(url, first);
    if (!links.isAllowed(asked)) return { kind: 'disallowed', url: asked, by: 'robots' };
    await systemClock.sleep(intervalMs);
    const mayFollow = (to: string): boolean => links.mayFollow(url, to) && links.isAllowed(to) && !follow.denies(to);
    const fetched = await fetch(request, mayFollow);
    requests.push(...fetched.requests);
    return judged(asked, fetched);
  };

  const extent = isAny ? ('wanted' as const) : ('all' as const);
  const mostPages = site.maxPages ?? DEFAULT_MAX_PAGES;
  const maxPages = Math.min(pages, mostPages);
  const parts = {
    pages: { links, fetch: fetchOne },
    requests: {
      ofProduct: () => own,
      ofLink: (link: string) => compiled.ofLink(link, id),
      templateOf: (link: string) => compiled.templateOf(link),
    },
    baselineOf: () => new PageBaseline(),
    clock: systemClock,
    site: { ...site, maxPages },
    reportsLinks: false,
    rowPages: await compileRowPages(mapping),
    sectionOf: await compileSections(mapping),
    extent,
  };
  const target = { n: 1, product, interruptible: false, extent };
  const answer = answerOf(await fetchProduct(parts, target, new AbortController().signal));
  return { requests, ...(maxPages < mostPages ? withoutOwnLimit(answer) : answer) };
}

/** A run would read the pages beyond the limit of the trial. */
function withoutOwnLimit(answer: Omit<FurtherAnswer, 'requests'>): Omit<FurtherAnswer, 'requests'> {
  const { limit, ...leftOut } = answer.leftOut;
  const partial = answer.partial && Object.keys(leftOut).length > 0;
  return { ...answer, leftOut, partial, notRead: limit?.pages ?? 0 };
}

function answerOf(fetched: JudgedFetch): Omit<FurtherAnswer, 'requests'> {
  const nothing = { rows: null, missing: null, leftOut: {}, notRead: 0, partial: false, failed: null };
  if (fetched.kind === 'not-now') throw new Error('a trial cannot end as not-now');
  if (fetched.kind === 'disallowed') {
    const { reason, detail } = describeForbidden(fetched);
    return { ...nothing, missing: fetched.missing ?? null, failed: { reason, detail } };
  }
  const { page, left } = fetched;
  switch (page.kind) {
    case 'page':
      return { ...nothing, rows: page.extraction.rows, missing: page.extraction.missing, ...left };
    case 'failed':
      return { ...nothing, failed: { reason: page.reason, detail: `${fetched.url}: ${page.detail}` } };
    case 'gone':
    case 'redirect':
    case 'unchanged':
      throw new Error(`a product with further pages cannot end as ${page.kind}`);
  }
}
