/**
 * Which rows the result table refuses: by a constraint, a foreign key, a trigger or a generated column of the user's.
 * The staging table has their types and not their rules, so only publishing shows it. Products are tried in a
 * transaction that is always rolled back: a window of them at once, then halves, down to single ones. A product is
 * refused if it raises an error again when it is tried alone.
 */
import type { Knex } from 'knex';
import type { FieldType } from '../../../shared/domain/mapping.ts';
import { AppError } from '../../../shared/domain/errors.ts';
import type { PublishEnd, Refusal, RefusedRows, TableRule } from '../model/stores.ts';
import type { BoundRun } from './bound-run.ts';
import type { Database } from './connect.ts';
import { databaseCode, databaseMessage, toAppError } from './database-errors.ts';
import { newerRuns, withoutSettled } from './newer-runs.ts';
import { fieldValues, readDecisions } from './number-columns.ts';
import { deleteVanishedRows, type Publishing, upsertRows } from './publish-rows.ts';
import { inDiscardedTransaction } from './retry.ts';
import { rowOf } from './rows.ts';
import { readRunShape } from './run-shape.ts';
import { errorOfRows, mayBeARow, TransactionEnded } from './savepoint.ts';
import { LONG_STATEMENT_MS } from './statement-timeout.ts';
import { columnIn, readRules } from './table-rules.ts';

/** Products of one statement. */
const WINDOW = 5_000;
const VALUE_CHARS = 80;
const NUMBERS: ReadonlySet<FieldType> = new Set(['number', 'integer', 'boolean']);

/** A statement of publishing failed, perhaps by the values of one row. */
export class StatementRefused extends AppError {
  override readonly name = 'StatementRefused';
}

/** Runs a statement of publishing; an error that one row may have caused becomes a StatementRefused. */
export async function blamingRows<T>(db: Database, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!mayBeARow(error)) throw error;
    const { code, message, hint } = toAppError(error, db.label);
    throw new StatementRefused(code, message, hint === undefined ? {} : { hint });
  }
}

/** @param limits ends the search after that time, or with more products than that */
export async function findRefusedRows(
  bound: BoundRun,
  end: PublishEnd,
  limits: { forMs: number; most: number },
): Promise<Omit<RefusedRows, 'words'>> {
  const { db } = bound;
  const search = new Search(bound, { ...limits, endMs: db.clock.monotonic() + limits.forMs });
  while (!search.isOver) await inDiscardedTransaction(db, (trx) => search.goOn(trx, end));
  return { refusals: search.refusals, complete: search.isComplete };
}

class Search {
  readonly refusals: Refusal[] = [];
  isComplete = false;
  readonly #bound: BoundRun;
  readonly #limits: { endMs: number; most: number };
  /** Products that are still to be tried, in reverse: together, and after an error in halves. */
  readonly #waiting: string[][] = [];
  /** Single products that have raised an error once. */
  readonly #suspects = new Set<string>();
  /** The last product of the windows so far; null when there is no further one. */
  #after: string | null = '';

  constructor(bound: BoundRun, limits: { endMs: number; most: number }) {
    this.#bound = bound;
    this.#limits = limits;
  }

  get isOver(): boolean {
    return this.isComplete || this.refusals.length > this.#limits.most || this.#isLate;
  }

  get #isLate(): boolean {
    return this.#bound.db.clock.monotonic() >= this.#limits.endMs;
  }

  /** Looks for refused rows until all are found, or the database ends the transaction. What was found stays. */
  async goOn(trx: Knex.Transaction, end: PublishEnd): Promise<void> {
    const { db, id: runId } = this.#bound;
    const shape = await readRunShape(trx, db, runId);
    const decisions = await readDecisions(trx, runId, shape);
    const rules = await readRules(trx, db, shape.results.table);
    const newer = end.overNewer === true ? [] : await newerRuns(trx, runId);
    try {
      await withoutSettled(trx, db, newer, async (exceptSettled) => {
        const publishing = { runId, shape, decisions, exceptSettled };
        // What fails without any row is no row's fault.
        const own = await attempt(trx, db, { ...publishing, only: (rows) => void rows.whereRaw('1 = 0') });
        if (own !== null) throw own;
        while (!this.isOver) await this.#step(trx, publishing, rules);
      });
    } catch (error) {
      if (!(error instanceof TransactionEnded)) throw error;
    }
  }

  async #step(trx: Knex.Transaction, publishing: Publishing, rules: readonly TableRule[]): Promise<void> {
    const ids = this.#waiting.pop() ?? (await this.#nextWindow(trx, publishing));
    const [first, last] = [ids[0], ids.at(-1)];
    if (first === undefined || last === undefined) {
      this.isComplete = true;
      return;
    }
    const only = (rows: Knex.QueryBuilder): void => void rows.whereBetween('product_id', [first, last]);
    const problem = await attempt(trx, this.#bound.db, { ...publishing, only }).catch((error: unknown) => {
      if (error instanceof TransactionEnded) this.#note(ids, null);
      throw error;
    });
    if (problem === null) return;
    const isCertain = this.#suspects.has(first) && ids.length === 1;
    this.#note(ids, isCertain ? await describe(trx, { publishing, id: first, problem, rules }) : null);
  }

  /** @param detail of a single product that has raised an error twice */
  #note(ids: readonly string[], detail: string | null): void {
    const [first] = ids as readonly [string];
    if (ids.length > 1) {
      const middle = Math.ceil(ids.length / 2);
      this.#waiting.push(ids.slice(middle), ids.slice(0, middle));
    } else if (detail !== null || this.#suspects.has(first)) {
      const words = detail ?? 'the result table refuses the row, and ends the transaction';
      this.refusals.push({ id: first, outcome: 'failed', reason: 'load', detail: words });
    } else {
      this.#suspects.add(first);
      this.#waiting.push([first]);
    }
  }

  async #nextWindow(trx: Knex.Transaction, { shape, exceptSettled }: Publishing): Promise<string[]> {
    if (this.#after === null) return [];
    const ids = await trx(shape.staging)
      .where('product_id', '>', this.#after)
      .modify(exceptSettled)
      .distinct('product_id')
      .orderBy('product_id')
      .limit(WINDOW)
      .options({ timeout: LONG_STATEMENT_MS })
      .pluck<string[]>('product_id');
    this.#after = ids.at(-1) ?? null;
    return ids;
  }
}

/** The error of a row; null when all went in. Rows that went in stay until the transaction ends. */
function attempt(trx: Knex.Transaction, db: Database, publishing: Publishing): Promise<Error | null> {
  return errorOfRows(trx, async () => {
    await upsertRows(trx, db, publishing);
    if (publishing.shape.rowKey !== null) await deleteVanishedRows(trx, db, publishing);
  });
}

interface Refused {
  publishing: Publishing;
  id: string;
  problem: Error;
  rules: readonly TableRule[];
}

/** The database's words, the column that they are about, and how its value begins. */
async function describe(trx: Knex.Transaction, { publishing, id, problem, rules }: Refused): Promise<string> {
  const { shape, decisions } = publishing;
  const words = `the result table refuses the row: ${databaseMessage(problem)} (${databaseCode(problem)})`;
  const names = ['product_id', ...shape.columns.map(({ name }) => name)];
  const column = columnIn(databaseMessage(problem), names, rules);
  if (column === null) return words;
  const own = fieldValues(shape, decisions).find(({ column: { name } }) => name === column);
  if (own === undefined) return `${words}; ${column} is ${JSON.stringify(id)}`;
  const { sql, bindings } = own;
  const row = await rowOf<{ value: unknown }>(
    trx(shape.staging)
      .where({ product_id: id })
      .first(trx.raw(`${sql} as ??`, [...bindings, 'value'])),
  );
  const { value = null } = row ?? {};
  const begin = String(value).slice(0, VALUE_CHARS);
  // A driver gives large numbers as text.
  const isText = value !== null && !NUMBERS.has(own.column.type);
  const text = isText ? JSON.stringify(begin) : begin;
  return `${words}; ${column} is ${text}`;
}
