/** The request log of an instance: from the journal to its objects. */
import { gunzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { Uploader } from '../../../crawl-api/upload/uploader.ts';
import { MemoryObjectStore } from '../../../orchestrator/core/simulation/cloud/memory-objects.ts';
import { seededRandom } from '../../../shared/adapters/random.ts';
import { parsePartKey, parseRequestLogKey } from '../../../shared/domain/keys.ts';
import { createKeyPair } from '../../../shared/wire/signature.ts';
import { isSignedPart } from '../../../shared/wire/part-signature.ts';
import { LOG_REQUESTS } from '../../../shared/wire/request-log.ts';
import { type VirtualClock } from '../../support/virtual-clock.ts';
import { crawl, fine, notFound, SHOP, toElsewhere } from './crawl-scene.ts';
import { createQueue, give, type MemoryJournal, orders, START_MS, stored } from './fakes.ts';

const FIRST = `process 0 ${new Date(START_MS).toISOString()}`;

/** What the next cut holds. */
function textOf(journal: MemoryJournal): string[] {
  const { requestLog } = journal.replay();
  requestLog.cut(0);
  return requestLog.cuts.at(-1)!.text.trimEnd().split('\n');
}

describe('the request log', () => {
  it('has every request with its purpose, and its answer', async () => {
    const further = `${SHOP}/further`;
    const scene = await crawl(4, (path) => {
      if (path === '/p1') return fine(path, { t: 'x' }, [further]);
      if (path === '/p2') return toElsewhere('/moved');
      return path === '/p3' ? notFound : fine(path);
    });
    const sent = textOf(scene.journal).filter((line) => line.startsWith('>'));
    expect(sent.map((line) => line.split(' ').slice(2))).toEqual(
      ['p', 'f', 'p', 'r', 'p', 'p'].map((purpose) => ['0', purpose]),
    );
    const answers = textOf(scene.journal).filter((line) => line.startsWith('<'));
    expect(answers.map((line) => line.split(' ')[3])).toEqual(['200', '200', '302', '200', '404', '200']);
    expect(sent).toHaveLength(scene.queue.progress(null).requests);
  });

  it('tells hosts, intervals, clocks and processes', async () => {
    const { queue, journal, clock } = createQueue();
    queue.recordProcess();
    await give(queue, '1-1', [1, 3], { intervalMs: 2_000 });
    await clock.advance(500);
    queue.recordStart(1, queue.localMs);
    await clock.advance(120);
    queue.recordAnswer('200');
    queue.noteClock(clock.now() + 5_040, 40);
    queue.recordStart(2, queue.localMs + 0.7, { host: 'img.shop', what: 'further', browser: true });
    await queue.follow(orders({ intervalMs: 3_000 }));
    queue.recordStart(0, queue.localMs + 5_000);
    const again = createQueue({ journal, clock });
    await clock.advance(1_000);
    again.queue.recordProcess();
    again.queue.recordStart(3, again.queue.localMs + 7_000);
    expect(textOf(journal)).toEqual([
      FIRST,
      'pace 0 2000',
      'host 0 0 site',
      '> 500 0 p',
      '< 620 0 200',
      'clock 600 5060 40',
      'host 1 0 img.shop',
      '> 620 1 fb',
      'pace 0 3000',
      '> 5620 0 c',
      `process 1 ${new Date(START_MS + 1_620).toISOString()}`,
      '> 7000 0 p',
    ]);
  });

  it('keeps a reading of the clock for a minute, unless the next is much surer', () => {
    const { queue, journal, clock } = createQueue();
    queue.recordProcess();
    const readings = (): number => journal.records.filter(({ t }) => t === 'clock').length;
    const seen = [100, 90, 60, 49, 30, 20].map((roundTripMs) => {
      queue.noteClock(clock.now(), roundTripMs);
      return readings();
    });
    expect(seen).toEqual([1, 1, 1, 2, 2, 3]);
  });

  it('has the requests of a journal that an earlier version began', async () => {
    const { queue, journal } = createQueue();
    await give(queue, '1-1', [1, 3], {});
    queue.recordStart(1, START_MS + 1_000.5);
    queue.recordStart(2, START_MS + 2_100.7);
    expect(textOf(journal)).toEqual([
      `process 0 ${new Date(START_MS + 1_000).toISOString()}`,
      'pace 0 1000',
      'host 0 0 site',
      '> 0 0 p',
      '> 1100 0 p',
    ]);
  });
});

const owner = { run: 'r', slot: 1, epoch: 2 };
const keys = createKeyPair();

function createUploader(journal: MemoryJournal, clock: VirtualClock, store: MemoryObjectStore) {
  const { queue } = createQueue({ journal, clock });
  queue.recordProcess();
  const uploader = new Uploader({
    queue,
    owner,
    session: () => Promise.resolve(null),
    privateKey: keys.privateKey,
    openStore: async () => store,
    clock,
    random: seededRandom(1),
    partMs: 10_000,
    onChange: () => undefined,
  });
  return { queue, uploader };
}

/** An instance with three granted products that ends its crawl after `visit`. */
async function uploaded(visit: (queue: ReturnType<typeof createUploader>['queue']) => void) {
  const { journal, clock } = createQueue();
  const store = new MemoryObjectStore();
  const { queue, uploader } = createUploader(journal, clock, store);
  await give(queue, '1-1', [1, 3], {});
  visit(queue);
  uploader.flush();
  const running = uploader.run(new AbortController().signal);
  await clock.advance(20_000);
  await running;
  return { queue, store, journal, clock, texts: textsIn(store) };
}

const textsIn = (store: MemoryObjectStore): string[] =>
  [...store.objects].filter(([key]) => parseRequestLogKey('r', key)).map(([, bytes]) => gunzipSync(bytes).toString());

describe('an object of the request log', () => {
  it('is stored before the part whose requests it has, signed for its own place', async () => {
    const { queue, store } = await uploaded((q) => {
      q.recordStart(1, q.localMs);
      q.recordResult(q.state.items.get(1)!, stored(1));
    });
    const [log, part] = [...store.objects.keys()];
    expect([parseRequestLogKey('r', log!), parsePartKey('r', part!)]).toMatchObject([
      { slot: 1, epoch: 2, seq: 0 },
      { slot: 1, epoch: 2, seq: 0 },
    ]);
    expect([parsePartKey('r', log!), parseRequestLogKey('r', part!)]).toEqual([null, null]);
    const bytes = store.objects.get(log!)!;
    const place = { ...owner, seq: 0 };
    expect(isSignedPart(bytes, { ...place, of: 'requests' }, keys.publicKey)).toBe(true);
    expect(isSignedPart(bytes, place, keys.publicKey)).toBe(false);
    expect(queue.state.requestLog.stored).toMatchObject([{ seq: 0, key: log, sizeBytes: bytes.length }]);
  });

  it('is there for requests that came to no result', async () => {
    const { texts } = await uploaded((q) => q.recordStart(1, q.localMs));
    expect(texts).toEqual([expect.stringContaining('> 0 0 p\n')]);
  });

  it('is not there without requests', async () => {
    const { store } = await uploaded(() => undefined);
    expect(store.objects.size).toBe(0);
  });

  it('can be read by itself, each', async () => {
    const { journal, clock } = createQueue();
    const { queue } = createUploader(journal, clock, new MemoryObjectStore());
    await give(queue, '1-1', [1, 3], {});
    for (const n of [1, 2]) {
      queue.noteClock(clock.now(), 10 / n ** 2);
      queue.recordStart(n, queue.localMs);
      await queue.cutRequests();
      await clock.advance(1_500);
    }
    expect(queue.state.requestLog.cuts.map(({ text }) => text.trimEnd().split('\n'))).toEqual([
      [FIRST, 'clock -5 5 10', 'pace 0 1000', 'host 0 0 site', '> 0 0 p'],
      [FIRST, 'clock 1498 1 3', 'pace 0 1000', 'host 0 0 site', '> 1500 0 p'],
    ]);
  });

  it('has the same bytes after the process was killed while it was under way', async () => {
    const { journal, clock } = createQueue();
    const store = new MemoryObjectStore();
    const first = createUploader(journal, clock, store);
    await give(first.queue, '1-1', [1, 3], {});
    first.queue.recordStart(1, first.queue.localMs);
    await first.queue.cutRequests();
    const texts = first.queue.state.requestLog.cuts.map(({ text }) => text);
    const second = createUploader(journal, clock, store);
    second.queue.recordStart(2, second.queue.localMs);
    second.uploader.flush();
    const running = second.uploader.run(new AbortController().signal);
    await clock.advance(20_000);
    await running;
    expect(textsIn(store)).toEqual([...texts, expect.stringContaining('process 1 ')]);
  });

  it('is cut before it is too large, though nothing is stored', async () => {
    const { journal, clock } = createQueue();
    const store = new MemoryObjectStore();
    const { queue, uploader } = createUploader(journal, clock, store);
    await give(queue, '1-1', [1, 3], {});
    for (let i = 0; i < LOG_REQUESTS; i++) queue.recordStart(1, queue.localMs);
    const stop = new AbortController();
    const running = uploader.run(stop.signal);
    await clock.advance(20_000);
    stop.abort();
    await running;
    expect([store.objects.size, queue.state.requestLog.requests]).toEqual([1, 0]);
  });
});
