import { describe, expect, it } from 'vitest';
import { ConcurrencyLimit } from '../../../orchestrator/control/results/concurrency-limit.ts';

/** Work that ends on request. */
function pieces(count: number) {
  const begun: number[] = [];
  const ends = Array.from({ length: count }, () => Promise.withResolvers<void>());
  const work = ends.map((end, i) => () => {
    begun.push(i);
    return end.promise;
  });
  return { begun, ends, work };
}

const settle = () => new Promise<void>((resolve) => setImmediate(resolve));

describe('ConcurrencyLimit', () => {
  it('never runs more than its limit, and starts the next task when one ends', async () => {
    const { begun, ends, work } = pieces(3);
    const lanes = new ConcurrencyLimit(2);
    await lanes.enter(work[0]!);
    await lanes.enter(work[1]!);
    const third = lanes.enter(work[2]!);
    await settle();
    expect(begun).toEqual([0, 1]);
    ends[1]!.resolve();
    await third;
    expect(begun).toEqual([0, 1, 2]);
    ends[0]!.resolve();
    ends[2]!.resolve();
    await lanes.end();
  });

  it('throws the first failure once all started tasks have ended', async () => {
    const { begun, ends, work } = pieces(3);
    const lanes = new ConcurrencyLimit(2);
    await lanes.enter(work[0]!);
    await lanes.enter(work[1]!);
    ends[0]!.reject(new Error('first'));
    let thrown: unknown = null;
    const third = lanes.enter(work[2]!).catch((error: unknown) => void (thrown = error));
    await settle();
    expect(thrown).toBeNull();
    ends[1]!.reject(new Error('second'));
    await third;
    expect(thrown).toEqual(new Error('first'));
    expect(begun).toEqual([0, 1]);
  });
});
