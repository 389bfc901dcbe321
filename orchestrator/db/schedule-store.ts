/** The record of a schedule, on knex. Every write of a leader names its fence, in the same statement or transaction. */
import { randomUUID } from 'node:crypto';
import type { Knex } from 'knex';
import type { Lead, Leader, RunResult, ScheduleStore, Slot, SlotChange, SlotState } from '../schedule/slots.ts';
import type { Database } from './connect.ts';
import { createLockGuard } from './locks.ts';
import { inQuery, inTransaction } from './retry.ts';
import type { SqlNumber } from './rows.ts';
import { parseJson, rowOf, rowsOf, toNumber, toNumberOrNull } from './rows.ts';

const LEADERS = 'crawlfleet_schedulers';
const SLOTS = 'crawlfleet_schedule';

interface LeaderRow {
  fence: SqlNumber;
  owner: string | null;
  token: string | null;
  expires_at: SqlNumber;
  spec: string;
  since_at: SqlNumber;
}

interface SlotRow {
  due_at: SqlNumber;
  state: SlotState;
  fence: SqlNumber;
  reason: string | null;
  runner: string | null;
  run_id: string | null;
  written_at: SqlNumber;
  started_at: SqlNumber | null;
  ended_at: SqlNumber | null;
  result: string | null;
  told: SqlNumber;
}

export class KnexScheduleStore implements ScheduleStore {
  readonly #db: Database;
  readonly #name: string;

  /** Needs the tables of migrate(). `name` tells schedules apart that share a database. */
  constructor(db: Database, name: string) {
    this.#db = db;
    this.#name = name;
  }

  async takeLead(owner: string, spec: string, leaseMs: number, steal?: Leader): Promise<Lead | { heldBy: Leader }> {
    const token = randomUUID();
    const name = this.#name;
    // The lease is read by the database's clock, as that of a run: daemons of two machines need not agree on the time.
    const nowMs = await this.#now();
    const hereMs = this.#db.clock.now();
    return inTransaction(this.#db, async (trx) => {
      await trx(LEADERS)
        .insert({ name, fence: 0, owner: null, token: null, expires_at: 0, spec: '', since_at: hereMs })
        .onConflict('name')
        .ignore();
      const row = (await rowOf<LeaderRow>(trx(LEADERS).where({ name }).forUpdate().first()))!;
      // Our own earlier try, whose commit got through although its answer did not.
      if (row.token === token) return { fence: toNumber(row.fence), sinceMs: toNumber(row.since_at) };
      const holder = row.owner === null ? null : { owner: row.owner, expiresAtMs: toNumber(row.expires_at) };
      const stolen = steal !== undefined && holder?.owner === steal.owner && holder.expiresAtMs === steal.expiresAtMs;
      if (holder && holder.expiresAtMs > nowMs && !stolen) return { heldBy: holder };
      const fence = toNumber(row.fence) + 1;
      const sinceMs = row.spec === spec ? toNumber(row.since_at) : hereMs;
      await trx(LEADERS)
        .where({ name })
        .update({ fence, owner, token, expires_at: nowMs + leaseMs, spec, since_at: sinceMs });
      return { fence, sinceMs };
    });
  }

  async keepLead(fence: number, leaseMs: number): Promise<boolean> {
    const nowMs = await this.#now();
    const kept = await inQuery(this.#db, (knex) =>
      knex(LEADERS)
        .where({ name: this.#name, fence })
        .whereNotNull('owner')
        .update({ expires_at: nowMs + leaseMs }),
    );
    return kept > 0;
  }

  async leaveLead(fence: number): Promise<void> {
    await inQuery(this.#db, (knex) =>
      knex(LEADERS).where({ name: this.#name, fence }).update({ owner: null, token: null, expires_at: 0 }),
    );
  }

  claim(dueAtMs: number, state: SlotState, reason: string | null, fence: number): Promise<boolean> {
    const key = { name: this.#name, due_at: dueAtMs };
    const writtenAt = this.#db.clock.now();
    const values = { state, fence, reason, written_at: writtenAt };
    return inTransaction(this.#db, async (trx, attempt) => {
      // Kept so until the commit: nobody can take the lead in between.
      const leader = trx(LEADERS).where({ name: this.#name }).select<{ fence: SqlNumber }[]>('fence');
      const [row] = await (this.#db.engine === 'mysql' ? leader.forShare() : leader);
      if (toNumber(row?.fence) !== fence) return false;
      const there = await rowOf<SlotRow>(trx(SLOTS).where(key).forUpdate().first());
      if (!there) {
        await trx(SLOTS).insert({ ...key, ...values, told: 0 });
        return true;
      }
      const written = toNumber(there.written_at);
      if (attempt.maybeDone && toNumber(there.fence) === fence && there.state === state && written === writtenAt)
        return true;
      if (there.state !== 'missed' || written <= writtenAt) return false;
      await trx(SLOTS)
        .where(key)
        .update({ ...values, runner: null, run_id: null, told: 0 });
      return true;
    });
  }

  async change(dueAtMs: number, from: SlotState, change: SlotChange, fence: number): Promise<boolean> {
    const changed = await inQuery(this.#db, (knex) =>
      knex(SLOTS)
        .where({ name: this.#name, due_at: dueAtMs, state: from })
        .whereExists(knex(LEADERS).select(knex.raw('1')).where({ name: this.#name, fence }))
        .update({ ...toRow(change), fence, written_at: this.#db.clock.now() }),
    );
    return changed > 0;
  }

  async signIn(dueAtMs: number, fence: number, runner: string): Promise<boolean> {
    const key = { name: this.#name, due_at: dueAtMs, state: 'started', fence };
    return inQuery(this.#db, async (knex) => {
      const changed = await knex(SLOTS)
        .where(key)
        .whereNull('runner')
        .update({ runner, started_at: this.#db.clock.now() });
      // A lost answer: then it is signed already.
      return changed > 0 || (await isThere(knex, { ...key, runner }));
    });
  }

  async bindRun(dueAtMs: number, runner: string, runId: string): Promise<boolean> {
    const key = { name: this.#name, due_at: dueAtMs, runner, state: 'started' };
    return inQuery(this.#db, async (knex) => {
      const changed = await knex(SLOTS).where(key).update({ run_id: runId });
      // MySQL counts what is different.
      return changed > 0 || (await isThere(knex, { ...key, run_id: runId }));
    });
  }

  async markTold(dueAtMs: number, state: SlotState, fence: number): Promise<void> {
    await inQuery(this.#db, (knex) =>
      knex(SLOTS)
        .where({ name: this.#name, due_at: dueAtMs, state })
        .whereExists(knex(LEADERS).select(knex.raw('1')).where({ name: this.#name, fence }))
        .update({ told: 1 }),
    );
  }

  async decidedUpTo(nowMs: number): Promise<number | null> {
    const [slot] = await this.#select((query) =>
      query
        .where('due_at', '<=', nowMs)
        .where((q) => void q.whereNot({ state: 'missed' }).orWhere('written_at', '<=', nowMs))
        .orderBy('due_at', 'desc')
        .limit(1),
    );
    return slot?.dueAtMs ?? null;
  }

  async signOut(dueAtMs: number, runner: string, result: RunResult): Promise<boolean> {
    const key = { name: this.#name, due_at: dueAtMs, runner };
    const values = toRow({ state: 'done', result, endedAtMs: this.#db.clock.now() });
    return inQuery(this.#db, async (knex) => {
      const changed = await knex(SLOTS)
        .where({ ...key, state: 'started' })
        .update({ ...values, written_at: this.#db.clock.now() });
      return changed > 0 || (await isThere(knex, { ...key, state: 'done' }));
    });
  }

  open(): Promise<Slot[]> {
    return this.#select((query) => query.whereIn('state', ['queued', 'started']).orderBy('due_at'));
  }

  untold(sinceMs: number): Promise<Slot[]> {
    return this.#select((query) =>
      query
        .whereIn('state', ['done', 'skipped', 'missed'])
        .where({ told: 0 })
        .where('written_at', '>=', sinceMs)
        .orderBy('due_at'),
    );
  }

  list(limit: number, upToMs = Number.MAX_SAFE_INTEGER): Promise<Slot[]> {
    return this.#select((query) => query.where('due_at', '<=', upToMs).orderBy('due_at', 'desc').limit(limit));
  }

  async get(dueAtMs: number): Promise<Slot | null> {
    const [slot] = await this.#select((query) => query.where({ due_at: dueAtMs }));
    return slot ?? null;
  }

  async #select(narrow: (query: Knex.QueryBuilder) => Knex.QueryBuilder): Promise<Slot[]> {
    const rows = await inQuery(this.#db, (knex) => rowsOf<SlotRow>(narrow(knex(SLOTS).where({ name: this.#name }))));
    return rows.map(fromRow);
  }

  #now(): Promise<number> {
    return createLockGuard(this.#db).nowMs();
  }
}

async function isThere(knex: Knex, key: Record<string, unknown>): Promise<boolean> {
  return (await rowOf<object>(knex(SLOTS).where(key).first('due_at'))) !== undefined;
}

function toRow(change: SlotChange): Record<string, unknown> {
  const { state, reason, runner, runId, startedAtMs, endedAtMs, result } = change;
  return {
    state,
    ...(reason === undefined ? {} : { reason }),
    ...(runner === undefined ? {} : { runner }),
    ...(runId === undefined ? {} : { run_id: runId }),
    ...(startedAtMs === undefined ? {} : { started_at: startedAtMs }),
    ...(endedAtMs === undefined ? {} : { ended_at: endedAtMs }),
    // Run and exit code stand beside the JSON for those who look with SQL.
    ...(result === undefined
      ? {}
      : {
          result: result === null ? null : JSON.stringify(result),
          run_id: result?.run ?? null,
          exit_code: result?.exitCode ?? null,
        }),
  };
}

function fromRow(row: SlotRow): Slot {
  return {
    dueAtMs: toNumber(row.due_at),
    state: row.state,
    fence: toNumber(row.fence),
    reason: row.reason,
    runner: row.runner,
    runId: row.run_id,
    startedAtMs: toNumberOrNull(row.started_at),
    endedAtMs: toNumberOrNull(row.ended_at),
    result: parseJson(row.result) as RunResult | null,
    told: Number(row.told) !== 0,
  };
}
