/** The record of a schedule on both engines, and the one that the tests in memory use: one row, one caller. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Database, openDatabase } from '../../../../orchestrator/core/db/connect.ts';
import { migrate } from '../../../../orchestrator/core/db/migrate.ts';
import { type DueTimeStore, ScheduleStore } from '../../../../orchestrator/features/schedule/schedule-store.ts';
import { NO_RESULT, type RunResult } from '../../../../orchestrator/core/read/run-result.ts';
import { systemClock } from '../../../../shared/adapters/system-clock.ts';
import { eachEngine } from '../../../support/mariadb/database.ts';
import { MemoryRecord } from '../../../unit/features/schedule/memory-record.ts';

const DUE = Date.UTC(2026, 10, 21, 2);
const [A, B] = ['here:1:1', 'other:2:2'];
const RESULT: RunResult = {
  ...NO_RESULT,
  run: 'run-a',
  exitCode: 12,
  reason: 'failed products',
  products: { planned: 2, stored: 1, gone: 0, failed: 1 },
};

function keepsTheContract(make: () => DueTimeStore): void {
  it('inserts a due time once', async () => {
    const store = make();
    expect(await store.write(DUE, null, { state: 'next', reason: 'spec', owner: A })).toBe(true);
    expect(await store.write(DUE, null, { state: 'next', reason: 'spec', owner: B })).toBe(false);
    const [row, ...others] = await store.read();
    const blank = {
      runner: null,
      runId: null,
      deadlineAtMs: null,
      startedAtMs: null,
      endedAtMs: null,
      result: null,
      told: false,
    };
    expect(row).toEqual({
      dueAtMs: DUE,
      state: 'next',
      reason: 'spec',
      owner: A,
      ...blank,
      idleMs: expect.any(Number),
    });
    expect(row!.idleMs).toBeLessThan(10_000);
    expect(others).toEqual([]);
  });

  it('changes a row only as long as it is as the caller has seen it', async () => {
    const store = make();
    await store.write(DUE, null, { state: 'next', owner: A });
    expect(await store.write(DUE, { state: 'next' }, { state: 'started', owner: A })).toBe(true);
    expect(await store.write(DUE, { state: 'next' }, { state: 'started', owner: B })).toBe(false);
    // A run is bound to the row once, and only by the process that was started last.
    const seen = { state: 'started', owner: A, runner: null } as const;
    expect(await store.write(DUE, { ...seen, owner: B }, { runner: 'p' })).toBe(false);
    expect(await store.write(DUE, seen, { runner: 'p', startedAtMs: 5 })).toBe(true);
    expect(await store.write(DUE, seen, { runner: 'q' })).toBe(false);
    expect(await store.write(DUE, { state: 'started', runner: 'p' }, { runId: 'run-a' })).toBe(true);
    const end = { state: 'done', result: RESULT, reason: RESULT.reason, endedAtMs: 9, told: true } as const;
    expect(await store.write(DUE, { runner: 'q' }, end)).toBe(false);
    expect(await store.write(DUE, { runner: 'p' }, end)).toBe(true);
    expect(await store.read()).toMatchObject([{ ...end, owner: A, runner: 'p', runId: 'run-a', startedAtMs: 5 }]);
  });

  it('gives a row back without what its process has written', async () => {
    const store = make();
    await store.write(DUE, null, { state: 'started', owner: A, runner: 'p', runId: 'run-a' });
    const blank = { runner: null, runId: null, startedAtMs: null } as const;
    expect(await store.write(DUE, { runner: 'p' }, { state: 'queued', ...blank })).toBe(true);
    expect(await store.read()).toMatchObject([{ state: 'queued', owner: A, ...blank }]);
  });

  it('forgets a row only in the state that the caller has seen, and reads the oldest first', async () => {
    const store = make();
    for (const [i, state] of (['missed', 'queued', 'next'] as const).entries())
      await store.write(DUE - i, null, { state, owner: A });
    await store.forget(DUE - 1, 'missed');
    await store.forget(DUE, 'missed');
    expect((await store.read()).map((row) => row.state)).toEqual(['next', 'queued']);
  });
}

eachEngine('F41 the record of a schedule', (database) => {
  let databases: Database[];
  let names = 0;
  beforeAll(async () => {
    databases = [await openDatabase(database().url), await openDatabase(database().url)];
    await migrate(databases[0]!);
  });
  afterAll(() => Promise.all(databases.map((db) => db.close())));
  keepsTheContract(() => new ScheduleStore(databases[0]!, `schedule ${++names}`));

  it('keeps schedules of other names apart', async () => {
    for (const name of ['a', 'b'])
      expect(await new ScheduleStore(databases[0]!, name).write(1_000, null, { state: 'next', owner: A })).toBe(true);
  });

  it('of two daemons on connections of their own lets one start each of many due times', async () => {
    const [a, b] = databases.map((db) => new ScheduleStore(db, 'race'));
    const won = await Promise.all(
      Array.from({ length: 20 }, async (_, i) => {
        await a!.write(i, null, { state: 'next', owner: A });
        const start = (store: ScheduleStore, owner: string): Promise<boolean> =>
          store.write(i, { state: 'next' }, { state: 'started', owner });
        return (await Promise.all([start(a!, A), start(b!, B)])).filter(Boolean).length;
      }),
    );
    expect(won).toEqual(Array.from({ length: 20 }, () => 1));
  });

  it('has columns for those who read with SQL', async () => {
    await new ScheduleStore(databases[0]!, 'sql').write(7, null, { state: 'done', result: RESULT });
    const row = (await databases[0]!.knex('crawlfleet_schedule').where({ name: 'sql' }).first()) as object;
    expect(row).toMatchObject({ run_id: 'run-a', exit_code: 12 });
  });
});

describe('F41 the record of a schedule in memory', () => keepsTheContract(() => new MemoryRecord(systemClock)));
