/** The products of a run, and what is known of their list. */
import { findListFaults, LIST_RUNS, type ListFaults, listKeyOf, usualLength } from '../decide/end/product-list.ts';
import type { ListRecord } from '../model/report.ts';
import type { IdList } from '../model/stores.ts';
import { isAnyHost, templateAt } from '../../../shared/domain/domains.ts';
import type { ChunkRange } from '../../../shared/domain/sharing.ts';
import type { Database } from '../db/connect.ts';
import { createReaders } from '../db/create-stores.ts';
import { answersOf, type FitProducts } from '../db/data-feature.ts';
import { isMigrated } from '../db/migrate.ts';
import { createProductSource, type ProductSource } from '../db/product-source.ts';
import type { Config } from '../config/load-config.ts';
import type { ListedUrls } from '../db/listed-urls.ts';
import { listedUrlsOf, productUrlsOf, type ProductUrls } from './own-urls.ts';

export interface ProductList extends ProductUrls {
  /** Distinct IDs in the order of the query. */
  ids: IdList;
  /** Entries that repeat an earlier ID. */
  duplicates: number;
  /** The record of the whole products.query, with the faults of its length; omitted for other products. */
  list?: ListRecord & ListFaults;
  /**
   * Median time of a page in an earlier run that rendered alike; omitted without one, and for pages over HTTP alone.
   */
  pageMs?: number;
  /** Requests of a record on average in an earlier night of this list, at any hosts; omitted without one. */
  requestsEach?: number;
  /** Share of the hosts that gave no answer in an earlier night of this list, at any hosts; omitted without one. */
  deadShare?: number;
  /** New URLs of seeds, sitemaps and search terms. */
  entered?: number;
  /** How they are cut by host, where they are on any; omitted: into chunks of the plan's size. */
  chunks?: ChunkRange[];
  /** Plans what fits; omitted: all of them. In a discovery `ids` are only some of the paths that wait. */
  fit?: FitProducts;
}

/** Reads the whole product query; IDs are compared by their bytes, a repeated one counts once. */
async function readProducts(source: ProductSource, { urls }: ListedUrls): Promise<ProductList> {
  const seen = new Set<string>();
  let listed = 0;
  for await (const id of source.read()) {
    listed++;
    // With URLs of their own they have all the IDs.
    if (urls === null) seen.add(id);
  }
  const ids = urls ?? [...seen];
  return { ids, duplicates: listed - ids.length };
}

/**
 * The products of products.query that are crawled next. The whole list is compared with earlier runs. `accepted`: a
 * shorter one is right. `mayWrite`: what earlier runs have found may be brought up to date first.
 */
export async function readList(
  config: Config,
  database: Database,
  { accepted = false, mayWrite = false } = {},
): Promise<ProductList> {
  const { database: place, products, site, results } = config.values;
  const urls = listedUrlsOf(config);
  const source = createProductSource(place.url, products.query, urls);
  const query = { source, recrawl: products.recrawl, resultTable: results.table, mayWrite };
  const [chosen] = await answersOf(config.features.map(({ productFeed }) => productFeed?.choose?.(database, query)));
  const { listed, ...read } = chosen ?? { ...(await readProducts(source, urls)), listed: undefined };
  const length = listed ?? read.ids.length;
  const key = listKeyOf(products.query, isAnyHost(site.product_url) ? null : templateAt(site.product_url, 0));
  // `plan` and `doctor` change nothing, so our tables may be missing, or be those of an earlier version.
  const runs = (await isMigrated(database)) ? createReaders(database).runs : null;
  const earlier = (await runs?.listedRuns(key, LIST_RUNS)) ?? [];
  const { render } = site;
  const pageMs = render === 'http' ? null : ((await runs?.measuredPageMs(key, render, LIST_RUNS)) ?? null);
  const isAny = isAnyHost(site.product_url);
  const requestsEach = isAny ? ((await runs?.measuredRequests(key, LIST_RUNS)) ?? null) : null;
  const deadShare = isAny ? ((await runs?.measuredSilence(key, LIST_RUNS)) ?? null) : null;
  const list: ListRecord = { key, usual: usualLength(earlier), accepted, ...(listed === undefined ? {} : { length }) };
  const limits = { minRows: products.min_rows, maxDrop: products.max_drop };
  return {
    ...read,
    ...productUrlsOf(config, read.ids, urls),
    ...(pageMs === null ? {} : { pageMs }),
    ...(requestsEach === null ? {} : { requestsEach }),
    ...(deadShare === null ? {} : { deadShare }),
    list: { ...list, ...findListFaults(length, list, limits) },
  };
}
