/** The linked shop: which ways lead to its products, and its traps, which lead nowhere. Without a server. */
import { describe, expect, it } from 'vitest';
import { readMapping } from '../../../orchestrator/core/config/read-mapping.ts';
import { ENOUGH_CHARS } from '../../../crawl-api/politeness/judgement.ts';
import { readShape } from '../../../crawl-api/fetch/shape-reader.ts';
import { judge } from '../../../crawl-api/politeness/ban-rules.ts';
import { compileSiteRules } from '../../../crawl-api/politeness/site-rules.ts';
import { Catalogue } from '../../support/shop/linked/catalogue.ts';
import { LinkedShop } from '../../support/shop/linked/linked-shop.ts';
import { itemSitemaps, sitemapChunks } from '../../support/shop/linked/sitemaps.ts';
import { Wiki } from '../../support/shop/linked/wiki.ts';
import { renderPage } from '../../support/shop/page.ts';
import { SHOP_MAPPING, expectedProduct, expectedRow, productIds } from '../../support/shop/product.ts';
import { extractBy } from '../crawl-api/extract-page.ts';
import { ASKED, without } from '../politeness/replies.ts';

const ORIGIN = 'http://127.0.0.1';
const shop = new LinkedShop({ seed: 1, products: 300 });
const large = new LinkedShop({ seed: 1, products: 100_000 });

/** The page's HTML; null: there is none. */
function pageAt(path: string, of = shop): string | null {
  const { pathname, searchParams } = new URL(path, ORIGIN);
  const id = /^\/item\/(P\d+)$/.exec(pathname)?.[1];
  if (id === undefined) return of.render(pathname, searchParams);
  const frame = of.frameOf(id);
  return frame ? renderPage(expectedProduct(1, id), [], frame) : null;
}

/** The hrefs of the page as they stand. */
function hrefsAt(path: string, of = shop): string[] {
  const page = pageAt(path, of);
  if (page === null) throw new Error(`no page ${path}`);
  return [...page.matchAll(/<a [^>]*href="([^"]*)"/g)].map(([, href]) => href!.replaceAll('&amp;', '&'));
}

/** Links within the shop, without fragment and tracking, with their parameters sorted. */
function linksAt(path: string, of = shop): string[] {
  return hrefsAt(path, of).flatMap((href) => {
    const url = new URL(href, ORIGIN + path);
    if (url.origin !== ORIGIN) return [];
    for (const name of ['utm_source', 'utm_medium']) url.searchParams.delete(name);
    url.searchParams.sort();
    return [url.pathname + url.search];
  });
}

/** The paths that links lead to from `start`, through paths that `allowed` matches. */
function reach(start: string, allowed: RegExp, of = shop): Set<string> {
  const found = new Set([start]);
  for (const path of found) {
    if (pageAt(path, of) === null) continue;
    for (const link of linksAt(path, of)) if (allowed.test(link)) found.add(link);
  }
  return found;
}

const itemsOf = (paths: Iterable<string>): string[] =>
  [...paths].flatMap((path) => /^\/item\/(\w+)$/.exec(path)?.[1] ?? []).sort();

const locsOf = (chunks: Iterable<string>): string[] =>
  [...[...chunks].join('').matchAll(/<loc>([^<]+)<\/loc>/g)].map(([, loc]) => loc!);

describe('every product', () => {
  const all = productIds(300);

  it('is named by the catalogue', () => {
    expect([...shop.catalogue.products()]).toEqual(all);
  });

  it.each([
    ['links of products and categories, from the front page', '/', /^\/(?:item|category)\//],
    ['the next pages of categories', '/', /^\/category\//],
    ['the pages of a search', '/search?q=lamp', /^\/search/],
  ])('is found by %s', (_, start, allowed) => {
    const paths = reach(start, allowed);
    expect(itemsOf([...paths].flatMap((path) => [path, ...(path.startsWith('/item/') ? [] : linksAt(path))]))).toEqual(
      expect.arrayContaining(all),
    );
  });

  it('is on one page of one category, even in a shop of 100,000', () => {
    const { catalogue } = large;
    const seen = new Uint8Array(catalogue.count + 1);
    for (let category = 0; category < catalogue.categories; category++)
      for (let page = 1; page <= catalogue.categoryPages(category); page++) {
        const numbers = catalogue.inCategory(category, page);
        expect(numbers.length).toBeGreaterThan(0);
        expect(numbers.every((number) => catalogue.categoryOf(number) === category)).toBe(true);
        for (const number of numbers) seen[number]!++;
      }
    expect(seen.slice(1).every((times) => times === 1)).toBe(true);
  });

  it('has a page with the row that a crawl must store', async () => {
    const { mapping } = readMapping(SHOP_MAPPING);
    const { rows } = await extractBy(mapping, pageAt('/item/P00007')!);
    expect(rows?.[0]?.row).toEqual(expectedRow(1, 'P00007'));
  });
});

describe('a search', () => {
  it('has at most 200 pages of 48 different products, another selection for each term', () => {
    const lamps = [...large.catalogue.foundProducts('lamp')];
    expect([large.catalogue.searchPages, lamps.length, new Set(lamps).size]).toEqual([200, 9_600, 9_600]);
    expect([...large.catalogue.foundProducts('desk')]).not.toEqual(lamps);
    expect(pageAt('/search?q=lamp&page=201', large)).toBeNull();
  });

  it('links to the next, the previous and the last page', () => {
    const paging = linksAt('/search?q=lamp&page=3', large).filter((link) => link.startsWith('/search'));
    expect(paging).toEqual(['/search?page=2&q=lamp', '/search?page=4&q=lamp', '/search?page=200&q=lamp']);
    expect(linksAt('/search?page=200&q=lamp', large).filter((link) => link.startsWith('/search'))).toEqual([
      '/search?page=199&q=lamp',
    ]);
  });
});

describe('the traps', () => {
  it('hang from the footer of products, categories and searches', () => {
    for (const path of ['/', '/item/P00001', '/category/2?page=2', '/search?q=x', '/list', '/a/b'])
      expect(linksAt(path)).toEqual(
        expect.arrayContaining(['/calendar/2026/11', '/a/b', '/list?filter=1&sort=name&view=grid']),
      );
  });

  it('include a calendar that links only to the months before and after, for ever', () => {
    expect(hrefsAt('/calendar/2026/12')).toEqual(['/calendar/2026/11', '/calendar/2027/1']);
    expect(hrefsAt('/calendar/2026/1')).toEqual(['/calendar/2025/12', '/calendar/2026/2']);
    expect(pageAt('/calendar/9999/12')).not.toBeNull();
  });

  it('include list parameters that lead to ever more lists with the same five products', () => {
    const lists = new Set(['/list']);
    for (const path of lists) {
      for (const link of linksAt(path)) if (link.startsWith('/list') && lists.size < 200) lists.add(link);
    }
    expect(lists.size).toBe(200);
    for (const path of lists) expect(new Set(itemsOf(linksAt(path)))).toEqual(new Set(productIds(5)));
  });

  it('include paths that get deeper for ever', () => {
    expect(linksAt('/a/b/a/b')).toContain('/a/b/a/b/a/b');
    expect(pageAt('/a/b/a')).toBeNull();
  });

  it('are mixed with links to other hosts, tracking, fragments, other orders of parameters, and no pages at all', () => {
    const hrefs = hrefsAt('/item/P00001');
    for (const kind of [/^https:\/\/partner/, /^mailto:/, /^javascript:/, /[?&]utm_source=/, /#/, /^P\d+$/, /&sort=/])
      expect(hrefs.filter((href) => kind.test(href)).length).toBeGreaterThan(0);
  });
});

it('shows no page that the ban rules suspect', async () => {
  const rules = await compileSiteRules({ statuses: [], redirects: [], patterns: [] }, false);
  const shown = ['/', '/item/P00001', '/category/0', '/search?q=x', '/search', '/list', '/a/b', '/calendar/2026/11'];
  for (const page of [...shown.map((path) => pageAt(path)!), new Wiki(100).render('/wiki/0')!]) {
    expect(readShape(page).textChars).toBe(ENOUGH_CHARS);
    expect(judge(without(page), ASKED, rules).kind).toBe('odd');
  }
});

describe('the sitemaps', () => {
  it.each([
    ['300', shop.catalogue, 150],
    ['100,000', large.catalogue, 50_000],
    ['120,001', new Catalogue(120_001), 50_000],
  ])('of %s products name each once, in files of at most 50,000, and the index names them', (_, catalogue, most) => {
    const files = itemSitemaps(catalogue);
    expect(locsOf(sitemapChunks(catalogue, '/sitemap.xml', ORIGIN)!)).toEqual(
      [...files, '/sitemap-categories.xml'].map((path) => ORIGIN + path),
    );
    const locs = files.map((file) => locsOf(sitemapChunks(catalogue, file, ORIGIN)!));
    expect(Math.max(...locs.map((urls) => urls.length))).toBe(most);
    // As text: comparing arrays of 100,000 takes most of a second.
    const found = locs.flat().map((loc) => loc.slice(`${ORIGIN}/item/`.length));
    expect(found.join(' ') === [...catalogue.products()].join(' ')).toBe(true);
  });

  it('give each product the lastmod of the catalogue, by day or to the second', () => {
    const text = [...sitemapChunks(shop.catalogue, '/sitemap-items-1.xml', ORIGIN)!].join('');
    const days = [...text.matchAll(/<lastmod>([^<]+)</g)].map(([, day]) => day!);
    expect(days).toEqual(Array.from({ length: 150 }, (_, i) => shop.catalogue.lastModified(i + 1)));
    expect(new Set(days.map((day) => day.length)).size).toBe(2);
    expect(days.map((day) => Date.parse(day)).every(Number.isFinite)).toBe(true);
  });

  it('end where there is none', () => {
    expect(sitemapChunks(shop.catalogue, '/sitemap-items-3.xml', ORIGIN)).toBeNull();
  });
});
