import { describe, expect, it } from 'vitest';
import { shardsOf } from '../../../orchestrator/control/sharing/shards.ts';

describe('shardsOf', () => {
  const first = { slot: 3, epoch: 1, chunks: 4, products: 40 };
  const second = { slot: 3, epoch: 2, chunks: 1, products: 7 };

  it('tells epochs of a slot apart, and finds no shard for others', () => {
    const shardOf = shardsOf({ bySlot: [first, second] });
    expect(shardOf(3, 1)).toBe(first);
    expect(shardOf(3, 2)).toBe(second);
    expect(shardOf(3, 3)).toBeUndefined();
    expect(shardOf(1, 3)).toBeUndefined();
  });

  it('finds an owner added later to the same list, with its current counts', () => {
    const counts = { bySlot: [{ ...first }] };
    expect(shardsOf(counts)(3, 2)).toBeUndefined();
    counts.bySlot.push(second);
    counts.bySlot[0]!.chunks = 5;
    expect(shardsOf(counts)(3, 2)).toBe(second);
    expect(shardsOf(counts)(3, 1)?.chunks).toBe(5);
  });
});
