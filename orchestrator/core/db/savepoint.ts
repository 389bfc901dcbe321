/** A part of a transaction that may fail by itself. */
import type { Knex } from 'knex';
import { AppError } from '../../../shared/domain/errors.ts';
import { classifyDatabaseError, databaseMessage } from './database-errors.ts';

const NAME = 'crawlfleet_try';

/** The database has ended the transaction, as SQLite's RAISE(ROLLBACK) does. */
export class TransactionEnded extends Error {
  override readonly name = 'TransactionEnded';
}

/** True for an error that the values of a row may have caused: no lock, lost connection, full disk or missing right. */
export function mayBeARow(error: unknown): error is Error {
  const fault = classifyDatabaseError(error);
  return error instanceof Error && !(error instanceof AppError) && (fault === 'data' || fault === 'other');
}

/**
 * The error that a row has caused, with nothing of `work` left; null when there was none. Rejects with any other error,
 * and with TransactionEnded.
 */
export async function errorOfRows(trx: Knex.Transaction, work: () => Promise<void>): Promise<Error | null> {
  await trx.raw(`savepoint ${NAME}`);
  try {
    await work();
    await trx.raw(`release savepoint ${NAME}`);
    return null;
  } catch (error) {
    if (!mayBeARow(error)) throw error;
    try {
      await trx.raw(`rollback to savepoint ${NAME}`);
    } catch {
      throw new TransactionEnded(databaseMessage(error));
    }
    return error;
  }
}
