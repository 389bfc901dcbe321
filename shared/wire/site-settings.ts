/**
 * The settings of a site, in one form from the configuration to the instance: they are stored in the run's row and sent
 * to every instance. The section `site` of the configuration (orchestrator/core/config/site-section.ts) gives them.
 *
 * A row or an object of an earlier version lacks keys that were added later: such a key is optional, and omitted where
 * it has its default.
 */
import { z } from 'zod';
import { MAX_PAGES_AT_ONCE, type ProductUrl } from '../domain/domains.ts';
import { requestSchema } from './mapping-schema.ts';

const productUrlSchema: z.ZodType<ProductUrl> = z.union([
  z.string(),
  z.array(z.strictObject({ url: z.string(), weight: z.number().positive() })).readonly(),
]);

const followSchema = z.strictObject({
  /** Origins of further hosts that links may lead to; omitted: none. */
  hosts: z.array(z.string()).exactOptional(),
  /** Maximum links from a product's page to a further one; omitted: any. */
  depth: z.int().min(0).exactOptional(),
  /** RE2 patterns: the path of a further page matches one. Omitted: any path. */
  allow: z.array(z.string()).exactOptional(),
  /** Links of pages that say nofollow do not count; omitted: they do. */
  nofollow: z.literal('obey').exactOptional(),
});

/** A value as it is sent; or the text with variables that stands for it, where it is a secret (wire/secrets.ts). */
const sentValueSchema = z.union([z.string(), z.strictObject({ secret: z.string() })]);

const userHeadersSchema = z.strictObject({
  /** Scheme, host and port: requests to any other authority do not get them. */
  origin: z.string(),
  /** By name, in lower case. */
  headers: z.record(z.string(), sentValueSchema),
  /** By name. */
  cookies: z.record(z.string(), sentValueSchema),
});
/** What the user has sent with each request for a page at one authority. */
export type UserHeadersOf = z.infer<typeof userHeadersSchema>;

export const siteSettingsSchema = z.strictObject({
  productUrl: productUrlSchema,
  /** How products are requested; omitted: by GET. */
  request: requestSchema.exactOptional(),
  intervalMs: z.number().positive(),
  /** The rate ceiling of the whole fleet; null for no limit. */
  maxRatePerSecond: z.number().positive().nullable(),
  userAgent: z.string().min(1),
  /** The time limit from the first attempt to connect to the last byte of a page. */
  timeoutMs: z.number().positive(),
  /** The largest page, decoded. */
  maxPageBytes: z.number().positive(),
  allowPrivate: z.boolean(),
  /** False: no cookies are kept. Omitted: they are. */
  keepCookies: z.literal(false).exactOptional(),
  /** Headers and cookies of the user, by authority; omitted: none. */
  userHeaders: z.array(userHeadersSchema).exactOptional(),
  render: z.enum(['http', 'browser', 'auto']),
  robots: z.enum(['respect', 'ignore']),
  /** Report the validators of each page, for the conditional requests of the next run. */
  conditional: z.literal(true).exactOptional(),
  /** What the fleet does about a banned address. */
  onBan: z.enum(['cool-down', 'replace', 'stop']),
  ban: z.strictObject({
    statuses: z.array(z.int()),
    redirects: z.array(z.string().min(1)),
    patterns: z.array(z.string().min(1)),
    coolDownMs: z.number().positive(),
  }),
  /** Domains that banned an address lately: each address begins there as after a ban; omitted: none. */
  bannedLately: z.array(z.int().nonnegative()).exactOptional(),
  /** What is followed of what pages link to; omitted: every further page on the site. */
  follow: followSchema.exactOptional(),
  /** Of many hosts: each name has a pace of its own; omitted: all names of a registrable domain share one. */
  hostKey: z.literal('host').exactOptional(),
  /** Maximum pages of one instance that are under way at the same time, each at another domain; omitted: 1. */
  pagesAtOnce: z.int().min(2).max(MAX_PAGES_AT_ONCE).exactOptional(),
  /** Maximum pages of one product, including its own; omitted: DEFAULT_MAX_PAGES. */
  maxPages: z.int().positive().exactOptional(),
  /** Several products that end on one page are stored; omitted: they fail. */
  samePage: z.literal('store').exactOptional(),
  canaries: z.array(
    z.strictObject({
      id: z.string().min(1),
      fields: z.record(z.string(), z.union([z.string(), z.number(), z.boolean()])),
    }),
  ),
  /** Maximum requests of one instance; omitted in runs that are no series of a probe. */
  maxRequests: z.int().positive().exactOptional(),
});
export type SiteSettings = z.infer<typeof siteSettingsSchema>;

/** The texts with variables that stand for secrets, each once. */
export const secretsIn = ({ userHeaders = [] }: Pick<SiteSettings, 'userHeaders'>): string[] => [
  ...new Set(
    userHeaders
      .flatMap(({ headers, cookies }) => [...Object.values(headers), ...Object.values(cookies)])
      .flatMap((value) => (typeof value === 'string' ? [] : [value.secret])),
  ),
];
