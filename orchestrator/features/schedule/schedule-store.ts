/** The record of a schedule, on knex: orchestrator/features/schedule/due-times.ts says what its rows mean. */
import type { DueState, DueTime, StoredDueTime } from './due-times.ts';
import type { SqlValue } from '../../core/db/bulk-insert.ts';
import type { Database } from '../../core/db/connect.ts';
import { createLockGuard } from '../../core/db/locks.ts';
import { inQuery } from '../../core/db/retry.ts';
import { Columns, countOf, rowsOf, toNumber } from '../../core/db/rows.ts';

const TABLE = 'crawlfleet_schedule';
/** How many due times are read at least, newest first. */
const READ_ROWS = 200;

type Row = Record<string, SqlValue>;

const DUE_TIME = new Columns<DueTime>({
  dueAtMs: 'number',
  state: 'text',
  reason: 'text',
  owner: 'text',
  runner: 'text',
  runId: 'text',
  deadlineAtMs: 'number',
  startedAtMs: 'number',
  endedAtMs: 'number',
  result: 'json',
  told: 'boolean',
});

/** What a daemon does with the record; the class says more. */
export type DueTimeStore = Pick<ScheduleStore, 'read' | 'write' | 'forget'>;

export class ScheduleStore {
  readonly #db: Database;
  readonly #name: string;

  /** Needs the tables of migrate(). `name` tells schedules apart that share a database. */
  constructor(db: Database, name: string) {
    [this.#db, this.#name] = [db, name];
  }

  /** All that is ahead, waits or has begun, and the newest 200, oldest first. */
  async read(): Promise<StoredDueTime[]> {
    const nowMs = await this.#now();
    const rows = await inQuery(this.#db, async (knex) => {
      const own = () => knex(TABLE).where({ name: this.#name }).orderBy('due_at', 'desc');
      const open = own().whereIn('state', ['next', 'queued', 'started']);
      return [...(await rowsOf<Row>(own().limit(READ_ROWS))), ...(await rowsOf<Row>(open))];
    });
    const unique = new Map(
      rows.map((row) => [toNumber(row.due_at), { ...DUE_TIME.read(row), idleMs: nowMs - toNumber(row.written_at) }]),
    );
    return [...unique.values()].sort((a, b) => a.dueAtMs - b.dueAtMs);
  }

  /** The due time that a daemon waits for; null when none has one ahead of it. */
  async nextDue(): Promise<number | null> {
    const nowMs = await this.#now();
    return (await this.read()).find(({ state, dueAtMs }) => state === 'next' && dueAtMs > nowMs)?.dueAtMs ?? null;
  }

  /**
   * Changes the row if it is as `from` says; null inserts it if there is none. True for one caller only, also when the
   * answer to an earlier try was lost: therefore `from` or `change` must name the caller.
   */
  async write(dueAtMs: number, from: Partial<DueTime> | null, change: Partial<DueTime>): Promise<boolean> {
    const key = { name: this.#name, due_at: dueAtMs };
    const row = toRow(change);
    const written_at = await this.#now();
    return inQuery(this.#db, async (knex) => {
      const there = knex(TABLE).where({ ...key, ...toRow(from ?? {}) });
      if (from) await there.update({ ...row, written_at });
      else
        await knex(TABLE)
          .insert({ ...key, ...row, written_at })
          .onConflict(['name', 'due_at'])
          .ignore();
      return (await countOf(knex(TABLE).where({ ...key, ...toRow(from ?? {}), ...row }))) > 0;
    });
  }

  async forget(dueAtMs: number, state: DueState): Promise<void> {
    await inQuery(this.#db, (knex) => knex(TABLE).where({ name: this.#name, due_at: dueAtMs, state }).delete());
  }

  /** The time by the database's clock: daemons of two machines need not agree on it. */
  #now(): Promise<number> {
    return createLockGuard(this.#db).nowMs();
  }
}

/** The result's run and exit code have columns of their own, for those who read with SQL. */
const toRow = (change: Partial<DueTime>): Row => ({
  ...DUE_TIME.write(change),
  ...(change.result && { run_id: change.result.run, exit_code: change.result.exitCode }),
});
