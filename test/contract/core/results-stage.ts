/** Runs on a real database with parts in a bucket in memory, for tests of results: held, published, recovered. */
import { gzipSync } from 'node:zlib';
import { pino } from 'pino';
import { vi } from 'vitest';
import { MemoryObjectStore } from '../../../orchestrator/core/simulation/cloud/memory-objects.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';
import { keyDocumentKey, manifestKey, partKey } from '../../../shared/domain/keys.ts';
import type { FailureReason } from '../../../shared/domain/outcome.ts';
import { NO_PROGRESS, type PartRef } from '../../../shared/wire/callbacks.ts';
import { encodeManifest, type ItemResult } from '../../../shared/wire/part.ts';
import { signPart } from '../../../shared/wire/part-signature.ts';
import {
  createKeyPair,
  exportPublicKey,
  importPrivateKey,
  type KeyPair,
  sha256Hex,
} from '../../../shared/wire/signature.ts';
import type { Core } from '../../../orchestrator/core/model/core.ts';
import { ProcessState } from '../../../orchestrator/core/model/process-state.ts';
import { KeyDocuments } from '../../../orchestrator/core/act/results/key-documents.ts';
import type { RecoverCore } from '../../../orchestrator/core/act/results/recover.ts';
import { newRunKeys } from '../../../orchestrator/core/new-run.ts';
import type { NewRun } from '../../../orchestrator/core/model/stores.ts';
import { type Verdict, verifyRun } from '../../../orchestrator/core/verify/verify.ts';
import { createResultTable } from '../../../orchestrator/core/db/result-table.ts';
import { readVerifyFacts } from '../../../orchestrator/core/db/verify-queries.ts';
import { START_MS, aPlan, aRun } from '../../unit/core/builders.ts';
import { at, type Bench } from './db/harness.ts';
import { features } from '../../support/features.ts';

const HOUR_MS = 3_600_000;
let made = 0;

/** The row of a run of `products` products that began `startMs` after the first; not stored yet. */
export function aNewRun(
  table: string,
  products: number,
  change: { startMs?: number; instances?: number } = {},
): NewRun {
  const { settings: every, ...template } = aRun({
    id: `20260101-00${String(++made).padStart(4, '0')}-res`,
    ...newRunKeys(),
  });
  const startedAtMs = START_MS + (change.startMs ?? made);
  // Parts are loaded as such: no instance is launched, nothing is granted, and nothing signed.
  const { grantsKept: _granted, partsSigned: _signed, ...settings } = every;
  return {
    id: template.id,
    parentId: null,
    startedAtMs,
    deadlineAtMs: startedAtMs + HOUR_MS,
    dryRun: true,
    settings: { ...settings, results: { table, onGone: 'keep', guard: { minFill: 0.5 } } },
    plan: aPlan({ products, instances: change.instances ?? 2, chunkSize: 2 }),
    planned: products,
    duplicates: 0,
    privateKey: template.privateKey,
    publicKey: template.publicKey,
  };
}

export const idsOf = (run: NewRun): string[] => Array.from({ length: run.planned }, (_, i) => `p${i + 1}`);

export class ResultsStage {
  readonly bench: Bench;
  readonly objects = new MemoryObjectStore();
  readonly clock = new VirtualClock(START_MS + 60_000);
  readonly alarms: string[] = [];

  constructor(bench: Bench) {
    this.bench = bench;
  }

  core(runId: string): RecoverCore & Pick<Core, 'log'> {
    return {
      runId,
      ...this.bench.stores.bind({ runId, fence: this.bench.fence, clock: this.clock }),
      clock: this.clock,
      log: pino({ level: 'silent' }),
      processState: new ProcessState(),
      objects: this.objects,
      alarm: (detail) => {
        this.alarms.push(detail);
        return Promise.resolve();
      },
    };
  }

  async create(run: NewRun): Promise<void> {
    await createResultTable(this.bench.db, run.settings.results, run.settings.mapping, features);
    await this.bench.stores.runs.create(run, idsOf(run), this.bench.fence, run.startedAtMs);
  }

  async putPart(
    run: NewRun,
    {
      slot,
      seq,
      epoch = 1,
      keys,
      session,
    }: { slot: number; seq: number; epoch?: number; keys?: KeyPair; session?: string },
    results: readonly ItemResult[],
  ): Promise<PartRef> {
    const gzip = gzipSync(results.map((r) => JSON.stringify(r)).join('\n'));
    const bytes = keys ? signPart(gzip, { run: run.id, slot, epoch, seq }, keys.privateKey) : gzip;
    const sha256 = sha256Hex(bytes);
    const key = partKey(run.id, { slot, epoch, seq, sha256, ...(session === undefined ? {} : { session }) });
    await this.objects.putIfAbsent(key, bytes);
    return { seq, key, sha256, sizeBytes: bytes.length, products: results.length };
  }

  /** The key document that the main server writes when the instance says hello. */
  async putKey(run: NewRun, slot: number, keys: KeyPair): Promise<void> {
    const documents = new KeyDocuments(this.core(run.id), importPrivateKey(run.privateKey));
    documents.ensure({ ...at(slot), publicKey: exportPublicKey(keys.publicKey) });
    await vi.waitUntil(() => this.objects.objects.has(keyDocumentKey(run.id, at(slot))));
  }

  /** The manifest of an instance; signed by its own key unless `keys` is given. */
  async putManifest(
    run: NewRun,
    slot: number,
    parts: PartRef[],
    { keys = createKeyPair(), session }: { keys?: KeyPair; session?: string } = {},
  ): Promise<void> {
    const place = { run: run.id, slot, epoch: 1, instanceId: `i-${slot}` };
    const closed = { closedBy: 'instance', closedAt: new Date(this.clock.now()).toISOString() } as const;
    const progress = { ...NO_PROGRESS, requests: 3, minGapMs: 10_050 };
    const bytes = encodeManifest({ version: 1, ...place, ...closed, parts, progress }, keys.privateKey);
    await this.objects.putIfAbsent(manifestKey(run.id, slot, 1, session), bytes);
  }

  /** Loads the results as one part, and moves the run to `loading`; `rest`: why the other products were left. */
  async load(run: NewRun, results: readonly ItemResult[], rest?: FailureReason): Promise<void> {
    const rows = this.core(run.id);
    const part = await this.putPart(run, { slot: 0, seq: 0 }, results);
    await rows.results.register(at(0), [part]);
    await rows.results.load({ ...at(0), seq: 0 }, results);
    const phases = ['planned', 'launching', 'crawling', 'releasing', 'loading'] as const;
    for (let i = 0; i + 1 < phases.length; i++) {
      const detail = rest !== undefined && phases[i + 1] === 'releasing' ? { reason: rest } : {};
      await rows.run.move(phases[i]!, phases[i + 1]!, detail);
    }
  }

  async rows(run: NewRun): Promise<[unknown, unknown, unknown][]> {
    const rows = (await this.bench.db.knex(run.settings.results.table).orderBy('product_id')) as Record<
      string,
      unknown
    >[];
    return rows.map((row) => [row.product_id, row.title, row.run_id]);
  }

  async verdict(runId: string): Promise<Verdict> {
    const { run, fleet, results } = this.bench.stores.of(runId);
    const [facts, instances, parts] = await Promise.all([
      readVerifyFacts(this.bench.db, runId),
      fleet.instances(),
      results.parts(),
    ]);
    return verifyRun({ run: (await run.get())!, facts, instances, parts, objects: this.objects });
  }
}

export function titled(n: number, title: string | null): ItemResult {
  const common = { n, id: `p${n}`, url: `https://shop.example/p${n}`, at: '2026-01-01T00:00:00.000Z', attempts: 1 };
  return { ...common, outcome: 'stored', rows: [{ key: null, row: { title } }] };
}

export function unreadable(n: number): ItemResult {
  const common = { n, id: `p${n}`, url: `https://shop.example/p${n}`, at: '2026-01-01T00:00:00.000Z', attempts: 2 };
  return { ...common, outcome: 'failed', reason: 'parse', detail: 'title is missing' };
}
