/** ResultStore on knex: the ledger of parts, loading, publishing. */
import { columnsOf, type FieldType, type Mapping } from '../../../shared/domain/mapping.ts';
import type { OutcomeCounts } from '../../../shared/domain/outcome.ts';
import { AppError } from '../../../shared/domain/errors.ts';
import { type LeftOutCounts, sumLeftOut } from '../../../shared/domain/left-out.ts';
import type { EpochId } from '../../../shared/domain/epoch-id.ts';
import type { PartRef } from '../../../shared/wire/callbacks.ts';
import { type PartResults, piecesOf } from '../model/part-results.ts';
import type { FillRates, RunReport, ValueProfile } from '../model/report.ts';
import type { AssertCounts } from '../model/assertions.ts';
import type {
  LoadedPart,
  LoadTotals,
  PartId,
  PartRecord,
  Published,
  PublishEnd,
  PublishedPhase,
  Refusal,
  ResultStore,
  RunBinding,
  SharedResults,
  ValueSample,
} from '../model/stores.ts';
import { BoundRun } from './bound-run.ts';
import { ITEMS } from './chunk-rows.ts';
import { keyColumns } from './column-types.ts';
import type { Database } from './connect.ts';
import { answersOf, type DataFeature, type PartIntake } from './data-feature.ts';
import { readFill } from './fill.ts';
import { type LoadCounts, loadResults, sumCounts } from './load-part.ts';
import { newerRuns } from './newer-runs.ts';
import { assertDecided } from './assert-decided.ts';
import { noteNumbers, readDecisions } from './number-columns.ts';
import { countRows, publishRun } from './publish.ts';
import { Columns, rowOf, rowsOf, type SqlNumber, toBoolean, toNumber } from './rows.ts';
import { refuseProducts } from './refuse.ts';
import { findRefusedRows, StatementRefused } from './refused-rows.ts';
import { readRunShape, readSettings, type RunShape } from './run-shape.ts';
import { readMovedTogether } from './moved-products.ts';
import { readProductsOn, readSharedResults } from './shared-results.ts';
import { dropStaging } from './staging.ts';
import { readProfiles, readValueSample } from './value-sample.ts';
import { LONG_STATEMENT_MS } from './statement-timeout.ts';

/** How long the rows that the result table refuses are looked for. */
const SEARCH_MS = 60_000;
const PARTS = 'crawlfleet_parts';
const RUNS = 'crawlfleet_runs';

const PART = new Columns<PartRecord>(
  {
    slot: 'number',
    epoch: 'number',
    seq: 'number',
    key: 'text',
    sha256: 'text',
    sizeBytes: 'number',
    products: 'number',
    state: 'text',
    stored: 'number',
    gone: 'number',
    failed: 'number',
  },
  { key: 'object_key' },
);

type Row = Record<string, unknown>;
type PartRow = Pick<PartRecord, 'state' | 'stored' | 'gone' | 'failed'> & { put_aside: number | null };

export class KnexResultStore extends BoundRun implements ResultStore {
  #shape: RunShape | null = null;
  #intakes: readonly PartIntake[] | null = null;
  readonly #features: readonly DataFeature[];

  constructor(db: Database, binding: RunBinding, features: readonly DataFeature[]) {
    super(db, binding);
    this.#features = features;
  }

  async register(at: EpochId, parts: readonly PartRef[]): Promise<void> {
    if (parts.length === 0) return;
    const key = this.key(at);
    await this.write(async (trx) => {
      const nothing = { state: 'seen', stored: 0, gone: 0, failed: 0 } as const;
      const rows = parts.map((part) => ({ ...PART.write({ ...part, ...nothing }), ...key }));
      // `merge` of a key column changes nothing; `ignore` would become INSERT IGNORE and hide other faults.
      await trx(PARTS).insert(rows).onConflict(['run_id', 'slot', 'epoch', 'seq']).merge(['run_id']);
    });
  }

  async parts(only: Parameters<ResultStore['parts']>[0] = {}): Promise<PartRecord[]> {
    const where = { run_id: this.id, ...only };
    const rows = await this.rows<Row>((knex) => knex(PARTS).where(where).orderBy(['slot', 'epoch', 'seq']));
    return rows.map((row) => PART.read(row));
  }

  async load(part: PartId, results: PartResults): Promise<LoadedPart> {
    const { db, id } = this;
    const place = { slot: part.slot, epoch: part.epoch, seq: part.seq };
    const nowMs = this.now();
    const shape = (this.#shape ??= await this.query((knex) => readRunShape(knex, db, id)));
    const intakes = (this.#intakes ??= await this.query((knex) =>
      answersOf(this.#features.map(({ afterPublish }) => afterPublish?.openIntake?.(knex, { db, runId: id, shape }))),
    ));
    const counts = await this.write(async (trx) => {
      const known = trx(PARTS).where({ run_id: id, ...place });
      const row = await rowOf<PartRow>(known.clone().forUpdate().first());
      const { slot, epoch, seq } = place;
      if (!row) throw new AppError('internal', `part ${seq} of slot ${slot} epoch ${epoch} is not in the ledger`);
      if (row.state === 'loaded') return loadedPart(row, row.put_aside);
      const loads: LoadCounts[] = [];
      for await (const piece of piecesOf(results))
        loads.push(await loadResults(trx, db, { runId: id, shape, place, results: piece, nowMs, intakes }));
      const { rows, marks, unchanged, savedBytes, partial, leftOut, asserts, putAside, ...counts } = sumCounts(loads);
      await known.update({
        ...counts,
        result_rows: rows,
        number_marks: jsonOrNull(marks),
        assert_counts: jsonOrNull(asserts),
        unchanged,
        saved_bytes: savedBytes,
        partial: partial === 0 ? null : partial,
        left_out: jsonOrNull(leftOut),
        put_aside: putAside === 0 ? null : putAside,
        state: 'loaded',
        detail: null,
        loaded_at: nowMs,
      });
      return loadedPart(counts, putAside);
    });
    for (const intake of intakes) intake.committed?.();
    return counts;
  }

  async failPart(part: PartId, detail: string): Promise<void> {
    const seen = { ...this.key(part), seq: part.seq, state: 'seen' };
    await this.write((trx) => trx(PARTS).where(seen).update({ state: 'failed', detail }));
  }

  async totals(): Promise<LoadTotals> {
    type Sums = Record<'parts' | 'unchanged' | 'saved_bytes' | 'partial' | keyof OutcomeCounts, SqlNumber>;
    const summed = ['stored', 'gone', 'failed', 'unchanged', 'saved_bytes', 'partial'];
    const rows = await this.rows<Sums & { state: PartRecord['state'] }>((knex) =>
      knex(PARTS)
        .where({ run_id: this.id })
        .groupBy('state')
        .select('state')
        .count({ parts: '*' })
        .sum(Object.fromEntries(summed.map((column) => [column, column]))),
    );
    let totals: LoadTotals = { stored: 0, gone: 0, failed: 0, seen: 0, loaded: 0 };
    for (const row of rows) {
      const parts = toNumber(row.parts);
      // An unreadable part is settled: the run does not wait for it.
      if (row.state !== 'failed') totals.seen += parts;
      if (row.state !== 'loaded') continue;
      totals = { ...totals, ...countsOf(row), loaded: parts };
      const products = toNumber(row.unchanged);
      if (products > 0) totals.unchanged = { products, savedBytes: toNumber(row.saved_bytes) };
      const partial = toNumber(row.partial);
      if (partial > 0) totals.partial = partial;
    }
    return totals;
  }

  async leftOut(): Promise<LeftOutCounts> {
    const rows = await this.rows<{ left_out: string }>((knex) =>
      knex(PARTS)
        .where({ run_id: this.id, state: 'loaded' })
        .whereNotNull('left_out')
        .orderBy(['slot', 'epoch', 'seq'])
        .select('left_out'),
    );
    return sumLeftOut(rows.map(({ left_out: counts }) => JSON.parse(counts) as LeftOutCounts));
  }

  partialProducts(limit: number): Promise<string[]> {
    return this.query((knex) =>
      knex(ITEMS)
        .where({ run_id: this.id })
        .whereNotNull('left_out')
        .orderBy('n')
        .limit(limit)
        .pluck<string[]>('product_id'),
    );
  }

  async publish(to: PublishedPhase, end: PublishEnd): Promise<Published> {
    try {
      return await publishRun(this, to, end, this.#features);
    } catch (error) {
      if (!(error instanceof StatementRefused)) throw error;
      const { held = false, most = Infinity } = end;
      // A person waits for a held run.
      const refused = await findRefusedRows(this, end, { forMs: held ? Infinity : SEARCH_MS, most });
      // Whatever it was, it is no row's fault.
      if (refused.complete && refused.refusals.length === 0) throw error;
      return { refused: { ...refused, words: error.message } };
    }
  }

  newerRuns(): Promise<string[]> {
    return this.query((knex) => newerRuns(knex, this.id));
  }

  fillOfFields(): Promise<FillRates['fields']> {
    const { db, id } = this;
    return this.query(async (knex) => {
      const shape = await readRunShape(knex, db, id);
      return readFill(knex, { shape, decisions: await readDecisions(knex, id, shape) });
    });
  }

  sharedResults(least: number): Promise<SharedResults> {
    const { db, id } = this;
    return this.query((knex) => readSharedResults(knex, db, { runId: id, least }));
  }

  movedTogether(): ReturnType<ResultStore['movedTogether']> {
    return this.query((knex) => readMovedTogether(knex, this.id));
  }

  productsOn(page: string): Promise<string[]> {
    const { db, id } = this;
    return this.query(async (knex) => readProductsOn(knex, await readRunShape(knex, db, id), page));
  }

  refuse(refusals: readonly Refusal[], note: string): Promise<number> {
    return refuseProducts(this, refusals, note);
  }

  noteNumbers(): Promise<void> {
    const { db, id } = this;
    return this.write(async (trx) => {
      const shape = await readRunShape(trx, db, id);
      await noteNumbers(trx, id, shape, await readDecisions(trx, id, shape));
    });
  }

  async earlierFills(limit: number): Promise<FillRates[]> {
    const rows = await this.rows<{ fill: string | null; report: string | null }>((knex) =>
      knex(`${RUNS} as r`)
        .join(`${RUNS} as own`, 'own.results_table', 'r.results_table')
        .where({ 'own.id': this.id, 'r.phase': 'completed' })
        .whereRaw('r.started_at < own.started_at')
        .where('r.planned', '>', 0)
        // A retry crawls the difficult products, so it is no reference for a full run.
        .whereNull('r.parent_id')
        .orderBy('r.started_at', 'desc')
        .limit(limit)
        .select('r.fill', knex.raw('case when r.fill is null then r.report end as report')),
    );
    return rows.flatMap(({ fill, report }) => {
      if (fill !== null) return [JSON.parse(fill) as FillRates];
      // From before runs were measured: its report at least has the number of stored products.
      const products = report === null ? null : (JSON.parse(report) as RunReport).products;
      return products ? [{ stored: products.stored / products.planned, fields: {} }] : [];
    });
  }

  assertDecided(): Promise<AssertCounts> {
    return assertDecided(this);
  }

  valueSample(): Promise<ValueSample> {
    return this.query((knex) => readValueSample(knex, this.db, this.id));
  }

  earlierValues(fingerprint: string, limit: number): Promise<ValueProfile[]> {
    return this.query((knex) => readProfiles(knex, { runId: this.id, fingerprint, limit }));
  }

  async setFill(fill: FillRates, values: ValueProfile | null): Promise<void> {
    const { id } = this;
    const profile = values && { value_rules: values.fingerprint, value_profile: JSON.stringify(values) };
    const row = { fill: JSON.stringify(fill), ...profile };
    await this.query((knex) => this.update(knex, knex(RUNS).where({ id }), row));
  }

  async dropStaging(): Promise<void> {
    this.#shape = this.#intakes = null;
    await dropStaging(this.db, this.id);
  }

  resultRows(sample: number): Promise<{ rows: number; sample: Row[] }> {
    const { db, id } = this;
    return this.query(async (knex) => {
      const rows = await countRows(knex, db, id);
      if (rows === 0) return { rows, sample: [] };
      const { results, mapping } = await readSettings(knex, id);
      const keys = [...keyColumns(mapping)];
      const first = knex(results.table).where({ run_id: id }).orderBy(keys).limit(sample);
      const found = await rowsOf<Row>(first.options({ timeout: LONG_STATEMENT_MS }));
      const types = fieldTypes(mapping);
      return { rows, sample: found.map((row) => readable(row, types)) };
    });
  }
}

const jsonOrNull = (value: object): string | null => (Object.keys(value).length === 0 ? null : JSON.stringify(value));

const loadedPart = (row: Parameters<typeof countsOf>[0], putAside: number | null): LoadedPart => ({
  ...countsOf(row),
  ...(putAside === null || putAside === 0 ? {} : { putAside }),
});

function countsOf(row: Record<keyof OutcomeCounts, SqlNumber>): OutcomeCounts {
  return { stored: toNumber(row.stored), gone: toNumber(row.gone), failed: toNumber(row.failed) };
}

/** The types of the fields, by lower-case column name. */
export const fieldTypes = (mapping: Mapping): Map<string, FieldType> =>
  new Map(columnsOf(mapping).map((c) => [c.name.toLowerCase(), c.type]));

/**
 * The same document on both engines: times as ISO text, dates and times of fields as on the page. Drivers return
 * decimals, lists and every BIGINT of MySQL as text; what a number cannot hold stays text.
 */
export function readable(row: Row, types: ReadonlyMap<string, FieldType>): Row {
  const entries = Object.entries(row).map(([name, value]): [string, unknown] => {
    const type = types.get(name.toLowerCase());
    if (value === null) return [name, null];
    if (type === 'boolean') return [name, toBoolean(value as SqlNumber)];
    if (type === 'number') return [name, Number(value)];
    if (type === 'integer') return [name, Number.isSafeInteger(Number(value)) ? Number(value) : value];
    if (type === 'json' && typeof value === 'string') return [name, JSON.parse(value)];
    if (!(value instanceof Date)) return [name, value];
    const text = value.toISOString();
    // Neither has a zone: the driver adds the `Z`, not the page.
    return [name, type === 'date' ? text.slice(0, 10) : type === 'datetime' ? text.replace(/(\.000)?Z$/, '') : text];
  });
  return Object.fromEntries(entries);
}
