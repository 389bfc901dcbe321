/** Rows of crawlfleet_host_requests: when each run of many hosts asked which of them, from which address, how often. */
import type { HostRequests } from '../verify/host-requests.ts';
import { type BulkTarget, bulkInsert } from './bulk-insert.ts';
import type { Database } from './connect.ts';
import { inQuery, inTransaction } from './retry.ts';
import { inPieces, rowsOf, type SqlNumber, toNumber } from './rows.ts';

export const HOST_REQUESTS = 'crawlfleet_host_requests';

/** Rows per transaction. */
const PIECE = 5_000;

const COLUMNS = [
  'run_id',
  'slot',
  'epoch',
  'host',
  'address',
  'first_at',
  'last_at',
  'requests',
  'interval_ms',
] as const;

/** A row of the table. */
interface Row {
  run_id: string;
  slot: number;
  epoch: number;
  host: string;
  address: string | null;
  first_at: SqlNumber;
  last_at: SqlNumber;
  requests: number;
  interval_ms: SqlNumber;
}

/** What is stored already stays: the logs of an epoch that is closed do not change. */
export async function storeHostRequests(db: Database, runId: string, asked: readonly HostRequests[]): Promise<void> {
  // In the order of the key: pages are filled one after the other.
  const sorted = [...asked].sort((a, b) => (a.host < b.host ? -1 : 1));
  for (const piece of inPieces(sorted, PIECE)) {
    const rows = piece.map(({ host, slot, epoch, address, firstMs, lastMs, requests, intervalMs }) => {
      return [runId, slot, epoch, host, address, firstMs, lastMs, requests, intervalMs];
    });
    const target: BulkTarget = { table: HOST_REQUESTS, columns: COLUMNS, existing: 'keep', keyColumns: 4 };
    await inTransaction(db, (trx) => bulkInsert(trx, db, target, rows));
  }
}

/** What was asked of a host in a year of runs, the newest first. */
export async function readRequestsOfHost(db: Database, host: string): Promise<(HostRequests & { runId: string })[]> {
  const rows = await inQuery(db, (knex) =>
    rowsOf<Row>(knex(HOST_REQUESTS).where({ host }).orderBy('first_at', 'desc')),
  );
  return rows.map(({ run_id: runId, first_at, last_at, interval_ms, ...row }) => ({
    ...row,
    runId,
    firstMs: toNumber(first_at),
    lastMs: toNumber(last_at),
    intervalMs: toNumber(interval_ms),
  }));
}
