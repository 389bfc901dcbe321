import { describe, expect, it } from 'vitest';
import { START_MS, createQueue, failed, give, orders, products, stored, createGranted, refusal } from './fakes.ts';

describe('offers', () => {
  it('are on disk before they are acknowledged', async () => {
    const { queue, journal } = createQueue();
    expect(await queue.offer({ chunk: '1-1', share: 10, products: products(1, 3) })).toEqual({ taken: true, held: 3 });
    expect(journal.records.map((r) => r.t)).toEqual(['offered']);
    expect(journal.syncs).toBe(1);
  });

  it('are taken once, however often the same chunk arrives', async () => {
    const { queue, journal } = createQueue();
    for (let i = 0; i < 3; i++)
      expect(await queue.offer({ chunk: '1-1', share: 3, products: products(1, 3) })).toEqual({ taken: true, held: 3 });
    expect(journal.records).toHaveLength(1);
  });

  it('are acknowledged again after the seal when they were held before', async () => {
    const { queue } = await createGranted(3, { sealed: true });
    expect(await queue.offer({ chunk: '1-1', share: 3, products: products(1, 3) })).toMatchObject({ taken: true });
    expect(await queue.offer({ chunk: '2-1', share: 9, products: products(4, 6) })).toEqual(refusal('sealed'));
  });

  it('are refused above the share, with the remaining room', async () => {
    const { queue } = createQueue();
    await queue.offer({ chunk: '1-1', share: 5, products: products(1, 3) });
    expect(await queue.offer({ chunk: '2-1', share: 5, products: products(4, 6) })).toEqual(refusal('share', 2));
    expect(await queue.offer({ chunk: '3-1', share: 5, products: products(7, 8) })).toMatchObject({ taken: true });
  });

  it('are refused when they could not be crawled before the deadline', async () => {
    // 1,000 ms plus a 10 ms margin per product: nine fit into ten seconds.
    const { queue } = createQueue({ deadlineMs: START_MS + 10_000 });
    await queue.offer({ chunk: '1-1', share: 100, products: products(1, 6) });
    expect(await queue.offer({ chunk: '2-1', share: 100, products: products(7, 10) })).toEqual(refusal('deadline', 3));
    expect(await queue.offer({ chunk: '3-1', share: 100, products: products(7, 9) })).toMatchObject({ taken: true });
  });

  it('count only uncrawled products against the deadline', async () => {
    const { queue } = createQueue({ deadlineMs: START_MS + 10_000 });
    await give(queue, '1-1', [1, 9], { deadline: new Date(START_MS + 10_000).toISOString() });
    for (let n = 1; n <= 4; n++) queue.recordResult(queue.state.items.get(n)!, stored(n));
    expect(await queue.offer({ chunk: '2-1', share: 100, products: products(10, 13) })).toMatchObject({ taken: true });
  });

  it('are refused while draining', async () => {
    const { queue } = createQueue();
    queue.note({ t: 'drained' });
    expect(await queue.offer({ chunk: '1-1', share: 9, products: products(1, 3) })).toEqual(refusal('draining'));
  });

  it('are refused when the disk is full, and taken again when it has room', async () => {
    const { queue, journal } = createQueue();
    journal.full = true;
    expect(await queue.offer({ chunk: '1-1', share: 9, products: products(1, 3) })).toEqual(refusal('disk'));
    expect(queue.state.held).toBe(0);
    expect(queue.diskProblem).toContain('ENOSPC');
    journal.full = false;
    expect(await queue.offer({ chunk: '1-1', share: 9, products: products(1, 3) })).toEqual({ taken: true, held: 3 });
    expect(queue.diskProblem).toBeNull();
  });
});

describe('orders', () => {
  it('make granted products crawlable in the order of their grants, on disk first', async () => {
    const { queue, journal } = createQueue();
    await queue.offer({ chunk: '1-1', share: 9, products: products(1, 2) });
    await queue.offer({ chunk: '2-1', share: 9, products: products(3, 4) });
    expect(queue.state.peek(true)).toBeNull();
    expect(await queue.follow(orders({ grants: ['2-1'] }))).toEqual({ granted: 1, transferred: 0, changed: true });
    await queue.follow(orders({ grants: ['1-1'] }));
    expect(journal.syncs).toBe(4);
    expect(Array.from(queue.state.items.values(), ({ n }) => n)).toEqual([3, 4, 1, 2]);
    expect(queue.state.peek(false)?.n).toBe(3);
  });

  it('ignore grants of chunks that are not held', async () => {
    const { queue } = createQueue();
    expect((await queue.follow(orders({ grants: ['9-1'] }))).granted).toBe(0);
    expect(queue.state.items.assigned).toBe(0);
  });

  it('free the room of dropped chunks, but never drop a granted one', async () => {
    const { queue } = await createGranted(3);
    await queue.offer({ chunk: '2-1', share: 6, products: products(4, 6) });
    await queue.follow(orders({ drops: ['1-1', '2-1'] }));
    expect(queue.state.held).toBe(3);
    expect(queue.state.items.assigned).toBe(3);
    expect(queue.state.offeredChunks()).toEqual([]);
  });

  it('drop offered chunks without a grant when the shard is sealed', async () => {
    const { queue } = createQueue();
    await queue.offer({ chunk: '1-1', share: 9, products: products(1, 3) });
    await queue.offer({ chunk: '2-1', share: 9, products: products(4, 6) });
    await queue.follow(orders({ sealed: true, grants: ['2-1'] }));
    expect(queue.state.offeredChunks()).toEqual([]);
    expect(queue.state.held).toBe(3);
  });

  it('do not grant the same product twice under two generations of its chunk', async () => {
    const { queue } = await createGranted(2);
    await give(queue, '1-2', [1, 2]);
    expect(queue.state.items.count('pending')).toBe(2);
    expect(queue.state.held).toBe(2);
  });

  it('change pace and deadline, even after a restart', async () => {
    const { queue, journal } = createQueue();
    const deadline = new Date(START_MS + 5_000).toISOString();
    await queue.follow(orders({ intervalMs: 30_000, deadline }));
    expect([queue.intervalAt(0), queue.deadlineMs]).toEqual([30_000, START_MS + 5_000]);
    const again = createQueue({ journal }).queue;
    expect([again.intervalAt(0), again.deadlineMs]).toEqual([30_000, START_MS + 5_000]);
  });

  it('keep the Crawl-delay while a restarted main server does not know it yet', async () => {
    const { queue } = createQueue();
    const robots = { version: 'v1', access: 'all', rules: [], crawlDelayMs: 30_000, source: 'robots.txt' } as const;
    await queue.follow(orders({ intervalMs: 30_000, robots: { ...robots, rules: [] } }));
    await queue.follow(orders({ intervalMs: 10_000, robots: null }));
    expect(queue.intervalAt(0)).toBe(30_000);
    await queue.follow(
      orders({ intervalMs: 10_000, robots: { ...robots, rules: [], version: 'v2', crawlDelayMs: null } }),
    );
    expect(queue.intervalAt(0)).toBe(10_000);
  });

  it('write nothing when nothing changes', async () => {
    const { queue, journal } = createQueue();
    await queue.follow(orders());
    const { length } = journal.records;
    await queue.follow(orders());
    expect(journal.records).toHaveLength(length);
  });

  it('cannot revoke a drain that was ordered on the instance', async () => {
    const { queue, journal } = createQueue();
    queue.note({ t: 'drained' });
    await queue.follow(orders({ drain: false }));
    expect(queue.isDraining).toBe(true);
    expect(createQueue({ journal }).queue.isDraining).toBe(true);
  });
});

describe('results', () => {
  it('postpone a transient failure and keep the second result', async () => {
    const { queue } = await createGranted(2, { sealed: true });
    queue.recordResult(queue.state.items.get(1)!, failed(1));
    expect(queue.progress(null)).toMatchObject({ assigned: 2, pending: 2, failed: 0 });
    queue.recordResult(queue.state.items.get(2)!, stored(2));
    expect(queue.isFinished).toBe(false);
    expect(queue.state.peek(false)).toBeNull();
    expect(queue.state.peek(true)?.n).toBe(1);
    queue.recordResult(queue.state.items.get(1)!, failed(1, 'http-status', 2));
    expect(queue.progress(null)).toMatchObject({ pending: 0, stored: 1, failed: 1 });
    expect(queue.isFinished).toBe(true);
  });

  it('do not postpone a permanent failure', async () => {
    const { queue } = await createGranted(1);
    queue.recordResult(queue.state.items.get(1)!, failed(1, 'redirect'));
    expect(queue.progress(null)).toMatchObject({ pending: 0, failed: 1 });
  });

  it('of postponed products count when there is no time for a second attempt; other products get none', async () => {
    const { queue } = await createGranted(3);
    queue.recordResult(queue.state.items.get(1)!, failed(1));
    queue.stopCrawling();
    expect(queue.progress(null)).toMatchObject({ failed: 1, pending: 2 });
    expect(queue.state.lines.uncut()).toEqual({ from: 0, to: 1 });
  });

  it('count the second result of a product once', async () => {
    const { queue } = await createGranted(1);
    const item = queue.state.items.get(1)!;
    queue.recordResult(item, stored(1));
    queue.recordResult(item, stored(1));
    expect(queue.state.counts.stored).toBe(1);
  });
});

describe('a restarted process', () => {
  it('has the same state, and recrawls only the product in progress', async () => {
    const { queue, journal } = await createGranted(4);
    await queue.offer({ chunk: '2-1', share: 100, products: products(5, 6) });
    queue.recordStart(1, START_MS);
    queue.recordResult(queue.state.items.get(1)!, stored(1));
    queue.recordStart(2, START_MS + 1_200.5);
    queue.recordResult(queue.state.items.get(2)!, failed(2));
    queue.recordStart(3, START_MS + 2_300);
    const again = createQueue({ journal }).queue;
    expect(again.state.peek(false)?.n).toBe(3);
    expect(again.state.domains.at(0).lastStartMs).toBe(START_MS + 2_300);
    expect(again.progress(null)).toEqual(queue.progress(null));
    expect(again.progress(null)).toMatchObject({ assigned: 4, pending: 3, stored: 1, requests: 3, minGapMs: 1_099.5 });
    expect(again.state.offeredChunks()).toEqual(['2-1']);
  });

  it('skips part numbers that may have been used when records were lost', async () => {
    const { queue, journal } = await createGranted(2);
    queue.recordResult(queue.state.items.get(1)!, stored(1));
    expect((await queue.cut(10))?.seq).toBe(0);
    journal.append([{ t: 'damaged' }]);
    expect(journal.replay().nextSeq).toBeGreaterThan(1);
  });
});
