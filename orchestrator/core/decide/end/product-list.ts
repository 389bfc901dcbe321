/** Whether a product list is as long as usual. A shrunken list is far more often a fault than a shrunken shop. Pure. */
import { sha256Hex } from '../../../../shared/wire/signature.ts';
import type { ListedRun, ListRecord } from '../../model/report.ts';
import { percent } from './guard.ts';

/** Maximum earlier runs a list is compared with. */
export const LIST_RUNS = 5;

export interface ListLimits {
  minRows: number;
  /** Maximum share by which a list may be shorter than usual; null: no limit. */
  maxDrop: number | null;
}

/** The same query for the same site yields the same list; the query of another site is another list. */
export function listKeyOf(query: string, productUrl: string | null): string {
  const host = productUrl === null ? 'any' : new URL(productUrl.replaceAll('{id}', 'x')).host;
  return sha256Hex(JSON.stringify([query.trim(), host]));
}

/** The mean of these runs, newest first, back to the last one whose length the user has accepted; null without any. */
export function usualLength(earlier: readonly ListedRun[]): number | null {
  const accepted = earlier.findIndex((run) => run.accepted);
  const counted = earlier.slice(0, accepted < 0 ? LIST_RUNS : Math.min(LIST_RUNS, accepted + 1));
  if (counted.length === 0) return null;
  return counted.reduce((sum, run) => sum + run.products, 0) / counted.length;
}

/** How much shorter than usual, as `93.4 % fewer than the usual 303`; null when it is not. */
export function dropOf(products: number, usual: number | null): { share: number; text: string } | null {
  if (usual === null || products >= usual) return null;
  const share = 1 - products / usual;
  return { share, text: `${percent(share)} fewer than the usual ${count(usual)}` };
}

export interface ListFaults {
  /** One sentence each; empty when the list is long enough. */
  faults: string[];
  /** Settings and flags that, all together, let a run go on with this list. */
  remedies: string[];
}

/** An accepted drop is no fault; `minRows` applies all the same. */
export function findListFaults(
  products: number,
  list: Pick<ListRecord, 'usual' | 'accepted'>,
  { minRows, maxDrop }: ListLimits,
): ListFaults {
  const found: ListFaults = { faults: [], remedies: [] };
  if (products < minRows) {
    found.faults.push(`products.query yields ${plural(products)}; products.min_rows is ${minRows}`);
    found.remedies.push(`products.min_rows: ${products}`);
  }
  const drop = dropOf(products, list.usual);
  // Sums of shares are off by some 1e-16: a drop of exactly `maxDrop` must pass.
  if (drop !== null && maxDrop !== null && !list.accepted && drop.share > maxDrop + 1e-9) {
    found.faults.push(
      `products.query yields ${plural(products)}, ${drop.text} (mean of the last whole runs, at most ${LIST_RUNS}); products.max_drop is ${percent(maxDrop)}`,
    );
    found.remedies.push('--accept-drop');
  }
  return found;
}

const count = (n: number): string => (Math.round(n * 10) / 10).toLocaleString('en-US');

const plural = (n: number): string => (n === 0 ? 'no product' : n === 1 ? '1 product' : `${count(n)} products`);
