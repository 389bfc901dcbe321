/** How epochs are closed: by a manifest that is checked, or by the main server for an instance that is given up. */
import { NO_PROGRESS } from '../../../shared/wire/callbacks.ts';
import { gzipSync } from 'node:zlib';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { manifestKey, partKey } from '../../../shared/domain/keys.ts';
import type { PartRef } from '../../../shared/wire/callbacks.ts';
import type { Manifest } from '../../../shared/wire/part.ts';
import { decodeManifest, encodeManifest } from '../../../shared/wire/part.ts';
import { createKeyPair, importPublicKey, sha256Hex } from '../../../shared/wire/signature.ts';
import { MemoryObjectStore } from '../../../shared/adapters/memory-object-store.ts';
import { closeEpoch, confirmManifest } from '../../../orchestrator/control/close-epoch.ts';
import type { RunRecord } from '../../../orchestrator/control/stores.ts';
import type { TestDatabase } from '../../support/mariadb/database.ts';
import { createTestDatabase } from '../../support/mariadb/database.ts';
import type { CallbackStage } from '../server/callback-stage.ts';
import { openCallbackStage } from '../server/callback-stage.ts';
import type { Caller } from '../server/caller.ts';
import type { Base } from './run-stage.ts';
import { openBase } from './run-stage.ts';
import { usualResult } from './whole-run.ts';

let database: TestDatabase;
let base: Base;
let stage: CallbackStage;
let objects: MemoryObjectStore;
let run: RunRecord;

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
  objects = new MemoryObjectStore();
  stage.core.objects = objects;
  run = (await stage.core.runs.get(stage.run.id))!;
});
afterEach(() => stage.close());

/** A part with the results of these products in the bucket, under the key of (slot, epoch). */
async function putPart(slot: number, epoch: number, seq: number, numbers: readonly number[]): Promise<PartRef> {
  const results = numbers.map((n) => usualResult({ n, id: `p${n}` }));
  const bytes = gzipSync(results.map((r) => JSON.stringify(r)).join('\n'));
  const sha256 = sha256Hex(bytes);
  const key = partKey(run.id, slot, epoch, seq, sha256);
  await objects.putIfAbsent(key, bytes);
  return { seq, key, sha256, sizeBytes: bytes.length, products: numbers.length };
}

/** Stores a manifest of slot 0, epoch 1 and reports it as that instance does. */
async function report(caller: Caller, parts: PartRef[], change: Partial<Manifest> = {}, key = caller.keys) {
  const place = { run: run.id, slot: 0, epoch: 1, instanceId: 'i-0-1' };
  const progress = { ...NO_PROGRESS };
  const closed = { closedBy: 'instance', closedAt: '2026-01-01T00:00:00.000Z' } as const;
  const bytes = encodeManifest({ version: 1, ...place, ...closed, parts, progress, ...change }, key.privateKey);
  const name = manifestKey(run.id, 0, 1);
  await objects.putIfAbsent(name, bytes);
  await caller.complete({ manifestKey: name, manifestSha256: sha256Hex(bytes) });
}

const outcomes = () => stage.core.work.outcomes(run.id);

describe('confirmManifest', () => {
  it('loads the parts, gives back what was not crawled and makes the instance done', async () => {
    const caller = await stage.ready(0);
    await caller.orders({ offered: ['1-1', '2-1'] });
    await report(caller, [await putPart(0, 1, 0, [1, 2]), await putPart(0, 1, 1, [3])]);
    await confirmManifest(stage.core, run, 0, 1);
    expect(await stage.record(caller)).toMatchObject({ phase: 'done', manifestKey: manifestKey(run.id, 0, 1) });
    expect(await outcomes()).toMatchObject({ stored: 3, open: 17 });
    const waiting = await stage.core.work.waiting(run.id, 20, new Set());
    expect(waiting.find((c) => c.id === '2-2')?.products).toEqual([{ n: 4, id: 'p4' }]);
    await confirmManifest(stage.core, run, 0, 1);
    expect(await outcomes()).toMatchObject({ stored: 3, open: 17 });
  });

  it.each<[string, (caller: Caller) => Promise<void>]>([
    ['is signed by another key', (c) => report(c, [], {}, createKeyPair())],
    ['names another slot', (c) => report(c, [], { slot: 1 })],
    ['names another epoch', (c) => report(c, [], { epoch: 2 })],
    ['names another run', (c) => report(c, [], { run: 'other' })],
    ['lists the part of another slot', async (c) => report(c, [await putPart(1, 1, 0, [1])])],
    ['lists a part under another seq', async (c) => report(c, [{ ...(await putPart(0, 1, 0, [1])), seq: 4 }])],
    [
      'does not have the reported hash',
      (c) =>
        c
          .complete({ manifestKey: manifestKey(run.id, 0, 1), manifestSha256: 'e'.repeat(64) })
          .then(() => report(c, [])),
    ],
    [
      'is not in the bucket',
      async (c) => void (await c.complete({ manifestKey: manifestKey(run.id, 0, 1), manifestSha256: 'e'.repeat(64) })),
    ],
  ])('refuses, with an alarm, a manifest that %s', async (_what, reportBadly) => {
    const caller = await stage.ready(0);
    await reportBadly(caller);
    await confirmManifest(stage.core, run, 0, 1);
    expect(await stage.record(caller)).toMatchObject({ phase: 'ready', manifestKey: null, manifestSha256: null });
    expect(stage.core.alarms).toHaveLength(1);
    expect(await stage.core.results.parts(run.id)).toEqual([]);
  });

  it('puts off its judgement while the bucket does not answer', async () => {
    const caller = await stage.ready(0);
    await report(caller, [await putPart(0, 1, 0, [1])]);
    objects.onCall = () => {
      throw new Error('SlowDown');
    };
    await expect(confirmManifest(stage.core, run, 0, 1)).rejects.toThrow('SlowDown');
    expect((await stage.record(caller)).manifestKey).not.toBeNull();
    objects.onCall = () => undefined;
    await confirmManifest(stage.core, run, 0, 1);
    expect(await stage.record(caller)).toMatchObject({ phase: 'done' });
    expect(await outcomes()).toMatchObject({ stored: 1 });
  });
});

describe('closeEpoch', () => {
  /** An instance with two chunks that is given up. */
  async function lost(): Promise<Caller> {
    const caller = await stage.ready(0);
    await caller.orders({ offered: ['1-1', '2-1'] });
    const { fleet, fence } = stage.core;
    await fleet.move(run.id, 0, 1, 'ready', 'lost', fence, stage.clock.now(), 'heartbeat-lost');
    return caller;
  }

  it('keeps what is in the bucket, sends the rest out again and signs the manifest with the key of the run', async () => {
    const caller = await lost();
    const part = await putPart(0, 1, 0, [1, 2, 3]);
    await closeEpoch(stage.core, run, 0, 1);
    expect(await outcomes()).toMatchObject({ stored: 3, open: 17 });
    expect((await stage.core.work.waiting(run.id, 20, new Set())).map((c) => c.id)).toContain('2-2');
    const bytes = objects.objects.get(manifestKey(run.id, 0, 1))!;
    const manifest = decodeManifest(bytes, importPublicKey(run.publicKey));
    expect(manifest).toMatchObject({ closedBy: 'main-server', parts: [part] });
    expect(await stage.record(caller)).toMatchObject({ manifestSha256: sha256Hex(bytes) });
  });

  it('leaves out a part that is broken, with an alarm', async () => {
    await lost();
    const broken = partKey(run.id, 0, 1, 0, 'd'.repeat(64));
    await objects.putIfAbsent(broken, Buffer.from('rubbish'));
    await putPart(0, 1, 1, [3]);
    await closeEpoch(stage.core, run, 0, 1);
    expect(stage.core.alarms.join()).toContain(broken);
    expect(await outcomes()).toMatchObject({ stored: 1, open: 19 });
  });

  it('leaves nothing out because the bucket does not answer: it is tried again', async () => {
    const caller = await lost();
    await putPart(0, 1, 0, [1, 2, 3]);
    objects.onCall = (operation) => {
      if (operation === 'get') throw new Error('SlowDown');
    };
    await expect(closeEpoch(stage.core, run, 0, 1)).rejects.toThrow('SlowDown');
    expect((await stage.record(caller)).manifestKey).toBeNull();
    expect(await stage.core.work.counts(run.id)).toMatchObject({ granted: 2 });
    objects.onCall = () => undefined;
    await closeEpoch(stage.core, run, 0, 1);
    expect(await outcomes()).toMatchObject({ stored: 3 });
  });

  it('keeps the manifest that the instance wrote itself at the last moment', async () => {
    const caller = await lost();
    const part = await putPart(0, 1, 0, [1, 2, 3, 4]);
    await report(caller, [part]);
    await closeEpoch(stage.core, run, 0, 1);
    const bytes = objects.objects.get(manifestKey(run.id, 0, 1))!;
    expect(decodeManifest(bytes, caller.keys.publicKey)).toMatchObject({ closedBy: 'instance' });
    expect(await stage.record(caller)).toMatchObject({ manifestSha256: sha256Hex(bytes) });
    expect(await outcomes()).toMatchObject({ stored: 4 });
  });
});
