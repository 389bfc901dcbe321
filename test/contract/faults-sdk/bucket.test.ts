/** F36 to F38 on the bucket through the SDK: refusals, losses, damage and races. */
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ensureBucket } from '../../../orchestrator/core/cloud/bucket.ts';
import { readPart } from '../../../orchestrator/core/act/results/load-parts.ts';
import { S3ObjectStore } from '../../../shared/adapters/s3-object-store.ts';
import { sha256Hex } from '../../../shared/wire/signature.ts';
import { usualResult } from '../core/whole-run.ts';
import { CREDENTIALS, type SandboxCloud, useSandboxCloud } from './sandbox-cloud.ts';

const BYTES = Buffer.from('the results of many products '.repeat(50));
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

  it('F37: retries a conflict of two writers: it does not show who won', async () => {
    const key = newKey();
    await refuse('ConditionalRequestConflict', 1);
    await expect(put(key)).rejects.toMatchObject({ name: 'ConditionalRequestConflict' });
    expect(await put(key)).toBe('created');
  });
});
