/** `init --url`: from product pages to a configuration that `plan` accepts. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { AppError } from '../../../shared/domain/errors.ts';
import { isAllowed } from '../../../shared/domain/robots.ts';
import { openDatabase } from '../../core/db/connect.ts';
import { createProductTable } from '../../core/db/product-source.ts';
import { readRobots } from '../../core/prepare/site-robots.ts';
import { FLEET_TEMPLATE } from './templates.ts';
import { askCrawlApi, type PageReading } from '../../core/trial/ask-crawl-api.ts';
import { defaultSite } from '../../core/config/site-section.ts';
import {
  DATA_PLACES,
  formOf,
  LAST_PLACES,
  NO_PRICE,
  type Place,
  probedPage,
  type ProbedPage,
  surveyMapping,
  type ProposedField,
  proposeFields,
} from './propose-fields.ts';
import { comparedPlaces, languageNotes, otherLanguage } from './propose-language.ts';
import { jsonPlaces } from './propose-json.ts';
import { distinctPages, type OwnUrls, proposeHosts, proposeProductUrl } from './propose-url.ts';

export interface ShopProposal {
  /** For `site.product_url`; null: products have URLs of their own. */
  template: string | null;
  /** For `site.hosts`, and the URLs of the pages; null where the IDs make them. */
  own: Pick<OwnUrls, 'hosts' | 'urls'> | null;
  /** The IDs of the pages that were read. */
  ids: string[];
  fields: ProposedField[];
  /** How the pages were read. */
  render: 'http' | 'browser';
  /** What the user should know before a first run, one line each. */
  notes: string[];
}

/** How a page is read for a proposal. @param language asked for; without one, none is */
function pageRequestOf(url: string, render: ShopProposal['render'], language?: string) {
  const { origin } = new URL(url);
  const headers = language === undefined ? {} : { 'accept-language': language };
  const sent = language === undefined ? {} : { userHeaders: [{ origin, headers, cookies: {} }] };
  return { url, site: { ...defaultSite(`${origin}/{id}`), ...sent, render }, chromiumPath: null };
}

/**
 * Requests each page once; a second time in a browser, if there is one, when it has nothing to offer without. Throws
 * `usage` when a URL is none, and when a page has nothing to offer.
 */
export async function proposeShop(given: readonly string[]): Promise<ShopProposal> {
  for (const url of given)
    if (!/^https?:$/.test(URL.parse(url)?.protocol ?? ''))
      throw new AppError('usage', `${url} is not an http or https URL`, {
        hint: 'Give the whole address, with https://.',
      });
  const urls = distinctPages(given);
  const place = placeOf(urls);
  const notes = await robotsNotes(urls);
  if (place.own !== null)
    notes.push(
      'no part of these addresses can be the ID of a product, so each product has its own URL: site.hosts, and a column url in products.query (docs/urls.md)',
    );
  if (urls.length === 1)
    notes.push('one page does not show what differs from product to product: give the URL of a second one');
  let render: ShopProposal['render'] = 'http';
  let { fields: found, other } = await fieldsOf(urls, render);
  if (!found.some(({ name }) => name === 'title')) {
    const shown = await fieldsOf(urls, 'browser').catch((error: unknown) => {
      // Perhaps there is none: what was found without it has to do.
      if (error instanceof AppError) return { fields: [], other };
      throw error;
    });
    if (shown.fields.length > found.length) {
      [found, other, render] = [shown.fields, shown.other, 'browser'];
      notes.push('scripts build the pages, so site.render is browser: that takes more memory and time');
    }
  }
  for (const { name, doubt } of found)
    if (doubt !== null) notes.push(`${name} is doubtful: ${doubt}${doubt === NO_PRICE ? '; it is left out' : ''}`);
  const fields = found.filter(({ doubt }) => doubt !== NO_PRICE);
  if (fields.length > 0) {
    notes.push(...(await readTranslated(urls[0]!, { fields, render, language: other })));
    return { ...place, fields, render, notes };
  }
  throw new AppError('usage', `none of the usual fields is in the HTML of ${urls.join(' and ')}`, {
    hint: 'Where scripts build the page, set site.render: browser and write the mapping by hand: orchestrator init',
  });
}

/** Asks for a page once more, in another language. A page that is not answered then says nothing. */
async function readTranslated(
  url: string,
  { fields, render, language }: Pick<ShopProposal, 'fields' | 'render'> & { language: string },
): Promise<string[]> {
  const mapping = surveyMapping(comparedPlaces(fields));
  const page = await askCrawlApi({ ...pageRequestOf(url, render, language), mapping, file: null });
  return page.outcome === 'read' ? languageNotes(fields, language, rowOf(page)) : [];
}

function placeOf(urls: readonly string[]): Pick<ShopProposal, 'template' | 'own' | 'ids'> {
  const proposed = proposeProductUrl(urls);
  if (proposed !== null) return { ...proposed, own: null };
  const { ids, ...own } = proposeHosts(urls);
  return { template: null, own, ids };
}

/** One line for each page that the robots.txt of its host forbids. */
async function robotsNotes(urls: readonly string[]): Promise<string[]> {
  const byOrigin = Map.groupBy(urls, (url) => new URL(url).origin);
  return (await Promise.all([...byOrigin].map(([origin, own]) => robotsNotesOf(origin, own)))).flat();
}

async function robotsNotesOf(origin: string, urls: readonly string[]): Promise<string[]> {
  const policy = await readRobots(defaultSite(`${origin}/{id}`));
  if (policy.access === 'none') return [`robots.txt cannot be read, and a run would wait for it: ${policy.source}`];
  return urls.flatMap((url) => {
    const { pathname, search } = new URL(url);
    return isAllowed(policy, pathname + search) ? [] : [`robots.txt forbids ${url}: a run would not ask for it`];
  });
}

type ReadPage = PageReading & { outcome: 'read' };

/** The fields of the pages, and a language that the first of them may have besides its own. */
async function fieldsOf(
  urls: readonly string[],
  render: ShopProposal['render'],
): Promise<{ fields: ProposedField[]; other: string }> {
  const pages: ReadPage[] = [];
  for (const url of urls) {
    const trial = { ...pageRequestOf(url, render), mapping: surveyMapping(DATA_PLACES), file: null, survey: true };
    const page = await askCrawlApi(trial);
    if (page.outcome === 'failed')
      throw new AppError('usage', `${url} gives no page: ${page.detail}`, { hint: 'Look at it in a browser.' });
    pages.push(page);
  }
  const shown = unique(pages.flatMap((page) => shownPlaces(page)));
  const places = [...DATA_PLACES, ...shown, ...LAST_PLACES];
  const again = [...shown, ...LAST_PLACES];
  const probed = await Promise.all(
    pages.map(async (page, i): Promise<ProbedPage> => {
      const data = probedPage(DATA_PLACES, rowOf(page));
      const later = probedPage(again, rowOf(await readAgain(page, urls[i]!, again)));
      const nothing = { value: null, currency: null };
      return {
        titles: data.titles,
        values: [...(page.kind === 'json' ? data.values.map(() => nothing) : data.values), ...later.values],
      };
    }),
  );
  return { fields: proposeFields(places, probed), other: otherLanguage(pages[0]?.survey?.text ?? '') };
}

const rowOf = (page: ReadPage) => page.rows?.[0]?.row ?? {};

/** How many selectors of a page are tried on the others. */
const TRIED = 4;

/** Where the page shows title and price to a person; of JSON, where it has the fields. */
function shownPlaces({ kind, survey }: ReadPage): Place[] {
  if (!survey) return [];
  if (kind === 'json') return jsonPlaces(survey.text);
  const places = (field: Place['field'], selectors: readonly string[]): Place[] =>
    selectors.slice(0, TRIED).map((css) => ({ field, source: { css } }));
  return [...places('title', survey.heading), ...places('price', survey.price)];
}

const unique = (places: readonly Place[]): Place[] => [
  ...new Map(places.map((place) => [JSON.stringify(place), place])).values(),
];

/** Reads the page that was fetched with other places, without another request to the shop. */
async function readAgain({ kind, survey }: ReadPage, url: string, places: readonly Place[]): Promise<ReadPage> {
  const folder = mkdtempSync(join(tmpdir(), 'crawlfleet-init-'));
  try {
    const file = join(folder, `page.${kind}`);
    // The mark says that it is UTF-8 now, whatever its own markup says.
    writeFileSync(file, `\uFEFF${survey?.text ?? ''}`);
    const page = await askCrawlApi({ ...pageRequestOf(url, 'http'), mapping: surveyMapping(places), file });
    if (page.outcome === 'read') return page;
    throw new AppError('internal', `${url} could not be read again: ${page.detail}`);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** fleet.yaml for the shop, with the comments of the template. */
export function fleetFileOf({ template, own, render }: Pick<ShopProposal, 'template' | 'own' | 'render'>): string {
  // `${` would be a variable.
  const url = JSON.stringify((template ?? '').replaceAll('${', () => '$${'));
  const key =
    own === null ? `product_url: ${url}` : `hosts: [${own.hosts.map((host) => JSON.stringify(host)).join(', ')}]`;
  return FLEET_TEMPLATE.replace(/product_url: "[^"]*"( *)#.*/, (line, space: string) =>
    own === null
      ? line.replace(/product_url: "[^"]*"/, () => key)
      : `${key}${space}# each product has its own URL on one of these`,
  )
    .replace(/# render: auto( +)/, (line, space: string) =>
      render === 'browser' ? `render: browser${space.slice(1)}` : line,
    )
    .replace(/select id from products where active = 1"( *)#.*/, (line, space: string) =>
      own === null
        ? line.replace(' where active = 1', '')
        : `select id, url from products"${space}# must yield columns named id and url`,
    );
}

/** mapping.yaml with the fields, and what each gave on the pages as a comment. */
export function mappingFileOf({ fields, ids }: Pick<ShopProposal, 'fields' | 'ids'>): string {
  const lines = fields.map((field) => {
    const flow = stringify(formOf(field), { collectionStyle: 'flow', lineWidth: 0 });
    const doubt = field.doubt === null ? '' : ` (doubtful: ${field.doubt})`;
    return `  # ${comment(valuesOf(field))}${doubt}\n  ${field.name}: ${flow.trim()}`;
  });
  return `# Which values of a page become which columns; docs/mapping.md shows every option. Above each field: what it gave on the\n# pages of ${comment(ids)}.\nfields:\n${lines.join('\n')}\n`;
}

/** What the field gave on each page; of a price with its currency. */
export const valuesOf = ({ values, currencies }: ProposedField): unknown[] =>
  values.map((value, i) => {
    const code = currencies?.[i];
    return typeof value === 'number' && typeof code === 'string' ? `${value} ${code}` : value;
  });

const MOST = 100;

const comment = (values: readonly unknown[]): string =>
  values
    .map((value) => JSON.stringify(value).slice(0, MOST))
    .join(' | ')
    .replaceAll(/[\p{Cc}\u2028\u2029]/gu, ' ');

/** An SQLite file with the products, in the form that the query of the template reads. */
export async function writeProductTable(file: string, { ids, own }: Pick<ShopProposal, 'ids' | 'own'>): Promise<void> {
  // SQLite takes an empty file for a new database.
  writeFileSync(file, '');
  await using database = await openDatabase(`sqlite:${file}`);
  await createProductTable(database, ids, own?.urls ?? null);
}
