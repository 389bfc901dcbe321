import { gunzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { closeEpoch } from '../../../crawl-api/callbacks/closing.ts';
import type { Queue } from '../../../crawl-api/queue/queue.ts';
import { Uploader } from '../../../crawl-api/upload/uploader.ts';
import { MemoryObjectStore } from '../../../orchestrator/core/simulation/cloud/memory-objects.ts';
import { seededRandom } from '../../../shared/adapters/random.ts';
import type { VirtualClock } from '../../support/virtual-clock.ts';
import { manifestKey, parsePartKey } from '../../../shared/domain/keys.ts';
import { COMPLETION_PATH } from '../../../shared/wire/callbacks.ts';
import { decodeManifest, type ItemResult } from '../../../shared/wire/part.ts';
import { isSignedPart } from '../../../shared/wire/part-signature.ts';
import { createKeyPair, sha256Hex } from '../../../shared/wire/signature.ts';
import { createQueue, give, silentLog, stored, createGranted } from './fakes.ts';

const owner = { run: 'r', slot: 1, epoch: 2 };
const session = () => Promise.resolve('AROA1:i-1');
const random = seededRandom(1);
const keys = createKeyPair();

function createUploader(queue: Queue, clock: VirtualClock, store: MemoryObjectStore) {
  let changes = 0;
  const uploader = new Uploader({
    queue,
    owner,
    session,
    privateKey: keys.privateKey,
    openStore: async () => store,
    clock,
    random,
    partMs: 10_000,
    onChange: () => changes++,
  });
  return { uploader, changes: () => changes };
}

/** An uploader of a queue with the products 1 to `last`, and its bucket. */
async function setUp(last: number) {
  const world = createQueue();
  const store = new MemoryObjectStore();
  await give(world.queue, '1-1', [1, last]);
  return { ...world, store, ...createUploader(world.queue, world.clock, store) };
}

/** Results of all parts in the bucket. */
function results(store: MemoryObjectStore): ItemResult[] {
  return [...store.objects]
    .filter(([key]) => key.endsWith('.gz'))
    .flatMap(([, bytes]) => gunzipSync(bytes).toString('utf8').trimEnd().split('\n'))
    .map((line) => JSON.parse(line) as ItemResult);
}

function finish(queue: Queue, uploader: Uploader | null, [first, last]: [number, number], text = 'x'): void {
  for (let n = first; n <= last; n++) {
    queue.recordResult(queue.state.items.get(n)!, stored(n, text));
    uploader?.noteResult();
  }
}

describe('the uploader', () => {
  it.each([
    ['once', 1, false],
    ['again', 3, true],
  ])('when S3 has refused %s to store, reports that (until it stores): %s %s', async (_, refusals, reported) => {
    const { queue, clock, store, uploader } = await setUp(1);
    let refused = refusals;
    store.onCall = () => {
      if (refused-- > 0) throw Object.assign(new Error('not authorized'), { name: 'AccessDenied' });
    };
    finish(queue, uploader, [1, 1]);
    uploader.flush();
    const stop = new AbortController();
    const running = uploader.run(stop.signal);
    const seen: boolean[] = [];
    for (let i = 0; i < 30; i++) {
      await clock.advance(500);
      seen.push(uploader.storeRefused.storeRefused === true);
    }
    await running;
    expect({ reported: seen.includes(true), last: seen.at(-1) }).toEqual({ reported, last: false });
  });

  it('writes a part when the oldest result has waited long enough', async () => {
    const { queue, clock, store, uploader, changes } = await setUp(3);
    const stop = new AbortController();
    const running = uploader.run(stop.signal);
    await clock.advance(60_000);
    finish(queue, uploader, [1, 2]);
    await clock.advance(9_000);
    expect(store.objects.size).toBe(0);
    await clock.advance(2_000);
    expect(results(store).map((r) => r.n)).toEqual([1, 2]);
    expect(changes()).toBe(1);
    const part = queue.state.parts[0]!;
    const bytes = store.objects.get(part.key)!;
    expect(part).toEqual({ seq: 0, key: part.key, sha256: sha256Hex(bytes), sizeBytes: bytes.length, products: 2 });
    expect(isSignedPart(bytes, { ...owner, seq: 0 }, keys.publicKey)).toBe(true);
    expect(part.key).toMatch(/^runs\/r\/1\/2\/AROA1:i-1\/0-/);
    expect(parsePartKey('r', part.key)).toEqual({ slot: 1, epoch: 2, seq: 0, sha256: part.sha256 });
    stop.abort();
    await running;
  });

  it('writes a part immediately when there are enough results, and never more into one', async () => {
    const { queue, clock, store, uploader } = await setUp(2_300);
    const stop = new AbortController();
    const running = uploader.run(stop.signal);
    finish(queue, uploader, [1, 2_300]);
    await clock.advance(10);
    expect(queue.state.parts.map((p) => p.products)).toEqual([1_000, 1_000]);
    uploader.flush();
    await clock.advance(10);
    await running;
    expect(queue.state.parts.map((p) => [p.seq, p.products])).toEqual([
      [0, 1_000],
      [1, 1_000],
      [2, 300],
    ]);
    expect(results(store)).toHaveLength(2_300);
  });

  it('also cuts a backlog by its length, with at least one result per part', async () => {
    const { queue } = await createGranted(100);
    for (const n of [1, 2, 3, 4, 5])
      queue.recordResult(queue.state.items.get(n)!, stored(n, 'x'.repeat(n === 5 ? 30_000 : 8_000)));
    const cuts = [];
    for (let cut = await queue.cut(1_000, 20_000); cut; cut = await queue.cut(1_000, 20_000))
      cuts.push([cut.from, cut.to]);
    expect(cuts).toEqual([
      [0, 2],
      [2, 4],
      [4, 5],
    ]);
    expect(queue.state.lines.uncutChars).toBe(0);
  });

  it('writes no part larger than the loader accepts, however long uploads have stalled', async () => {
    const { queue, uploader } = await setUp(200);
    finish(queue, uploader, [1, 200], 'x'.repeat(60_000));
    uploader.flush();
    await uploader.run(new AbortController().signal);
    expect(queue.state.parts.map((part) => part.products)).toEqual([66, 66, 66, 2]);
  });

  it('does not accumulate long rows', async () => {
    const { queue, clock, uploader } = await setUp(100);
    const stop = new AbortController();
    const running = uploader.run(stop.signal);
    finish(queue, uploader, [1, 80], 'x'.repeat(60_000));
    await clock.advance(10);
    expect(queue.state.parts).toHaveLength(1);
    stop.abort();
    await running;
  });

  it('forgets results that are in the bucket', async () => {
    const { queue, uploader } = await setUp(5);
    finish(queue, uploader, [1, 3]);
    uploader.flush();
    await uploader.run(new AbortController().signal);
    expect(queue.state.lines.uncutChars).toBe(0);
    expect(queue.state.lines.linesOf({ from: 3, to: 3 })).toEqual([]);
    expect(queue.state.lines.uncut()).toEqual({ from: 3, to: 3 });
  });

  it('retries until the bucket accepts the part, and reports the problem until then', async () => {
    const { queue, clock, store, uploader, changes } = await setUp(1);
    store.onCall = () => {
      throw new Error('SlowDown');
    };
    finish(queue, uploader, [1, 1]);
    uploader.flush();
    const running = uploader.run(new AbortController().signal);
    await clock.advance(120_000);
    expect(uploader.problem).toContain('SlowDown');
    expect(changes()).toBe(1);
    store.onCall = () => undefined;
    await clock.advance(60_000);
    await running;
    expect(uploader.problem).toBeNull();
    expect(results(store)).toHaveLength(1);
  });

  it.each([
    ['after the cut, before the upload', false],
    ['after the upload, before it was journalled', true],
  ])('killed %s, a restarted process writes the same object and no product twice', async (_when, uploaded) => {
    const { queue, clock, journal, store, uploader } = await setUp(5);
    finish(queue, uploader, [1, 3]);
    uploader.flush();
    if (uploaded) {
      await uploader.run(new AbortController().signal);
      expect(journal.records.at(-1)!.t).toBe('part');
      journal.records.pop();
    } else {
      await queue.cut(1_000);
    }

    const again = createQueue({ journal, clock }).queue;
    finish(again, null, [4, 5]);
    const { uploader: second } = createUploader(again, clock, store);
    second.flush();
    await second.run(new AbortController().signal);
    expect(again.state.parts.map((p) => p.seq)).toEqual([0, 1]);
    expect(store.objects.size).toBe(2);
    expect(
      results(store)
        .map((r) => r.n)
        .sort((a, b) => a - b),
    ).toEqual([1, 2, 3, 4, 5]);
  });
});

describe('closing the epoch', () => {
  const keys = createKeyPair();

  function parts(
    queue: Queue,
    clock: VirtualClock,
    store: MemoryObjectStore,
    answer: () => { status: number; body: string },
  ) {
    const { uploader } = createUploader(queue, clock, store);
    const sent: unknown[] = [];
    const client = {
      sendSigned: async (path: string, message: unknown) => {
        sent.push({ path, message });
        return { ...answer(), authentic: true };
      },
    };
    const progress = () => queue.progress(null);
    const closing = {
      queue,
      uploader,
      client,
      owner,
      session,
      instanceId: 'i-1',
      privateKey: keys.privateKey,
      progress,
      clock,
      random,
      log: silentLog,
    };
    return { closing, sent };
  }

  it('uploads a signed manifest of all parts, then reports it', async () => {
    const { queue, clock, store, uploader } = await setUp(2);
    finish(queue, uploader, [1, 2]);
    uploader.flush();
    await uploader.run(new AbortController().signal);
    const { closing, sent } = parts(queue, clock, store, () => ({ status: 200, body: '{"ok":true}' }));
    await closeEpoch(closing, new AbortController().signal);
    const bytes = store.objects.get(manifestKey('r', 1, 2, 'AROA1:i-1'))!;
    const manifest = decodeManifest(bytes, keys.publicKey);
    expect(manifest).toMatchObject({ ...owner, instanceId: 'i-1', closedBy: 'instance', parts: queue.state.parts });
    expect(manifest.progress).toMatchObject({ assigned: 2, stored: 2 });
    expect(sent).toEqual([
      {
        path: COMPLETION_PATH,
        message: { manifestKey: manifestKey('r', 1, 2, 'AROA1:i-1'), manifestSha256: sha256Hex(bytes) },
      },
    ]);
    expect(queue.state.closed).toBe(true);
  });

  it('reports the manifest until it is confirmed, and a restarted process reports the same bytes', async () => {
    const { queue, clock, journal } = createQueue();
    const store = new MemoryObjectStore();
    let status = 503;
    const answer = () => ({ status, body: '{"ok":true}' });
    const first = parts(queue, clock, store, answer);
    const stop = new AbortController();
    const running = closeEpoch(first.closing, stop.signal);
    await clock.advance(30_000);
    expect(first.sent.length).toBeGreaterThan(2);
    stop.abort();
    await running;
    expect(queue.state.closed).toBe(false);

    const again = createQueue({ journal, clock }).queue;
    expect(again.isDraining).toBe(true);
    status = 200;
    const second = parts(again, clock, store, answer);
    await closeEpoch(second.closing, new AbortController().signal);
    expect(second.sent).toEqual([first.sent[0]]);
    expect(again.state.closed).toBe(true);
    expect(store.objects.size).toBe(1);
  });
});
