/** A migrated database with stores and builders for runs, shared by the contract tests of the stores. */
import { afterAll, beforeAll } from 'vitest';
import type { Field, Mapping, Row } from '../../../shared/domain/mapping.ts';
import type { PartRef } from '../../../shared/wire/callbacks.ts';
import type { ItemResult } from '../../../shared/wire/part.ts';
import type { LaunchRequest } from '../../../orchestrator/cloud/compute.ts';
import type { RunSettings } from '../../../orchestrator/control/run-settings.ts';
import type { NewRun } from '../../../orchestrator/control/stores.ts';
import type { Database } from '../../../orchestrator/db/connect.ts';
import { openDatabase } from '../../../orchestrator/db/connect.ts';
import { createStores } from '../../../orchestrator/db/create-stores.ts';
import { migrate } from '../../../orchestrator/db/migrate.ts';
import { createResultTable } from '../../../orchestrator/db/result-table.ts';
import type { Plan } from '../../../orchestrator/plan/plan.ts';
import type { TestDatabase, TestEngine } from '../../support/mariadb/database.ts';
import { eachEngine } from '../../support/mariadb/database.ts';

export const NOW = Date.UTC(2026, 10, 21, 2, 15);
export const AT = '2026-11-21T02:15:30.123Z';

export interface Bench {
  db: Database;
  stores: ReturnType<typeof createStores>;
  /** Under which the tests write. */
  fence: number;
  url: string;
}

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

export async function openBench(database: TestDatabase): Promise<Bench> {
  const db = await openDatabase(database.url);
  await migrate(db);
  const stores = createStores(db);
  const lock = await stores.runs.acquireLock('tests', NOW, 3_600_000);
  if (!('fence' in lock)) throw new Error('the lock of a fresh database is taken');
  return { db, stores, fence: lock.fence, url: database.url };
}

export function field(name: string, steps: ('number' | 'integer')[] = [], more: Partial<Field> = {}): Field {
  return {
    name,
    select: { type: 'css', selector: `.${name}` },
    process: steps.map((type) => ({ type })),
    all: false,
    required: false,
    ...more,
  };
}

export const MAPPING: Mapping = {
  fields: [field('title'), field('price', ['integer']), field('weight', ['number']), field('tags', [], { all: true })],
};

export function settings(table: string, more: Partial<RunSettings['results']> = {}, mapping = MAPPING): RunSettings {
  return { mapping, results: { table, onGone: 'keep', ...more }, run: { deadlineMs: 60_000 } } as RunSettings;
}

let made = 0;

/** A run with this many products `p1`, `p2` … (or the given ids) in chunks of `chunkSize`, and its result table. */
export async function createRun(
  bench: Bench,
  products: number | readonly string[],
  options: { chunkSize?: number; settings?: RunSettings } = {},
): Promise<{ id: string; table: string; run: NewRun }> {
  const number = ++made;
  const id = `20261121-0215${String(number).padStart(2, '0')}-test`;
  const ids = typeof products === 'number' ? Array.from({ length: products }, (_, i) => `p${i + 1}`) : products;
  const own = options.settings ?? settings(`snapshots_${number}`);
  await createResultTable(bench.db, own.results.table, own.mapping);
  const run: NewRun = {
    id,
    parentId: null,
    startedAtMs: NOW + number,
    deadlineAtMs: NOW + 60_000,
    dryRun: true,
    settings: own,
    plan: { chunkSize: options.chunkSize ?? 5, products: ids.length } as Plan,
    planned: ids.length,
    duplicates: 0,
    privateKey: 'private',
    publicKey: `public-${number}`,
  };
  await bench.stores.runs.create(run, ids, bench.fence, NOW);
  return { id, table: own.results.table, run };
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
  const { fleet } = bench.stores;
  await fleet.claim(runId, { slot, epoch, request: REQUEST, token: `token-${slot}-${epoch}` }, bench.fence, NOW);
  await fleet.patch(runId, slot, epoch, { instanceId: `i-${slot}-${epoch}` }, bench.fence);
  await fleet.move(runId, slot, epoch, 'claimed', 'pending', bench.fence, NOW);
  await fleet.move(runId, slot, epoch, 'pending', 'ready', bench.fence, NOW);
  await fleet.move(runId, slot, epoch, 'ready', 'crawling', bench.fence, NOW);
}

export function stored(n: number, id = `p${n}`, row: Row = {}): ItemResult {
  const full = { title: `Title ${n}`, price: n * 100, weight: n / 8, tags: ['a', 'b'], ...row };
  const common = { n, id, url: `https://shop.example/item/${n}`, at: AT, attempts: 1 };
  return { ...common, outcome: 'stored', row: full };
}

export function gone(n: number, id = `p${n}`): ItemResult {
  return { n, id, url: `https://shop.example/item/${n}`, at: AT, attempts: 1, outcome: 'gone', status: 404 };
}

export function failed(n: number, detail = 'HTTP 500', id = `p${n}`): ItemResult {
  const common = { n, id, url: `https://shop.example/item/${n}`, at: AT, attempts: 2 };
  return { ...common, outcome: 'failed', reason: 'http-status', detail };
}

export function partRef(runId: string, slot: number, epoch: number, seq: number, products = 1): PartRef {
  const sha256 = (seq + 16).toString(16).padStart(64, '0');
  return { seq, key: `runs/${runId}/${slot}/${epoch}/${seq}-${sha256}.ndjson.gz`, sha256, sizeBytes: 100, products };
}

/** Registers and loads a part in one go. */
export async function load(
  bench: Bench,
  runId: string,
  place: { slot: number; epoch?: number; seq: number },
  results: readonly ItemResult[],
) {
  const at = { slot: place.slot, epoch: place.epoch ?? 1, seq: place.seq };
  const ref = partRef(runId, at.slot, at.epoch, at.seq, results.length);
  await bench.stores.results.register(runId, at.slot, at.epoch, [ref], bench.fence);
  return bench.stores.results.load(runId, at, results, bench.fence, NOW);
}

/** Brings a run to `loading`, where it may be published. */
export async function toLoading(bench: Bench, runId: string): Promise<void> {
  const phases = ['planned', 'launching', 'crawling', 'releasing', 'loading'] as const;
  for (let i = 0; i + 1 < phases.length; i++)
    await bench.stores.runs.move(runId, phases[i]!, phases[i + 1]!, bench.fence, NOW);
}

export async function allRows(bench: Bench, table: string): Promise<Record<string, unknown>[]> {
  return (await bench.db.knex(table).orderBy('product_id')) as Record<string, unknown>[];
}
