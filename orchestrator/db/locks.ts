/**
 * The lock that keeps two main servers from using one database. Two rows: `fence` holds the fencing token under which
 * the holder writes, `lease` records the holder and the expiry. They are separate because every write locks the fence
 * row against a change, and a long publish must not keep the holder from renewing its own lease.
 */
import { randomUUID } from 'node:crypto';
import type { Knex } from 'knex';
import { AppError } from '../../shared/domain/errors.ts';
import type { LockGuard, LockHolder } from '../control/model/stores.ts';
import type { Database } from './connect.ts';
import { MysqlConnectionLock } from './connection-lock.ts';
import { inQuery, inTransaction } from './retry.ts';
import { mysqlRow, rowOf, type SqlNumber, toNumber } from './rows.ts';

const TABLE = 'crawlfleet_locks';

interface LeaseRow {
  fence: SqlNumber;
  owner: string | null;
  token: string | null;
  run_id: string | null;
  expires_at: SqlNumber;
}

/** The part of RunStore that is about the lock. */
export class KnexLocks {
  protected readonly db: Database;
  readonly guard: LockGuard;

  constructor(db: Database) {
    this.db = db;
    this.guard = createLockGuard(db);
  }

  /** Takes a free or expired lease, or exactly the lease that `steal` describes. */
  acquireLock(
    owner: string,
    nowMs: number,
    leaseMs: number,
    steal?: LockHolder,
  ): Promise<{ fence: number } | { heldBy: LockHolder }> {
    const token = randomUUID();
    return inTransaction(this.db, async (trx) => {
      const lease = await rowOf<LeaseRow>(trx(TABLE).where({ name: 'lease' }).forUpdate().first());
      if (!lease) throw new AppError('internal', `${this.db.label}: the lock row is missing`);
      // Our own earlier attempt: it committed, but the answer was lost.
      if (lease.token === token) return { fence: toNumber(lease.fence) };
      const holder = lease.owner === null ? null : holderOf(lease);
      const free = !holder || holder.expiresAtMs <= nowMs || (steal !== undefined && isSame(holder, steal));
      if (!free) return { heldBy: holder };
      const fence = toNumber(lease.fence) + 1;
      await trx(TABLE)
        .where({ name: 'lease' })
        .update({ fence, owner, token, run_id: null, expires_at: nowMs + leaseMs });
      // Waits for pending writes under the old fence.
      await trx(TABLE).where({ name: 'fence' }).update({ fence });
      return { fence };
    });
  }

  async renewLock(fence: number, nowMs: number, leaseMs: number, runId: string | null): Promise<boolean> {
    const values = { run_id: runId, expires_at: nowMs + leaseMs };
    const changed = await inQuery(this.db, (knex) =>
      knex(TABLE).where({ name: 'lease', fence }).whereNotNull('owner').update(values),
    );
    return changed > 0;
  }

  /** The fence stays, so the next holder's is higher. */
  async releaseLock(fence: number): Promise<void> {
    const free = { fence: fence + 1, owner: null, token: null, run_id: null, expires_at: 0 };
    await inTransaction(this.db, async (trx) => {
      if ((await trx(TABLE).where({ name: 'lease', fence }).update(free)) > 0)
        await trx(TABLE)
          .where({ name: 'fence', fence })
          .update({ fence: fence + 1 });
    });
  }
}

/** The database's own clock and named lock; SQLite has neither, and all processes that use its file share a machine. */
export function createLockGuard(db: Database): LockGuard {
  return {
    async nowMs() {
      if (db.engine === 'sqlite') return db.clock.now();
      const row = await inQuery(db, (knex) =>
        mysqlRow<{ now: SqlNumber }>(knex.raw('select unix_timestamp(now(3)) as now')),
      );
      return Math.round(toNumber(row?.now) * 1_000);
    },
    holder: () =>
      inQuery(db, async (knex) => {
        const lease = await rowOf<LeaseRow>(knex(TABLE).where({ name: 'lease' }).first());
        return lease && lease.owner !== null ? holderOf(lease) : null;
      }),
    isFile: db.engine === 'sqlite',
    connection: db.engine === 'mysql' ? new MysqlConnectionLock(db) : null,
  };
}

/** First step of a fenced transaction: throws `lock-held` unless the caller holds the lock, then until the commit. */
export async function assertFence(trx: Knex.Transaction, db: Database, fence: number): Promise<void> {
  const query = trx(TABLE).where({ name: 'fence' }).select<{ fence: SqlNumber }[]>('fence');
  // SQLite has one writer at a time, and inTransaction has made this transaction that writer.
  const [row] = await (db.engine === 'mysql' ? query.forShare() : query);
  if (toNumber(row?.fence) !== fence) throw lockLost(db);
}

/** For a single-statement write: adds the fence to its condition. Call throwIfFenced afterwards when no row changed. */
export function underFence(knex: Knex, fence: number): (query: Knex.QueryBuilder) => void {
  return (query) => {
    query.whereExists(knex(TABLE).select(knex.raw('1')).where({ name: 'fence', fence }));
  };
}

/** Throws `lock-held` when the fence is outdated. */
export async function throwIfFenced(knex: Knex, db: Database, fence: number): Promise<void> {
  const row = await rowOf<object>(knex(TABLE).where({ name: 'fence', fence }).first('fence'));
  if (!row) throw lockLost(db);
}

function lockLost(db: Database): AppError {
  return new AppError('lock-held', `this main server has lost its lock on ${db.label}; it writes nothing more`, {
    hint: 'Another one has taken over; see: orchestrator status',
  });
}

function holderOf(lease: LeaseRow): LockHolder {
  return { owner: lease.owner ?? '', runId: lease.run_id, expiresAtMs: toNumber(lease.expires_at) };
}

function isSame(a: LockHolder, b: LockHolder): boolean {
  return a.owner === b.owner && a.expiresAtMs === b.expiresAtMs;
}
