/**
 * Transactions and queries that survive deadlocks, lock waits, lost connections and servers that temporarily accept no
 * writes. A retry always repeats the whole transaction: 1213 rolls it back, 1205 only its last statement, and a commit
 * after that would keep half.
 */
import type { Knex } from 'knex';
import type { Database } from './connect.ts';
import { classifyDatabaseError, toAppError } from './database-errors.ts';
import { repeat } from './repeat.ts';

/** A database restart takes seconds; after this time the caller gets the error. */
export const RETRY_FOR_MS = 45_000;

/** Why a transaction is being repeated. */
export interface Attempt {
  /** The connection was lost during the commit of an earlier attempt, which may have succeeded. */
  maybeDone: boolean;
}

/**
 * Runs `work` in a transaction and repeats it on transient faults. `work` must be repeatable, and with
 * `attempt.maybeDone` it must find out from its rows whether it has already happened. Throws AppErrors only.
 */
export function inTransaction<T>(
  db: Database,
  work: (trx: Knex.Transaction, attempt: Attempt) => Promise<T>,
): Promise<T> {
  const attempt: Attempt = { maybeDone: false };
  return withRetry(db, async () => {
    let committing = false;
    let own: { error: unknown } | null = null;
    try {
      return await db.knex.transaction(async (trx) => {
        try {
          await takeWriteLock(db, trx);
          const result = await work(trx, attempt);
          committing = true;
          return result;
        } catch (error) {
          own = { error };
          throw error;
        }
      });
    } catch (error) {
      if (committing && classifyDatabaseError(error) === 'lost') attempt.maybeDone = true;
      // Not that of the rollback: where the database has rolled back by itself, there is none to do.
      throw (own as { error: unknown } | null)?.error ?? error;
    }
  });
}

/**
 * Takes the write lock of SQLite, where a transaction that starts with a read cannot wait for the write lock later
 * (SQLITE_BUSY_SNAPSHOT); one that starts with a write can.
 */
async function takeWriteLock(db: Database, trx: Knex.Transaction): Promise<void> {
  if (db.engine === 'sqlite') await trx.raw('update crawlfleet_fences set fence = fence where fence = 0');
}

/** Runs `work` in a transaction that changes nothing: it is rolled back at the end. Repeated as the others are. */
export function inDiscardedTransaction<T>(db: Database, work: (trx: Knex.Transaction) => Promise<T>): Promise<T> {
  return withRetry(db, async () => {
    const trx = await db.knex.transaction();
    try {
      await takeWriteLock(db, trx);
      return await work(trx);
    } finally {
      // The database may have rolled it back already.
      await trx.rollback().catch(() => undefined);
    }
  });
}

/** Runs an idempotent query, with retries. Throws AppErrors only. */
export function inQuery<T>(db: Database, work: (knex: Knex) => Promise<T>): Promise<T> {
  return withRetry(db, () => work(db.knex));
}

/** Retries `work` with growing, jittered pauses on transient faults. */
export async function withRetry<T>(
  db: Pick<Database, 'clock' | 'random' | 'label'>,
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await repeat(db, work, { forMs: RETRY_FOR_MS, passes });
  } catch (error) {
    throw toAppError(error, db.label);
  }
}

function passes(error: unknown): boolean {
  const fault = classifyDatabaseError(error);
  return fault === 'conflict' || fault === 'lost' || fault === 'unwilling';
}
