/** The run that the bench loads: its products, their rows, and parts and manifests as instances upload them. */
import { gzipSync } from 'node:zlib';
import type { S3ObjectStore } from '../../shared/adapters/s3-object-store.ts';
import type { Row } from '../../shared/domain/mapping.ts';
import { manifestKey, partKey } from '../../shared/domain/keys.ts';
import { NO_PROGRESS, type PartRef } from '../../shared/wire/callbacks.ts';
import { encodeManifest, type ItemResult, PART_PRODUCTS } from '../../shared/wire/part.ts';
import { createKeyPair, exportPublicKey, sha256Hex } from '../../shared/wire/signature.ts';
import { newRunKeys } from '../../orchestrator/core/new-run.ts';
import type { FleetStore, NewRun, RunStores, Stores } from '../../orchestrator/core/model/stores.ts';
import { readMapping } from '../../orchestrator/core/config/read-mapping.ts';
import { aPlan, aRun } from '../../test/unit/core/builders.ts';

/** Today: pages that were fetched long ago are not requested conditionally. */
const STARTED_MS = Date.now();
const DEADLINE_MS = 4 * 3_600_000;
const CHUNK = 50;

/** Typical shop fields: texts, numbers, a date, and one field that is often empty. */
export const FIELDS = {
  title: { css: 'h1', required: true },
  price: { css: '.price', integer: true },
  rating: { css: '.rating', number: true },
  available: { css: '.stock', boolean: true },
  changed: { css: 'time', date: 'yyyy-MM-dd' },
  note: '.note',
};
export const COLUMNS = ['title', 'price', 'rating', 'available', 'changed', 'note'] as const;

export const idOf = (n: number): string => `product-${String(n).padStart(8, '0')}`;
export const urlOf = (n: number): string => `https://shop.example.jp/item/${idOf(n)}`;

/** The same for all sides of the comparison. */
export function rowOf(n: number): Row {
  return {
    title: `商品 ${n}: hand-made ceramic cup, ${n % 7} pieces, colour ${(n * 31) % 97}`,
    price: 1_000 + ((n * 7_919) % 90_000),
    rating: ((n * 13) % 50) / 10,
    available: n % 3 !== 0,
    changed: `2026-0${1 + (n % 9)}-1${n % 10}`,
    note: n % 4 === 0 ? `ships in ${n % 9} days` : null,
  };
}

/** What the pages of a run are like. */
export interface Pages {
  /** One product in this many has failed its first attempt. */
  retriedEvery?: number;
  /** 3 % of the prices change each night. */
  night?: number;
  /** The site sends validators with each page. */
  validators?: boolean;
  /** It answers 304 for all others than those. */
  unchanged?: boolean;
}

const CHANGED_EVERY = 33;
const FAILED = { at: new Date(STARTED_MS).toISOString(), reason: 'timeout', detail: 'no reply within 30 s' } as const;

export function resultOf(n: number, { retriedEvery = Infinity, night = 0, validators, unchanged }: Pages): ItemResult {
  const isChanged = n % CHANGED_EVERY === 0;
  const etag = `"${sha256Hex(Buffer.from(`${n} ${isChanged ? night : 0}`)).slice(0, 32)}"`;
  const common = {
    n,
    id: idOf(n),
    url: urlOf(n),
    at: new Date(STARTED_MS + n).toISOString(),
    ...(n % retriedEvery === 0 ? { attempts: 2, first: FAILED } : { attempts: 1 }),
    outcome: 'stored' as const,
  };
  if (unchanged === true && !isChanged) return { ...common, rows: [], unchanged: { etag } };
  const row = { ...rowOf(n), ...(isChanged ? { price: n + night } : {}) };
  return { ...common, rows: [{ key: null, row }], ...(validators === true ? { page: { etag, bytes: 12_000 } } : {}) };
}

/** A run of this size that has just begun; `of` distinguishes two of the same size. */
export function benchRun(products: number, slots: number, of: string): NewRun {
  const template = aRun({ id: `20260101-000000-b${products}-${of}`, ...newRunKeys() });
  return {
    id: template.id,
    parentId: null,
    startedAtMs: STARTED_MS,
    deadlineAtMs: STARTED_MS + DEADLINE_MS,
    dryRun: true,
    settings: {
      ...template.settings,
      mapping: readMapping({ fields: FIELDS }).mapping,
      results: { ...template.settings.results, table: `rows_${products}` },
    },
    plan: aPlan({ products, instances: slots, chunkSize: CHUNK, chunks: Math.ceil(products / CHUNK) }),
    planned: products,
    duplicates: 0,
    privateKey: template.privateKey,
    publicKey: template.publicKey,
  };
}

/**
 * Brings the run to the state where every instance has uploaded its parts and reported its manifest, and no part is
 * loaded.
 */
export async function crawlAll(
  { run, stores, objects, fence }: { run: NewRun; stores: Stores; objects: S3ObjectStore; fence: number },
  pages: Pages,
): Promise<void> {
  const crawled = { run, objects, pages };
  const rows = stores.bind({ runId: run.id, fence, clock: { now: () => STARTED_MS } });
  const slots = run.plan.instances;
  await rows.run.move('planned', 'launching');
  await rows.run.move('launching', 'crawling');
  for (let slot = 0; slot < slots; slot++) await crawlShard(crawled, slot, rows);
}

/** Chunks go round robin, so every slot's products are spread over the whole list. */
async function crawlShard(
  { run, objects, pages }: { run: NewRun; objects: S3ObjectStore; pages: Pages },
  slot: number,
  { fleet, work }: RunStores,
): Promise<void> {
  const keys = createKeyPair();
  const place = { run: run.id, slot, epoch: 1, instanceId: `i-${slot}` };
  await claim(slot, fleet);
  const hello = {
    instanceId: place.instanceId,
    address: `127.0.0.${slot + 1}`,
    publicKey: exportPublicKey(keys.publicKey),
    bundleSha256: '0'.repeat(64),
    clock: new Date(STARTED_MS).toISOString(),
  };
  await fleet.hello({ slot, epoch: 1 }, hello);
  const own: number[] = [];
  const chunkIds: string[] = [];
  for (let chunk = slot; chunk < run.plan.chunks; chunk += run.plan.instances) {
    chunkIds.push(`${chunk + 1}-1`);
    for (let n = chunk * CHUNK + 1; n <= Math.min(run.planned, (chunk + 1) * CHUNK); n++) own.push(n);
  }
  for (let i = 0; i < chunkIds.length; i += 1_000)
    await work.grant({ slot, epoch: 1 }, chunkIds.slice(i, i + 1_000), chunkIds.length);
  const parts: PartRef[] = [];
  for (let at = 0; at < own.length; at += PART_PRODUCTS) {
    const numbers = own.slice(at, at + PART_PRODUCTS);
    const bytes = gzipSync(numbers.map((n) => `${JSON.stringify(resultOf(n, pages))}\n`).join(''));
    const sha256 = sha256Hex(bytes);
    const key = partKey(run.id, { slot, epoch: 1, seq: parts.length, sha256 });
    await objects.putIfAbsent(key, bytes, 'application/gzip');
    parts.push({ seq: parts.length, key, sha256, sizeBytes: bytes.length, products: numbers.length });
  }
  const progress = { ...NO_PROGRESS, assigned: own.length, stored: own.length, requests: own.length };
  const closed = { closedBy: 'instance', closedAt: new Date(STARTED_MS).toISOString() } as const;
  const bytes = encodeManifest({ version: 1, ...place, ...closed, parts, progress }, keys.privateKey);
  const key = manifestKey(run.id, slot, 1);
  await objects.putIfAbsent(key, bytes, 'application/json');
  await fleet.patch({ slot, epoch: 1 }, { manifestKey: key, manifestSha256: sha256Hex(bytes) });
}

async function claim(slot: number, fleet: FleetStore): Promise<void> {
  const request = {
    clientToken: `bench-${slot}`,
    instanceType: 't4g.nano',
    imageId: 'ami-bench',
    subnetId: 'subnet-bench',
    securityGroupIds: [],
    instanceProfile: null,
    userData: '',
    tags: {},
  };
  await fleet.claim({ slot, epoch: 1, request, token: '0'.repeat(64) });
  await fleet.patch({ slot, epoch: 1 }, { instanceId: `i-${slot}`, launchedAtMs: STARTED_MS });
  await fleet.move({ slot, epoch: 1 }, 'claimed', 'pending');
}
