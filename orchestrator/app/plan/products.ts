/** The products of a run, and what is known of their list. */
import {
  findListFaults,
  LIST_RUNS,
  type ListFaults,
  listKeyOf,
  usualLength,
} from '../../control/results/product-list.ts';
import type { ListRecord } from '../../control/model/report.ts';
import type { ProductSource } from '../../control/model/stores.ts';
import type { Database } from '../../db/connect.ts';
import { createStores } from '../../db/create-stores.ts';
import { isMigrated } from '../../db/migrate.ts';
import { createProductSource } from '../../db/product-source.ts';
import type { Config } from '../config/load-config.ts';

export interface ProductList {
  /** Distinct IDs in the order of the query. */
  ids: string[];
  /** Entries that repeat an earlier ID. */
  duplicates: number;
  /**
   * The record of the whole products.query, and the faults of its length; omitted for other products, such as those of
   * a retry.
   */
  list?: ListRecord & ListFaults;
}

/** Reads the whole product query; IDs are compared by their bytes, a repeated one counts once. */
export async function readProducts(source: ProductSource): Promise<ProductList> {
  const seen = new Set<string>();
  let listed = 0;
  for await (const id of source.read()) {
    listed++;
    seen.add(id);
  }
  return { ids: [...seen], duplicates: listed - seen.size };
}

/**
 * The products of products.query, compared with their number in earlier runs.
 * @param accepted the user has confirmed that a shorter list is right (`--accept-drop`)
 */
export async function readWholeList(
  { values: { database: place, products, site } }: Config,
  database: Database,
  accepted = false,
): Promise<ProductList> {
  const read = await readProducts(createProductSource(place.url, products.query));
  const key = listKeyOf(products.query, site.product_url);
  // `plan` and `doctor` change nothing, so our tables may be missing, or be those of an earlier version.
  const earlier = (await isMigrated(database)) ? await createStores(database).runs.listedRuns(key, LIST_RUNS) : [];
  const list: ListRecord = { key, usual: usualLength(earlier), accepted };
  const limits = { minRows: products.min_rows, maxDrop: products.max_drop };
  return { ...read, list: { ...list, ...findListFaults(read.ids.length, list, limits) } };
}
