/** The products of a run, and what is known of their list. */
import { findListFaults, LIST_RUNS, type ListFaults, listKeyOf, usualLength } from '../decide/end/product-list.ts';
import type { ListRecord } from '../model/report.ts';
import { systemClock } from '../../../shared/adapters/system-clock.ts';
import { templatesOf } from '../../../shared/domain/domains.ts';
import type { Database } from '../db/connect.ts';
import { readCrawls } from '../../features/recrawl/crawls.ts';
import { createReaders } from '../db/create-stores.ts';
import { isMigrated } from '../db/migrate.ts';
import { createProductSource, type ProductSource } from '../db/product-source.ts';
import { Night } from '../../features/recrawl/night.ts';
import type { Config } from '../config/load-config.ts';

/** How many URLs a discovery will take: none of these exceeds the next one. */
export interface ExpectedUrls {
  /** Those that wait already. */
  waiting: number;
  /** As many as the last discovery took, if that is more. */
  likely: number;
  /** `discover.pages`. */
  most: number;
}

export interface ProductList {
  /** Distinct IDs in the order of the query. */
  ids: string[];
  /** Entries that repeat an earlier ID. */
  duplicates: number;
  /** Of the whole products.query, with the faults of its length; omitted for other products. */
  list?: ListRecord & ListFaults;
  /** Median time of a page in an earlier run that rendered alike; omitted without one, and for pages over HTTP alone. */
  pageMs?: number;
  /** For a discovery; `ids` are some of the paths that wait. */
  discovery?: ExpectedUrls;
  /** New URLs of seeds, sitemaps and search terms. */
  entered?: number;
  /** Of a discovery: prefixes of the paths that no redirect may lead to. */
  deny?: readonly string[];
  /** With `products.recrawl`: what is due of the list; `ids` are all of those, most overdue first. */
  night?: Night;
}

/** Reads the whole product query; IDs are compared by their bytes, a repeated one counts once. */
async function readProducts(source: ProductSource): Promise<ProductList> {
  const seen = new Set<string>();
  let listed = 0;
  for await (const id of source.read()) {
    listed++;
    seen.add(id);
  }
  return { ids: [...seen], duplicates: listed - seen.size };
}

/** The products of the query that are due, by what earlier runs into the table have found. */
async function readDue(
  source: ProductSource,
  { base, k, every, score, max_share: maxShare }: NonNullable<Config['values']['products']['recrawl']>,
  { database, table }: { database: Database; table: string },
): Promise<ProductList> {
  const night = new Night({ baseMs: base, k, everyMs: every, maxShare }, systemClock.now());
  const crawls = await readCrawls(database, table);
  const seen = new Set<string>();
  let listed = 0;
  for await (const product of source.listed(score)) {
    listed++;
    if (seen.has(product.id)) continue;
    seen.add(product.id);
    night.add(product, crawls.get(product.id) ?? null);
  }
  return { ids: night.choose(Infinity).ids, duplicates: listed - seen.size, night };
}

/** The products of products.query, compared with earlier runs. `accepted`: a shorter list is right. */
export async function readWholeList(
  {
    values: {
      database: place,
      products,
      site,
      results: { table },
    },
  }: Config,
  database: Database,
  accepted = false,
): Promise<ProductList> {
  const source = createProductSource(place.url, products.query);
  const { recrawl } = products;
  const read = recrawl === null ? await readProducts(source) : await readDue(source, recrawl, { database, table });
  const length = read.night?.backlog.listed ?? read.ids.length;
  const key = listKeyOf(products.query, templatesOf(site.product_url)[0]!);
  // `plan` and `doctor` change nothing, so our tables may be missing, or be those of an earlier version.
  const runs = (await isMigrated(database)) ? createReaders(database).runs : null;
  const earlier = (await runs?.listedRuns(key, LIST_RUNS)) ?? [];
  const { render } = site;
  const pageMs = render === 'http' ? null : ((await runs?.measuredPageMs(key, render, LIST_RUNS)) ?? null);
  const list: ListRecord = { key, usual: usualLength(earlier), accepted, ...(read.night ? { length } : {}) };
  const limits = { minRows: products.min_rows, maxDrop: products.max_drop };
  return {
    ...read,
    ...(pageMs === null ? {} : { pageMs }),
    list: { ...list, ...findListFaults(length, list, limits) },
  };
}
