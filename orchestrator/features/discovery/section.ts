/** `discover` of fleet.yaml, and those of its keys that are in `site.follow` now. */
import { z } from 'zod';
import { isAnyHost, templateAt } from '../../../shared/domain/domains.ts';
import { sharesRobots } from '../../../shared/domain/same-site.ts';
import { isRecord, type MappingFault, plainIssue } from '../../core/config/faults.ts';
import { FOLLOW_KEYS, type FollowSection, pattern } from '../../core/config/follow-section.ts';
import { checked, orNull, text } from '../../core/config/forms.ts';
import { findNameFaults } from '../../core/config/load-config.ts';
import { type ConfigValues, resultTable } from '../../core/config/schema.ts';
import { type OldKeys, Section } from '../../core/config/section.ts';

const discover = z
  .strictObject({
    seeds: z.array(z.url('must be a URL')).max(10_000).default([]).describe('Pages to begin with.'),
    sitemaps: orNull(
      z.union([z.literal('auto'), z.array(z.url()).max(1_000)], { error: 'must be auto or a list of URLs' }),
    ).describe('`auto`: those that robots.txt names, else /sitemap.xml; or their URLs.'),
    search: orNull(
      z.strictObject({
        url: checked(text(), (value) => (value.includes('{term}') ? null : 'must contain {term}')).describe(
          'URL of a search; `{term}` stands for the percent-encoded term.',
        ),
        terms: text().describe('File of search terms, one a line (relative to this file).'),
      }),
    ).describe('Begin with a search for each term: `{ url: "https://shop.example/s?q={term}", terms: terms.txt }`.'),
    order: z
      .enum(['breadth', 'score'])
      .default('breadth')
      .describe('What is crawled first: what is nearest to the seeds, or what has the highest score.'),
    scores: orNull(text()).describe(
      'With `order: score`: SQL that yields `id` (a URL or a path) and `score`. A URL without one has 0.',
    ),
    keep: z.int().min(1).max(10_000_000).default(10_000).describe('Maximum URLs that wait; the worst fall out.'),
    pages: z
      .int()
      .min(1)
      .max(10_000_000)
      .default(10_000)
      .describe(
        'Maximum URLs of a run. The plan is made for those that wait, or for as many as the last run took; the fleet grows up to this many as they are found.',
      ),
    seen: z
      .enum(['exact', 'bloom', 'auto'])
      .default('auto')
      .describe(
        'How the URLs of earlier nights are known: `exact`, a row each; `bloom`, 10 bits each and 1 % of new ones taken for known; `auto`: exact up to 10,000,000.',
      ),
    into: z
      .strictObject({
        table: resultTable().describe('Where products go; its frontier is beside it, in `<table>_frontier`.'),
        id: orNull(pattern()).describe(
          "RE2 pattern whose first group is the product ID in a product's path: `/item/(\\w+)`. Without it the path is the ID.",
        ),
      })
      .describe('What becomes of a page that a mapping with fields is for.'),
  })
  .superRefine(({ seeds, sitemaps, search, order, scores }, context) => {
    const fault = (key: string, message: string): void => context.addIssue({ code: 'custom', path: [key], message });
    if (seeds.length === 0 && sitemaps === null && search === null)
      fault('seeds', 'must name a page, unless there are sitemaps or search');
    if (order === 'score' && scores === null) fault('order', 'needs discover.scores');
  });

/** Keys of earlier versions; version 0.2 no longer reads them. */
const oldKeys = z.object({ discover: z.object(FOLLOW_KEYS).prefault({}) });

const OLD_NAMES = Object.keys(FOLLOW_KEYS);

type Discover = (z.output<typeof discover> & { oldFollow?: Partial<FollowSection> }) | null;

const takeOldKeys: OldKeys<Discover>['take'] = (tree) => {
  const { discover: section, site } = tree;
  const entries = isRecord(section) ? Object.entries(section) : [];
  const old = entries.filter(([key]) => OLD_NAMES.includes(key));
  const [first] = old;
  if (first === undefined) return null;
  tree.discover = Object.fromEntries(entries.filter(([key]) => !OLD_NAMES.includes(key)));
  const { data, error } = oldKeys.safeParse({ discover: Object.fromEntries(old) }, { error: plainIssue });
  const follow = isRecord(site) && isRecord(site.follow) ? site.follow : {};
  const twice = old.flatMap(([key, input]) =>
    key in follow
      ? [{ code: 'custom' as const, path: ['discover', key], input, message: `is in site.follow, too: remove it here` }]
      : [],
  );
  const names = old.map(([key]) => key);
  const given = Object.entries(data?.discover ?? {}).filter(([key]) => names.includes(key));
  return {
    path: ['discover', first[0]],
    note: `is read as site.follow.${first[0]}, for discover alone, but not from version 0.2 on: move ${names.join(', ')} from discover to site: { follow: { … } }, which holds for further pages, too`,
    issues: [...(error?.issues ?? []), ...twice],
    addTo: (discovery) => discovery && { ...discovery, oldFollow: Object.fromEntries(given) },
  };
};

/** The section `discover`; null: nothing is to be discovered. */
export const DISCOVER_SECTION = new Section<Discover>(
  'discover',
  orNull(discover).describe('What `orchestrator discover` looks for. See [discovery.md](discovery.md).'),
  { findFaults, old: { schema: oldKeys, take: takeOldKeys } },
);

/** robots.txt, pace and bans are those of one site. */
function findFaults(given: z.output<typeof discover> | null, { site }: ConfigValues): MappingFault[] {
  if (given === null) return [];
  const urls: MappingFault['path'][] = [];
  if (isAnyHost(site.product_url))
    return [{ path: ['discover'], message: 'needs the one site of site.product_url: site.hosts: any has none' }];
  const first = templateAt(site.product_url, 0).replaceAll('{id}', 'x');
  const isOther = (url: string): boolean => !sharesRobots(first, url);
  given.seeds.forEach((url, i) => isOther(url) && urls.push(['discover', 'seeds', i]));
  if (Array.isArray(given.sitemaps))
    given.sitemaps.forEach((url, i) => isOther(url) && urls.push(['discover', 'sitemaps', i]));
  if (given.search && isOther(given.search.url.replaceAll('{term}', 'x'))) urls.push(['discover', 'search', 'url']);
  return [
    ...urls.map((path) => ({
      path,
      message: 'must be on the host of site.product_url, of several on the first: its robots.txt counts',
    })),
    ...findNameFaults(['discover', 'into', 'table'], given.into.table, '_discovery'),
  ];
}
