/** What each (slot, epoch) owns, through an index: a round of the loop looks up thousands of slots. */
import type { WorkCounts } from '../model/stores.ts';

export type Shard = WorkCounts['bySlot'][number];

const known = new WeakMap<readonly Shard[], { count: number; byPlace: ReadonlyMap<number, Shard> }>();

/** One number for (slot, epoch): for thousands of slots a string key would cost more than the look-ups. */
const placeNumber = (slot: number, epoch: number): number => slot * 1_000_000 + epoch;

/** Looks up shards of these counts; undefined for a (slot, epoch) that owns nothing. */
export function shardsOf({ bySlot }: Pick<WorkCounts, 'bySlot'>): (slot: number, epoch: number) => Shard | undefined {
  let index = known.get(bySlot);
  if (index === undefined || index.count !== bySlot.length) {
    index = { count: bySlot.length, byPlace: new Map(bySlot.map((s) => [placeNumber(s.slot, s.epoch), s])) };
    known.set(bySlot, index);
  }
  const { byPlace } = index;
  return (slot, epoch) => byPlace.get(placeNumber(slot, epoch));
}
