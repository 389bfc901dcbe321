/**
 * Visits one product, from its first request to its result: its page, and the further pages that the mapping finds in
 * it.
 */
import type { KeyedRow } from '../../shared/domain/mapping.ts';
import type { Requested } from '../../shared/domain/landing.ts';
import { findUrlFault } from '../../shared/domain/own-url.ts';
import { productUrl } from '../../shared/domain/product.ts';
import type { Validators } from '../../shared/domain/validators.ts';
import type { Clock } from '../../shared/ports/clock.ts';
import { type ItemResult, MAX_LINK_CHARS, MAX_ROWS_BYTES } from '../../shared/wire/part.ts';
import type { SiteSettings } from '../../shared/wire/site-settings.ts';
import { TOO_MANY_BYTES } from '../extract/page-limits.ts';
import { rowBytes } from '../extract/values.ts';
import { accused, type Judgement, LESS_THAN_USUAL, unremarkable } from '../politeness/judgement.ts';
import type { PageBaseline } from '../politeness/page-baseline.ts';
import { toFailure, toItemResult } from './item-result.ts';
import type { NotNow, PageResult } from '../fetch/page-result.ts';
import { stampOf } from '../fetch/validators.ts';
import type { JudgedFetch, Pages } from './pages.ts';
import type { Item } from './queue-state.ts';

export interface ProductParts {
  pages: Pages;
  baseline: PageBaseline;
  clock: Clock;
  site: SiteSettings;
  /** Links are reported with the result and not followed. */
  reportsLinks: boolean;
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
  if (fault !== null) return failedAtOnce(parts, { item, url }, 'redirect', `not requested: ${fault}`);
  const { n, id, validators } = item;
  const target = { n, product: { id, url }, interruptible: true, extent: 'all', validators } as const;
  const fetched = await fetchProduct(parts, target, work);
  return toEnd(parts, item, url, fetched);
}

function toEnd(parts: ProductParts, item: Item, url: string, fetched: JudgedFetch): VisitEnd {
  const { clock, baseline, site, reportsLinks } = parts;
  if (fetched.kind === 'not-now') return fetched;
  if (fetched.kind === 'disallowed')
    return fetched.by === 'robots'
      ? failedAtOnce(parts, { item, url }, 'robots', `robots.txt does not allow ${fetched.url}`)
      : failedAtOnce(parts, { item, url }, 'redirect', `it leads to ${fetched.url}, which site.follow.deny denies`);
  const { page, judgement } = fetched;
  if (judgement.kind === 'right' && page.kind === 'page') baseline.note(page.extraction.rows ?? []);
  const stamp = site.conditional && fetched.alone && page.reply !== null ? stampOf(page.reply) : null;
  const result = toItemResult({ item, url, nowMs: clock.now(), stamp }, page, judgement);
  const finalUrl = page.reply?.url ?? url;
  if (result.outcome === 'stored' && finalUrl !== url) result.finalUrl = finalUrl.slice(0, MAX_LINK_CHARS);
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
  reason: 'redirect' | 'robots',
  detail: string,
): VisitEnd {
  const result = toFailure({ item, url, nowMs: clock.now() }, reason, detail);
  return { kind: 'outcome', result, judgement: unremarkable('failed'), waitMs: null };
}

/** Maximum pages of one product, including its own. */
const MAX_PAGES = 20;

export interface ProductTarget {
  /** The product's number, as in PageTarget. */
  n: number;
  product: Requested;
  /** The first request gives up its turn when something changes. */
  interruptible: boolean;
  /** The validators of its page, as in PageTarget. */
  validators?: Validators | undefined;
  /** `needed`: stop once all required fields and half of the usual ones have a value. */
  extent: 'all' | 'needed';
}

type Seen = Extract<JudgedFetch, { kind: 'judged' }>;
type SeenPage = Seen & { page: Extract<PageResult, { kind: 'page' }> };

/**
 * The result for the product's own page, merged with its further pages; or for the page that decides against it. Values
 * are merged first and judged then, because a required field may be on any of the pages. A page that is neither right
 * nor a part of the product decides for the whole.
 */
export async function fetchProduct(
  parts: ProductParts,
  target: ProductTarget,
  work: AbortSignal,
): Promise<JudgedFetch> {
  const { n, product: asked, extent } = target;
  const { url } = asked;
  const first = await parts.pages.fetch({ ...target, url }, work);
  if (!isPage(first)) return first;
  const product = new GatheredProduct();
  if (!product.add(first)) return first;
  const { depth } = parts.site.follow ?? {};
  const links = new LinkList(url, { depth, mayFollow: (link) => parts.pages.leadsOn(url, link) });
  if (!parts.reportsLinks) links.note(first, 0);
  let isShorter = false;
  // A redirect is a second request.
  let alone = first.url === url;
  // Usual fields were learned from whole products: a further page may fill them.
  const isEnough = (): boolean => product.incomplete() === null && !parts.baseline.isThin(product.rows);
  const excess = (): string | null => (extent === 'all' ? product.excess(links.isCut) : null);
  for (let next = links.next(); next !== undefined; next = links.next()) {
    if ((extent === 'needed' && isEnough()) || excess() !== null) break;
    alone = false;
    const fetched = await parts.pages.fetch({ n, url: next.link, product: asked, interruptible: false }, work);
    // The list has become shorter since the page linked to it; or it is a ban that presents itself as a 404.
    if (fetched.kind === 'judged' && fetched.judgement.kind === 'gone') {
      isShorter = true;
      continue;
    }
    if (!isPage(fetched)) return fetched;
    if (!product.add(fetched)) return fetched.judgement.kind === 'odd' ? (product.incomplete() ?? fetched) : fetched;
    links.note(fetched, next.depth);
  }
  const incomplete = product.incomplete();
  if (incomplete !== null) return incomplete;
  const whole: Seen = {
    ...first,
    judgement: first.judgement.kind === 'right' ? first.judgement : unremarkable('right'),
    page: toWhole(first.page, product, excess()),
    alone,
  };
  if (parts.baseline.isThin(product.rows))
    return { ...whole, judgement: accused('odd', LESS_THAN_USUAL, first.url, first.page.reply) };
  return isShorter ? { ...whole, doubtful: true } : whole;
}

function toWhole(first: SeenPage['page'], product: GatheredProduct, excess: string | null): PageResult {
  const { reply, extraction } = first;
  return excess === null
    ? { ...first, extraction: { rows: product.rows, missing: null, links: extraction.links } }
    : { kind: 'failed', reason: 'too-large', detail: excess, reply, retryAfterMs: null };
}

const isPage = (fetched: JudgedFetch): fetched is SeenPage => fetched.kind === 'judged' && fetched.page.kind === 'page';

interface LinkListRules {
  /** Maximum links from the product's page to a further one; undefined: any. */
  depth: number | undefined;
  mayFollow: (link: string) => boolean;
}

/** Links that may be followed, each once, in the order found. */
class LinkList {
  readonly #known: Set<string>;
  readonly #rules: LinkListRules;
  readonly #waiting: { link: string; depth: number }[] = [];
  #pages = 1;
  /** More links were found than may be followed. */
  isCut = false;

  constructor(url: string, rules: LinkListRules) {
    this.#known = new Set([url]);
    this.#rules = rules;
  }

  /** @param depth links from the product's page to this one */
  note({ url, page }: SeenPage, depth: number): void {
    this.#known.add(url);
    if (depth >= (this.#rules.depth ?? Infinity)) return;
    for (const link of page.extraction.links) {
      if (this.#known.has(link) || !this.#rules.mayFollow(link)) continue;
      if (this.#pages === MAX_PAGES) {
        this.isCut = true;
        return;
      }
      this.#pages++;
      this.#known.add(link);
      this.#waiting.push({ link, depth: depth + 1 });
    }
  }

  next(): { link: string; depth: number } | undefined {
    return this.#waiting.shift();
  }
}

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

  /** The first page without a required field that no other page has either; null when there is none. */
  incomplete(): SeenPage | null {
    const row = this.rows[0]?.row ?? {};
    return this.#partial.find(({ missing }) => missing.some((name) => (row[name] ?? null) === null))?.fetched ?? null;
  }

  /**
   * Why the product exceeds the limits, or null. With many rows the product then fails, because missing rows would
   * count as deleted. A single row loses nothing by pages that were not fetched.
   */
  excess(isCut: boolean): string | null {
    if (this.#bytes > MAX_ROWS_BYTES) return TOO_MANY_BYTES;
    const isOne = this.rows.length === 1 && this.rows[0]?.key === null;
    return isCut && !isOne ? `more than ${MAX_PAGES} pages` : null;
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
