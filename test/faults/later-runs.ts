/** What later runs do at their start for a run that has lost its main server: gc, until aborted. */
import {
  collect,
  type GcMark,
  type GcMarkStore,
  type GcOptions,
  SECOND_LOOK_MS,
} from '../../orchestrator/core/gc/gc.ts';
import { OWNER } from '../../orchestrator/core/simulation/world.ts';

type GcWorld = Pick<GcOptions, 'compute' | 'balancers' | 'clock'> & { stores: Pick<GcOptions, 'runs'> };

/** Each gc marks what is past its time, and ends what an earlier one has marked. */
export async function collectGarbage(world: GcWorld, stop: AbortSignal): Promise<void> {
  const { compute, balancers, clock, stores } = world;
  let marks: readonly GcMark[] = [];
  const store: GcMarkStore = {
    list: () => Promise.resolve([...marks]),
    note: async (_owner, seen) => void (marks = seen),
  };
  const night = { owner: OWNER, skewMs: () => 0, workedOn: new Set<string>(), dryRun: false };
  while (!stop.aborted) {
    // What AWS or the database refuses now, the next gc retries.
    await collect({ ...night, compute, balancers, runs: stores.runs, marks: store, clock }).catch(() => undefined);
    await clock.sleep(SECOND_LOOK_MS, stop);
  }
}
