/**
 * When the fleet will finish, and whether it is even. The observer computes it once a heartbeat, because it costs a
 * pass over all workers; in between `decide` and the heartbeats use the last one.
 */
import { chunkLimit } from './chunk-limits.ts';
import type { Forecast } from '../model/forecast.ts';
import { balanceOf, isLeftBehind } from './rebalance.ts';
import type { WorkerWorld } from './workers.ts';
import { forecastEnd } from './end-forecast.ts';

/** @param nothingToGive `slot.epoch` of those that have nothing to give */
export function forecastRun(world: WorkerWorld, nothingToGive: ReadonlySet<string>): Forecast {
  return {
    atMs: world.nowMs,
    end: forecastEnd(world),
    balance: balanceOf(world, nothingToGive),
    byTime: isLeftBehind(world, chunkLimit(world)),
  };
}
