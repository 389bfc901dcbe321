/** `discover` of fleet.yaml. */
import { z } from 'zod';
import { findPatternFault } from '../../../shared/adapters/steps/regex.ts';
import { templateAt } from '../../../shared/domain/domains.ts';
import { sharesRobots } from '../../../shared/domain/same-site.ts';
import type { MappingFault } from '../../core/config/faults.ts';
import { checked, orNull, text } from '../../core/config/forms.ts';
import { findNameFaults } from '../../core/config/load-config.ts';
import { type ConfigValues, resultTable } from '../../core/config/schema.ts';
import { Section } from '../../core/config/section.ts';

const pattern = () => checked(text(), (value) => findPatternFault(value));

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
    depth: z.int().min(0).max(1_000).default(2).describe('Maximum links from where it begins to a page.'),
    order: z
      .enum(['breadth', 'score'])
      .default('breadth')
      .describe('What is crawled first: what is nearest to the seeds, or what has the highest score.'),
    scores: orNull(text()).describe(
      'With `order: score`: SQL that yields `id` (a URL or a path) and `score`. A URL without one has 0.',
    ),
    allow: z.array(pattern()).max(1_000).default([]).describe('RE2 patterns of paths to crawl; any path without it.'),
    deny: orNull(text()).describe(
      'File of what is not crawled, one a line: a domain, a URL or the beginning of a path.',
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

/** The section `discover`; null: nothing is to be discovered. */
export const DISCOVER_SECTION = new Section(
  'discover',
  orNull(discover).describe('What `orchestrator discover` looks for. See [discovery.md](discovery.md).'),
  { findFaults },
);

/** robots.txt, pace and bans are those of one site. */
function findFaults(given: z.output<typeof discover> | null, { site }: ConfigValues): MappingFault[] {
  if (given === null) return [];
  const urls: MappingFault['path'][] = [];
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
