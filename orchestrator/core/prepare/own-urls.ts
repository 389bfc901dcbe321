/** What a plan says of products with URLs of their own, and of IDs that make no URL. */
import { domainAt, hasOwnUrls, isAnyHost, type ProductUrl } from '../../../shared/domain/domains.ts';
import { compilePattern } from '../../../shared/adapters/steps/regex.ts';
import { DenyList } from '../../../shared/domain/deny-list.ts';
import { indexSections } from '../../../shared/domain/url-patterns.ts';
import { denyOf } from '../config/follow-section.ts';
import { AppError } from '../../../shared/domain/errors.ts';
import { hostGroupOf } from '../../../shared/domain/host-key.ts';
import { siteOrigins } from '../../../shared/domain/product.ts';
import { oneLine } from '../../../shared/domain/terminal-text.ts';
import type { Config } from '../config/load-config.ts';
import { type JudgeUrl, ListedUrls } from '../db/listed-urls.ts';
import type { ChunkRange } from '../../../shared/domain/sharing.ts';
import { cutByHost, cutNight } from '../plan/cut-hosts.ts';
import type { HostRecords, NightRules } from '../plan/host-sums.ts';
import type { HostShare } from '../plan/plan.ts';
import { plural } from '../plan/wording.ts';

/** The part of a ProductList that is about URLs. */
export interface ProductUrls {
  /** By ID, as they are requested; omitted where IDs make the URLs. */
  urls?: ReadonlyMap<string, string>;
  /** How many of the products each of `site.hosts` has; omitted without it. */
  hosts?: HostShare[];
  /** How many of the products each host has, the fullest first, where they may be on any; else omitted. */
  loads?: HostRecords[];
  /** How many of the products are left alone, and why; omitted: none. */
  leftAlone?: ListedUrls['leftAlone'];
  /** What the user should know of them. */
  urlNotes?: string[];
}

/** To gather the URLs of a list. */
export const listedUrlsOf = (config: Config): ListedUrls =>
  new ListedUrls(config.values.site.product_url, judgeUrlsBy(config));

/** Which records at any hosts are left alone: those that `site.follow.deny` has, and those that no section reads. */
export function judgeUrlsBy(config: Pick<Config, 'values' | 'denyLines' | 'mapping'>): JudgeUrl {
  if (!isAnyHost(config.values.site.product_url)) return () => null;
  const deny = new DenyList(denyOf(config), null);
  const sections = config.mapping.pages.map((page) => ({ value: page, patterns: page.urlPatterns }));
  const sectionOf = indexSections(sections, compilePattern);
  return (url) => (deny.hasUrl(url) ? 'denied' : sectionOf(url) === null ? 'unmapped' : null);
}

/**
 * The URLs of these products. Throws `products-query` when more of them have none to request than `run.max_failed`
 * allows. @param place what `row` counts: `row` or `line`
 */
export function productUrlsOf(
  { values: { site, run } }: Pick<Config, 'values'>,
  ids: readonly string[],
  listed: ListedUrls,
  place: 'row' | 'line' = 'row',
): ProductUrls {
  // Of the whole list, of which a night may crawl only what is due.
  const { products: unusable, of: total, named } = listed.unusable;
  const examples = named.map(({ row, id, fault }) => `${place} ${row} (${oneLine(id).slice(0, 60)}): ${fault}`);
  const which = `${examples.join('; ')}${unusable > named.length ? `; and ${unusable - named.length} more` : ''}`;
  const have = `${unusable.toLocaleString('en')} of ${plural(total, 'product')} ${unusable === 1 ? 'has' : 'have'} no URL to request`;
  if (unusable > run.max_failed * total)
    throw new AppError('products-query', `${have}, more than run.max_failed allows: ${which}`, {
      hint: 'Correct these rows, or leave them out in the query. site.hosts names the hosts that URLs may have.',
    });
  const notes = [
    ...(listed.ignoresColumn
      ? [
          'products.query yields a column url, which is ignored: site.product_url makes the URLs. site.hosts in its place takes them from that column',
        ]
      : []),
    ...(unusable > 0 ? [`${have}, and will end as failed(redirect) without a request: ${which}`] : []),
  ];
  if (listed.urls === null || !hasOwnUrls(site.product_url)) return notes.length > 0 ? { urlNotes: notes } : {};
  const { urls } = listed;
  if (isAnyHost(site.product_url)) {
    const { leftAlone } = listed;
    const left = leftAlone.denied + leftAlone.unmapped === 0 ? {} : { leftAlone };
    return { urls, loads: loadsOf(ids, urls), ...left, urlNotes: [...notes, ...sharedUrls(ids, urls)] };
  }
  const hosts = countHosts(site.product_url, ids, listed.urls);
  const idle = hosts.filter(({ products }) => products === 0).map(({ origin }) => origin);
  if (idle.length > 0) notes.push(`no product has a URL on ${idle.join(', ')}, which site.hosts names`);
  return { urls: listed.urls, hosts, urlNotes: [...notes, ...sharedUrls(ids, listed.urls)] };
}

/** How many of these products each host has, the fullest first; those without a URL to request have none. */
function loadsOf(ids: readonly string[], urls: ReadonlyMap<string, string>): HostRecords[] {
  const { hosts } = byHost(ids, urls);
  return [...hosts]
    .map(([host, own]) => ({ host, records: own.length, delayMs: 0 }))
    .sort((a, b) => b.records - a.records);
}

/** The products of each host, and those without a URL to request. */
function byHost(
  ids: readonly string[],
  urls: ReadonlyMap<string, string>,
): { hosts: Map<string, string[]>; others: string[] } {
  const hosts = new Map<string, string[]>();
  const others: string[] = [];
  for (const id of ids) {
    const url = URL.parse(urls.get(id) ?? '');
    if (url === null || !/^https?:$/.test(url.protocol)) {
      others.push(id);
      continue;
    }
    const host = hostGroupOf(url);
    const own = hosts.get(host);
    if (own === undefined) hosts.set(host, [id]);
    else own.push(id);
  }
  return { hosts, others };
}

/**
 * What a night crawls of products at any hosts: in the order of its chunks, of each host as many of the first ones as
 * its pace leaves time for. Those without a URL come last, and end without a request.
 *
 * @param size maximum requests of a chunk of whole hosts
 */
export function nightOf(
  { ids, urls, loads }: { ids: readonly string[] } & ProductUrls,
  rules: NightRules,
  { deadlineMs, size }: { deadlineMs: number; size: number },
): { ids: string[]; chunks: ChunkRange[] } {
  const { hosts, others } = byHost(ids, urls ?? new Map());
  const night = cutNight(loads ?? [], rules, { deadlineMs, size });
  const ordered = night.hosts.flatMap(({ host, products }) => hosts.get(host)?.slice(0, products) ?? []);
  const rest = cutByHost([...night.hosts, { products: others.length, gapMs: 0 }], deadlineMs, size);
  return { ids: [...ordered, ...others], chunks: others.length === 0 ? night.chunks : rest };
}

/** How many of the products each of `site.hosts` has. */
function countHosts(
  productUrl: Exclude<ProductUrl, string>,
  ids: readonly string[],
  urls: ReadonlyMap<string, string>,
): HostShare[] {
  const hosts = siteOrigins(productUrl).map((origin) => ({ origin, products: 0 }));
  for (const id of ids) {
    const url = URL.parse(urls.get(id) ?? '');
    const domain = url === null ? undefined : domainAt(productUrl, url);
    if (domain !== undefined) hosts[domain]!.products++;
  }
  return hosts;
}

/** The URLs of these products, and how many each host has; nothing where IDs make the URLs. */
export function urlsAmong(
  productUrl: ProductUrl,
  ids: readonly string[],
  urls: ReadonlyMap<string, string>,
): ProductUrls {
  if (!hasOwnUrls(productUrl)) return {};
  return isAnyHost(productUrl)
    ? { urls, loads: loadsOf(ids, urls) }
    : { urls, hosts: countHosts(productUrl, ids, urls) };
}

/** These products of a list, with their URLs. */
export function someOf(
  { urls, urlNotes }: ProductUrls,
  ids: string[],
  { values: { site } }: Pick<Config, 'values'>,
): ProductUrls & { ids: string[]; duplicates: number } {
  const own = urls === undefined ? {} : urlsAmong(site.product_url, ids, urls);
  return { ids, duplicates: 0, ...own, ...(urlNotes === undefined ? {} : { urlNotes }) };
}

/** One line when products have the URL of another one. */
function sharedUrls(ids: readonly string[], urls: ReadonlyMap<string, string>): string[] {
  const firsts = new Map<string, string>();
  let shared = 0;
  let example: string | null = null;
  for (const id of ids) {
    const url = urls.get(id);
    if (url === undefined || !url.startsWith('http')) continue;
    const first = firsts.get(url);
    if (first === undefined) {
      firsts.set(url, id);
      continue;
    }
    shared++;
    example ??= `${oneLine(first).slice(0, 60)} and ${oneLine(id).slice(0, 60)} (${url.slice(0, 200)})`;
  }
  if (example === null) return [];
  return [
    `${plural(shared, 'product')} ${shared === 1 ? 'has' : 'have'} the URL of another one, for example ${example}: it is requested for each of them`,
  ];
}
