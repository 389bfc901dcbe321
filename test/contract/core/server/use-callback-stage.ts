/** The stage that the tests of callbacks share: a database for each file, a run and a listener for each test. */
import { afterAll, afterEach, beforeAll, beforeEach, expect } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../../../support/mariadb/database.ts';
import { type Base, openBase, type RunShape } from '../run-stage.ts';
import { type CallbackStage, openCallbackStage } from './callback-stage.ts';
import type { Answer } from './caller.ts';

const TABLES = ['instances', 'chunks', 'parts', 'items'];

/** Registers the hooks; `take` receives each test's stage. */
export function useCallbackStage(take: (stage: CallbackStage, base: Base) => void, shape: Partial<RunShape> = {}) {
  let database: TestDatabase | undefined;
  let base: Base | undefined;
  let stage: CallbackStage | undefined;

  beforeAll(async () => {
    database = await createTestDatabase('sqlite');
    base = await openBase(database);
  });
  afterAll(async () => {
    await base?.db.close();
    await database?.drop();
  });
  beforeEach(async () => {
    stage = await openCallbackStage(base!, shape);
    take(stage, base!);
  });
  afterEach(() => stage?.close());

  /** All state of the run that a callback could change. */
  const ledger = async (): Promise<Record<string, unknown>> => {
    const rows: Record<string, unknown> = {};
    for (const table of TABLES)
      rows[table] = await base!.db.knex(`crawlfleet_${table}`).where({ run_id: stage!.run.id }).select();
    return rows;
  };
  return {
    ledger,
    /** The call is refused with this status, and the ledger is unchanged. */
    expectRefused: async (status: number, call: () => Promise<Answer>): Promise<void> => {
      const before = await ledger();
      const answer = await call();
      expect(answer.status).toBe(status);
      expect(answer.authentic).toBe(false);
      expect(await ledger()).toEqual(before);
    },
  };
}
