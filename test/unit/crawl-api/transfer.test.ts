/** Chunks that an instance returns: whatever kills it, it never crawls a chunk that it has reported as returned. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { JournalFile } from '../../../crawl-api/queue/journal-file.ts';
import { QueueState } from '../../../crawl-api/queue/queue-state.ts';
import { Queue } from '../../../crawl-api/queue/queue.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';
import { createScene, urls } from './crawl-scene.ts';
import { START_MS, createQueue, give, orders, products, stored, createGranted, refusal } from './fakes.ts';

/** Three granted chunks of two products. */
async function holdThree(world = createQueue()) {
  for (const i of [1, 2, 3]) await give(world.queue, `${i}-1`, [2 * i - 1, 2 * i]);
  return world;
}

const wanted = ['3-1', '2-1', '1-1'];

describe('an order to return chunks', () => {
  it('is followed for untouched chunks, and is on disk before it is reported', async () => {
    const { queue, journal } = await holdThree();
    const syncs = journal.syncs;
    expect(await queue.follow(orders({ transfer: ['3-1'] }))).toMatchObject({ transferred: 1, changed: true });
    expect(journal.syncs).toBe(syncs + 1);
    expect(queue.transferredChunks()).toEqual(['3-1']);
    expect(queue.progress(null)).toMatchObject({ assigned: 4, pending: 4 });
    expect(queue.state.held).toBe(4);
    expect(await queue.follow(orders({ transfer: ['3-1'] }))).toMatchObject({ transferred: 0 });
    expect(queue.transferredChunks()).toEqual(['3-1']);
  });

  it('keeps chunks with products that are crawled, in progress, next in turn or to be retried', async () => {
    const { queue } = await holdThree();
    queue.recordStart(1, START_MS);
    queue.recordResult(queue.state.items.get(1)!, stored(1));
    queue.visiting.add(3);
    queue.recordStart(5, START_MS + 1_000);
    await queue.follow(orders({ transfer: wanted }));
    expect(queue.transferredChunks()).toEqual([]);
    queue.recordBrokenOff();
    await queue.follow(orders({ transfer: wanted }));
    expect(queue.transferredChunks()).toEqual([]);
    queue.visiting.delete(3);
    await queue.follow(orders({ transfer: wanted }));
    expect(queue.transferredChunks()).toEqual(['2-1']);
  });

  it('keeps a chunk whose products are held under an older generation', async () => {
    const { queue } = await createGranted(2);
    await give(queue, '1-2', [1, 2]);
    await queue.follow(orders({ transfer: ['1-2'] }));
    expect(queue.transferredChunks()).toEqual([]);
  });

  it('is not reported before it is on disk, and is reported later', async () => {
    const { queue, journal } = await holdThree();
    journal.sync = () => Promise.reject(new Error('EIO'));
    await expect(queue.follow(orders({ transfer: ['3-1'] }))).rejects.toThrow('EIO');
    expect(queue.transferredChunks()).toEqual([]);
    Reflect.deleteProperty(journal, 'sync');
    expect(await queue.follow(orders())).toMatchObject({ transferred: 1 });
    expect(queue.transferredChunks()).toEqual(['3-1']);
  });

  it('is reported until the main server acknowledges it, even after a restart', async () => {
    const { queue, journal } = await holdThree();
    await queue.follow(orders({ transfer: ['3-1', '2-1'] }));
    const again = createQueue({ journal }).queue;
    await again.follow(orders());
    expect(again.transferredChunks().sort()).toEqual(['2-1', '3-1']);
    await again.follow(orders({ transferredAck: ['3-1'] }));
    expect(again.transferredChunks()).toEqual(['2-1']);
    expect(createQueue({ journal }).queue.state.transferred).toEqual(new Set(['2-1']));
  });

  it('leads to a refusal of a late copy of the offer, but not of the next generation of the chunk', async () => {
    const { queue } = await holdThree();
    await queue.follow(orders({ transfer: ['3-1'] }));
    const offer = { share: 100, products: products(5, 6) };
    expect(await queue.offer({ chunk: '3-1', ...offer })).toEqual(refusal('share'));
    expect(await queue.offer({ chunk: '3-2', ...offer })).toMatchObject({ taken: true });
    await queue.follow(orders({ grants: ['3-2'] }));
    expect(queue.progress(null).pending).toBe(6);
  });

  it('also returns chunks that are only offered or unknown', async () => {
    const { queue } = createQueue();
    await queue.offer({ chunk: '1-1', share: 9, products: products(1, 2) });
    await queue.follow(orders({ transfer: ['1-1', '9-9'] }));
    expect(queue.transferredChunks().sort()).toEqual(['1-1', '9-9']);
    expect(queue.state.held).toBe(0);
  });

  it('is ignored while the instance drains', async () => {
    const { queue } = await holdThree();
    await queue.follow(orders({ drain: true, transfer: wanted }));
    expect(queue.transferredChunks()).toEqual([]);
  });

  it('cannot remove the product that is being crawled', async () => {
    const w = await holdThree();
    const scene = await createScene(w);
    await scene.run(1_500);
    await scene.follow({ transfer: wanted });
    await scene.run(30_000);
    const asked = urls(scene);
    expect(asked).not.toContain('p5');
    expect(asked).not.toContain('p6');
    expect(new Set(asked).size).toBe(asked.length);
    expect(w.queue.state.items.openCount).toBe(0);
  });
});

describe('maxProducts', () => {
  it('limits the taken products, whatever the share in an offer', async () => {
    const { queue } = await holdThree();
    await queue.follow(orders({ maxProducts: 7 }));
    expect(await queue.offer({ chunk: '4-1', share: 100, products: products(7, 8) })).toEqual(refusal('share', 1));
    await queue.follow(orders({ maxProducts: null }));
    expect(await queue.offer({ chunk: '4-1', share: 100, products: products(7, 8) })).toMatchObject({ taken: true });
  });
});

describe('a journal that lost records', () => {
  it('crawls nothing before the main server has confirmed which chunks it still owns', async () => {
    const { queue, journal } = await holdThree();
    queue.recordStart(1, START_MS);
    queue.recordResult(queue.state.items.get(1)!, stored(1));
    const { queue: again } = createQueue({ journal });
    again.recordDamage();
    expect(again.state.peek(true)).toBeNull();
    expect(again.state.offeredChunks().sort()).toEqual(['1-1', '2-1', '3-1']);
    expect(again.progress(null)).toMatchObject({ pending: 5, stored: 1 });
    await again.follow(orders({ grants: ['1-1', '2-1'], drops: ['3-1'] }));
    expect(again.state.peek(true)?.n).toBe(2);
    expect(again.progress(null)).toMatchObject({ pending: 3, assigned: 4 });
    expect(again.state.held).toBe(4);
  });
});

describe('kill -9 at any byte', () => {
  const folders: string[] = [];
  afterEach(() => folders.splice(0).forEach((folder) => fs.rmSync(folder, { recursive: true, force: true })));

  it('never crawls a chunk that was reported as returned, and never loses another', async () => {
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'crawlfleet-yield-'));
    folders.push(folder);
    const file = path.join(folder, 'journal');
    const open = (name: string) => {
      const state = new QueueState();
      const { file: journal } = JournalFile.open(name, (record) => state.apply(record));
      const defaults = { intervalMs: 1_000, deadlineMs: START_MS + 3_600_000, productUrl: 'http://shop/{id}' };
      return { journal, queue: new Queue(state, journal, new VirtualClock(START_MS), defaults) };
    };
    const { journal, queue } = open(file);
    await holdThree({ queue } as never);
    const before = fs.statSync(file).size;
    await queue.follow(orders({ transfer: ['3-1', '2-1'] }));
    const reportedSize = fs.statSync(file).size;
    await queue.follow(orders({ transferredAck: ['3-1', '2-1'] }));
    await journal.close();
    const bytes = fs.readFileSync(file);
    for (let size = before; size <= bytes.length; size++) {
      const torn = path.join(folder, `torn-${size}`);
      fs.writeFileSync(torn, bytes.subarray(0, size));
      const { journal: left, queue: again } = open(torn);
      const chunks = new Set([...again.state.items.values()].map((i) => i.chunk));
      // The transfer could not be reported before the whole record was on disk.
      expect([...chunks], `cut at ${size}`).toEqual(size < reportedSize ? ['1-1', '2-1', '3-1'] : ['1-1']);
      if (size >= reportedSize && size < bytes.length) {
        await again.follow(orders());
        expect(again.transferredChunks().sort()).toEqual(['2-1', '3-1']);
      }
      await left.close();
    }
  });
});
