/** What each (slot, epoch) owns, through an index: a round of the loop looks up thousands of slots. */
import type { WorkCounts } from '../model/stores.ts';

export type Shard = WorkCounts['bySlot'][number];

/** One number for (slot, epoch): for thousands of slots a string key would cost more than the look-ups. */
const placeNumber = (slot: number, epoch: number): number => slot * 1_000_000 + epoch;

/** Looks up shards of these counts; undefined for a (slot, epoch) that owns nothing. */
export function shardsOf({ bySlot }: Pick<WorkCounts, 'bySlot'>): (slot: number, epoch: number) => Shard | undefined {
  const byPlace = new Map(bySlot.map((shard) => [placeNumber(shard.slot, shard.epoch), shard]));
  return (slot, epoch) => byPlace.get(placeNumber(slot, epoch));
}
