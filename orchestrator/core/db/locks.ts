/**
 * The locks that keep two main servers from crawling one host, or publishing into one table, at a time. A lease of each
 * name records who holds it and until when; all leases of a holder carry one fence, which must be in the table of
 * fences for its writes to count. Fences have a table of their own because every write locks its fence against a
 * change, and a long publish must not keep the holder from renewing its leases.
 */
import { randomUUID } from 'node:crypto';
import type { Knex } from 'knex';
import { AppError } from '../../../shared/domain/errors.ts';
import type { LockRequest, LockGuard, LockHolder } from '../model/stores.ts';
import type { Database } from './connect.ts';
import { MysqlConnectionLock } from './connection-lock.ts';
import { inQuery, inTransaction } from './retry.ts';
import { mysqlRow, rowOf, rowsOf, type SqlNumber, toNumber } from './rows.ts';

const LEASES = 'crawlfleet_leases';
const FENCES = 'crawlfleet_fences';

interface LeaseRow {
  name: string;
  fence: SqlNumber;
  owner: string | null;
  token: string | null;
  run_id: string | null;
  expires_at: SqlNumber;
}

const FREE = { owner: null, token: null, run_id: null, expires_at: 0 };

/** The part of RunStore that is about the lock. */
export class KnexLocks {
  protected readonly db: Database;
  readonly guard: LockGuard;

  constructor(db: Database) {
    this.db = db;
    this.guard = createLockGuard(db);
  }

  acquireLock(request: LockRequest): Promise<{ fence: number } | { heldBy: LockHolder }> {
    const { owner, nowMs, leaseMs, steal = [] } = request;
    // In one order, or two requests would wait for each other.
    const names = [...new Set(request.names)].sort();
    const token = randomUUID();
    return inTransaction(this.db, async (trx) => {
      const free = names.map((name) => ({ name, fence: 0, ...FREE }));
      await trx(LEASES).insert(free).onConflict('name').ignore();
      const leases = await rowsOf<LeaseRow>(trx(LEASES).whereIn('name', names).orderBy('name').forUpdate());
      // Our own earlier attempt: it committed, but the answer was lost.
      if (leases.every((lease) => lease.token === token)) return { fence: toNumber(leases[0]?.fence) };
      const held = leases.filter((lease) => lease.owner !== null);
      const isOver = (holder: LockHolder): boolean =>
        holder.expiresAtMs <= nowMs || steal.some((dead) => isSame(holder, dead));
      const heldBy = held.map(holderOf).find((holder) => !isOver(holder));
      if (heldBy !== undefined) return { heldBy };
      const [fence] = (await trx(FENCES).insert({ owner })) as [number];
      const old = held.map((lease) => lease.fence);
      // Waits for pending writes under the old fences.
      await trx(FENCES).whereIn('fence', old).del();
      await trx(LEASES).whereIn('fence', old).update(FREE);
      const values = { fence, owner, token, run_id: null, expires_at: nowMs + leaseMs };
      await trx(LEASES).whereIn('name', names).update(values);
      return { fence };
    });
  }

  async renewLock(fence: number, nowMs: number, leaseMs: number, runId: string | null): Promise<boolean> {
    const values = { run_id: runId, expires_at: nowMs + leaseMs };
    const changed = await inQuery(this.db, (knex) =>
      knex(LEASES).where({ fence }).whereNotNull('owner').update(values),
    );
    return changed > 0;
  }

  async releaseLock(fence: number): Promise<void> {
    await inTransaction(this.db, async (trx) => {
      await trx(LEASES).where({ fence }).update(FREE);
      await trx(FENCES).where({ fence }).del();
    });
  }
}

/**
 * The database's own clock and named locks; SQLite has neither, and all processes that use its file share a machine.
 */
export function createLockGuard(db: Database): LockGuard {
  return {
    async nowMs() {
      if (db.engine === 'sqlite') return db.clock.now();
      const row = await inQuery(db, (knex) =>
        mysqlRow<{ now: SqlNumber }>(knex.raw('select unix_timestamp(now(3)) as now')),
      );
      return Math.round(toNumber(row.now) * 1_000);
    },
    holders: (names) =>
      inQuery(db, async (knex) => {
        const query = knex(LEASES).whereNotNull('owner');
        const leases = await rowsOf<LeaseRow>(names ? query.whereIn('name', [...names]) : query);
        const byFence = new Map(leases.map((lease) => [toNumber(lease.fence), holderOf(lease)]));
        return [...byFence.values()];
      }),
    isFile: db.engine === 'sqlite',
    connection: db.engine === 'mysql' ? (names) => new MysqlConnectionLock(db, names) : null,
  };
}

/** A lease with a holder. */
export interface HeldLease extends Pick<LockHolder, 'name' | 'runId'> {
  fence: number;
  /** False: it has expired by the clock of the database. */
  isLiving: boolean;
}

/** All leases with a holder. One that is being taken is waited for, and none changes until the commit. */
export async function heldLeases(trx: Knex.Transaction, db: Database): Promise<HeldLease[]> {
  const isMysql = db.engine === 'mysql';
  const leases = await rowsOf<LeaseRow & { now: SqlNumber }>(
    trx(LEASES)
      .whereNotNull('owner')
      .orderBy('name')
      .forShare()
      .select('*', isMysql ? trx.raw('unix_timestamp(now(3)) as now') : trx.raw('? as now', [db.clock.now() / 1_000])),
  );
  return leases.map((lease) => {
    const { name, runId, expiresAtMs } = holderOf(lease);
    return { name, runId, fence: toNumber(lease.fence), isLiving: expiresAtMs > toNumber(lease.now) * 1_000 };
  });
}

/** First step of a fenced transaction: throws `lock-held` unless the caller holds its lock, then until the commit. */
export async function assertFence(trx: Knex.Transaction, db: Database, fence: number): Promise<void> {
  const query = trx(FENCES).where({ fence }).select<{ fence: SqlNumber }[]>('fence');
  // SQLite has one writer at a time, and inTransaction has made this transaction that writer.
  const [row] = await (db.engine === 'mysql' ? query.forShare() : query);
  if (row === undefined) throw lockLost(db);
}

/** Adds the fence to the condition of a single-statement write. Call throwIfFenced afterwards when no row changed. */
export function underFence(knex: Knex, fence: number): (query: Knex.QueryBuilder) => void {
  return (query) => {
    query.whereExists(knex(FENCES).select(knex.raw('1')).where({ fence }));
  };
}

/** Throws `lock-held` when the fence is outdated. */
export async function throwIfFenced(knex: Knex, db: Database, fence: number): Promise<void> {
  const row = await rowOf<object>(knex(FENCES).where({ fence }).first('fence'));
  if (!row) throw lockLost(db);
}

function lockLost(db: Database): AppError {
  return new AppError('lock-held', `this main server has lost its lock on ${db.label}; it writes nothing more`, {
    hint: 'Another one has taken over; see: orchestrator status',
  });
}

function holderOf(lease: LeaseRow): LockHolder {
  return { name: lease.name, owner: lease.owner ?? '', runId: lease.run_id, expiresAtMs: toNumber(lease.expires_at) };
}

function isSame(a: LockHolder, b: LockHolder): boolean {
  return a.owner === b.owner && a.expiresAtMs === b.expiresAtMs;
}
