/** Products that may have no URL to request: with `site.hosts` a row's URL decides, with `{path}` its ID. */
import { domainAt, domainOf, hasOwnUrls, isAnyHost, type ProductUrl, templateAt, templatesOf } from './domains.ts';
import { fillTemplate, SEGMENTS_MARK } from './product.ts';
import { requestIdentity } from './request-identity.ts';

/** The longest URL, as it is requested. */
export const MAX_URL_BYTES = 2_000;

/** What stands for the URL of a row that has none: it is a URL, and no request can be made to it. */
export const NO_URL = 'about:blank';

/**
 * Why a record at any hosts is left alone, by the mark that its URL then begins with: it is no URL to request any more,
 * of no host, and users still see it.
 */
const LEFT_ALONE = {
  denied: 'site.follow.deny has its URL',
  unmapped: 'no section of the mapping reads its URL',
} as const;
export type LeftAlone = keyof typeof LEFT_ALONE;

/** The URL of a record that is left alone. */
export const leaveAlone = (why: LeftAlone, url: string): string => `${why}:${url}`.slice(0, MAX_URL_BYTES);

const whyLeftAlone = (url: string): string | null =>
  LEFT_ALONE[/^(denied|unmapped):/.exec(url)?.[1] as LeftAlone] ?? null;

/** What is said of a product that fails without a request. */
export const notRequested = (fault: string): string => `not requested: ${fault}`;

const IS_DENIED = ' is denied (orchestrator hosts deny)';

/** What is said of the records of a host that an operator has denied. */
export const deniedHost = (host: string): string => host + IS_DENIED;

/** What is said of records that are left alone, whole; and how it ends for those of denied hosts. */
export const LEFT_ALONE_DETAILS = { whole: Object.values(LEFT_ALONE).map(notRequested), end: IS_DENIED };

/** The URL as it is requested, and why it is not requested, or null. */
interface OwnUrl {
  url: string;
  fault: string | null;
}

/**
 * The URL of a row of products.query. A URL with a fault is kept only where it is harmless: on another host, for the
 * user to see.
 */
export function readOwnUrl(productUrl: Exclude<ProductUrl, string>, given: string | null): OwnUrl {
  if (given === null || given.trim() === '') return { url: NO_URL, fault: 'it has no URL' };
  const left = whyLeftAlone(given);
  if (left !== null) return { url: given, fault: left };
  const url = URL.parse(given);
  if (url === null || !/^https?:$/.test(url.protocol)) return { url: NO_URL, fault: 'its URL is no http or https URL' };
  if (url.username !== '' || url.password !== '')
    return { url: NO_URL, fault: 'its URL contains a user or a password' };
  const identity = requestIdentity({ url: url.href });
  // A URL that was parsed has ASCII characters only.
  if (identity.length > MAX_URL_BYTES) return { url: NO_URL, fault: `its URL is longer than ${MAX_URL_BYTES} bytes` };
  const isElsewhere = !isAnyHost(productUrl) && domainAt(productUrl, url) === undefined;
  return { url: identity, fault: isElsewhere ? `${url.host} is none of site.hosts` : null };
}

/** True for templates by which a product may have no URL to request: others need no look at each product. */
export const needsUrlCheck = (productUrl: ProductUrl): boolean =>
  hasOwnUrls(productUrl) || templatesOf(productUrl).some((template) => template.includes(SEGMENTS_MARK));

/**
 * Why a product is not requested, or null. With `{path}` the URL, once parsed, must have the origin and the beginning
 * of its template, and a `.` or `..` in the ID would be taken for a step up.
 *
 * @param id as instances know it: with `site.hosts` its URL
 */
export function findUrlFault(productUrl: ProductUrl, id: string): string | null {
  if (hasOwnUrls(productUrl)) return readOwnUrl(productUrl, id === NO_URL ? null : id).fault;
  const template = templateAt(productUrl, domainOf(productUrl, id));
  if (!template.includes(SEGMENTS_MARK)) return null;
  if (id.split('/').some((step) => step === '.' || step === '..')) return 'its ID has a dot segment';
  const [beginning = ''] = template.split(SEGMENTS_MARK);
  const url = URL.parse(fillTemplate(template, id));
  return url?.href.startsWith(new URL(beginning).href) === true ? null : 'its ID leads out of site.product_url';
}
