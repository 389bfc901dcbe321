/** The rows that a crawl of the demo shop has stored, compared with the shop's products. */
import { expect } from 'vitest';
import { expectedRow, type ShopRow } from '../support/shop/product.ts';
import type { Fleet } from './fleet.ts';

interface StoredRow extends ShopRow {
  product_id: string;
}

/** The rows of the result table, by product ID. */
async function storedRows(fleet: Fleet): Promise<StoredRow[]> {
  const rows = await fleet.query('select * from product_snapshots order by product_id');
  return rows.map((row) => {
    // A JSON column arrives parsed from MySQL, as text from SQLite.
    const crumbs: unknown = typeof row.crumbs === 'string' ? JSON.parse(row.crumbs) : row.crumbs;
    return { ...row, crumbs } as unknown as StoredRow;
  });
}

/** Every stored row has the exact values of its product; with `ids` exactly these products are stored. */
export async function expectTrueRows(fleet: Fleet, seed: number, ids?: readonly string[]): Promise<void> {
  const rows = await storedRows(fleet);
  for (const row of rows) expect(row, row.product_id).toMatchObject(expectedRow(seed, row.product_id));
  if (ids) expect(rows.map((row) => row.product_id).sort()).toEqual([...ids].sort());
}
