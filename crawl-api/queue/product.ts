/**
 * Visits one product, from its first request to its result: its page, and the further pages that the mapping finds in
 * it.
 */
import type { KeyedRow, PageMapping } from '../../shared/domain/mapping.ts';
import { describeMissingField } from '../../shared/domain/failure-kind.ts';
import type { Requested } from '../../shared/domain/landing.ts';
import type { LeftOutReason } from '../../shared/domain/left-out.ts';
import { findUrlFault, notRequested } from '../../shared/domain/own-url.ts';
import type { PageRequest, PageRequests } from '../../shared/adapters/requests/page-requests.ts';
import { DEFAULT_MAX_PAGES } from '../../shared/domain/pages-per-product.ts';
import { productUrl } from '../../shared/domain/product.ts';
import { bodyNamesProduct } from '../../shared/adapters/requests/request-body.ts';
import type { Validators } from '../../shared/domain/validators.ts';
import type { Clock } from '../../shared/ports/clock.ts';
import { type ItemResult, MAX_LINK_CHARS, MAX_ROWS_BYTES, type Move } from '../../shared/wire/part.ts';
import type { SiteSettings } from '../../shared/wire/site-settings.ts';
import { TOO_MANY_BYTES } from '../extract/page-limits.ts';
import type { RowPages, SectionOf } from '../extract/row-pages.ts';
import { rowBytes } from '../extract/values.ts';
import { accused, type Judgement, LESS_THAN_USUAL, named, unremarkable, withRequest } from '../politeness/judgement.ts';
import type { PageBaseline } from '../politeness/page-baseline.ts';
import { toFailure, toItemResult } from './item-result.ts';
import type { NotNow, PageResult } from '../fetch/page-result.ts';
import { stampOf } from '../fetch/validators.ts';
import type { VisitExtent } from './domain-policy.ts';
import { FurtherPages } from './further-pages.ts';
import type { JudgedFetch, Pages } from './pages.ts';
import type { Item } from './items.ts';

export interface ProductParts extends FetchParts {
  pages: Pick<Pages, 'fetch' | 'links' | 'moveOf'>;
}

/** What the pages of a product need. */
interface FetchParts {
  requests: Pick<PageRequests, 'ofProduct' | 'ofLink' | 'templateOf'>;
  pages: Pick<Pages, 'fetch' | 'links'>;
  /** What the pages of this URL's section usually have. */
  baselineOf: (url: string) => PageBaseline;
  clock: Clock;
  site: SiteSettings;
  /** Links are reported with the result and not followed. */
  reportsLinks: boolean;
  /** Which pages may have rows; null: the mapping gives one row a product. */
  rowPages: RowPages | null;
  sectionOf: SectionOf;
  extent: VisitExtent;
}

export type VisitEnd =
  /**
   * The judgement decides what happens to the result. `waitMs`: from the request to the first byte of the product's own
   * page, if there was a reply.
   */
  | { kind: 'outcome'; result: ItemResult; judgement: Judgement; waitMs: number | null }
  /** The site asks for a pause of `forMs`; `result` stands if it keeps asking. */
  | { kind: 'wait'; forMs: number; result: ItemResult }
  /** The product keeps its place. */
  | NotNow;

const GONE = unremarkable('gone');

export async function visitProduct(parts: ProductParts, item: Item, work: AbortSignal): Promise<VisitEnd> {
  const url = productUrl(parts.site.productUrl, item.id);
  const fault = findUrlFault(parts.site.productUrl, item.id);
  if (fault !== null) return failedAtOnce(parts, { item, url }, { reason: 'redirect', detail: notRequested(fault) });
  const { n, id, validators } = item;
  const target = { n, product: { id, url }, interruptible: true, extent: parts.extent, validators } as const;
  const fetched = await fetchProduct(parts, target, work);
  return toEnd(parts, item, url, fetched);
}

function toEnd(parts: ProductParts, item: Item, url: string, fetched: JudgedFetch): VisitEnd {
  const { clock, baselineOf, site, requests, reportsLinks } = parts;
  if (fetched.kind === 'not-now') return fetched;
  // A product goes on elsewhere where its own page is; what a further page leads to says nothing of that.
  const moved = fetched.isFurther === true ? null : parts.pages.moveOf(fetched);
  if (fetched.kind === 'disallowed') {
    return failedAtOnce(parts, { item, url }, describeForbidden(fetched), moved);
  }
  const { page, judgement } = fetched;
  if (judgement.kind === 'right' && page.kind === 'page') baselineOf(fetched.url).note(page.extraction.rows ?? []);
  const isNamed = site.conditional && fetched.alone && requests.templateOf(url)?.method !== 'POST';
  const stamp = isNamed && page.reply !== null ? stampOf(page.reply) : null;
  const result = toItemResult({ item, url, nowMs: clock.now(), stamp }, page, judgement);
  if (fetched.request !== undefined && result.outcome === 'failed' && result.evidence !== undefined)
    result.evidence = withRequest(result.evidence, fetched.request);
  if (moved !== null && result.outcome === 'failed' && judgement.kind === 'failed') result.moved = moved;
  const finalUrl = page.reply?.url ?? url;
  // A body that names the product makes the page at any URL its own.
  if (result.outcome === 'stored' && finalUrl !== url && !bodyNamesProduct(requests.templateOf(url)))
    result.finalUrl = finalUrl.slice(0, MAX_LINK_CHARS);
  if (result.outcome === 'stored' && fetched.left) {
    result.leftOut = fetched.left.leftOut;
    if (fetched.left.partial) result.partial = true;
  }
  if (reportsLinks && result.outcome === 'stored' && page.kind === 'page')
    result.links = page.extraction.links.filter((link) => link.length <= MAX_LINK_CHARS);
  if (judgement.kind === 'wait' && page.kind === 'failed' && page.retryAfterMs !== null)
    return { kind: 'wait', forMs: page.retryAfterMs, result };
  // A product cut short by a missing page is credible only once a later page is right.
  return {
    kind: 'outcome',
    result,
    judgement: fetched.doubtful ? GONE : judgement,
    waitMs: page.reply?.waitMs ?? null,
  };
}

/** Of a product whose page may not be requested: says nothing about the address. */
function failedAtOnce(
  { clock }: ProductParts,
  { item, url }: { item: Item; url: string },
  { reason, detail }: { reason: 'redirect' | 'robots'; detail: string },
  moved: Move | null = null,
): VisitEnd {
  const result = toFailure({ item, url, nowMs: clock.now() }, reason, detail);
  if (moved !== null && result.outcome === 'failed') result.moved = moved;
  return { kind: 'outcome', result, judgement: unremarkable('failed'), waitMs: null };
}

export interface ProductTarget {
  /** The product's number, as in PageTarget. */
  n: number;
  product: Requested;
  /** The first request gives up its turn when something changes. */
  interruptible: boolean;
  /** The validators of its page, as in PageTarget. */
  validators?: Validators | undefined;
  /** `needed`: stop once all required fields and half of the usual ones have a value. */
  extent: VisitExtent | 'needed';
}

type Seen = Extract<JudgedFetch, { kind: 'judged' }>;
type SeenPage = Seen & { page: Extract<PageResult, { kind: 'page' }> };

/**
 * The result for the product's own page, merged with its further pages; or for the page that decides against it. Values
 * are merged first and judged then, because a required field may be on any of the pages. A page that is neither right
 * nor a part of the product decides for the whole.
 */
export async function fetchProduct(parts: FetchParts, target: ProductTarget, work: AbortSignal): Promise<JudgedFetch> {
  const { n, product: asked, extent } = target;
  const { url } = asked;
  const request = parts.requests.ofProduct(url, asked.id);
  const first = await parts.pages.fetch({ ...target, ...request }, work);
  if (!isPage(first)) return first;
  const product = new GatheredProduct();
  if (!product.add(first)) return first;
  const { follow: { depth } = {}, maxPages = DEFAULT_MAX_PAGES } = parts.site;
  const { pages, rowPages } = parts;
  const requestOf = (link: string): PageRequest => parts.requests.ofLink(link, asked.id);
  const wants = (link: string): boolean => {
    const section = extent === 'wanted' ? parts.sectionOf(link) : null;
    return extent !== 'wanted' || (section !== null && product.lacks(section));
  };
  const further = new FurtherPages(request, { depth, maxPages, links: pages.links, requestOf, rowPages, wants });
  if (!parts.reportsLinks) further.note(first.url, first.page.extraction.links, { ...request, depth: 0 });
  let isDoubtful = false;
  let forbidden: Disallowed | null = null;
  let unread: Seen | null = null;
  // A redirect is a second request.
  let alone = first.url === url;
  const baseline = parts.baselineOf(first.url);
  // Usual fields were learned from whole products: a further page may fill them.
  const isEnough = (): boolean => product.incomplete() === null && !baseline.isThin(product.rows);
  const excess = (): string | null => (extent === 'all' ? product.excess() : null);
  for (let next = further.next(); next !== undefined; next = further.next()) {
    if ((extent === 'needed' && isEnough()) || excess() !== null) break;
    alone = false;
    const { url: link, post } = next;
    const page = { n, url: link, post, product: asked, interruptible: false, isFurther: true } as const;
    const fetched = await parts.pages.fetch(page, work);
    const why = whyLeftOut(fetched, extent);
    if (why !== null) {
      further.leaveOut(link, why);
      if (fetched.kind === 'disallowed') forbidden ??= fetched;
      // Where a request was sent, its reply may be a ban. Of many hosts one more request would have to disprove it.
      isDoubtful ||= extent !== 'wanted' && (fetched.kind !== 'disallowed' || fetched.url !== link);
      continue;
    }
    if (extent === 'wanted' && isUnread(fetched)) {
      further.leaveOut(link, 'unread');
      unread ??= fetched;
      continue;
    }
    if (!isPage(fetched)) return fetched.kind === 'not-now' ? fetched : { ...fetched, isFurther: true };
    if (!product.add(fetched)) {
      // The record's own page was right just now: one that has nothing for it is no sign of a ban.
      if (extent === 'wanted' && fetched.judgement.kind === 'odd') continue;
      return fetched.judgement.kind === 'odd' ? (product.incomplete()?.fetched ?? fetched) : fetched;
    }
    further.note(fetched.url, fetched.page.extraction.links, next);
  }
  const { left } = further;
  const incomplete = product.incomplete();
  if (incomplete !== null) {
    if (unread !== null) return unread;
    const example = left?.leftOut.robots?.example;
    forbidden ??= example === undefined ? null : { kind: 'disallowed', url: example, by: 'robots' };
    return forbidden === null ? incomplete.fetched : { ...forbidden, missing: incomplete.field, isFurther: true };
  }
  const whole: Seen = {
    ...first,
    judgement: first.judgement.kind === 'right' ? first.judgement : unremarkable('right'),
    page: toWhole(first.page, product, excess()),
    // A page that is allowed tomorrow would not be requested while the product's own page is unchanged.
    alone: alone && !further.isCut,
    ...(left && { left }),
  };
  if (!further.isCut && baseline.isThin(product.rows))
    return {
      ...whole,
      judgement: named(accused('odd', LESS_THAN_USUAL, first.url, first.page.reply), first.request),
    };
  return isDoubtful ? { ...whole, doubtful: true } : whole;
}

/**
 * Why the product comes without this page; null for a page that counts. A page that failed for the moment, or that may
 * be a ban, decides for the product.
 */
function whyLeftOut(
  fetched: JudgedFetch,
  extent: ProductTarget['extent'],
): Exclude<LeftOutReason, 'limit' | 'unread'> | null {
  switch (fetched.kind) {
    case 'not-now':
      return null;
    case 'disallowed':
      return fetched.by === 'robots' ? 'robots' : 'denied';
    case 'judged': {
      const { kind, rule } = fetched.judgement;
      // Many sites send visitors there for pages that they do not have.
      if (extent === 'wanted' && rule === 'redirect-home') return 'gone';
      // Of many hosts a redirect to another one says nothing about this one.
      if (kind === 'failed' && fetched.page.kind === 'redirect') return 'elsewhere';
      // The list has become shorter since the page linked to it; or it is a ban that presents itself as a 404.
      if (kind === 'gone') return 'gone';
      return kind === 'refusal' && rule === 'redirect-elsewhere' ? 'elsewhere' : null;
    }
  }
}

/** It failed, by itself or for the moment, and is no sign of a refusal. */
const isUnread = (fetched: JudgedFetch): fetched is Seen =>
  fetched.kind === 'judged' && fetched.page.kind === 'failed' && fetched.judgement.kind === 'failed';

type Disallowed = Extract<JudgedFetch, { kind: 'disallowed' }>;

/** Why a product fails that needs a page which may not be requested. */
export function describeForbidden({ url, by, missing }: Disallowed): { reason: 'robots' | 'redirect'; detail: string } {
  const [reason, why] =
    by === 'robots'
      ? (['robots', `robots.txt does not allow ${url}`] as const)
      : (['redirect', `it leads to ${url}, which site.follow.deny denies`] as const);
  return { reason, detail: missing === undefined ? why : `${describeMissingField(missing)}: ${why}` };
}

function toWhole(first: SeenPage['page'], product: GatheredProduct, excess: string | null): PageResult {
  const { reply, extraction } = first;
  return excess === null
    ? { ...first, extraction: { rows: product.rows, missing: null, links: extraction.links } }
    : { kind: 'failed', reason: 'too-large', detail: excess, reply, retryAfterMs: null };
}

const isPage = (fetched: JudgedFetch): fetched is SeenPage => fetched.kind === 'judged' && fetched.page.kind === 'page';

/**
 * The rows that a product's pages give: with `rows` the records of all, one per key; else one row, whose empty fields
 * further pages fill.
 */
class GatheredProduct {
  readonly rows: KeyedRow[] = [];
  readonly #keys = new Set<string>();
  #bytes = 0;
  /** Pages without a required field, with the names of those fields. */
  readonly #partial: { fetched: SeenPage; missing: readonly string[] }[] = [];

  /** False for a page that decides for the whole: it is not right and adds no missing value. */
  add(fetched: SeenPage): boolean {
    const { extraction } = fetched.page;
    if (fetched.judgement.kind === 'right') {
      for (const row of extraction.rows ?? []) this.#addRow(row);
      return true;
    }
    // Values on a ban page or log-in page are no part of a product.
    if (fetched.judgement.rule !== 'field-missing' || extraction.rows !== null || !extraction.partial) return false;
    const { missing, ...read } = extraction.partial;
    if (!this.#addRow({ key: null, ...read })) return false;
    this.#partial.push({ fetched, missing });
    return true;
  }

  /** Whether a page of this section may have what no page has given yet. */
  lacks({ rows, fields }: PageMapping): boolean {
    if (rows !== null || fields.length === 0) return true;
    const own = this.rows[0]?.row ?? {};
    return fields.some(({ name }) => (own[name] ?? null) === null);
  }

  /** The first page without a required field that no other page has either, and that field; null: there is none. */
  incomplete(): { fetched: SeenPage; field: string } | null {
    const row = this.rows[0]?.row ?? {};
    for (const { fetched, missing } of this.#partial) {
      const field = missing.find((name) => (row[name] ?? null) === null);
      if (field !== undefined) return { fetched, field };
    }
    return null;
  }

  /** Why the product exceeds the limits, or null. Without all of its rows it fails: those missing would be deleted. */
  excess(): string | null {
    return this.#bytes > MAX_ROWS_BYTES ? TOO_MANY_BYTES : null;
  }

  /** False when it adds nothing. */
  #addRow(added: KeyedRow): boolean {
    const { key, row } = added;
    const own = this.rows[0];
    if (key === null && own) return fillEmpty(own, added);
    if (key !== null && this.#keys.has(key)) return false;
    if (key !== null) this.#keys.add(key);
    this.#bytes += rowBytes(row);
    // Rows past the byte limit are dropped to bound memory.
    if (this.#bytes <= MAX_ROWS_BYTES) this.rows.push({ ...added, row: { ...row } });
    return true;
  }
}

function fillEmpty(own: KeyedRow, more: KeyedRow): boolean {
  let filled = false;
  for (const [name, value] of Object.entries(more.row)) {
    if (value === null || (own.row[name] ?? null) !== null) continue;
    own.row[name] = value;
    const mark = more.marks?.[name];
    if (mark !== undefined) own.marks = { ...own.marks, [name]: mark };
    filled = true;
  }
  return filled;
}
