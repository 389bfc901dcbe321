/** `init --url`: from product pages to a configuration that `plan` accepts. */
import { writeFileSync } from 'node:fs';
import { stringify } from 'yaml';
import { AppError } from '../../../shared/domain/errors.ts';
import { openDatabase } from '../../db/connect.ts';
import { createProductTable } from '../../db/product-source.ts';
import { FLEET_TEMPLATE } from '../templates.ts';
import { askCrawlApi } from '../trial/ask-crawl-api.ts';
import { DEFAULT_SITE } from '../trial/trial-input.ts';
import { VERSION } from '../version.ts';
import { probeMapping, type ProposedField, proposeFields, proposeProductUrl } from './propose-fields.ts';

export interface ShopProposal {
  template: string;
  /** Of the pages that were read. */
  ids: string[];
  fields: ProposedField[];
}

/** Requests each page once. Throws `usage` when a URL is none, and when a page has nothing to offer. */
export async function proposeShop(urls: readonly string[]): Promise<ShopProposal> {
  for (const url of urls)
    if (!/^https?:$/.test(URL.parse(url)?.protocol ?? ''))
      throw new AppError('usage', `${url} is not an http or https URL`, {
        hint: 'Give the whole address, with https://.',
      });
  const place = proposeProductUrl(urls);
  if (place === null)
    throw new AppError('usage', `${urls.join(' and ')}: no part of it can be the ID of a product`, {
      hint: 'Give the addresses of two pages of the same kind.',
    });
  const mapping = probeMapping();
  const site = { ...DEFAULT_SITE, userAgent: `crawlfleet/${VERSION}`, render: 'http' as const, chromiumPath: null };
  const pages = [];
  for (const url of urls) {
    const page = await askCrawlApi({ mapping, url, file: null, site });
    if (page.outcome === 'failed')
      throw new AppError('usage', `${url} gives no page: ${page.detail}`, { hint: 'Look at it in a browser.' });
    pages.push(page);
  }
  const fields = proposeFields(pages);
  if (fields.length > 0) return { ...place, fields };
  throw new AppError('usage', `none of the usual fields is in the HTML of ${urls.join(' and ')}`, {
    hint: 'Where scripts build the page, set site.render: browser and write the mapping by hand: orchestrator init',
  });
}

/** fleet.yaml for the shop, with the comments of the template. */
export function fleetFileOf({ template }: ShopProposal): string {
  return FLEET_TEMPLATE.replace(/product_url: "[^"]*"/, () => `product_url: ${JSON.stringify(template)}`).replace(
    'select id from products where active = 1',
    'select id from products',
  );
}

/** mapping.yaml with the fields, and what each gave on the pages as a comment. */
export function mappingFileOf({ fields, ids }: ShopProposal): string {
  const lines = fields.map(({ name, source, values }, i) => {
    // A page without any value of a field that all have is another page.
    const isSure = i === 0 && values.every((value) => value !== null);
    const given = typeof source === 'string' ? { css: source } : source;
    const flow = stringify(
      { ...given, ...(isSure ? { required: true } : {}) },
      { collectionStyle: 'flow', lineWidth: 0 },
    );
    return `  # ${comment(values)}\n  ${name}: ${flow.trim()}`;
  });
  return `# Which values of a page become which columns; docs/mapping.md shows every option. Above each field: what it gave on the\n# pages of ${comment(ids)}.\nfields:\n${lines.join('\n')}\n`;
}

const MOST = 100;

const comment = (values: readonly unknown[]): string =>
  values
    .map((value) => JSON.stringify(value).slice(0, MOST))
    .join(' | ')
    .replaceAll(/[\p{Cc}\u2028\u2029]/gu, ' ');

/** An SQLite file with the products, in the form that the query of the template reads. */
export async function writeProductTable(file: string, ids: readonly string[]): Promise<void> {
  // SQLite takes an empty file for a new database.
  writeFileSync(file, '');
  await using database = await openDatabase(`sqlite:${file}`);
  await createProductTable(database, ids);
}
