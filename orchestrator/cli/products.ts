/** The list of products: distinct IDs in the order of the query. */
import type { ProductSource } from '../control/stores.ts';

export interface ProductList {
  /** Distinct IDs in the order of the query. */
  ids: string[];
  /** How many further times IDs were listed. */
  duplicates: number;
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
