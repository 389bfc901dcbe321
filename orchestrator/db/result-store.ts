/** ResultStore on knex: the ledger of parts, loading, publishing. */
import type { FieldType } from '../../shared/domain/mapping.ts';
import { columnsOf } from '../../shared/domain/mapping.ts';
import type { OutcomeCounts } from '../../shared/domain/outcome.ts';
import { AppError } from '../../shared/domain/errors.ts';
import type { PartRef } from '../../shared/wire/callbacks.ts';
import type { ItemResult } from '../../shared/wire/part.ts';
import type { FillRates } from '../control/model/report.ts';
import type { PartRecord, PublishEnd, ResultStore } from '../control/model/stores.ts';
import { keyColumns } from './column-types.ts';
import type { Database } from './connect.ts';
import type { PartId } from './load-part.ts';
import { loadResults } from './load-part.ts';
import { readEarlier, readFields, writeFill } from './fill-rates.ts';
import { assertFence } from './locks.ts';
import { newerRuns } from './newer-runs.ts';
import { noteNumbers, readDecisions } from './number-columns.ts';
import { countRows, publishRun } from './publish.ts';
import { inQuery, inTransaction } from './retry.ts';
import type { SqlNumber } from './rows.ts';
import { toBoolean, toNumber, rowOf, rowsOf } from './rows.ts';
import type { RunShape } from './run-shape.ts';
import { readRunShape, readSettings } from './run-shape.ts';
import { dropStaging } from './staging.ts';
import { LONG_STATEMENT_MS } from './statement-timeout.ts';

const PARTS = 'crawlfleet_parts';

interface PartRow {
  slot: SqlNumber;
  epoch: SqlNumber;
  seq: SqlNumber;
  object_key: string;
  sha256: string;
  size_bytes: SqlNumber;
  products: SqlNumber;
  state: PartRecord['state'];
  stored: SqlNumber;
  gone: SqlNumber;
  failed: SqlNumber;
}

export class KnexResultStore implements ResultStore {
  readonly #db: Database;
  readonly #shapes = new Map<string, RunShape>();

  constructor(db: Database) {
    this.#db = db;
  }

  async register(runId: string, slot: number, epoch: number, parts: readonly PartRef[], fence: number): Promise<void> {
    if (parts.length === 0) return;
    const db = this.#db;
    const at = { run_id: runId, slot, epoch };
    await inTransaction(db, async (trx) => {
      await assertFence(trx, db, fence);
      const rows = parts.map((part) => ({
        ...at,
        seq: part.seq,
        object_key: part.key,
        sha256: part.sha256,
        size_bytes: part.sizeBytes,
        products: part.products,
        state: 'seen',
        stored: 0,
        gone: 0,
        failed: 0,
      }));
      // `merge` of a key column changes nothing; `ignore` would become INSERT IGNORE and hide other faults.
      await trx(PARTS).insert(rows).onConflict(['run_id', 'slot', 'epoch', 'seq']).merge(['run_id']);
    });
  }

  parts(runId: string, only: Parameters<ResultStore['parts']>[1] = {}): Promise<PartRecord[]> {
    return inQuery(this.#db, async (knex) => {
      const rows = await rowsOf<PartRow>(
        knex(PARTS)
          .where({ run_id: runId, ...only })
          .orderBy(['slot', 'epoch', 'seq']),
      );
      return rows.map(toRecord);
    });
  }

  async load(
    runId: string,
    part: PartId,
    results: readonly ItemResult[],
    fence: number,
    nowMs: number,
  ): Promise<OutcomeCounts> {
    const db = this.#db;
    const place = { slot: part.slot, epoch: part.epoch, seq: part.seq };
    const shape = await this.#shape(runId);
    return inTransaction(
      db,
      async (trx) => {
        await assertFence(trx, db, fence);
        const row = await rowOf<PartRow>(
          trx(PARTS)
            .where({ run_id: runId, ...place })
            .forUpdate()
            .first(),
        );
        if (!row)
          throw new AppError(
            'internal',
            `part ${part.seq} of slot ${part.slot} epoch ${part.epoch} is not in the ledger`,
          );
        if (row.state === 'loaded') return countsOf(row);
        const { rows, marks, ...counts } = await loadResults(trx, db, runId, shape, place, results, nowMs);
        await trx(PARTS)
          .where({ run_id: runId, ...place })
          .update({
            ...counts,
            result_rows: rows,
            number_marks: jsonOrNull(marks),
            state: 'loaded',
            detail: null,
            loaded_at: nowMs,
          });
        return counts;
      },
      'read committed',
    );
  }

  async failPart(runId: string, part: PartId, detail: string, fence: number): Promise<void> {
    const db = this.#db;
    const key = { run_id: runId, slot: part.slot, epoch: part.epoch, seq: part.seq };
    await inTransaction(db, async (trx) => {
      await assertFence(trx, db, fence);
      await trx(PARTS)
        .where({ ...key, state: 'seen' })
        .update({ state: 'failed', detail });
    });
  }

  totals(runId: string): Promise<OutcomeCounts & { seen: number; loaded: number }> {
    return inQuery(this.#db, async (knex) => {
      const rows = await rowsOf<Pick<PartRow, 'state' | 'stored' | 'gone' | 'failed'> & { parts: SqlNumber }>(
        knex(PARTS)
          .where({ run_id: runId })
          .groupBy('state')
          .select('state')
          .count({ parts: '*' })
          .sum({ stored: 'stored', gone: 'gone', failed: 'failed' }),
      );
      const totals = { stored: 0, gone: 0, failed: 0, seen: 0, loaded: 0 };
      for (const row of rows) {
        // An unreadable part is settled: the run does not wait for it.
        if (row.state !== 'failed') totals.seen += toNumber(row.parts);
        if (row.state !== 'loaded') continue;
        totals.loaded += toNumber(row.parts);
        const counts = countsOf(row);
        totals.stored += counts.stored;
        totals.gone += counts.gone;
        totals.failed += counts.failed;
      }
      return totals;
    });
  }

  publish(
    runId: string,
    to: 'completed' | 'banned' | 'failed' | 'cancelled',
    end: PublishEnd,
    fence: number,
    nowMs: number,
  ): Promise<{ rows: number }> {
    return publishRun(this.#db, runId, { to, ...end }, fence, nowMs);
  }

  newerRuns(runId: string): Promise<string[]> {
    return inQuery(this.#db, (knex) => newerRuns(knex, runId));
  }

  fillOfFields(runId: string): Promise<FillRates['fields']> {
    return readFields(this.#db, runId);
  }

  noteNumbers(runId: string, fence: number): Promise<void> {
    const db = this.#db;
    return inTransaction(db, async (trx) => {
      await assertFence(trx, db, fence);
      const shape = await readRunShape(trx, db, runId);
      await noteNumbers(trx, runId, shape, await readDecisions(trx, runId, shape));
    });
  }

  earlierFills(runId: string, limit: number): Promise<FillRates[]> {
    return readEarlier(this.#db, runId, limit);
  }

  setFill(runId: string, fill: FillRates, fence: number): Promise<void> {
    return writeFill(this.#db, runId, fill, fence);
  }

  async dropStaging(runId: string): Promise<void> {
    this.#shapes.delete(runId);
    await dropStaging(this.#db, runId);
  }

  resultRows(runId: string, sample: number): Promise<{ rows: number; sample: Record<string, unknown>[] }> {
    const db = this.#db;
    return inQuery(db, async (knex) => {
      const rows = await countRows(knex, db, runId);
      if (rows === 0) return { rows, sample: [] };
      const { results, mapping } = await readSettings(knex, runId);
      const first = await rowsOf<Record<string, unknown>>(
        knex(results.table)
          .where({ run_id: runId })
          .orderBy(keyColumns(mapping))
          .limit(sample)
          .options({ timeout: LONG_STATEMENT_MS }),
      );
      const types = new Map(columnsOf(mapping).map((c) => [c.name.toLowerCase(), c.type]));
      return { rows, sample: first.map((row) => readable(row, types)) };
    });
  }

  async #shape(runId: string): Promise<RunShape> {
    const known = this.#shapes.get(runId);
    if (known) return known;
    const shape = await inQuery(this.#db, (knex) => readRunShape(knex, this.#db, runId));
    this.#shapes.set(runId, shape);
    return shape;
  }
}

const jsonOrNull = (value: object): string | null => (Object.keys(value).length === 0 ? null : JSON.stringify(value));

function countsOf(row: Pick<PartRow, 'stored' | 'gone' | 'failed'>): OutcomeCounts {
  return { stored: toNumber(row.stored), gone: toNumber(row.gone), failed: toNumber(row.failed) };
}

function toRecord(row: PartRow): PartRecord {
  return {
    slot: toNumber(row.slot),
    epoch: toNumber(row.epoch),
    seq: toNumber(row.seq),
    key: row.object_key,
    sha256: row.sha256,
    sizeBytes: toNumber(row.size_bytes),
    products: toNumber(row.products),
    state: row.state,
    ...countsOf(row),
  };
}

/** The same document on both engines: times as ISO text, dates and times of fields as on the page. */
function readable(row: Record<string, unknown>, types: ReadonlyMap<string, FieldType>): Record<string, unknown> {
  const entries = Object.entries(row).map(([name, value]): [string, unknown] => {
    const type = types.get(name.toLowerCase());
    if (type === 'boolean' && value !== null) return [name, toBoolean(value as SqlNumber)];
    if (!(value instanceof Date)) return [name, value];
    const text = value.toISOString();
    // Neither has a zone: the driver adds the `Z`, not the page.
    return [name, type === 'date' ? text.slice(0, 10) : type === 'datetime' ? text.replace(/(\.000)?Z$/, '') : text];
  });
  return Object.fromEntries(entries);
}
