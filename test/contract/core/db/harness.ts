/** A migrated database with stores and builders for runs, shared by the contract tests of the stores. */
import type { PartResults } from '../../../../orchestrator/core/model/part-results.ts';
import { afterAll, beforeAll, describe, it } from 'vitest';
import type { Field, KeyedRow, Mapping, PageMapping, Row, Step } from '../../../../shared/domain/mapping.ts';
import type { PartRef } from '../../../../shared/wire/callbacks.ts';
import type { ItemResult } from '../../../../shared/wire/part.ts';
import type { LaunchRequest } from '../../../../orchestrator/core/cloud/compute.ts';
import type { RunSettings } from '../../../../orchestrator/core/model/run-settings.ts';
import type {
  NewRun,
  PartId,
  ResultStore,
  RunStores,
  RunToStore,
  Stores,
} from '../../../../orchestrator/core/model/stores.ts';
import type { EpochId } from '../../../../shared/domain/epoch-id.ts';
import type { VerifyFacts } from '../../../../orchestrator/core/verify/verify-facts.ts';
import { type Database, openDatabase, type OpenOptions } from '../../../../orchestrator/core/db/connect.ts';
import { createStores } from '../../../../orchestrator/core/db/create-stores.ts';
import { migrate } from '../../../../orchestrator/core/db/migrate.ts';
import { createMemoryStores } from '../../../../orchestrator/core/simulation/stores/create-memory-stores.ts';
import { MemoryDatabase, type MemoryRun } from '../../../../orchestrator/core/simulation/stores/memory-database.ts';
import { readMemoryFacts } from '../../../support/memory-facts.ts';
import { createResultTable } from '../../../../orchestrator/core/db/result-table.ts';
import { readVerifyFacts } from '../../../../orchestrator/core/db/verify-queries.ts';
import type { Plan } from '../../../../orchestrator/core/plan/plan.ts';
import {
  createTestDatabase,
  eachEngine,
  type TestDatabase,
  type TestEngine,
} from '../../../support/mariadb/database.ts';
import { lockRequest } from '../../../support/lock-request.ts';
import { features } from '../../../support/features.ts';

export const NOW = Date.UTC(2026, 10, 21, 2, 15);
export const COMPLETE = { exitCode: 0, reason: null } as const;
export const AT = '2026-11-21T02:15:30.123Z';

export interface Bench {
  db: Database;
  stores: Stores;
  /** The fence for the tests' writes. */
  fence: number;
  url: string;
  /** Set for the store without SQL: then `db` must not be used. */
  memory: MemoryDatabase | null;
}

export type StoreEngine = TestEngine | 'memory';

/** The suite on both engines, each with an open, migrated database whose lock is held. */
export function onBothEngines(title: string, suite: (bench: () => Bench, engine: TestEngine) => void): void {
  eachEngine(title, (database, engine) => {
    let bench: Bench | undefined;
    beforeAll(async () => {
      bench = await openBench(database());
    });
    afterAll(async () => {
      await bench?.db.close();
    });
    suite(() => bench!, engine);
  });
}

/** The suite on both engines and on the stores in memory, which fulfil the same contract. */
export function onEveryEngine(title: string, suite: (bench: () => Bench, engine: StoreEngine) => void): void {
  onBothEngines(title, suite);
  describe(`${title} in memory`, () => {
    let bench: Bench | undefined;
    beforeAll(async () => {
      bench = await openMemory();
    });
    suite(() => bench!, 'memory');
  });
}

/**
 * For tests of SQL-only behaviour: types, collations, transactions of several connections, direct access to tables. The
 * suite in memory does not list them, not even as skipped.
 */
export function itWithSql(engine: StoreEngine): (title: string, test: () => Promise<void>) => void {
  return (title, test) => {
    if (engine !== 'memory') it(title, test);
  };
}

async function openMemory(): Promise<Bench> {
  const memory = new MemoryDatabase();
  // Tests of what only the SQL stores can do are not listed in memory.
  const stores = createMemoryStores(memory) as Stores;
  const lock = await stores.runs.acquireLock(lockRequest('tests', NOW, 3_600_000));
  if (!('fence' in lock)) throw new Error('the lock of a fresh database is taken');
  const db = new Proxy({} as Database, {
    get() {
      throw new Error('there is no SQL in memory');
    },
  });
  return { db, stores, fence: lock.fence, url: '', memory };
}

export async function openBench({ url }: Pick<TestDatabase, 'url'>, options?: OpenOptions): Promise<Bench> {
  const db = await openDatabase(url, options);
  await migrate(db);
  const stores = createStores(db, features);
  const lock = await stores.runs.acquireLock(lockRequest('tests', NOW, 3_600_000));
  if (!('fence' in lock)) throw new Error('the lock of a fresh database is taken');
  return { db, stores, fence: lock.fence, url, memory: null };
}

/** Tests that only a MySQL server can play; one bench and one database for all of them. */
export function onMysql(title: string, tests: (bench: () => Bench, database: () => TestDatabase) => void): void {
  describe(title, () => {
    let database: TestDatabase;
    let bench: Bench;
    beforeAll(async () => {
      database = await createTestDatabase('mysql');
      bench = await openBench(database);
    });
    afterAll(async () => {
      await bench.db.close();
      await database.drop();
    });
    tests(
      () => bench,
      () => database,
    );
  });
}

/** The results of this many stored products, from the `first` on. */
export const manyStored = (count: number, first = 1): ItemResult[] =>
  Array.from({ length: count }, (_, i) => stored(first + i));

export const at = (slot: number, epoch = 1): EpochId => ({ slot, epoch });

/** The stores of a run, under the fence of the tests at `NOW` unless told otherwise. */
export function bound(
  { stores, fence: own }: Pick<Bench, 'stores' | 'fence'>,
  runId: string,
  { fence = own, nowMs = NOW }: { fence?: number; nowMs?: number } = {},
): RunStores {
  return stores.bind({ runId, fence, clock: { now: () => nowMs } });
}

export function field(name: string, ...steps: Step[]): Field {
  return { name, steps: [{ type: 'css', selector: `.${name}` }, ...steps], required: false };
}

export function mappingOf(fields: Field[], more: Partial<PageMapping> = {}): Mapping {
  return { pages: [{ name: 'page', urlPatterns: [], urlParsers: [], rows: null, fields, ...more }] };
}

export const FIELDS: Field[] = [
  field('title'),
  field('price', { type: 'integer' }),
  field('weight', { type: 'number' }),
  field('tags', { type: 'all' }),
];
export const MAPPING = mappingOf(FIELDS);
/** The same columns, with many rows per product. */
export const ROWS_MAPPING = mappingOf(FIELDS, {
  rows: { each: { type: 'css', selector: '.review' }, key: 'title', empty: null },
});

export function settings(table: string, more: Partial<RunSettings['results']> = {}, mapping = MAPPING): RunSettings {
  const site = { productUrl: 'https://shop.example/item/{id}' };
  return { site, mapping, results: { table, onGone: 'keep', ...more }, run: { deadlineMs: 60_000 } } as RunSettings;
}

/** The settings of a run that keeps its grants, as every new one does: only granted results count. */
export const keepingGrants = (table: string): RunSettings => ({ ...settings(table), grantsKept: true });

let made = 0;

/** A run of the tests: its row as it was stored, and its stores under the tests' fence at `NOW`. */
export interface TestRun extends RunStores {
  id: string;
  table: string;
  created: NewRun;
}

/**
 * A run with this many products `p1`, `p2` … (or the given IDs) in chunks of `chunkSize`, or in the given ones, and its
 * result table.
 */
export async function createRun(
  bench: Bench,
  products: number | readonly string[],
  options: { chunkSize?: number; settings?: RunSettings } & Pick<RunToStore, 'urls' | 'chunks'> = {},
): Promise<TestRun> {
  const number = ++made;
  const id = `20261121-0215${String(number).padStart(2, '0')}-test`;
  const ids = typeof products === 'number' ? Array.from({ length: products }, (_, i) => `p${i + 1}`) : products;
  const own = options.settings ?? settings(`snapshots_${number}`);
  if (bench.memory === null) await createResultTable(bench.db, own.results, own.mapping, features);
  const created: NewRun = {
    id,
    parentId: null,
    startedAtMs: NOW + number,
    deadlineAtMs: NOW + 60_000,
    dryRun: true,
    settings: own,
    plan: { chunkSize: options.chunkSize ?? 5, products: ids.length, instances: 2, cost: { total: 0.01 } } as Plan,
    planned: ids.length,
    duplicates: 0,
    privateKey: 'private',
    publicKey: `public-${number}`,
  };
  const { urls, chunks } = options;
  const toStore = { ...created, ...(urls && { urls }), ...(chunks && { chunks }) };
  await bench.stores.runs.create(toStore, ids, bench.fence, NOW);
  return { ...bound(bench, id), id, table: own.results.table, created };
}

export const REQUEST: LaunchRequest = {
  clientToken: 'token',
  instanceType: 't4g.nano',
  imageId: 'ami-1',
  subnetId: 'subnet-1',
  securityGroupIds: [],
  instanceProfile: null,
  userData: '#cloud-config\n# 日本語',
  tags: {},
};

/** An instance in `crawling`, so that it may be granted chunks. */
export async function createInstance(bench: Bench, runId: string, slot: number, epoch = 1): Promise<void> {
  const { fleet } = bound(bench, runId);
  await fleet.claim({ slot, epoch, request: REQUEST, token: `token-${slot}-${epoch}` });
  await fleet.patch({ slot, epoch }, { instanceId: `i-${slot}-${epoch}` });
  await fleet.move({ slot, epoch }, 'claimed', 'pending');
  await fleet.move({ slot, epoch }, 'pending', 'ready');
  await fleet.move({ slot, epoch }, 'ready', 'crawling');
}

export function stored(n: number, id = `p${n}`, row: Row = {}): ItemResult {
  return storedRows(n, [{ key: null, row }], id);
}

/** A stored product with these records; missing values are filled in. */
export function storedRows(n: number, rows: readonly KeyedRow[], id = `p${n}`): ItemResult {
  const filled = { title: `Title ${n}`, price: n * 100, weight: n / 8, tags: ['a', 'b'] };
  const common = { n, id, url: `https://shop.example/item/${n}`, at: AT, attempts: 1 };
  return {
    ...common,
    outcome: 'stored',
    rows: rows.map((keyedRow) => ({ ...keyedRow, row: { ...filled, ...keyedRow.row } })),
  };
}

export function keyed(key: string | null, row: Row = {}): KeyedRow {
  return { key, row };
}

export function gone(n: number, id = `p${n}`): ItemResult {
  return { n, id, url: `https://shop.example/item/${n}`, at: AT, attempts: 1, outcome: 'gone', status: 404 };
}

export function failed(n: number, detail = 'HTTP 500', id = `p${n}`): ItemResult {
  const common = { n, id, url: `https://shop.example/item/${n}`, at: AT, attempts: 2 };
  return { ...common, outcome: 'failed', reason: 'http-status', detail };
}

export function partRef(runId: string, { slot, epoch, seq }: PartId, products = 1): PartRef {
  const sha256 = (seq + 16).toString(16).padStart(64, '0');
  return { seq, key: `runs/${runId}/${slot}/${epoch}/${seq}-${sha256}.ndjson.gz`, sha256, sizeBytes: 100, products };
}

/** Registers and loads a part in one go, the first one of slot 0 unless told otherwise. */
export async function load(
  bench: Bench,
  runId: string,
  results: PartResults,
  { slot, epoch = 1, seq }: { slot: number; epoch?: number; seq: number } = { slot: 0, seq: 0 },
) {
  const part = { slot, epoch, seq };
  const { results: store } = bound(bench, runId);
  await store.register(part, [partRef(runId, part, 'length' in results ? results.length : 1)]);
  return store.load(part, results);
}

/** Moves a run to `loading`, where it may be published. */
export async function toLoading(bench: Bench, runId: string): Promise<void> {
  const phases = ['planned', 'launching', 'crawling', 'releasing', 'loading'] as const;
  for (let i = 0; i + 1 < phases.length; i++) await bound(bench, runId).run.move(phases[i]!, phases[i + 1]!);
}

/** Publishes the rows that a run has loaded, as a complete one. */
export async function publish(bench: Bench, runId: string, nowMs = NOW): Promise<{ rows: number }> {
  await toLoading(bench, runId);
  return publishRows(bound(bench, runId, { nowMs }).results);
}

/** Throws when the result table refuses rows. */
export async function publishRows(results: Pick<ResultStore, 'publish'>): Promise<{ rows: number }> {
  const published = await results.publish('completed', COMPLETE);
  if ('refused' in published) throw new Error(published.refused.words);
  return published;
}

/** The facts that `verify` gets about the run. */
export async function readFacts(bench: Bench, runId: string): Promise<VerifyFacts> {
  return bench.memory === null ? readVerifyFacts(bench.db, runId) : readMemoryFacts(bench.memory, runId);
}

/** Changes a row directly, as a user may. */
export async function touchRow(
  bench: Bench,
  table: string,
  id: string,
  values: Record<string, unknown>,
): Promise<void> {
  if (bench.memory === null) await bench.db.knex(table).where({ product_id: id }).update(values);
  else Object.assign(memoryRunOf(bench.memory, table).rows.get(id)!, values);
}

function memoryRunOf(memory: MemoryDatabase, table: string): MemoryRun {
  return [...memory.runs.values()].find(({ record }) => record.settings.results.table === table)!;
}

export async function allRows(bench: Bench, table: string): Promise<Record<string, unknown>[]> {
  if (bench.memory !== null) {
    const staging = /^crawlfleet_staging_(.+)$/.exec(table);
    const rows = staging ? bench.memory.run(staging[1]!).staging : memoryRunOf(bench.memory, table).rows;
    return [...(rows?.values() ?? [])].sort((a, b) => (a.product_id < b.product_id ? -1 : 1));
  }
  return (await bench.db.knex(table).orderBy('product_id')) as Record<string, unknown>[];
}
