/**
 * What the observer works out once a heartbeat, because it costs a look at every place: when the fleet will be through, and whether
 * it is even. Between two of them `decide` and the heartbeats go by the last one.
 */
import { chunkLimit } from './decide.ts';
import type { Balance } from './rebalance.ts';
import { balanceOf, isLeftBehind } from './rebalance.ts';
import type { PlaceWorld } from './workers.ts';
import type { Projection } from './end-forecast.ts';
import { project } from './end-forecast.ts';

export interface Outlook {
  atMs: number;
  projection: Projection;
  balance: Balance;
  /** True when equal shares of what waits would leave somebody behind. */
  byTime: boolean;
}

/** @param unwilling `slot.epoch` of those that have nothing to give */
export function outlookOf(world: PlaceWorld, unwilling: ReadonlySet<string>): Outlook {
  return {
    atMs: world.nowMs,
    projection: project(world),
    balance: balanceOf(world, unwilling),
    byTime: isLeftBehind(world, chunkLimit(world)),
  };
}
