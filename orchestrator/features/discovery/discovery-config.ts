/** The configuration of `orchestrator discover`: a run whose products are paths of the site. */
import type { Mapping } from '../../../shared/domain/mapping.ts';
import { domainOf, hasOwnUrls, templateAt } from '../../../shared/domain/domains.ts';
import { asksByPost } from '../../../shared/adapters/requests/page-requests.ts';
import { PATH_MARK, productUrl } from '../../../shared/domain/product.ts';
import { AppError } from '../../../shared/domain/errors.ts';
import { denyLinesOf, type FollowSection } from '../../core/config/follow-section.ts';
import type { Config } from '../../core/config/load-config.ts';
import { requestSettingsOf } from '../../core/config/request-section.ts';
import { sentAt } from '../../core/config/user-headers.ts';
import { DISCOVER_SECTION } from './section.ts';

type Page = Mapping['pages'][number];

/** `site.follow.depth` of a discovery: the lists of a category, and their products. */
const DEFAULT_DEPTH = 2;

/** Every link of a page, where the mapping names none; under `nofollow: obey` without those marked nofollow. */
const allLinks = ({ nofollow }: Pick<FollowSection, 'nofollow'>): Page['urlParsers'] => {
  const selector = nofollow === 'obey' ? 'a:not([rel~="nofollow" i])' : 'a';
  return [
    {
      description: 'links',
      steps: [{ type: 'css', selector, attribute: 'href' }, { type: 'trim' }, { type: 'all' }],
    },
  ];
};

/** The parser that gives every link that it selects; that of an ordinary product gives the next page. */
const allOf = (parser: Page['urlParsers'][number]): Page['urlParsers'][number] =>
  parser.steps.some(({ type }) => ['first', 'all', 'join', 'split'].includes(type))
    ? parser
    : { ...parser, steps: [...parser.steps, { type: 'all' }] };

/** The configuration of a discovery that has begun. */
export interface DiscoveryConfig extends Config {
  discover: NonNullable<ReturnType<typeof DISCOVER_SECTION.of>>;
  discovery: NonNullable<Config['discovery']>;
}

/** What `discoveryConfig` has made. Throws for another configuration. */
export function asDiscovery(config: Config): DiscoveryConfig {
  const { discovery } = config;
  const discover = DISCOVER_SECTION.of(config);
  if (discover === null || discovery === undefined)
    throw new AppError('internal', `${config.file} is not the configuration of a discovery`);
  return { ...config, discover, discovery };
}

/** Throws `config-invalid` when nothing says what to discover. */
export function discoveryConfig(config: Config): Config {
  const { site, results, products } = config.values;
  const discover = DISCOVER_SECTION.of(config);
  if (discover === null)
    throw new AppError('config-invalid', `${config.file} has no discover: nothing says where to begin`, {
      hint: 'For example: discover: { seeds: ["https://shop.example/"], into: { table: products, id: "/item/(\\\\w+)" } }',
    });
  if (asksByPost({ site: requestSettingsOf(site.request), mapping: config.mapping }))
    throw new AppError(
      'config-invalid',
      `${config.file} requests pages by POST, and a discovery follows links, by GET`,
      {
        hint: 'Discover with a configuration of its own, without site.request and without request in the mapping.',
      },
    );
  // Of several domains the first: all have the same products. Of site.hosts the first, too.
  const template = templateAt(site.product_url, 0);
  const { origin } = new URL(productUrl(template, 'x'));
  const pathOf = (id: string): string => {
    const { pathname, search } = new URL(productUrl(template, id));
    return pathname + search;
  };
  const { into, order, keep, pages, seen, oldFollow } = discover;
  const follow = { ...site.follow, ...oldFollow };
  const denyLines =
    oldFollow?.deny === undefined ? config.denyLines : denyLinesOf(oldFollow.deny, config.file, 'discover.deny');
  return {
    ...config,
    ...(denyLines && { denyLines }),
    values: {
      ...config.values,
      site: {
        ...site,
        ...sentAt(site, 0),
        product_url: origin + PATH_MARK,
        pages_per_product: 1,
        // Instances report links; here they are judged, and those to other hosts denied.
        follow: { ...follow, hosts: [], depth: null, allow: [] },
        // A page that is unchanged says nothing of its links.
        conditional: false,
        // With URLs of their own, those of pages of this host.
        canaries: site.canaries.flatMap((canary) =>
          domainOf(site.product_url, canary.id) === 0 || !hasOwnUrls(site.product_url)
            ? [{ ...canary, id: pathOf(canary.id) }]
            : [],
        ),
        hosts: null,
      },
      // Pages of another kind each night: their number and their fields are no measure of each other.
      results: { ...results, table: into.table, guard: null },
      products: { ...products, recrawl: null },
    },
    mapping: {
      pages: config.mapping.pages.map((page) => ({
        ...page,
        urlParsers: page.urlParsers.length === 0 ? allLinks(follow) : page.urlParsers.map(allOf),
      })),
    },
    discovery: {
      origin,
      id: into.id,
      depth: follow.depth ?? DEFAULT_DEPTH,
      order,
      allow: follow.allow,
      keep,
      pages,
      seen,
    },
  };
}
