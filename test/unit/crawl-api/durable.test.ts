/** Crashes of the process and full disks: fault rows F25 and F26. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { toFailure } from '../../../crawl-api/queue/item-result.ts';
import type { Queue } from '../../../crawl-api/queue/queue.ts';
import { type Reserve, ReserveFile } from '../../../crawl-api/queue/reserve-file.ts';
import { createScene, outcomes, urls } from './crawl-scene.ts';
import {
  MemoryJournal,
  START_MS,
  createQueue,
  give,
  orders,
  products,
  stored,
  createGranted,
  refusal,
} from './fakes.ts';

const poisoned = (queue: Queue) =>
  queue
    .recoverDeath((item) => toFailure({ item, url: `http://shop/${item.n}`, nowMs: START_MS }, 'poison', 'died'))
    .map(({ id }) => id)
    .join() || null;

describe('F25: a product that kills the process', () => {
  it('moves to the end after the first crash and fails after the second', async () => {
    const first = await createGranted(3, { sealed: true });
    first.queue.recordStart(1, START_MS);

    const second = createQueue({ journal: first.journal });
    expect(poisoned(second.queue)).toBe('p1');
    expect(second.queue.state.peek(true)?.id).toBe('p2');
    for (const n of [2, 3]) {
      second.queue.recordStart(n, START_MS + n * 1_000);
      second.queue.recordResult(second.queue.state.items.get(n)!, stored(n));
    }
    expect(second.queue.state.peek(true)?.id).toBe('p1');
    second.queue.recordStart(1, START_MS + 5_000);

    const third = createQueue({ journal: first.journal });
    expect(poisoned(third.queue)).toBe('p1');
    expect(third.queue.isFinished).toBe(true);
    expect(outcomes(first.journal)).toEqual(['p2 stored', 'p3 stored', 'p1 poison']);
    expect(poisoned(createQueue({ journal: first.journal }).queue)).toBeNull();
  });

  it('does not include one interrupted by an orderly shutdown', async () => {
    const first = await createGranted(3);
    const scene = await createScene(first);
    await scene.run(1_100);
    scene.stop.abort();
    await scene.run(0);
    expect(first.queue.progress(null).requests).toBe(2);
    const again = createQueue({ journal: first.journal });
    expect(poisoned(again.queue)).toBeNull();
    expect(again.queue.state.peek(false)?.id).toBe('p2');
  });
});

describe('F26: a crash recorded on a full disk', () => {
  const noReserve: Reserve = { isHeld: false, take: () => false, giveUp: () => undefined };

  it('lets the process start, is reported, and is written before anything else', async () => {
    const { journal, queue } = await createGranted(3, { sealed: true });
    queue.recordStart(1, START_MS);
    journal.full = true;

    const again = createQueue({ journal, reserve: noReserve });
    expect(poisoned(again.queue)).toBe('p1');
    expect(again.queue.state.peek(true)?.id).toBe('p2');
    expect(again.queue.diskProblem).toContain('ENOSPC');
    expect(again.queue.hasRoom()).toBe(false);

    journal.full = false;
    again.queue.note({ t: 'drained' });
    expect(journal.records.slice(-2).map(({ t }) => t)).toEqual(['died', 'drained']);
    expect(journal.replay().items.get(1)).toMatchObject({ deaths: 1, state: 'postponed' });
  });

  it('counts once, however often the process is killed before it is written', async () => {
    const { journal, queue } = await createGranted(3);
    queue.recordStart(1, START_MS);
    journal.full = true;
    for (let i = 0; i < 3; i++) {
      const again = createQueue({ journal, reserve: noReserve });
      expect(poisoned(again.queue)).toBe('p1');
      expect(again.queue.state.items.get(1)).toMatchObject({ deaths: 1 });
    }
  });
});

/** A disk with room for `records`, plus a reserve of ten. */
function createSmallDisk(records: number) {
  const disk = { room: records };
  const RESERVED = 10;
  let isHeld = true;
  const reserve: Reserve = {
    get isHeld() {
      return isHeld;
    },
    take: () => {
      if (!isHeld && disk.room >= RESERVED) {
        disk.room -= RESERVED;
        isHeld = true;
      }
      return isHeld;
    },
    giveUp: () => {
      if (isHeld) disk.room += RESERVED;
      isHeld = false;
    },
  };
  class SmallJournal extends MemoryJournal {
    override append(added: Parameters<MemoryJournal['append']>[0]): void {
      if (added.length > disk.room) throw new Error('ENOSPC: no space left on device');
      disk.room -= added.length;
      super.append(added);
    }
  }
  return { disk, reserve, journal: new SmallJournal() };
}

describe('F26: a full disk', () => {
  it('stops intake and requests; results, parts and the close are written from the reserve', async () => {
    // Offer, grant, orders; then start, answer and result of each product.
    const { disk, reserve, journal } = createSmallDisk(3 + 3 * 3 + 1);
    const w = createQueue({ journal, reserve });
    await give(w.queue, '1-1', [1, 9], { sealed: false });
    const scene = await createScene(w);
    await scene.run(20_000);
    expect(urls(scene)).toEqual(['p1', 'p2', 'p3', 'p4']);
    expect(w.queue.progress(null)).toMatchObject({ stored: 4, pending: 5 });
    expect(w.queue.diskProblem).toContain('the disk is full');
    expect(await w.queue.offer({ chunk: '2-1', share: 99, products: products(20, 21) })).toEqual(refusal('disk'));

    expect((await w.queue.cut(1_000))?.seq).toBe(0);
    w.queue.note({ t: 'part', part: { seq: 0, key: 'k', sha256: '0'.repeat(64), sizeBytes: 1, products: 4 } });
    await w.queue.follow(orders({ drain: true, partsAck: 0 }));
    await scene.run(1_000);
    expect(scene.end()).toBe('drained');
    w.queue.stopCrawling();
    await w.queue.recordManifest('{}');
    w.queue.note({ t: 'closed' });
    expect(createQueue({ journal }).queue.state).toMatchObject({ closed: true, ackedSeq: 0 });
    expect(disk.room).toBeLessThan(10);
  });

  it('recovers when there is room again', async () => {
    const { disk, reserve, journal } = createSmallDisk(3 + 3 + 1);
    const w = createQueue({ journal, reserve });
    await give(w.queue, '1-1', [1, 3], { sealed: false });
    const scene = await createScene(w);
    await scene.run(20_000);
    expect(w.queue.progress(null)).toMatchObject({ stored: 2, pending: 1 });
    expect(reserve.isHeld).toBe(false);
    disk.room = 1_000;
    await scene.run(10_000);
    expect(w.queue.progress(null)).toMatchObject({ stored: 3, pending: 0 });
    expect(w.queue.diskProblem).toBeNull();
    expect(reserve.isHeld).toBe(true);
    expect(await w.queue.offer({ chunk: '2-1', share: 99, products: products(20, 21) })).toMatchObject({ taken: true });
  });
});

describe('the reserve', () => {
  const folders: string[] = [];
  afterEach(() => folders.splice(0).forEach((folder) => fs.rmSync(folder, { recursive: true, force: true })));

  it('is allocated disk space that can be released and taken again', () => {
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'crawlfleet-reserve-'));
    folders.push(folder);
    const file = path.join(folder, 'reserve');
    const reserve = new ReserveFile(file);
    expect(reserve.isHeld).toBe(true);
    expect(fs.statSync(file).blocks * 512).toBeGreaterThanOrEqual(1_000_000);
    reserve.giveUp();
    expect([reserve.isHeld, fs.existsSync(file)]).toEqual([false, false]);
    expect(reserve.take()).toBe(true);
    expect(new ReserveFile(file).isHeld).toBe(true);
  });

  it('reports when it is unavailable', () => {
    const reserve = new ReserveFile('/proc/there-is-no-room-here');
    expect([reserve.isHeld, reserve.take()]).toEqual([false, false]);
  });
});
