import { describe, expect, it } from 'vitest';
import { Work, openIn } from '../../../orchestrator/simulation/work.ts';

describe('Work', () => {
  it('gives a chunk to one owner only', () => {
    const work = new Work(20, 10, 0);
    const [one, two] = [work.addOwner(0, 1), work.addOwner(1, 1)];
    const chunk = work.takeFirst();
    expect(work.grant(chunk, one, 0)).toBe(true);
    expect(work.grant(chunk, one, 0)).toBe(true);
    expect(work.grant(chunk, two, 0)).toBe(false);
    expect(work.counts).toMatchObject({ chunks: 2, waiting: 1, granted: 1 });
    expect(one).toMatchObject({ chunks: 1, products: 10 });
  });

  it('takes back what has no outcome, as the next generation', () => {
    const work = new Work(10, 10, 0);
    const owner = work.addOwner(0, 1);
    const chunk = work.takeFirst();
    work.grant(chunk, owner, 0);
    work.load({ products: 4, reaches: [{ chunk, next: 5 }], loaded: false });
    expect(work.takeBack(chunk, null)).toBe(6);
    expect(chunk).toMatchObject({ id: '1-2', owner: null, next: 5 });
    expect(work.firstFree()).toBe(chunk);
    expect(work.totals.stored).toBe(4);
  });

  it('counts a product once, whatever comes late or twice', () => {
    const work = new Work(10, 10, 0);
    const chunk = work.takeFirst();
    const part = { products: 7, reaches: [{ chunk, next: 8 }], loaded: false };
    work.load(part);
    work.load(part);
    work.load({ products: 3, reaches: [{ chunk, next: 4 }], loaded: false });
    expect(work.totals).toMatchObject({ stored: 7, loaded: 2 });
    expect(work.failRest()).toBe(3);
    expect(work.totals.stored + work.totals.gone + work.totals.failed).toBe(10);
    expect(openIn(chunk)).toBe(0);
  });

  it('knows the same products as gone whoever crawls them', () => {
    const work = new Work(100, 10, 0.1);
    for (const chunk of work.chunks) {
      for (const next of [chunk.next + 3, chunk.last + 1])
        work.load({ products: 0, reaches: [{ chunk, next }], loaded: false });
    }
    expect(work.totals).toMatchObject({ stored: 90, gone: 10 });
  });

  it('measures a loss until the last of its chunks has a new owner', () => {
    const work = new Work(20, 10, 0);
    const [dead, heir] = [work.addOwner(0, 1), work.addOwner(1, 1)];
    const chunks = [work.takeFirst(), work.takeFirst()];
    for (const chunk of chunks) work.grant(chunk, dead, 0);
    const loss = { slot: 0, lastHeardMs: 0, waiting: 0, reassignedAtMs: null };
    for (const chunk of chunks) work.takeBack(chunk, loss);
    work.grant(chunks[0]!, heir, 5);
    expect(loss.reassignedAtMs).toBeNull();
    work.grant(chunks[1]!, heir, 9);
    expect(loss).toMatchObject({ waiting: 0, reassignedAtMs: 9 });
  });
});
