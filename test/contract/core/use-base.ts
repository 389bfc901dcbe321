/** A database for this suite, migrated and with its lock held, for tests of the control core. */
import { afterAll, beforeAll } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../../support/mariadb/database.ts';
import { type Base, openBase } from './run-stage.ts';

/** @param hand receives it before the first test */
export function useBase(hand: (base: Base) => void): void {
  let database: TestDatabase | undefined;
  let base: Base | undefined;
  beforeAll(async () => {
    database = await createTestDatabase('sqlite');
    base = await openBase(database);
    hand(base);
  });
  afterAll(async () => {
    await base?.db.close();
    await database?.drop();
  });
}
