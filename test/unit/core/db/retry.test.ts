import { describe, expect, it } from 'vitest';
import { seededRandom } from '../../../../shared/adapters/random.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';
import { AppError } from '../../../../shared/domain/errors.ts';
import {
  classifyDatabaseError,
  databaseMessage,
  toAppError,
} from '../../../../orchestrator/core/db/database-errors.ts';
import { RETRY_FOR_MS, withRetry } from '../../../../orchestrator/core/db/retry.ts';

const fault = (code: string, message = code): Error => Object.assign(new Error(message), { code });

function tools() {
  return { clock: new VirtualClock(), random: seededRandom(7), label: 'database x' };
}

describe('withRetry', () => {
  it('retries after a deadlock or a lost connection', async () => {
    const db = tools();
    const faults = [fault('ER_LOCK_DEADLOCK'), fault('SQLITE_BUSY'), fault('ECONNRESET')];
    const result = withRetry(db, () => {
      const next = faults.shift();
      return next ? Promise.reject(next) : Promise.resolve('done');
    });
    await db.clock.advance(1_000);
    expect(await result).toBe('done');
  });

  it('gives up when the fault persists, with its error code', async () => {
    for (const [code, expected] of [
      ['ER_LOCK_WAIT_TIMEOUT', 'database-busy'],
      ['ECONNREFUSED', 'database-unreachable'],
      ['ER_DISK_FULL', 'database-failed'],
    ] as const) {
      const db = tools();
      let tries = 0;
      const settled = withRetry(db, () => {
        tries++;
        return Promise.reject(fault(code));
      }).catch((error: unknown) => error as AppError);
      await db.clock.advance(RETRY_FOR_MS + 5_000);
      expect(await settled).toMatchObject({ code: expected });
      expect(tries).toBeGreaterThan(10);
      expect(db.clock.monotonic()).toBeLessThanOrEqual(RETRY_FOR_MS + 5_000);
    }
  });

  it('does not retry permanent failures or our own errors', async () => {
    for (const error of [fault('ER_NO_SUCH_TABLE'), new AppError('lock-held', 'lost')]) {
      let tries = 0;
      const settled = withRetry(tools(), () => {
        tries++;
        return Promise.reject(error);
      });
      await expect(settled).rejects.toBeInstanceOf(AppError);
      expect(tries).toBe(1);
    }
  });
});

describe('database errors', () => {
  it.each([
    ['ER_RECORD_FILE_FULL', 'unwilling'],
    ['SQLITE_FULL', 'unwilling'],
    ['ER_OPTION_PREVENTS_STATEMENT', 'denied'],
    ['ER_LOCK_DEADLOCK', 'conflict'],
    ['SQLITE_BUSY_SNAPSHOT', 'conflict'],
    ['PROTOCOL_CONNECTION_LOST', 'lost'],
    ['PROTOCOL_SEQUENCE_TIMEOUT', 'lost'],
    ['ER_DATA_TOO_LONG', 'data'],
    ['SQLITE_CONSTRAINT_NOTNULL', 'data'],
    ['ER_TABLEACCESS_DENIED_ERROR', 'denied'],
    ['SQLITE_READONLY_DIRECTORY', 'denied'],
    ['ER_DUP_ENTRY', 'other'],
    ['SQLITE_CONSTRAINT_PRIMARYKEY', 'other'],
  ])('%s is %s', (code, kind) => {
    expect(classifyDatabaseError(fault(code))).toBe(kind);
  });

  it('treats SQLSTATE class 22 and check constraints of MariaDB as invalid data', () => {
    expect(classifyDatabaseError(Object.assign(fault('UNKNOWN'), { sqlState: '22032' }))).toBe('data');
    const readOnly = fault('ER_OPTION_PREVENTS_STATEMENT', 'running with the --read-only option');
    expect(classifyDatabaseError(readOnly)).toBe('unwilling');
    expect(classifyDatabaseError(fault('ER_GET_ERRNO', 'Got error 28 "No space left"'))).toBe('unwilling');
    expect(classifyDatabaseError(Object.assign(fault('UNKNOWN_CODE_PLEASE_REPORT'), { errno: 4025 }))).toBe('data');
  });

  it('show the message of the database, without the statement and its values', () => {
    const error = fault('SQLITE_ERROR', `insert into runs values ('secret - key') - no such table: runs`);
    expect(databaseMessage(error)).toBe('no such table: runs');
    const shown = toAppError(error, 'database x');
    expect(shown.message).toBe('database x: a statement failed: no such table: runs (SQLITE_ERROR)');
    expect(shown.cause).toBeUndefined();
  });
});
