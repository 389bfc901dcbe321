/** F36 to F38 on the bucket through the SDK: refusals, losses, damage and races, and the main server's reaction. */
import { gzipSync } from 'node:zlib';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { ensureBucket } from '../../../orchestrator/cloud/bucket.ts';
import { confirmManifest } from '../../../orchestrator/control/results/close-epoch.ts';
import { readPart } from '../../../orchestrator/control/results/load-parts.ts';
import { S3ObjectStore } from '../../../shared/adapters/s3-object-store.ts';
import { manifestKey, partKey } from '../../../shared/domain/keys.ts';
import type { PartRef } from '../../../shared/wire/callbacks.ts';
import { NO_PROGRESS } from '../../../shared/wire/callbacks.ts';
import { encodeManifest } from '../../../shared/wire/part.ts';
import { sha256Hex } from '../../../shared/wire/signature.ts';
import type { TestDatabase } from '../../support/mariadb/database.ts';
import { createTestDatabase } from '../../support/mariadb/database.ts';
import type { Base } from '../control/run-stage.ts';
import { openBase } from '../control/run-stage.ts';
import { usualResult } from '../control/whole-run.ts';
import type { CallbackStage } from '../server/callback-stage.ts';
import { openCallbackStage } from '../server/callback-stage.ts';
import type { Caller } from '../server/caller.ts';
import type { SandboxCloud } from './sandbox-cloud.ts';
import { CREDENTIALS, useSandboxCloud } from './sandbox-cloud.ts';

const BYTES = Buffer.from('the results of many products '.repeat(50));
const OTHER = Buffer.from('the results of others '.repeat(50));
const TYPE = 'application/gzip';

describe('the bucket', () => {
  let cloud: SandboxCloud;
  let objects: S3ObjectStore;
  let keys = 0;
  useSandboxCloud((given) => (cloud = given));
  beforeAll(async () => {
    const { region, endpoint } = cloud.sandbox;
    await ensureBucket({ region, endpoint, credentials: CREDENTIALS, bucket: 'parts' });
    objects = new S3ObjectStore({ region, endpoint, credentials: CREDENTIALS, bucket: 'parts' });
  });
  afterAll(() => objects?.close());

  const newKey = (): string => `runs/r/0/1/${++keys}.ndjson.gz`;
  const put = (key: string, bytes: Uint8Array = BYTES) => objects.putIfAbsent(key, bytes, TYPE);
  const refuse = (code: string, count: number) => cloud.misbehave({ what: 'error', action: 'PutObject', code, count });

  /** Retries until it succeeds, as an uploader does; returns the number of tries. */
  async function putAtLast(key: string): Promise<{ result: string; tries: number }> {
    for (let tries = 1; ; tries++) {
      const result = await put(key).catch(() => null);
      if (result !== null) return { result, tries };
      if (tries === 30) throw new Error('30 tries');
    }
  }

  it(
    'F36: stores a part once, with retries through twenty SlowDowns',
    { timeout: 90_000, tags: ['nightly'] },
    async () => {
      const key = newKey();
      await refuse('SlowDown', 20);
      const { result, tries } = await putAtLast(key);
      expect(result).toBe('created');
      expect(tries).toBeGreaterThan(1);
      expect(await cloud.unmet()).toEqual([]);
      expect(Buffer.from((await objects.get(key))!)).toEqual(BYTES);
    },
  );

  it.each(['AccessDenied', 'ExpiredToken'])(
    'F36: never takes %s for a success or for an object that exists',
    async (code) => {
      const key = newKey();
      await refuse(code, 1);
      await expect(put(key)).rejects.toMatchObject({ name: code });
      expect(await objects.get(key)).toBeNull();
      expect(await put(key)).toBe('created');
    },
  );

  it('F36: survives an error of S3 and a connection that breaks in the upload', async () => {
    const key = newKey();
    await refuse('InternalError', 1);
    await cloud.misbehave({ what: 'lost-request', action: 'PutObject', count: 1 });
    expect((await putAtLast(key)).result).toBe('created');
  });

  it.each(['cut-reply', 'wrong-byte'] as const)(
    'F36 F38: never returns a part that arrived with %s as a good one',
    async (what) => {
      const bytes = gzipSync(JSON.stringify(usualResult({ n: 1, id: 'p1' })));
      const sha256 = sha256Hex(bytes);
      const key = newKey();
      await put(key, bytes);
      await cloud.misbehave({ what, action: 'GetObject', count: 1 });
      await expect(readPart(objects, { key, sha256, sizeBytes: bytes.length })).rejects.toThrow();
      expect(await readPart(objects, { key, sha256, sizeBytes: bytes.length })).toHaveLength(1);
    },
  );

  it('F37: treats a part as stored when the reply was lost and the retry finds it there', async () => {
    const key = newKey();
    await cloud.misbehave({ what: 'lost-reply', action: 'PutObject', count: 1 });
    expect(await put(key)).toBe('exists');
    expect(Buffer.from((await objects.get(key))!)).toEqual(BYTES);
  });

  it('F37: keeps the first object when two write one key', async () => {
    const key = newKey();
    const results = await Promise.all([put(key), put(key, OTHER), put(key, OTHER)]);
    expect(results.sort()).toEqual(['created', 'exists', 'exists']);
    const stored = Buffer.from((await objects.get(key))!);
    expect(await put(key, OTHER)).toBe('exists');
    expect(Buffer.from((await objects.get(key))!)).toEqual(stored);
  });

  it('F37: retries a conflict of two writers: it does not show who won', async () => {
    const key = newKey();
    await refuse('ConditionalRequestConflict', 1);
    await expect(put(key)).rejects.toMatchObject({ name: 'ConditionalRequestConflict' });
    expect(await put(key)).toBe('created');
  });

  describe('with an invalid manifest', () => {
    let database: TestDatabase;
    let base: Base;
    let stage: CallbackStage;
    beforeAll(async () => {
      database = await createTestDatabase('sqlite');
      base = await openBase(database);
    });
    afterAll(async () => {
      await base?.db.close();
      await database?.drop();
    });
    beforeEach(async () => {
      stage = await openCallbackStage(base);
      stage.core.objects = objects;
    });
    afterEach(() => stage.close());

    async function part(seq: number, numbers: number[], spoil: (bytes: Buffer) => Buffer | null): Promise<PartRef> {
      const results = numbers.map((n) => usualResult({ n, id: `p${n}` }));
      const bytes = gzipSync(results.map((r) => JSON.stringify(r)).join('\n'));
      const sha256 = sha256Hex(bytes);
      const key = partKey(stage.run.id, { slot: 0, epoch: 1, seq, sha256 });
      const stored = spoil(bytes);
      if (stored) await put(key, stored);
      return { seq, key, sha256, sizeBytes: bytes.length, products: numbers.length };
    }

    /** The instance closes its epoch with these parts. */
    async function close(caller: Caller, parts: PartRef[]): Promise<void> {
      const key = manifestKey(stage.run.id, 0, 1);
      const manifest = {
        version: 1,
        run: stage.run.id,
        slot: 0,
        epoch: 1,
        instanceId: caller.options.instanceId,
        closedBy: 'instance',
        closedAt: '2026-01-01T00:00:00.000Z',
      } as const;
      const bytes = encodeManifest({ ...manifest, parts, progress: NO_PROGRESS }, caller.keys.privateKey);
      await objects.putIfAbsent(key, bytes, 'application/json');
      await caller.complete({ manifestKey: key, manifestSha256: sha256Hex(bytes) });
      await confirmManifest(stage.core, (await stage.core.run.get())!, { slot: 0, epoch: 1 });
    }

    it.each<[string, (bytes: Buffer) => Buffer | null]>([
      ['missing', () => null],
      ['short', (bytes) => bytes.subarray(0, 40)],
      ['corrupt', (bytes) => Buffer.from(bytes.map((byte, i) => (i === 30 ? byte ^ 1 : byte)))],
    ])('F38: loads the good part and offers the products of the %s one again', async (_what, spoil) => {
      const caller = await stage.ready(0);
      await caller.orders({ offered: ['1-1', '2-1'] });
      await close(caller, [await part(0, [1, 2], (bytes) => bytes), await part(1, [3, 4], spoil)]);
      expect(await stage.core.work.outcomes()).toMatchObject({ stored: 2, open: 18 });
      const waiting = await stage.core.work.waiting(20, new Set());
      expect(waiting.find((c) => c.id === '2-2')?.products.map((p) => p.n)).toEqual([3, 4]);
      expect(stage.core.alarms.length).toBeGreaterThan(0);
    });

    it('F38: waits while the bucket does not answer: that proves nothing about its parts', async () => {
      const caller = await stage.ready(0);
      await caller.orders({ offered: ['1-1'] });
      const good = await part(0, [1, 2], (bytes) => bytes);
      await cloud.misbehave({ what: 'error', action: 'GetObject', path: good.key, code: 'AccessDenied', count: 1 });
      await close(caller, [good]).catch(() => undefined);
      const record = await stage.record(caller);
      if (record.phase !== 'done')
        await confirmManifest(stage.core, (await stage.core.run.get())!, { slot: 0, epoch: 1 });
      expect(await stage.core.work.outcomes()).toMatchObject({ stored: 2, open: 18 });
    });
  });
});
