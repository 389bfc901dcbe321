/** How epochs are closed: by a checked manifest, or by the main server for an instance that is given up. */
import type { EpochId } from '../../../shared/domain/epoch-id.ts';
import { NO_PROGRESS, type PartRef } from '../../../shared/wire/callbacks.ts';
import { gzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ANY_HOST } from '../../../shared/domain/domains.ts';
import { manifestKey, partKey, requestLogKey } from '../../../shared/domain/keys.ts';
import { paceMarginMs } from '../../../shared/domain/pacing.ts';
import { decodeManifest, encodeManifest, type Manifest } from '../../../shared/wire/part.ts';
import { signPart } from '../../../shared/wire/part-signature.ts';
import type { LogRef } from '../../../shared/wire/request-log.ts';
import {
  createKeyPair,
  type KeyPair,
  importPrivateKey,
  importPublicKey,
  sha256Hex,
} from '../../../shared/wire/signature.ts';
import { MemoryObjectStore } from '../../../orchestrator/core/simulation/cloud/memory-objects.ts';
import { closeEpoch, confirmManifest } from '../../../orchestrator/core/act/results/close-epoch.ts';
import { adopt } from '../../../orchestrator/core/act/launches/launch.ts';
import { loadParts } from '../../../orchestrator/core/act/results/load-parts.ts';
import type { CloudInstance, CloudState } from '../../../orchestrator/core/cloud/compute.ts';
import { restOfLostMs } from '../../../orchestrator/core/decide/host-rest.ts';
import type { RunRecord, WorkStore } from '../../../orchestrator/core/model/stores.ts';
import { checkManifests } from '../../../orchestrator/core/verify/verify.ts';
import { type CallbackStage, openCallbackStage } from './server/callback-stage.ts';
import type { Caller } from './server/caller.ts';
import type { Base } from './run-stage.ts';
import { usualResult } from './whole-run.ts';
import { useBase } from './use-base.ts';

let base: Base;
let stage: CallbackStage;
let objects: MemoryObjectStore;
let run: RunRecord;

/** The instance of each slot. */
const callers = new Map<number, Caller>();

useBase((made) => (base = made));
beforeEach(async () => {
  stage = await openCallbackStage(base);
  callers.clear();
  const ready = stage.ready.bind(stage);
  stage.ready = async (slot, epoch) => {
    const caller = await ready(slot, epoch);
    callers.set(slot, caller);
    return caller;
  };
  objects = new MemoryObjectStore();
  stage.core.objects = objects;
  run = (await stage.core.run.get())!;
});
afterEach(() => stage.close());

/**
 * A part with the results of these products in the bucket, under the key of (slot, epoch), signed by the slot's
 * instance.
 */
async function putPart(slot: number, epoch: number, seq: number, numbers: readonly number[]): Promise<PartRef> {
  return { ...(await putGzip({ slot, epoch, seq }, gzipOf(numbers))), products: numbers.length };
}

const gzipOf = (numbers: readonly number[]): Buffer =>
  gzipSync(numbers.map((n) => JSON.stringify(usualResult({ n, id: `p${n}` }))).join('\n'));

/** Signed by the instance of the slot, if there is one. */
async function putGzip(place: EpochId & { seq: number }, gzip: Buffer): Promise<Omit<PartRef, 'products'>> {
  const { seq } = place;
  const caller = callers.get(place.slot);
  const bytes = caller ? signPart(gzip, { run: run.id, ...place }, caller.keys.privateKey) : gzip;
  const sha256 = sha256Hex(bytes);
  const key = partKey(run.id, { ...place, sha256 });
  await objects.putIfAbsent(key, bytes);
  return { seq, key, sha256, sizeBytes: bytes.length };
}

/** What `verify` finds in the manifests. */
const verified = async () => {
  const [instances, parts] = [await stage.core.fleet.instances(), await stage.core.results.parts()];
  const { closed, differences } = await checkManifests({ run, instances, parts, objects });
  return { count: closed.length, differences };
};

/** Stores a manifest of slot 0, epoch 1 and reports it as that instance does. */
async function report(caller: Caller, parts: PartRef[], change: Partial<Manifest> = {}, key = caller.keys) {
  await caller.complete(await putOwn(parts, change, key));
}

/** A manifest of slot 0, epoch 1 in the bucket. */
async function putOwn(parts: PartRef[], change: Partial<Manifest>, key: KeyPair, session?: string) {
  const place = { run: run.id, slot: 0, epoch: 1, instanceId: 'i-0-1' };
  const progress = { ...NO_PROGRESS };
  const closed = { closedBy: 'instance', closedAt: '2026-01-01T00:00:00.000Z' } as const;
  const bytes = encodeManifest({ version: 1, ...place, ...closed, parts, progress, ...change }, key.privateKey);
  const name = manifestKey(run.id, 0, 1, session);
  await objects.putIfAbsent(name, bytes);
  return { manifestKey: name, manifestSha256: sha256Hex(bytes) };
}

/** An object of the request log of this slot, as a manifest lists it. */
function logOf(slot: number, seq = 0): LogRef {
  const sha256 = String(seq).repeat(64);
  return { seq, key: requestLogKey(run.id, { slot, epoch: 1, seq, sha256 }), sha256, sizeBytes: 3 };
}

/** Behind a proxy a method keeps its own object. */
function bound(of: object, key: string | symbol): unknown {
  const value: unknown = Reflect.get(of, key);
  return typeof value === 'function' ? (value.bind(of) as unknown) : value;
}

const outcomes = () => stage.core.work.outcomes();

describe('confirmManifest', () => {
  it('loads the parts, returns what was not crawled and makes the instance done', async () => {
    const caller = await stage.ready(0);
    await caller.orders({ offered: ['1-1', '2-1'] });
    await report(caller, [await putPart(0, 1, 0, [1, 2]), await putPart(0, 1, 1, [3])]);
    await confirmManifest(stage.core, run, { slot: 0, epoch: 1 });
    expect(await stage.record(caller)).toMatchObject({ phase: 'done', manifestKey: manifestKey(run.id, 0, 1) });
    expect(await outcomes()).toMatchObject({ stored: 3, open: 17 });
    const waiting = await stage.core.work.waiting(20, new Set());
    expect(waiting.find((c) => c.id === '2-2')?.products).toEqual([{ n: 4, id: 'p4' }]);
    await confirmManifest(stage.core, run, { slot: 0, epoch: 1 });
    expect(await outcomes()).toMatchObject({ stored: 3, open: 17 });
  });

  it.each<[string, (caller: Caller) => Promise<void>]>([
    ['is signed by another key', (c) => report(c, [], {}, createKeyPair())],
    ['names another slot', (c) => report(c, [], { slot: 1 })],
    ['names another epoch', (c) => report(c, [], { epoch: 2 })],
    ['names another run', (c) => report(c, [], { run: 'other' })],
    ['lists the part of another slot', async (c) => report(c, [await putPart(1, 1, 0, [1])])],
    ['lists the request log of another slot', (c) => report(c, [], { requestLogs: [logOf(1)] })],
    ['lists a request log under another seq', (c) => report(c, [], { requestLogs: [{ ...logOf(0), seq: 4 }] })],
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
    await confirmManifest(stage.core, run, { slot: 0, epoch: 1 });
    expect(await stage.record(caller)).toMatchObject({ phase: 'ready', manifestKey: null, manifestSha256: null });
    expect(stage.core.alarms).toHaveLength(1);
    expect(await stage.core.results.parts()).toEqual([]);
  });

  it.each<[string, (key: string) => void]>([
    ['is not in the bucket', (key) => objects.objects.delete(key)],
    ['is cut short', (key) => objects.objects.set(key, objects.objects.get(key)!.subarray(0, 40))],
    [
      'has a wrong byte',
      (key) =>
        objects.objects.set(
          key,
          objects.objects.get(key)!.map((b, i) => (i === 30 ? b ^ 1 : b)),
        ),
    ],
  ])('F38: offers again the products of a part that %s, and lets the slot be filled again', async (_what, spoil) => {
    const caller = await stage.ready(0);
    await caller.orders({ offered: ['1-1', '2-1'] });
    const [bad, good] = [await putPart(0, 1, 0, [1, 2]), await putPart(0, 1, 1, [3, 4])];
    spoil(bad.key);
    await report(caller, [bad, good]);
    await confirmManifest(stage.core, run, { slot: 0, epoch: 1 });
    expect(await stage.record(caller)).toMatchObject({ phase: 'done', reason: 'results-unreadable' });
    expect(stage.core.alarms.join()).toContain(bad.key);
    expect(await outcomes()).toMatchObject({ stored: 2, open: 18 });
    const waiting = await stage.core.work.waiting(20, new Set());
    expect(waiting.find((c) => c.id === '1-2')?.products).toEqual([
      { n: 1, id: 'p1' },
      { n: 2, id: 'p2' },
    ]);
  });

  it('F38: lets the slot be filled again even if the first try got no further than the release', async () => {
    const caller = await stage.ready(0);
    await caller.orders({ offered: ['1-1', '2-1'] });
    const [bad, good] = [await putPart(0, 1, 0, [1, 2]), await putPart(0, 1, 1, [3, 4])];
    objects.objects.delete(bad.key);
    await report(caller, [bad, good]);
    const { fleet } = stage.core;
    const broken = new Proxy(fleet, {
      get: (of, key) => (key === 'move' ? () => Promise.reject(new Error('gone')) : bound(of, key)),
    });
    await expect(confirmManifest({ ...stage.core, fleet: broken }, run, { slot: 0, epoch: 1 })).rejects.toThrow('gone');
    expect(await stage.core.work.counts()).toMatchObject({ granted: 1 });
    await confirmManifest(stage.core, run, { slot: 0, epoch: 1 });
    expect(await stage.record(caller)).toMatchObject({ phase: 'done', reason: 'results-unreadable' });
  });

  it('postpones its judgement while the bucket does not answer', async () => {
    const caller = await stage.ready(0);
    await caller.orders({ offered: ['1-1'] });
    await report(caller, [await putPart(0, 1, 0, [1])]);
    objects.onCall = () => {
      throw new Error('SlowDown');
    };
    await expect(confirmManifest(stage.core, run, { slot: 0, epoch: 1 })).rejects.toThrow('SlowDown');
    expect((await stage.record(caller)).manifestKey).not.toBeNull();
    objects.onCall = () => undefined;
    await confirmManifest(stage.core, run, { slot: 0, epoch: 1 });
    expect(await stage.record(caller)).toMatchObject({ phase: 'done' });
    expect(await outcomes()).toMatchObject({ stored: 1 });
  });
});

describe('A compromised instance', () => {
  const EVERY = Array.from({ length: 20 }, (_, i) => i + 1);

  it('adds only results of its own products by a part that its own heartbeat reports', async () => {
    const [caller, other] = [await stage.ready(0), await stage.ready(1)];
    await other.orders({ offered: ['1-1', '2-1'] });
    await caller.orders({ offered: ['7-1', '8-1'] });
    const forged = await putPart(0, 1, 0, EVERY);
    expect((await caller.orders({ parts: [forged] })).partsAck).toBe(0);
    await loadParts(stage.core);
    expect(await outcomes()).toMatchObject({ stored: 4, open: 16 });
    expect(stage.core.alarms).toEqual([
      `16 results in ${forged.key} were put aside: their products were never granted to slot 0 epoch 1; the instance may be compromised`,
    ]);
    await other.orders({ parts: [await putPart(1, 1, 0, [1, 2, 3, 4])] });
    await loadParts(stage.core);
    expect(await outcomes()).toMatchObject({ stored: 8, open: 12 });
    expect(await stage.core.work.outcomesBySlot()).toEqual([
      { slot: 0, epoch: 1, stored: 4, gone: 0, failed: 0 },
      { slot: 1, epoch: 1, stored: 4, gone: 0, failed: 0 },
    ]);
  });

  it('F58: adds nothing to the results of another one by parts in its place, signed or not', async () => {
    const [victim, attacker] = [await stage.ready(0), await stage.ready(1)];
    await victim.orders({ offered: ['1-1', '2-1', '3-1'] });
    const own = await putPart(0, 1, 0, [1]);
    await victim.orders({ parts: [own] });
    callers.delete(0);
    await putPart(0, 1, 1, [2]);
    callers.set(0, attacker);
    await putPart(0, 1, 2, [3]);
    callers.set(0, victim);
    // Found in the bucket and signed, as after a lost heartbeat; and copied from another place.
    const late = await putPart(0, 1, 3, [4]);
    const copy = partKey(run.id, { slot: 0, epoch: 1, seq: 4, sha256: late.sha256 });
    await objects.putIfAbsent(copy, objects.objects.get(late.key)!);
    await stage.core.fleet.move({ slot: 0, epoch: 1 }, 'ready', 'lost', { reason: 'heartbeat-lost' });
    await closeEpoch(stage.core, run, { slot: 0, epoch: 1 });
    expect((await stage.core.results.parts()).map((p) => p.seq)).toEqual([0, 3]);
    expect(await outcomes()).toMatchObject({ stored: 2, open: 18 });
    expect(stage.core.alarms).toHaveLength(3);
    expect(stage.core.alarms.join()).toContain('it is not signed by its instance, or damaged');
  });

  it('counts unsigned parts in the bucket in a run of an earlier version', async () => {
    await stage.ready(0);
    callers.delete(0);
    const { grantsKept: _kept, partsSigned: _signed, ...settings } = run.settings;
    await putPart(0, 1, 0, [1, 2]);
    await stage.core.fleet.move({ slot: 0, epoch: 1 }, 'ready', 'lost', { reason: 'heartbeat-lost' });
    await closeEpoch(stage.core, { ...run, settings }, { slot: 0, epoch: 1 });
    expect((await stage.core.results.parts()).map((p) => [p.seq, p.state])).toEqual([[0, 'loaded']]);
  });

  it('adds nothing before anything is granted to it', async () => {
    const caller = await stage.ready(0);
    await caller.orders({ parts: [await putPart(0, 1, 0, EVERY)] });
    await loadParts(stage.core);
    expect(await outcomes()).toMatchObject({ stored: 0, open: 20 });
  });
});

describe('Objects in the folder of a role session', () => {
  const [own, other] = ['AROA1:i-1', 'AROA1:i-2'];
  const inSession = async (part: PartRef, session: string): Promise<PartRef> => {
    const { seq, sha256 } = part;
    const key = partKey(run.id, { slot: 0, epoch: 1, seq, sha256, session });
    objects.objects.set(key, objects.objects.get(part.key)!);
    objects.objects.delete(part.key);
    return { ...part, key };
  };

  it('close the epoch of an instance that reports them', async () => {
    const caller = await stage.ready(0);
    await caller.orders({ offered: ['1-1', '2-1'] });
    const part = await inSession(await putPart(0, 1, 0, [1, 2, 3]), own);
    expect(await caller.orders({ parts: [part] })).toMatchObject({ partsAck: 0 });
    await caller.complete(await putOwn([part], {}, caller.keys, own));
    await confirmManifest(stage.core, run, { slot: 0, epoch: 1 });
    expect(await stage.record(caller)).toMatchObject({ phase: 'done', manifestKey: manifestKey(run.id, 0, 1, own) });
    expect(await outcomes()).toMatchObject({ stored: 3, open: 17 });
    expect(await verified()).toEqual({ count: 1, differences: [] });
  });

  it('count for a lost instance, by its signature and not by their folder; foreign ones are named', async () => {
    const caller = await stage.ready(0);
    await caller.orders({ offered: ['1-1', '2-1'] });
    const parts = [
      await inSession(await putPart(0, 1, 0, [1]), own),
      await inSession(await putPart(0, 1, 1, [2, 3]), other),
    ];
    const manifest = await putOwn(parts, {}, caller.keys, own);
    const planted = manifestKey(run.id, 0, 1, other);
    await objects.putIfAbsent(planted, Buffer.from('{}'));
    const forged = partKey(run.id, { slot: 0, epoch: 1, seq: 2, sha256: 'f'.repeat(64), session: own });
    await objects.putIfAbsent(forged, gzipOf([4]));
    await stage.core.fleet.move({ slot: 0, epoch: 1 }, 'ready', 'lost', { reason: 'heartbeat-lost' });
    await closeEpoch(stage.core, run, { slot: 0, epoch: 1 });
    expect(await stage.record(caller)).toMatchObject(manifest);
    expect(await outcomes()).toMatchObject({ stored: 3, open: 17 });
    const named = `the object ${planted} is neither from slot 0 epoch 1 nor from the main server: it is ignored, and ${manifest.manifestKey} closes the epoch`;
    expect(stage.core.alarms).toContain(named);
    expect(stage.core.alarms.join()).toContain(`part ${forged} of a lost instance is left out`);
    expect(await verified()).toEqual({ count: 1, differences: [] });
  });

  it("close it by the main server's manifest, with its usual name, when the instance has none", async () => {
    const caller = await stage.ready(0);
    await caller.orders({ offered: ['1-1'] });
    await inSession(await putPart(0, 1, 0, [1]), own);
    await objects.putIfAbsent(manifestKey(run.id, 0, 1, other), Buffer.from('{}'));
    await caller.complete({ manifestKey: manifestKey(run.id, 0, 1, other), manifestSha256: 'e'.repeat(64) });
    const { fleet } = stage.core;
    const broken = new Proxy(fleet, {
      get: (of, key) => (key === 'move' ? () => Promise.reject(new Error('gone')) : bound(of, key)),
    });
    await expect(confirmManifest({ ...stage.core, fleet: broken }, run, { slot: 0, epoch: 1 })).rejects.toThrow('gone');
    await confirmManifest(stage.core, run, { slot: 0, epoch: 1 });
    expect(await stage.record(caller)).toMatchObject({ phase: 'done', manifestKey: manifestKey(run.id, 0, 1) });
    expect(await outcomes()).toMatchObject({ stored: 1, open: 19 });
    expect(stage.core.alarms).toHaveLength(1);
    expect(await verified()).toEqual({ count: 1, differences: [] });
  });

  it.each(['../1', 'a/b', '.', 'x y', '%2e', 'a'.repeat(129)])('are none of the run below %j', async (folder) => {
    const caller = await stage.ready(0);
    const manifestSha256 = 'e'.repeat(64);
    const name = `runs/${run.id}/0/1/${folder}/manifest.json`;
    expect(await caller.complete({ manifestKey: name, manifestSha256 })).toMatchObject({ status: 400 });
  });
});

describe('A foreign object in the place of a manifest', () => {
  const PLANTED = Buffer.from('{"manifest":{},"signature":7}');
  it('does not keep an instance that has reported its own from being done', async () => {
    const caller = await stage.ready(0);
    await caller.orders({ offered: ['1-1', '2-1'] });
    const part = await putPart(0, 1, 0, [1, 2, 3]);
    await caller.orders({ parts: [part] });
    await objects.putIfAbsent(manifestKey(run.id, 0, 1), PLANTED);
    // For the instance its object is there: `exists` counts as stored.
    await report(caller, [part]);
    await confirmManifest(stage.core, run, { slot: 0, epoch: 1 });
    const record = await stage.record(caller);
    expect(record).toMatchObject({ phase: 'done' });
    expect(record.manifestKey).toMatch(/\/0\/1\/manifest-[0-9a-f]{64}\.json$/);
    expect(await outcomes()).toMatchObject({ stored: 3, open: 17 });
    expect((await stage.core.work.waiting(20, new Set())).map((c) => c.id)).toContain('2-2');
    expect(stage.core.alarms).toEqual([
      expect.stringContaining(`the object ${manifestKey(run.id, 0, 1)} is neither from slot 0 epoch 1`),
    ]);
    expect(await verified()).toEqual({ count: 1, differences: [] });
  });

  it('is done, too, if the first try got no further than the manifest', async () => {
    const caller = await stage.ready(0);
    await objects.putIfAbsent(manifestKey(run.id, 0, 1), PLANTED);
    await caller.complete({ manifestKey: manifestKey(run.id, 0, 1), manifestSha256: 'e'.repeat(64) });
    const { fleet } = stage.core;
    const broken = new Proxy(fleet, {
      get: (of, key) => (key === 'move' ? () => Promise.reject(new Error('gone')) : bound(of, key)),
    });
    await expect(confirmManifest({ ...stage.core, fleet: broken }, run, { slot: 0, epoch: 1 })).rejects.toThrow('gone');
    await confirmManifest(stage.core, run, { slot: 0, epoch: 1 });
    expect(await stage.record(caller)).toMatchObject({ phase: 'done' });
    expect(stage.core.alarms).toHaveLength(1);
  });

  it.each([
    ['no manifest', () => PLANTED],
    ['signed by a stranger', () => encodeManifest(foreign(0, 1), createKeyPair().privateKey)],
    ['ours, of another epoch', () => encodeManifest(foreign(1, 1), importPrivateKey(run.privateKey))],
  ])('does not close the epoch of an instance that is given up: %s', async (_what, planted) => {
    const caller = await stage.ready(0);
    await caller.orders({ offered: ['1-1'] });
    await caller.orders({ parts: [await putPart(0, 1, 0, [1])] });
    await stage.core.fleet.move({ slot: 0, epoch: 1 }, 'ready', 'lost', { reason: 'heartbeat-lost' });
    await objects.putIfAbsent(manifestKey(run.id, 0, 1), planted());
    await closeEpoch(stage.core, run, { slot: 0, epoch: 1 });
    expect(await outcomes()).toMatchObject({ stored: 1, open: 19 });
    expect(stage.core.alarms).toHaveLength(1);
    expect(await verified()).toEqual({ count: 1, differences: [] });
  });

  const foreign = (slot: number, epoch: number): Manifest => ({
    version: 1,
    run: run.id,
    slot,
    epoch,
    instanceId: 'i-0-1',
    closedBy: 'main-server',
    closedAt: '2026-01-01T00:00:00.000Z',
    parts: [],
    progress: { ...NO_PROGRESS },
  });
});

describe('closeEpoch', () => {
  /** An instance with two chunks that is given up. */
  async function lost(): Promise<Caller> {
    const caller = await stage.ready(0);
    await caller.orders({ offered: ['1-1', '2-1'] });
    await stage.core.fleet.move({ slot: 0, epoch: 1 }, 'ready', 'lost', { reason: 'heartbeat-lost' });
    return caller;
  }

  it('keeps what is in the bucket, offers the rest again and signs the manifest with the key of the run', async () => {
    const caller = await lost();
    const part = await putPart(0, 1, 0, [1, 2, 3]);
    await closeEpoch(stage.core, run, { slot: 0, epoch: 1 });
    expect(await outcomes()).toMatchObject({ stored: 3, open: 17 });
    expect((await stage.core.work.waiting(20, new Set())).map((c) => c.id)).toContain('2-2');
    const bytes = objects.objects.get(manifestKey(run.id, 0, 1))!;
    const manifest = decodeManifest(bytes, importPublicKey(run.publicKey));
    expect(manifest).toMatchObject({ closedBy: 'main-server', parts: [part] });
    expect(await stage.record(caller)).toMatchObject({ manifestSha256: sha256Hex(bytes) });
  });

  it('lists what is in the bucket of its request log, in order', async () => {
    await lost();
    const logs = [logOf(0, 2), logOf(0, 0), logOf(0, 1)];
    for (const { key } of logs) await objects.putIfAbsent(key, Buffer.from('log'));
    await closeEpoch(stage.core, run, { slot: 0, epoch: 1 });
    const bytes = objects.objects.get(manifestKey(run.id, 0, 1))!;
    const manifest = decodeManifest(bytes, importPublicKey(run.publicKey));
    expect(manifest).toMatchObject({ parts: [], requestLogs: [logs[1], logs[2], logs[0]] });
  });

  it('leaves out a part that is broken, with an alarm', async () => {
    await lost();
    const broken = partKey(run.id, { slot: 0, epoch: 1, seq: 0, sha256: 'd'.repeat(64) });
    await objects.putIfAbsent(broken, Buffer.from('rubbish'));
    await putPart(0, 1, 1, [3]);
    await closeEpoch(stage.core, run, { slot: 0, epoch: 1 });
    expect(stage.core.alarms.join()).toContain(broken);
    expect(await outcomes()).toMatchObject({ stored: 1, open: 19 });
  });

  it('reads a broken part once, whichever main server comes to close the epoch', async () => {
    await lost();
    const bad = await putGzip({ slot: 0, epoch: 1, seq: 0 }, gzipOf([1, 2]).subarray(0, -20));
    const good = await putPart(0, 1, 1, [3]);
    const reads: string[] = [];
    objects.onCall = (operation, key) => {
      if (operation === 'get') reads.push(key);
    };
    const { work } = stage.core;
    stage.core.work = Object.assign(Object.create(work) as typeof work, {
      returnChunks: () => Promise.reject(new Error('killed')),
    });
    await expect(closeEpoch(stage.core, run, { slot: 0, epoch: 1 })).rejects.toThrow('killed');
    stage.core.work = work;
    // Once for its signature, once for its products.
    expect(reads.filter((key) => key === bad.key)).toHaveLength(2);
    await closeEpoch(stage.core, run, { slot: 0, epoch: 1 });
    expect(reads.filter((key) => key === bad.key)).toHaveLength(2);
    expect(stage.core.alarms.filter((alarm) => alarm.includes(bad.key))).toHaveLength(1);
    expect(await stage.core.results.parts()).toMatchObject([
      { key: bad.key, state: 'failed' },
      { key: good.key, state: 'loaded' },
    ]);
    expect(await outcomes()).toMatchObject({ stored: 1, open: 19 });
    expect(await verified()).toEqual({ count: 1, differences: [] });
  });

  it('reads none that the ledger has set aside, or will load', async () => {
    const caller = await lost();
    const [bad, good] = [await putPart(0, 1, 0, [1, 2]), await putPart(0, 1, 1, [3])];
    await stage.core.results.register({ slot: 0, epoch: 1 }, [bad, good]);
    await stage.core.results.failPart({ slot: 0, epoch: 1, seq: 0 }, 'as large as a house');
    const reads: string[] = [];
    objects.onCall = (operation, key) => {
      if (operation === 'get') reads.push(key);
    };
    await closeEpoch(stage.core, run, { slot: 0, epoch: 1 });
    expect(reads).toEqual([good.key]);
    expect(await outcomes()).toMatchObject({ stored: 1, open: 19 });
    expect((await stage.record(caller)).manifestKey).not.toBeNull();
  });

  it('counts the readable one of two parts with one number', async () => {
    await lost();
    const good = await putPart(0, 1, 0, [1, 2]);
    for (const sha256 of ['0'.repeat(64), 'f'.repeat(64)])
      await objects.putIfAbsent(partKey(run.id, { slot: 0, epoch: 1, seq: 0, sha256 }), Buffer.from('rubbish'));
    await closeEpoch(stage.core, run, { slot: 0, epoch: 1 });
    expect(await stage.core.results.parts()).toMatchObject([{ key: good.key, state: 'loaded' }]);
    expect(await outcomes()).toMatchObject({ stored: 2, open: 18 });
  });

  it('leaves nothing out because the bucket does not answer: it retries', async () => {
    const caller = await lost();
    await putPart(0, 1, 0, [1, 2, 3]);
    objects.onCall = (operation) => {
      if (operation === 'get') throw new Error('SlowDown');
    };
    await expect(closeEpoch(stage.core, run, { slot: 0, epoch: 1 })).rejects.toThrow('SlowDown');
    expect((await stage.record(caller)).manifestKey).toBeNull();
    expect(await stage.core.work.counts()).toMatchObject({ granted: 2 });
    objects.onCall = () => undefined;
    await closeEpoch(stage.core, run, { slot: 0, epoch: 1 });
    expect(await outcomes()).toMatchObject({ stored: 3 });
  });

  it('keeps the manifest that the instance wrote itself at the last moment', async () => {
    const caller = await lost();
    const part = await putPart(0, 1, 0, [1, 2, 3, 4]);
    await report(caller, [part]);
    await closeEpoch(stage.core, run, { slot: 0, epoch: 1 });
    const bytes = objects.objects.get(manifestKey(run.id, 0, 1))!;
    expect(decodeManifest(bytes, caller.keys.publicKey)).toMatchObject({ closedBy: 'instance' });
    expect(await stage.record(caller)).toMatchObject({ manifestSha256: sha256Hex(bytes) });
    expect(await outcomes()).toMatchObject({ stored: 4 });
  });

  /** Runs `act` just before the first manifest is put: after the bucket was listed, before the epoch is closed. */
  function beforeManifest(act: () => Promise<unknown>): void {
    const put = objects.putIfAbsent.bind(objects);
    objects.putIfAbsent = async (key, body) => {
      if (key !== manifestKey(run.id, 0, 1)) return put(key, body);
      objects.putIfAbsent = put;
      await act();
      return put(key, body);
    };
  }

  it('loads what the instance uploaded, with its own manifest, while its parts were being read', async () => {
    const caller = await lost();
    const first = await putPart(0, 1, 0, [1, 2]);
    beforeManifest(async () => report(caller, [first, await putPart(0, 1, 1, [3, 4])]));
    await closeEpoch(stage.core, run, { slot: 0, epoch: 1 });
    const bytes = objects.objects.get(manifestKey(run.id, 0, 1))!;
    expect(decodeManifest(bytes, caller.keys.publicKey)).toMatchObject({ closedBy: 'instance' });
    expect(await outcomes()).toMatchObject({ stored: 4, open: 16 });
    expect(await verified()).toEqual({ count: 1, differences: [] });
    // Both chunks are settled: no instance crawls them again.
    const waiting = await stage.core.work.waiting(20, new Set());
    expect(waiting.flatMap((c) => c.products.map((p) => p.n)).filter((n) => n <= 4)).toEqual([]);
  });

  it('loads a part that arrived between the listing of the bucket and its own manifest', async () => {
    await lost();
    await putPart(0, 1, 0, [1, 2]);
    beforeManifest(() => putPart(0, 1, 1, [3]));
    await closeEpoch(stage.core, run, { slot: 0, epoch: 1 });
    expect(await outcomes()).toMatchObject({ stored: 3, open: 17 });
    expect(await verified()).toEqual({ count: 1, differences: [] });
  });

  it('skips, with an alarm, a part of the instance’s own manifest that cannot be read', async () => {
    const caller = await lost();
    const parts = [await putPart(0, 1, 0, [1, 2]), await putPart(0, 1, 1, [3, 4])];
    objects.objects.delete(parts[0]!.key);
    beforeManifest(() => report(caller, parts));
    await closeEpoch(stage.core, run, { slot: 0, epoch: 1 });
    expect(stage.core.alarms.join()).toContain(parts[0]!.key);
    expect(await outcomes()).toMatchObject({ stored: 2, open: 18 });
    expect(await verified()).toEqual({ count: 1, differences: [] });
  });

  it.each<[string, (caller: Caller) => Promise<void>]>([
    ['is signed by another key', (c) => report(c, [], {}, createKeyPair())],
    ['lists the part of another slot', async (c) => report(c, [await putPart(1, 1, 0, [1])])],
  ])('takes nothing from a manifest that %s', async (_what, reportBadly) => {
    const caller = await lost();
    beforeManifest(() => reportBadly(caller));
    await closeEpoch(stage.core, run, { slot: 0, epoch: 1 });
    expect(await stage.core.results.parts()).toEqual([]);
  });

  it('closes once when the main server dies between the manifest and the release', async () => {
    const caller = await lost();
    await putPart(0, 1, 0, [1, 2, 3]);
    const { work } = stage.core;
    stage.core.work = Object.assign(Object.create(work) as typeof work, {
      returnChunks: () => Promise.reject(new Error('killed')),
    });
    await expect(closeEpoch(stage.core, run, { slot: 0, epoch: 1 })).rejects.toThrow('killed');
    stage.core.work = work;
    const sha256 = sha256Hex(objects.objects.get(manifestKey(run.id, 0, 1))!);
    // The instance continues until the successor starts: it does not know that its epoch is closed.
    await putPart(0, 1, 1, [4]);
    await closeEpoch(stage.core, run, { slot: 0, epoch: 1 });
    expect(sha256Hex(objects.objects.get(manifestKey(run.id, 0, 1))!)).toBe(sha256);
    expect(await stage.record(caller)).toMatchObject({ manifestSha256: sha256 });
    expect(await outcomes()).toMatchObject({ stored: 4, open: 16 });
    expect(await verified()).toEqual({ count: 1, differences: [] });
  });
});

describe('the hosts of an instance of many', () => {
  const at = { slot: 0, epoch: 1 };
  const GAP_MS = 60_000;
  let hosts: RunRecord;
  let caller: Caller;
  /** Calls of the ledger with the time until which hosts rest, from now on. */
  const rests: [string, number][] = [];

  beforeEach(async () => {
    const { site } = run.settings;
    const settings = { ...run.settings, site: { ...site, productUrl: ANY_HOST, intervalMs: GAP_MS } };
    hosts = { ...run, settings };
    rests.length = 0;
    caller = await stage.ready(0);
    await caller.orders({ offered: ['1-1', '2-1'] });
    const note = (call: string, untilMs = 0): Promise<never> => {
      rests.push([call, untilMs - stage.clock.now()]);
      return Promise.resolve(0 as never);
    };
    stage.core.work = Object.assign(Object.create(stage.core.work) as WorkStore, {
      returnChunks: (_: EpochId, untilMs: number) => note('return', untilMs),
      freeHosts: (_: EpochId, untilMs: number) => note('free', untilMs),
    });
  });

  const shown = (state: CloudState): CloudInstance => ({
    id: 'i-0-1',
    state,
    publicAddress: null,
    privateAddress: null,
    instanceType: 't4g.nano',
    zone: null,
    launchedAtMs: 0,
    tags: {},
  });
  const giveUp = () => stage.core.fleet.move(at, 'ready', 'lost', { reason: 'heartbeat-lost' });
  const gap = expect.closeTo(GAP_MS + paceMarginMs(GAP_MS), -4) as number;

  it('rest for its lease when it is given up, and for one gap from when EC2 shows its machine terminated', async () => {
    await giveUp();
    await closeEpoch(stage.core, hosts, at);
    await adopt(stage.core, hosts, at, shown('shutting-down'));
    await adopt(stage.core, hosts, at, shown('terminated'));
    expect(rests).toEqual([
      ['return', expect.closeTo(restOfLostMs(hosts), -4)],
      ['free', gap],
    ]);
    expect(restOfLostMs(hosts)).toBeGreaterThan(2 * GAP_MS);
    expect(await stage.record(caller)).toMatchObject({ cloudState: 'terminated' });
  });

  it('are freed again by the next main server if this one dies before it has stored what EC2 shows', async () => {
    await giveUp();
    const { fleet } = stage.core;
    stage.core.fleet = new Proxy(fleet, {
      get: (of, key) => (key === 'patch' ? () => Promise.reject(new Error('killed')) : bound(of, key)),
    });
    await expect(adopt(stage.core, hosts, at, shown('terminated'))).rejects.toThrow('killed');
    stage.core.fleet = fleet;
    expect(await stage.record(caller)).not.toMatchObject({ cloudState: 'terminated' });
    expect(rests).toEqual([['free', gap]]);
  });

  it('rest for one gap when it has closed its epoch itself before it was given up', async () => {
    await giveUp();
    await putOwn([], {}, caller.keys);
    await closeEpoch(stage.core, hosts, at);
    expect(rests).toEqual([['return', gap]]);
  });

  it('have no rest in a run of one site', async () => {
    await adopt(stage.core, run, at, shown('terminated'));
    expect(rests).toEqual([]);
  });
});
