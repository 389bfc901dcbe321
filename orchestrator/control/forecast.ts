/**
 * When the fleet will finish, and whether it is even. The observer computes it once a heartbeat, because it costs a
 * pass over all workers; in between `decide` and the heartbeats use the last one.
 */
import { chunkLimit } from './decide.ts';
import type { Balance } from './rebalance.ts';
import { balanceOf, isLeftBehind } from './rebalance.ts';
import type { WorkerWorld } from './workers.ts';
import type { EndForecast } from './end-forecast.ts';
import { forecastEnd } from './end-forecast.ts';

export interface Forecast {
  atMs: number;
  end: EndForecast;
  balance: Balance;
  /** True when equal shares of the waiting chunks would leave a worker behind. */
  byTime: boolean;
}

/** @param nothingToGive `slot.epoch` of the workers that have nothing to give */
export function forecastRun(world: WorkerWorld, nothingToGive: ReadonlySet<string>): Forecast {
  return {
    atMs: world.nowMs,
    end: forecastEnd(world),
    balance: balanceOf(world, nothingToGive),
    byTime: isLeftBehind(world, chunkLimit(world)),
  };
}
