/** Products in the ledger and the result tables, for people to look at: nothing is decided by it. */
import type { Knex } from 'knex';
import type { FailureReason, Outcome } from '../../../shared/domain/outcome.ts';
import type { Mapping } from '../../../shared/domain/mapping.ts';
import type { Evidence } from '../../../shared/domain/verdict.ts';
import type { RunRecord } from '../model/stores.ts';
import type { RunSettings } from '../model/run-settings.ts';
import { keyColumns } from './column-types.ts';
import { historyTable } from './result-table.ts';
import { readTable } from './table-info.ts';
import { fieldTypes, readable } from './result-store.ts';
import type { Database } from './connect.ts';
import { inQuery } from './retry.ts';
import { Columns, rowOf, rowsOf } from './rows.ts';
import { LONG_STATEMENT_MS } from './statement-timeout.ts';

type Row = Record<string, unknown>;

/** A product as one run knows it. */
export interface ProductInRun {
  n: number;
  /** Where on the site it was found, in a discovery. */
  path: string | null;
  outcome: Outcome | null;
  reason: FailureReason | null;
  detail: string | null;
  /** Whose part settled it; null where the main server did, or nothing has. */
  slot: number | null;
  epoch: number | null;
  settledAtMs: number | null;
  /** How many pages a partial product was stored without; null: it is whole. */
  leftOut: number | null;
}

/** What products of a run are looked for by; all that is given must hold. */
export interface ProductQuery {
  /** A part of the ID or, in a discovery, of the path; case of ASCII letters does not matter. */
  text?: string;
  outcome?: Outcome | undefined;
  reason?: FailureReason | undefined;
  /** The number after which products are looked for. */
  after: number;
}

export interface FoundProducts {
  /** The products in order of their number. */
  products: (Pick<ProductInRun, 'n' | 'path' | 'outcome' | 'reason' | 'detail'> & { id: string })[];
  /** `after` of the query that goes on from here; null when the run has no further product. */
  next: number | null;
}

/** A request for a product that did not end with its page. */
export interface FailedAttempt {
  atMs: number;
  slot: number;
  epoch: number;
  reason: FailureReason;
  detail: string;
  evidence: Evidence | null;
}

/** A field of a row that a publication has changed, or with field null the product itself: `stored` or `gone`. */
export interface ProductChange {
  /** ISO time. */
  at: string;
  run: string;
  /** Its row_key; null in a table with one row a product. */
  row: string | null;
  field: string | null;
  /** The value before, as text; null is empty. */
  from: string | null;
  to: string | null;
}

const PRODUCT = new Columns<ProductInRun>({
  n: 'number',
  path: 'text',
  outcome: 'text',
  reason: 'text',
  detail: 'text',
  slot: 'number',
  epoch: 'number',
  settledAtMs: 'number',
  leftOut: 'number',
});

const ATTEMPT = new Columns<FailedAttempt>({
  atMs: 'number',
  slot: 'number',
  epoch: 'number',
  reason: 'text',
  detail: 'text',
  evidence: 'json',
});

/** Rows read at a time. */
const PAGE = 5_000;
/** Products found at a time. */
const FOUND = 200;
/** Numbers of products in the range that one statement looks through. */
const RANGE = 10_000;
/** No further range is looked through after this time. */
const SEARCH_MS = 1_500;

export class History {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  /** The product in this run; null when the run does not have it. Compares every product of the run. */
  product(runId: string, productId: string): Promise<ProductInRun | null> {
    return inQuery(this.#db, async (knex) => {
      const row = await rowOf<Row>(
        knex('crawlfleet_items')
          .where({ run_id: runId, product_id: productId })
          .first()
          .options({ timeout: LONG_STATEMENT_MS }),
      );
      return row ? PRODUCT.read(row) : null;
    });
  }

  /** The ID of the first product with this URL of its own; null without one. Compares every product of the run. */
  productIdAt(runId: string, url: string): Promise<string | null> {
    return inQuery(this.#db, async (knex) => {
      const row = await rowOf<{ product_id: string }>(
        knex('crawlfleet_items')
          .where({ run_id: runId, path: url })
          .orderBy('n')
          .first('product_id')
          .options({ timeout: LONG_STATEMENT_MS }),
      );
      return row?.product_id ?? null;
    });
  }

  /**
   * Up to 200 products of the run. Looks through ranges of the primary key and stops after 1.5 seconds with what it
   * has: no index is on the IDs, and none of the user's tables is read.
   */
  async products(runId: string, { text = '', outcome, reason, after }: ProductQuery): Promise<FoundProducts> {
    const startedMs = this.#db.clock.monotonic();
    const items = (knex: Knex) => knex('crawlfleet_items').where({ run_id: runId });
    const last = await inQuery(this.#db, (knex) => rowOf<{ n: number }>(items(knex).orderBy('n', 'desc').first('n')));
    const like = `%${text.replaceAll(/[!%_]/g, '!$&')}%`;
    const products: FoundProducts['products'] = [];
    let from = after;
    while (from < (last?.n ?? 0)) {
      const to = from + RANGE;
      const rows = await inQuery(this.#db, (knex) => {
        const some = items(knex)
          .where('n', '>', from)
          .where('n', '<=', to)
          .orderBy('n')
          .limit(FOUND - products.length);
        if (outcome !== undefined) void some.where({ outcome });
        if (reason !== undefined) void some.where({ reason });
        if (text !== '')
          void some.whereRaw(
            `(${['product_id', 'lower(product_id)', 'path', 'lower(path)'].map((c) => `${c} like ? escape '!'`).join(' or ')})`,
            [like, like.toLowerCase(), like, like.toLowerCase()],
          );
        return rowsOf<FoundProducts['products'][number] & { product_id: string }>(
          some.select('n', 'product_id', 'path', 'outcome', 'reason', 'detail'),
        );
      });
      products.push(...rows.map(({ product_id: id, ...product }) => ({ ...product, id })));
      from = (products.length === FOUND ? products.at(-1)?.n : undefined) ?? to;
      if (products.length === FOUND || this.#db.clock.monotonic() - startedMs > SEARCH_MS) break;
    }
    return { products, next: from < (last?.n ?? 0) ? from : null };
  }

  /** Attempts for the product with this number that failed, in order of time. */
  attempts(runId: string, n: number): Promise<FailedAttempt[]> {
    return inQuery(this.#db, async (knex) => {
      const rows = knex('crawlfleet_attempts').where({ run_id: runId, n }).orderBy(['at', 'slot', 'epoch']);
      return (await rowsOf<Row>(rows)).map((row) => ATTEMPT.read(row));
    });
  }

  /** The product's rows in the result table of a run; none when the table is missing. */
  resultRows({ mapping, results }: RunSettings, productId: string, limit: number): Promise<Row[]> {
    return this.#rowsOf(results.table, mapping, (rows) => rows.where({ product_id: productId }).limit(limit));
  }

  /** What publications have changed of the product, newest first; none when no history is kept. */
  async changes({ mapping, results }: RunSettings, productId: string, limit: number): Promise<ProductChange[]> {
    const rows = await this.#rowsOf(historyTable(results.table), mapping, (changes) =>
      changes.where({ product_id: productId }).orderBy('id', 'desc').limit(limit),
    );
    return rows.map(({ changed_at: at, run_id: run, row_key: row = null, field, old_value: from, new_value: to }) => {
      return { at, run, row, field, from, to } as ProductChange;
    });
  }

  /** Rows of a table as people read them; none when the table is missing. */
  #rowsOf(table: string, mapping: Mapping, narrow: (rows: Knex.QueryBuilder) => Knex.QueryBuilder): Promise<Row[]> {
    return inQuery(this.#db, async (knex) => {
      if (!(await readTable(knex, this.#db, table))) return [];
      const rows = await rowsOf<Row>(narrow(knex(table)));
      return rows.map((row) => readable(row, fieldTypes(mapping)));
    });
  }

  /**
   * The rows of this run in its result table, in order of their key; those that a later run has replaced are not there
   * any more.
   */
  async *rowsOfRun({ id, settings }: Pick<RunRecord, 'id' | 'settings'>): AsyncGenerator<Row> {
    const { mapping, results } = settings;
    const keys = [...keyColumns(mapping)];
    const types = fieldTypes(mapping);
    for (let after: Row | null = null; ;) {
      const last: Row | null = after;
      const page: Row[] = await inQuery(this.#db, (knex) => {
        const rows = knex(results.table).where({ run_id: id }).orderBy(keys).limit(PAGE);
        if (last !== null)
          void rows.whereRaw(
            `(${keys.join(', ')}) > (${keys.map(() => '?').join(', ')})`,
            keys.map((k) => last[k] as string),
          );
        return rowsOf<Row>(rows.options({ timeout: LONG_STATEMENT_MS }));
      });
      for (const row of page) yield readable(row, types);
      if (page.length < PAGE) return;
      after = page.at(-1) ?? null;
    }
  }
}
