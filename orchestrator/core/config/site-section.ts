/** The section `site` of the configuration, and the settings that the run keeps of it. */
import { z } from 'zod';
import { MAX_PAGES_AT_ONCE, URL_MARK } from '../../../shared/domain/domains.ts';
import { readOwnUrl } from '../../../shared/domain/own-url.ts';
import { DEFAULT_MAX_PAGES, pagesOf } from '../../../shared/domain/pages-per-product.ts';
import { SEGMENTS_MARK } from '../../../shared/domain/product.ts';
import { sharesHost } from '../../../shared/domain/same-site.ts';
import type { SiteSettings } from '../../../shared/wire/site-settings.ts';
import { VERSION } from '../version.ts';
import { followSection, followSettingsOf } from './follow-section.ts';
import { requestSection, requestSettingsOf } from './request-section.ts';
import { DOMAIN_HEADER_KEYS, plainProductUrl, USER_HEADER_KEYS, userHeadersOf } from './user-headers.ts';
import { checked, orNull, positiveDuration, rate, REGION, size, text } from './forms.ts';

const userAgent = () =>
  text()
    // Other characters are invalid in a header: every request would fail, on a fleet that costs money.
    .regex(/^[\x20-\x7e]+$/, 'may have letters, digits and signs of ASCII only')
    .max(500, 'is longer than 500 characters');

function findUrlFault(template: string): string | null {
  const marks = new Set(template.match(/\{[^}]*\}?/g));
  const mark = ['{id}', '{path}'].find((known) => marks.has(known)) ?? '{id}';
  if (marks.size > 1 || (marks.size === 1 && !marks.has(mark))) return `may contain no other placeholder than ${mark}`;
  const filled = template.replaceAll(mark, 'x');
  if (!URL.canParse(filled)) return 'is not a URL';
  const url = new URL(filled);
  if (url.protocol !== 'http:' && url.protocol !== 'https:') return 'must begin with http:// or https://';
  if (url.username || url.password) return 'must not contain a user or a password';
  // An ID in the host would let a row of the product table choose the site.
  if (template.split('/')[2]?.includes(mark)) return `must have ${mark} in the path or the query, not in the host`;
  if (mark === '{path}' && !/^[^?#]*\/\{path\}[^{]*$/.test(template))
    return 'must have {path} once, in the path, after a slash';
  return null;
}

/** The rows of one product are in memory, and its crawl has no end but its last page. */
const MAX_PAGES = 10_000;

/** Every instance keeps a pace of its own at each of them, and a browser's page. */
const MAX_DOMAINS = 10;

const urlTemplate = () =>
  checked(z.string(), findUrlFault).overwrite((template) => template.replace('{path}', SEGMENTS_MARK));
/** The pace would be kept twice at a host that is named twice. */
const repeatsHost = (urls: readonly string[], i: number): boolean =>
  urls.slice(0, i).some((earlier) => sharesHost(earlier, urls[i]!));
const domains = () =>
  z
    .array(
      z.strictObject({
        url: urlTemplate(),
        weight: z.number().positive().max(1_000).default(1),
        ...DOMAIN_HEADER_KEYS,
      }),
    )
    .min(1)
    .max(MAX_DOMAINS)
    .superRefine((list, context) => {
      const urls = list.map(({ url }) => url);
      for (const i of list.keys())
        if (repeatsHost(urls, i))
          context.addIssue({ code: 'custom', path: [i, 'url'], message: 'must be on a host of its own' });
    });

function findHostFault(host: string): string | null {
  const url = URL.parse(host);
  if (url === null || !/^https?:$/.test(url.protocol)) return 'must begin with http:// or https://';
  if (url.href !== `${url.origin}/`) return `must be a host alone, such as ${url.origin}: each product has its own URL`;
  return null;
}

const hosts = () =>
  z
    .array(checked(z.string(), findHostFault).overwrite((host) => URL.parse(host)?.origin ?? host))
    .min(1, 'must name at least one host')
    .max(MAX_DOMAINS)
    .superRefine((list, context) => {
      for (const i of list.keys())
        if (repeatsHost(list, i)) context.addIssue({ code: 'custom', path: [i], message: 'is named before' });
    });

const place = () =>
  z.string().regex(new RegExp(`^[A-Z]{2}$|${REGION.source}`), {
    error: 'must be an ISO country code such as JP, or a region such as ap-northeast-1',
  });

const siteKeys = z.strictObject({
  product_url: z
    .union([urlTemplate(), domains()], { error: 'must be a URL, or a list of URLs such as [{ url: "…", weight: 1 }]' })
    .describe(
      'URL of a product page; `{id}` stands for the percent-encoded product ID, and may be in `request.body` instead; `{path}` in its place stands for an ID with slashes: each step of it is encoded. Of a shop with several domains, a list with their weights: `[{ url: "https://shop.example/{id}", weight: 2 }, { url: "https://shop.example.org/{id}" }]`, at most 10, each on a host of its own; each may have `headers`, `cookies` and `language` of its own. See [domains.md](domains.md). Required, unless `hosts` takes its place.',
    )
    .default([]),
  hosts: orNull(
    z.union([z.literal('any'), hosts()], { error: 'must be a list such as ["https://shop.example"], or any' }),
  ).describe(
    'In place of `product_url`, where each product has its own URL: the hosts of the shop, such as `["https://shop.example"]`, at most 10. `products.query` then yields a column `url` beside `id`. See [urls.md](urls.md). `any`: records at any hosts, each in a pace of its own. See [hosts.md](hosts.md).',
  ),
  host_key: z
    .enum(['domain', 'host'])
    .default('domain')
    .describe(
      'With `hosts: any`, what has one pace, one owner and one rest: `domain`: all names of a registrable domain, such as those below `blogspot.com`; `host`: each name by itself, `www.` and the bare name together. See [hosts.md](hosts.md#a-platform-with-many-names).',
    ),
  request: orNull(requestSection()).describe(
    'How products are requested, where a GET does not give them: `{ method: POST, reads_only: true, body: { query: "query($id: ID!) { product(id: $id) { title } }", variables: { id: "{id}" } } }`. Plain HTTP only. See [json-api.md](json-api.md).',
  ),
  interval: positiveDuration()
    .prefault('10s')
    .describe('Start to start of two requests from one address to one domain.'),
  max_rate: orNull(rate()).describe(
    'Ceiling for the whole fleet over all domains, in requests per second; none by default. Takes the place of the limit that remains when robots.txt asked the last run for a slower pace.',
  ),
  render: z
    .enum(['http', 'browser', 'auto'])
    .default('http')
    .describe(
      'How pages are fetched: plain HTTP, a browser (an instance with 2 GB), or HTTP first and a browser for the pages whose required fields only scripts fill in.',
    ),
  conditional: z
    .boolean()
    .default(false)
    .describe(
      'Ask for a page only if it has changed since its row was read, where the site gives an ETag or Last-Modified; the row of an unchanged page (304) stays as it is. Plain HTTP only. See [recrawl.md](recrawl.md#pages-that-have-not-changed-siteconditional).',
    ),
  pages_at_once: z
    .int()
    .min(1)
    .max(MAX_PAGES_AT_ONCE)
    .default(1)
    .describe(
      'Pages that an instance may have under way at the same time, each at another host of `product_url` or `hosts`: never two at one. Worth having where pages take longer than the interval shared out over the domains. Plain HTTP only. See [domains.md](domains.md#several-pages-at-a-time).',
    ),
  pages_per_product: z
    .union(
      [
        z.number().min(1),
        checked(z.strictObject({ mean: z.number().min(1), max: z.int().min(1).max(MAX_PAGES) }), ({ mean, max }) =>
          mean > max ? 'must have a max that is not below mean' : null,
        ),
      ],
      { error: 'must be a number of pages, or both of them: { mean: 36, max: 200 }' },
    )
    .default(1)
    .describe(
      "Requests one product takes on average, where the mapping's url_parsers find further pages, and at most: `{ mean: 36, max: 200 }`. The plan counts with `mean`; pages beyond `max` are left out ([follow.md](follow.md)). A number is the mean, and the limit then twice it, or 20 if that is more.",
    ),
  user_agent: orNull(userAgent()).describe(
    'Who you are, with a link to a page that explains what the crawler does: `examplebot/1.0 (+https://example.com/bot)`. A run on AWS is refused without one.',
  ),
  countries: orNull(z.array(place()).min(1).max(50)).describe(
    'Where instances may crawl from, as ISO country codes or AWS regions: `[JP]`. A run on AWS with a region elsewhere is refused. By default there is no limit.',
  ),
  robots: z
    .enum(['respect', 'ignore'])
    .default('respect')
    .describe(
      "robots.txt of each host in `product_url` or `hosts`, read by the main server for the whole fleet (RFC 9309): its rules decide which pages are requested, and a Crawl-delay longer than `interval` wins. Redirects and links to other hosts or ports of the site (`www.`, http and https make no difference) are not followed: their rules were not read. `follow.hosts` names hosts whose rules are read, too. `ignore`: only with the site's permission.",
    ),
  check: z
    .enum(['on', 'off'])
    .default('on')
    .describe(
      'Whether the site must answer this machine before anything is launched: `run` waits for its robots.txt up to `run.site_wait` and then ends with 17. A 401, 403 or 451 counts as an answer. `off`: if this machine cannot reach the site but instances can.',
    ),
  timeout: positiveDuration()
    .refine((ms) => ms <= 3_600_000, { error: 'must be at most 1h' })
    .prefault('30s')
    .describe('Longest time for one page, from connect to last byte.'),
  max_page_bytes: size().prefault('5MB').describe('Largest page, decoded; a longer one fails as `too-large`.'),
  on_ban: z
    .enum(['cool-down', 'replace', 'stop'])
    .default('cool-down')
    .describe(
      'What happens to a banned address: it rests for `ban.cool_down` while others crawl its products, another instance replaces it, or the run ends.',
    ),
  ban: z
    .strictObject({
      statuses: z.array(z.int().min(100).max(999)).max(100).default([]).describe('Statuses that mean a ban.'),
      redirects: z.array(text()).max(100).default([]).describe("Parts of a redirect's target URL that mean a ban."),
      patterns: z
        .array(text().max(1_000))
        .max(100)
        .default([])
        .describe('RE2 patterns that mean a ban when the beginning of a page matches one, ignoring case.'),
      cool_down: positiveDuration()
        .prefault('30m')
        .describe('How long a banned address is left alone: twice as long with each further ban of it, up to a day.'),
    })
    .prefault({})
    .describe(
      'Rules of this site in addition to the built-in ones, and the cool-down, which is 30m unless it is set: `{ statuses: [403], redirects: ["/verify"], patterns: ["captcha"], cool_down: 30m }`.',
    ),
  follow: followSection(),
  same_page: z
    .enum(['fail', 'store'])
    .default('fail')
    .describe(
      'What happens when several products end on one page that is not theirs, such as a consent page or a category: `fail` them before anything is published, from 3 products on and more than 1 % of the run (in a run of less than 1,000: from 10, or from half of it if that is fewer); `store` them all the same. See [bans.md](bans.md#one-page-for-many-products).',
    ),
  canaries: z
    .array(
      z.strictObject({
        id: text(),
        fields: z.record(z.string(), z.union([z.string(), z.number(), z.boolean()])),
      }),
    )
    .max(20, 'must be at most 20: they travel to every instance')
    .default([])
    .describe(
      'Known products with known values, fetched again when it is unclear whether an address is banned: `[{ id: P1, fields: { title: "Teapot" } }]`. With several domains they are fetched at the one in doubt, so each must have them. With `hosts` the `id` is the URL of the product.',
    ),
  ...USER_HEADER_KEYS,
  keep_cookies: z
    .boolean()
    .default(true)
    .describe(
      "Send the site's cookies back to it, as a browser does: one jar per address and domain, in memory, empty at each start and after a ban. `false`: none are sent. robots.txt and sitemaps keep them only through one chain of redirects, whatever is set.",
    ),
  allow_private: z.boolean().default(false).describe('Allow names that resolve to private addresses.'),
  mapping: z
    .union([text(), z.record(z.string(), z.unknown())], { error: 'must be the path of a mapping file or a mapping' })
    .describe('Fields to take from a page: the path of a YAML file (relative to this one), or in place.'),
});

/** Beside faults of other keys, so that all are reported at once. */
const isRead = ({ value }: { value: unknown }): boolean => typeof value === 'object' && value !== null;
const isMissing = (urls: unknown): boolean => Array.isArray(urls) && urls.length === 0;

/** The section. `product_url` has the templates of `hosts` where those take its place: the rest knows one form. */
export const siteSection = siteKeys
  .refine(({ product_url: urls, hosts: named }) => !isMissing(urls) || named !== null, {
    path: ['product_url'],
    error: 'missing; or site.hosts, where each product has its own URL',
    when: isRead,
  })
  .refine(({ product_url: urls, hosts: named }) => isMissing(urls) || (named ?? null) === null, {
    path: ['hosts'],
    error: 'takes the place of site.product_url: leave one of them out',
    when: isRead,
  })
  .refine(({ host_key: key, hosts: named }) => key === 'domain' || named === 'any', {
    path: ['host_key'],
    error: 'needs hosts: any: other runs have one site',
    when: isRead,
  })
  .refine(({ pages_at_once: pages, render }) => pages === 1 || render === 'http', {
    path: ['pages_at_once'],
    error: 'needs render: http: a browser has one page at a time',
    when: isRead,
  })
  .overwrite((site) => {
    if (site.hosts === null) return site;
    if (site.hosts === 'any') return { ...site, product_url: [] };
    const urls = site.hosts.map((host) => ({ url: host + URL_MARK, weight: 1 }));
    const canaries = site.canaries.map(({ id, fields }) => ({ id: readOwnUrl(urls, id).url, fields }));
    return { ...site, product_url: urls, canaries };
  });

type SiteSection = z.output<typeof siteSection>;

/** What the run keeps of the section and sends to its instances; the other keys matter for the plan only. */
export const siteSettingsOf = (site: SiteSection): SiteSettings => ({
  ...limitOf(pagesOf(site.pages_per_product).max),
  ...(site.pages_at_once === 1 ? {} : { pagesAtOnce: site.pages_at_once }),
  productUrl: plainProductUrl(site.product_url),
  ...requestSettingsOf(site.request),
  ...(site.host_key === 'host' ? { hostKey: 'host' } : {}),
  intervalMs: site.interval,
  maxRatePerSecond: site.max_rate,
  userAgent: site.user_agent ?? `crawlfleet/${VERSION}`,
  timeoutMs: site.timeout,
  maxPageBytes: site.max_page_bytes,
  allowPrivate: site.allow_private,
  ...(site.keep_cookies ? {} : { keepCookies: false }),
  ...userHeadersOf(site),
  render: site.render,
  robots: site.robots,
  ...(site.conditional ? { conditional: true } : {}),
  onBan: site.on_ban,
  ban: {
    statuses: site.ban.statuses,
    redirects: site.ban.redirects,
    patterns: site.ban.patterns,
    coolDownMs: site.ban.cool_down,
  },
  ...followSettingsOf(site.follow),
  ...(site.same_page === 'store' ? { samePage: 'store' } : {}),
  canaries: site.canaries,
});

const limitOf = (maxPages: number): Pick<SiteSettings, 'maxPages'> =>
  maxPages === DEFAULT_MAX_PAGES ? {} : { maxPages };

/** The settings of a site about which nothing is configured. */
export const defaultSite = (productUrl: string): SiteSettings =>
  siteSettingsOf(siteSection.parse({ product_url: productUrl, mapping: {} }));
