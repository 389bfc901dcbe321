/** One run of a database as its stores see it: its key in every table, and writes under the fence of a main server. */
import type { Knex } from 'knex';
import type { EpochId } from '../../../shared/domain/epoch-id.ts';
import type { RunBinding } from '../model/stores.ts';
import type { Database } from './connect.ts';
import { assertFence, throwIfFenced, underFence } from './locks.ts';
import { type Attempt, inQuery, inTransaction } from './retry.ts';
import { rowsOf } from './rows.ts';

export class BoundRun {
  readonly db: Database;
  readonly id: string;
  readonly #binding: RunBinding;

  constructor(db: Database, binding: RunBinding) {
    this.db = db;
    this.id = binding.runId;
    this.#binding = binding;
  }

  /** The number under which it writes. */
  get fence(): number {
    return this.#binding.fence;
  }

  now(): number {
    return this.#binding.clock.now();
  }

  /** The columns alone, whatever else the object holds. */
  key({ slot, epoch }: EpochId): { run_id: string; slot: number; epoch: number } {
    return { run_id: this.id, slot, epoch };
  }

  query<T>(work: (knex: Knex) => Promise<T>): Promise<T> {
    return inQuery(this.db, work);
  }

  /** The rows of one query in the shape of its columns. */
  rows<T>(select: (knex: Knex) => PromiseLike<unknown>): Promise<T[]> {
    return this.query((knex) => rowsOf<T>(select(knex)));
  }

  /** A transaction under the fence, which cannot change until the commit. */
  write<T>(work: (trx: Knex.Transaction, attempt: Attempt) => Promise<T>): Promise<T> {
    return inTransaction(this.db, async (trx, attempt) => {
      await assertFence(trx, this.db, this.#binding.fence);
      return work(trx, attempt);
    });
  }

  /** One update under the fence, as the first statement of a query; returns the number of changed rows. */
  async update(knex: Knex, rows: Knex.QueryBuilder, values: object): Promise<number> {
    const { fence } = this.#binding;
    const changed = await rows.modify(underFence(knex, fence)).update(values);
    if (changed === 0) await throwIfFenced(knex, this.db, fence);
    return changed;
  }
}
