/** The further pages of one product: which are requested, in which order, and which it comes without. */
import type { LeftOut, LeftOutReason } from '../../shared/domain/left-out.ts';
import { MAX_LINKS } from '../../shared/domain/mapping.ts';
import { identityOf, type PageRequest } from '../../shared/adapters/requests/page-requests.ts';
import { isSameSite } from '../../shared/domain/same-site.ts';
import { MAX_LINK_CHARS } from '../../shared/wire/part.ts';
import type { RowPages } from '../extract/row-pages.ts';
import type { Links } from '../politeness/link-judge.ts';

/** What a product comes without. */
export interface LeftPages {
  leftOut: LeftOut;
  /** One of them may have rows of the product. */
  partial: boolean;
}

export interface FurtherPagesRules {
  /** Maximum links from the product's page to a further one; undefined: any. */
  depth: number | undefined;
  /** Maximum pages of the product, including its own. */
  maxPages: number;
  links: Pick<Links, 'judgeLink'>;
  /** How a link is requested. */
  requestOf: (link: string) => PageRequest;
  /** Null: the mapping gives one row a product. */
  rowPages: RowPages | null;
  /** Whether the page of a link may have what the product still lacks. */
  wants: (link: string) => boolean;
}

/** Links that are remembered and counted though they are not followed: as many as one page may have. */
const MAX_LEFT = MAX_LINKS;

/** A request, and how many links from the product's page lead to its page. */
type LinkedRequest = PageRequest & { depth: number };

/** The requests for them, each once, in the order found. */
export class FurtherPages {
  readonly #product: string;
  readonly #rules: FurtherPagesRules;
  readonly #known: Set<string>;
  readonly #waiting: LinkedRequest[] = [];
  readonly #leftOut: LeftOut = {};
  #isCut = false;
  #partial = false;
  #pages = 1;
  #left = 0;

  /** @param product the request for its own page */
  constructor(product: PageRequest, rules: FurtherPagesRules) {
    this.#product = product.url;
    this.#rules = rules;
    this.#known = new Set([identityOf(product)]);
  }

  /**
   * Takes the links of a page.
   * @param asked the request that led to it
   */
  note(url: string, links: readonly string[], { depth, ...asked }: LinkedRequest): void {
    this.#known.add(identityOf({ ...asked, url }));
    if (depth >= (this.#rules.depth ?? Infinity)) return;
    for (const link of links) {
      const request = this.#rules.requestOf(link);
      const identity = identityOf(request);
      if (this.#known.has(identity) || !this.#rules.wants(link)) continue;
      const found = this.#rules.links.judgeLink(this.#product, link);
      const way = found === 'further' && this.#pages >= this.#rules.maxPages ? 'limit' : found;
      if (way === 'unwanted' || (way !== 'further' && this.#left >= MAX_LEFT)) continue;
      this.#known.add(identity);
      if (way === 'elsewhere') this.#leaveOut(link, way, this.#mayBeOfProduct(link));
      else if (way !== 'further') this.leaveOut(link, way);
      else {
        this.#pages++;
        this.#waiting.push({ ...request, depth: depth + 1 });
      }
    }
  }

  /** What is not wanted any more is dropped. */
  next(): LinkedRequest | undefined {
    let next = this.#waiting.shift();
    while (next !== undefined && !this.#rules.wants(next.url)) next = this.#waiting.shift();
    return next;
  }

  /** Leaves out a page that is on the site or on a host of site.follow.hosts. */
  leaveOut(link: string, reason: LeftOutReason): void {
    this.#leaveOut(link, reason, true);
  }

  #leaveOut(link: string, reason: LeftOutReason, isOfProduct: boolean): void {
    this.#left++;
    this.#isCut ||= isOfProduct;
    const { pages = 0, example = link.slice(0, MAX_LINK_CHARS) } = this.#leftOut[reason] ?? {};
    this.#leftOut[reason] = { pages: pages + 1, example };
    if (isOfProduct && !this.#partial) this.#partial = (this.#rules.rowPages?.(link) ?? 'none') !== 'none';
  }

  /**
   * A link to a host that is not read is no page of the product, as a rule: it is one if a section of the mapping names
   * it, or on a subdomain of the site.
   */
  #mayBeOfProduct(link: string): boolean {
    const { rowPages } = this.#rules;
    return rowPages !== null && (rowPages(link) === 'named' || isSameSite(this.#product, link));
  }

  /** What was left out so far; null: nothing. */
  get left(): LeftPages | null {
    return this.#left === 0 ? null : { leftOut: this.#leftOut, partial: this.#partial };
  }

  /** True if values or rows of the product may be missing for what was left out. */
  get isCut(): boolean {
    return this.#isCut;
  }
}
