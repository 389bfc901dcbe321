/** The demo's final output: the first rows, and the politeness measured by the shop itself. */
import { Console } from 'node:console';
import { PassThrough } from 'node:stream';
import Database from 'better-sqlite3';
import type { ShopStats } from '../../test/support/shop/arrivals.ts';

const ROWS_SHOWN = 8;

/** The first rows of the result table; a message when there is no such table. */
export function showRows(databaseFile: string): string {
  const database = new Database(databaseFile, { readonly: true });
  try {
    const exists = database.prepare("select 1 from sqlite_master where name = 'product_snapshots'").get();
    if (!exists) return 'No rows: the run ended before it created the result table.';
    const { total } = database.prepare('select count(*) as total from product_snapshots').get() as { total: number };
    if (total === 0) return 'No rows: nothing was published.';
    const rows = database
      .prepare('select product_id, title, price, brand, rating from product_snapshots order by product_id limit ?')
      .all(ROWS_SHOWN) as Record<string, unknown>[];
    return `The first ${rows.length} of ${total} rows in product_snapshots:\n${renderRows(rows)}`;
  } finally {
    database.close();
  }
}

/** console.table handles the width of Japanese characters. */
function renderRows(rows: readonly Record<string, unknown>[]): string {
  const stream = new PassThrough();
  new Console(stream).table(rows);
  return String(stream.read() ?? '').trimEnd();
}

/** Smallest gap per address, compared with the configured interval. */
export function showPoliteness({ addresses, requests }: ShopStats, intervalMs: number): string {
  const lines = Object.entries(addresses).map(([address, { requests, minGapMs, maxConcurrency }]) => {
    const gap = minGapMs === null ? 'one request only' : `smallest gap ${minGapMs.toFixed(1)} ms`;
    return `  ${address.padEnd(15)} ${String(requests).padStart(4)} requests, ${gap}, at most ${maxConcurrency} at a time`;
  });
  if (requests === 0) return 'The shop counted no requests.';
  const polite = Object.values(addresses).every(({ minGapMs }) => minGapMs === null || minGapMs >= intervalMs);
  const verdict = polite ? 'never under' : 'UNDER';
  return [
    `The shop counted ${requests} requests; gaps were ${verdict} the interval of ${intervalMs} ms:`,
    ...lines,
  ].join('\n');
}
