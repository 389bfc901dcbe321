/** What a plan says of products with URLs of their own, and of IDs that make no URL. */
import { domainAt, hasOwnUrls, isAnyHost, type ProductUrl } from '../../../shared/domain/domains.ts';
import { compilePattern } from '../../../shared/adapters/steps/regex.ts';
import { DenyList } from '../../../shared/domain/deny-list.ts';
import { indexSections } from '../../../shared/domain/url-patterns.ts';
import { denyOf } from '../config/follow-section.ts';
import { AppError } from '../../../shared/domain/errors.ts';
import { hostGroupOf, type HostKey } from '../../../shared/domain/host-key.ts';
import { siteOrigins } from '../../../shared/domain/product.ts';
import { oneLine } from '../../../shared/domain/terminal-text.ts';
import type { Config } from '../config/load-config.ts';
import { type JudgeUrl, ListedUrls } from '../db/listed-urls.ts';
import type { IdList, UrlsById } from '../model/stores.ts';
import type { ChunkRange } from '../../../shared/domain/sharing.ts';
import { cutByHost, cutNight } from '../plan/cut-hosts.ts';
import type { HostRecords, NightRules } from '../plan/host-sums.ts';
import type { HostShare } from '../plan/plan.ts';
import { plural } from '../plan/wording.ts';

/** The part of a ProductList that is about URLs. */
export interface ProductUrls {
  /** By ID, as they are requested; omitted where IDs make the URLs. */
  urls?: UrlsById;
  /** How many of the products each of `site.hosts` has; omitted without it. */
  hosts?: HostShare[];
  /** How many of the products each host has, the fullest first, where they may be on any; else omitted. */
  loads?: HostRecords[];
  /** With `loads`, by the place in the list: the number of its host there; -1: it has no URL to request. */
  hostAt?: Int32Array;
  /** How many of the products each name has of a host with several; omitted where each is a host itself. */
  names?: NamesOfHosts;
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
  ids: IdList,
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
    const found = hostsOf(ids, urls, site.host_key);
    return { urls, ...found, ...left, urlNotes: [...notes, ...sharedUrls(ids, byHost(found), urls)] };
  }
  const hosts = countHosts(site.product_url, ids, urls);
  const idle = hosts.filter(({ products }) => products === 0).map(({ origin }) => origin);
  if (idle.length > 0) notes.push(`no product has a URL on ${idle.join(', ')}, which site.hosts names`);
  return { urls, hosts, urlNotes: [...notes, ...sharedUrls(ids, [Array(ids.length).keys()], urls)] };
}

/** By host: how many products each of its names has; those with one name are not there. */
type NamesOfHosts = ReadonlyMap<string, readonly number[]>;

type ListedHosts = Required<Pick<ProductUrls, 'loads' | 'hostAt'>> & Pick<ProductUrls, 'names'>;

/** Of a URL as it is requested. To parse a million takes seconds, and memory beside the list. */
const HOSTNAME = /^https?:\/\/(\[[^\]]+\]|[^/:]+)/;

/** Which hosts the products of a list are at. */
function hostsOf(ids: IdList, urls: UrlsById, key: HostKey | undefined): ListedHosts {
  const hosts: HostRecords[] = [];
  const hostAt = new Int32Array(ids.length).fill(-1);
  const numbers = new Map<string, number>();
  const numberOf = (host: string): number => {
    const number = numbers.get(host) ?? hosts.push({ host, records: 0, delayMs: 0 }) - 1;
    numbers.set(host, number);
    return number;
  };
  const byName = new Map<string, { host: number; records: number }>();
  let place = 0;
  for (const id of ids) {
    const hostname = HOSTNAME.exec(urls.get(id) ?? '')?.[1];
    if (hostname !== undefined) {
      const name = byName.get(hostname) ?? { host: numberOf(hostGroupOf({ hostname }, key)), records: 0 };
      byName.set(hostname, name);
      name.records++;
      hostAt[place] = name.host;
      hosts[name.host]!.records++;
    }
    place++;
  }
  const names: NamesOfHosts = key === 'host' ? new Map() : namesOf(hosts, byName);
  const fullestFirst = Array.from(hosts.keys()).sort((a, b) => hosts[b]!.records - hosts[a]!.records);
  const numberNow = new Int32Array(hosts.length);
  fullestFirst.forEach((before, now) => (numberNow[before] = now));
  // In place: a copy would be 4 MB for each million.
  hostAt.forEach((before, index) => (hostAt[index] = numberNow[before] ?? -1));
  return {
    loads: fullestFirst.map((number) => hosts[number]!),
    hostAt,
    ...(names.size > 0 && { names }),
  };
}

function namesOf(
  hosts: readonly HostRecords[],
  byName: ReadonlyMap<string, { host: number; records: number }>,
): NamesOfHosts {
  const found = new Map<string, Map<string, number>>();
  for (const [hostname, { host: number, records }] of byName) {
    const { host, records: all } = hosts[number]!;
    if (records === all) continue;
    const names = found.get(host) ?? new Map<string, number>();
    const name = hostGroupOf({ hostname }, 'host');
    found.set(host, names.set(name, (names.get(name) ?? 0) + records));
  }
  return new Map([...found].flatMap(([host, names]) => (names.size > 1 ? [[host, [...names.values()]]] : [])));
}

/** The places of the products of each host. */
function* byHost(found: ListedHosts): Generator<Uint32Array> {
  const { order } = placesOf(
    found,
    found.loads.map(({ host, records }) => ({ host, products: records })),
  );
  let from = 0;
  for (const { records } of found.loads) yield order.subarray(from, (from += records));
}

/**
 * Places in the list: the first `products` of each host, host by host, then the products without a URL to request.
 */
function placesOf(
  { loads, hostAt }: ListedHosts,
  wanted: readonly { host: string; products: number }[],
): { order: Uint32Array; others: number } {
  const found = wanted.reduce((sum, { products }) => sum + products, 0);
  const others = hostAt.reduce((sum, number) => sum + (number < 0 ? 1 : 0), 0);
  const order = new Uint32Array(found + others);
  const numbers = new Map(loads.map(({ host }, number) => [host, number]));
  const next = new Uint32Array(loads.length);
  const end = new Uint32Array(loads.length);
  let at = 0;
  for (const { host, products } of wanted) {
    const number = numbers.get(host)!;
    next[number] = at;
    at += products;
    end[number] = at;
  }
  hostAt.forEach((number, place) => {
    if (number < 0) order[at++] = place;
    else if (next[number]! < end[number]!) order[next[number]!++] = place;
  });
  return { order, others };
}

/**
 * What a night crawls of products at any hosts: in the order of its chunks, of each host as many of the first ones as
 * its pace leaves time for. Those without a URL come last, and end without a request.
 *
 * @param size maximum requests of a chunk of whole hosts
 */
export function nightOf(
  { ids, loads = [], hostAt = new Int32Array(0) }: { ids: IdList } & ProductUrls,
  rules: NightRules,
  { deadlineMs, size }: { deadlineMs: number; size: number },
): { ids: IdList; chunks: ChunkRange[] } {
  const night = cutNight(loads, rules, { deadlineMs, size });
  const { order, others } = placesOf({ loads, hostAt }, night.hosts);
  const rest = cutByHost([...night.hosts, { products: others, gapMs: 0 }], deadlineMs, size);
  return { ids: new OrderedIds(ids, order), chunks: others === 0 ? night.chunks : rest };
}

/** Some IDs of a list in another order, without a copy of them. */
class OrderedIds implements IdList {
  readonly #ids: IdList;
  readonly #order: Uint32Array;

  constructor(ids: IdList, order: Uint32Array) {
    this.#ids = ids;
    this.#order = order;
  }

  get length(): number {
    return this.#order.length;
  }

  at(index: number): string | undefined {
    return this.#ids.at(this.#order[index] ?? this.#ids.length);
  }

  slice(from?: number, to?: number): string[] {
    return Array.from(this.#order.subarray(from, to), (place) => this.#ids.at(place)!);
  }

  *[Symbol.iterator](): Generator<string> {
    for (const place of this.#order) yield this.#ids.at(place)!;
  }
}

/** How many of the products each of `site.hosts` has. */
function countHosts(productUrl: Exclude<ProductUrl, string>, ids: IdList, urls: UrlsById): HostShare[] {
  const hosts = siteOrigins(productUrl).map((origin) => ({ origin, products: 0 }));
  for (const id of ids) {
    const url = URL.parse(urls.get(id) ?? '');
    const domain = url === null ? undefined : domainAt(productUrl, url);
    if (domain !== undefined) hosts[domain]!.products++;
  }
  return hosts;
}

/** The URLs of these products, and how many each host has; nothing where IDs make the URLs. */
export function urlsAmong(productUrl: ProductUrl, ids: IdList, urls: UrlsById, hostKey?: HostKey): ProductUrls {
  if (!hasOwnUrls(productUrl)) return {};
  return isAnyHost(productUrl)
    ? { urls, ...hostsOf(ids, urls, hostKey) }
    : { urls, hosts: countHosts(productUrl, ids, urls) };
}

/** These products of a list, with their URLs. */
export function someOf(
  { urls, urlNotes }: ProductUrls,
  ids: string[],
  { values: { site } }: Pick<Config, 'values'>,
): ProductUrls & { ids: string[]; duplicates: number } {
  const own = urls === undefined ? {} : urlsAmong(site.product_url, ids, urls, site.host_key);
  return { ids, duplicates: 0, ...own, ...(urlNotes === undefined ? {} : { urlNotes }) };
}

/**
 * One line when products have the URL of another one.
 *
 * @param groups places in the list: no product of one has the URL of one of another
 */
function sharedUrls(ids: IdList, groups: Iterable<Iterable<number>>, urls: UrlsById): string[] {
  let shared = 0;
  let example: string | null = null;
  for (const group of groups) {
    const firsts = new Map<string, number>();
    for (const place of group) {
      const url = urls.get(ids.at(place) ?? '');
      if (url === undefined || !url.startsWith('http')) continue;
      const first = firsts.get(url);
      if (first === undefined) {
        firsts.set(url, place);
        continue;
      }
      shared++;
      example ??= `${shortId(ids, first)} and ${shortId(ids, place)} (${url.slice(0, 200)})`;
    }
  }
  if (example === null) return [];
  return [
    `${plural(shared, 'product')} ${shared === 1 ? 'has' : 'have'} the URL of another one, for example ${example}: it is requested for each of them`,
  ];
}

const shortId = (ids: IdList, place: number): string => oneLine(ids.at(place) ?? '').slice(0, 60);
