/**
 * The domains at which one shop's products are read: `site.product_url` as a list of URLs by weight, or `site.hosts`. A
 * product keeps its domain through a run, because only its ID, or its own URL, and the run's settings decide. An
 * address keeps the interval at each domain.
 */
import { policyAt, type RobotsPolicy } from './robots-matcher.ts';
import { hostKeyOf } from './same-site.ts';

/** The template of a product's URL, or several by weight, each on a host of its own. */
export type ProductUrl = string | readonly { readonly url: string; readonly weight: number }[];

/** Products with URLs of their own at any hosts: each host has a pace of its own, and there is no domain to list. */
export const ANY_HOST: Exclude<ProductUrl, string> = [];

export const isAnyHost = (productUrl: ProductUrl): boolean => productUrl.length === 0;

/** The templates in their order: the place in it is what the code calls a domain. */
export const templatesOf = (productUrl: ProductUrl): readonly string[] =>
  typeof productUrl === 'string' ? [productUrl] : productUrl.map(({ url }) => url);

/** The template of a domain. Throws for a domain that the site does not have. */
export function templateAt(productUrl: ProductUrl, domain: number): string {
  if (isAnyHost(productUrl)) return URL_MARK;
  const template = templatesOf(productUrl)[domain];
  if (template === undefined) throw new RangeError(`the site has no domain ${domain}`);
  return template;
}

/** Maximum pages of one instance that are under way at the same time, each at another domain. */
export const MAX_PAGES_AT_ONCE = 64;

/** Ends the template of each of `site.hosts`, whose products have URLs of their own; its weight counts them. */
export const URL_MARK = '/{url}';

/** True when products are requested by URLs of their own. */
export const hasOwnUrls = (productUrl: ProductUrl): productUrl is Exclude<ProductUrl, string> =>
  typeof productUrl !== 'string' && (productUrl[0] === undefined || productUrl[0].url.endsWith(URL_MARK));

/** The domains by host and port: a list of products is compared with the same few hosts. */
const DOMAINS = new WeakMap<object, ReadonlyMap<string, number>>();

/** The place in `site.hosts` of the host that has this URL; undefined when none has it. */
export function domainAt(productUrl: Exclude<ProductUrl, string>, url: URL): number | undefined {
  let domains = DOMAINS.get(productUrl);
  if (domains === undefined) {
    domains = new Map(productUrl.map(({ url: template }, domain) => [hostKeyOf(new URL(template)), domain]));
    DOMAINS.set(productUrl, domains);
  }
  return domains.get(hostKeyOf(url));
}

const weightsOf = (productUrl: ProductUrl): readonly number[] =>
  typeof productUrl === 'string' ? [1] : productUrl.map(({ weight }) => weight);

const sumOf = (numbers: readonly number[]): number => numbers.reduce((sum, number) => sum + number, 0);

/** The domain at which this product is read. Of `site.hosts` the one that has its URL, which is then its `id`. */
export function domainOf(productUrl: ProductUrl, id: string): number {
  const weights = weightsOf(productUrl);
  if (weights.length <= 1) return 0;
  if (hasOwnUrls(productUrl)) {
    const url = URL.parse(id);
    return (url && domainAt(productUrl, url)) ?? 0;
  }
  let left = (hashOf(id) / 2 ** 32) * sumOf(weights);
  const domain = weights.findIndex((weight) => (left -= weight) < 0);
  // Rounding may leave a rest behind the last weight.
  return domain === -1 ? weights.length - 1 : domain;
}

/** 32 bits: FNV-1a over UTF-16, then the finalizer of MurmurHash3, so that also the last characters reach all bits. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}

/** What the pace at one domain depends on. */
export interface DomainPace {
  /** The domain's share of all products; the shares of all domains add up to 1. */
  share: number;
  /** Its Crawl-delay; 0 without one. */
  delayMs: number;
}

export const ONE_DOMAIN: readonly DomainPace[] = [{ share: 1, delayMs: 0 }];

export function domainPaces(productUrl: ProductUrl, robots: RobotsPolicy | null): DomainPace[] {
  const weights = weightsOf(productUrl);
  const total = sumOf(weights);
  return weights.map((weight, domain) => ({
    share: weight / total,
    delayMs: policyAt(robots, domain)?.crawlDelayMs ?? 0,
  }));
}

/** The domain that an address is done with last, as each has its share of the products; without domains one of none. */
export function busiestDomain(domains: readonly DomainPace[], intervalMs: number): DomainPace {
  const timeOf = ({ share, delayMs }: DomainPace): number => share * Math.max(intervalMs, delayMs);
  const none = { share: 0, delayMs: 0 };
  return domains.reduce((busiest, domain) => (timeOf(domain) > timeOf(busiest) ? domain : busiest), domains[0] ?? none);
}

/**
 * Mean time from one request of an address to its next, over all domains: the busiest one decides.
 * @param spacingOf time between two requests at one domain with this interval
 */
export function meanSpacingMs(
  domains: readonly DomainPace[],
  intervalMs: number,
  spacingOf: (intervalMs: number) => number,
): number {
  const { share, delayMs } = busiestDomain(domains, intervalMs);
  return share * spacingOf(Math.max(intervalMs, delayMs));
}

/**
 * The part of a page's time that an address spends on it before it can send the next request, over all domains: all of
 * it where it has one page at a time; else its part of the places, or of the time of the domain with most products,
 * where pages come one after the other.
 */
export function pageShare(domains: readonly Pick<DomainPace, 'share'>[], pagesAtOnce: number): number {
  return Math.max(1 / pagesAtOnce, ...domains.map(({ share }) => share));
}
