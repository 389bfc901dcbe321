/** How many URLs a discovery takes into its run, and when. Pure. */
import type { Action } from '../model/actions.ts';
import { drainAtMs, isDraining } from '../model/run-deadlines.ts';
import type { FeedState } from '../model/stores.ts';
import type { DiscoveryState, Observed } from '../model/world.ts';
import { workersOf } from './shares/workers.ts';

/**
 * Chunks for each instance that wait or are offered: few, so that the best URLs of the next minute still come first.
 */
const CHUNKS_AHEAD = 2;
/** Share of the time that is planned for: pages take longer, and some are asked for twice. */
const USED = 0.9;

/** What waits is taken only if it can be crawled before the end; the rest waits for the next night. */
export function discoveryState(
  world: Omit<Observed, 'discovery'>,
  { waiting, planned, open }: FeedState,
): DiscoveryState {
  const { run } = world;
  if (isDraining(world)) return { takable: 0, isOpen: false };
  const { workers } = workersOf({ ...world, discovery: { takable: waiting, isOpen: open > 0 } });
  const takers = workers.filter(({ canTake }) => canTake);
  const each = takers.map(({ startMs, paceMs }) => Math.max(0, (drainAtMs(run) - startMs) * USED) / paceMs);
  const capacity = Math.floor(each.reduce((sum, one) => sum + one, 0)) - open;
  const room = run.settings.discover!.pages - planned;
  const takable = Math.max(0, Math.min(waiting, capacity, room));
  const beyond = Math.min(waiting, room) - takable;
  return { takable, ...(beyond > 0 ? { beyond } : {}), isOpen: open > 0 };
}

/** Fills up what waits when there is less than a chunk for each instance. */
export function takeUrls({ discovery, work, run, fleet }: Observed): Action[] {
  const slots = fleet.slotCount(run.plan);
  if (discovery == null || discovery.takable === 0 || work.waiting >= slots) return [];
  const limit = Math.min(discovery.takable, slots * CHUNKS_AHEAD * run.plan.chunkSize);
  return [{ kind: 'take', limit }];
}
