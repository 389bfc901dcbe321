/**
 * Transactions and queries that survive deadlocks, lock waits, lost connections and servers that take no writes for a while. What is tried again is always the
 * whole transaction: 1213 has rolled it back, 1205 only its last statement, and a commit after that would keep half.
 */
import type { Knex } from 'knex';
import type { Clock } from '../../shared/ports/clock.ts';
import type { Random } from '../../shared/ports/random.ts';
import type { Database } from './connect.ts';
import { classifyDatabaseError, toAppError } from './database-errors.ts';

/** A database restart takes seconds; past this the caller has to know. */
export const RETRY_FOR_MS = 45_000;
const FIRST_DELAY_MS = 20;
const MAX_DELAY_MS = 2_000;

/** How a repeated transaction came to be repeated. */
export interface Attempt {
  /** The connection was lost while committing an earlier try: it may have been carried out. */
  maybeDone: boolean;
}

/**
 * `read committed`: rows are locked, and not the gaps between them, so that two transactions on neighbouring rows do not wait
 * for each other. SQLite has one writer at a time anyhow.
 */
export type Isolation = 'default' | 'read committed';

/**
 * Runs `work` in a transaction, again and again while the fault is one that passes. `work` must be repeatable, and
 * with `attempt.maybeDone` it must find out from its rows whether it has happened. Throws AppErrors only.
 */
export function inTransaction<T>(
  db: Database,
  work: (trx: Knex.Transaction, attempt: Attempt) => Promise<T>,
  isolation: Isolation = 'default',
): Promise<T> {
  const attempt: Attempt = { maybeDone: false };
  return withRetry(db, async () => {
    let committing = false;
    try {
      return await db.knex.transaction(
        async (trx) => {
          // A transaction that begins by reading cannot wait for the write lock later (SQLITE_BUSY_SNAPSHOT); one that begins by writing can.
          if (db.engine === 'sqlite') await trx.raw(`update crawlfleet_locks set name = name where name = 'fence'`);
          const result = await work(trx, attempt);
          committing = true;
          return result;
        },
        isolation === 'default' || db.engine === 'sqlite' ? {} : { isolationLevel: isolation },
      );
    } catch (error) {
      if (committing && classifyDatabaseError(error) === 'lost') attempt.maybeDone = true;
      throw error;
    }
  });
}

/** Runs a query that is harmless to repeat. Throws AppErrors only. */
export function inQuery<T>(db: Database, work: (knex: Knex) => Promise<T>): Promise<T> {
  return withRetry(db, () => work(db.knex));
}

/** Repeats `work` with growing, jittered pauses while it fails for a reason that passes. */
export async function withRetry<T>(
  db: { clock: Clock; random: Random; label: string },
  work: () => Promise<T>,
): Promise<T> {
  const startedMs = db.clock.monotonic();
  for (let attempt = 0; ; attempt++) {
    try {
      return await work();
    } catch (error) {
      const fault = classifyDatabaseError(error);
      const passes = fault === 'conflict' || fault === 'lost' || fault === 'unwilling';
      const delayMs = backoffMs(attempt, db.random);
      if (!passes || db.clock.monotonic() - startedMs + delayMs > RETRY_FOR_MS) throw toAppError(error, db.label);
      await db.clock.sleep(delayMs);
    }
  }
}

/** Half fixed, half chance: two transactions that collided must not meet again. */
export function backoffMs(attempt: number, random: Random): number {
  const ceiling = Math.min(MAX_DELAY_MS, FIRST_DELAY_MS * 2 ** attempt);
  return ceiling / 2 + (random.next() * ceiling) / 2;
}
