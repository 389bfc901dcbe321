/** Epochs that nobody could close by the time at which every machine has switched itself off. Pure. */
import type { Action } from '../model/actions.ts';
import { isDraining, powerOffAtMs } from '../model/run-deadlines.ts';
import type { InstanceRecord } from '../model/stores.ts';
import type { World } from '../model/world.ts';
import { isGivenUp } from '../model/world.ts';

/** For closing what is left, however short the run was. */
const SHORTEST_CLOSING_MS = 60_000;

/** It may have put something into the bucket that nobody has looked for. */
export const isOpenEpoch = (record: InstanceRecord): boolean =>
  record.manifestKey === null && record.publicKey !== null;

/** A bucket that is gone, or that does not let us look, must not keep the run and every later one. */
export function isClosingOver(world: World): boolean {
  const { run, nowMs, loopStartedAtMs, limits } = world;
  const lostSinceMs = world.stallCauses?.get('lost-bucket')?.sinceMs;
  // Nothing is left of the fleet, and the bucket is known to be lost: waiting for the machines' own end would bring nothing.
  if (lostSinceMs !== undefined && isDraining(world) && world.instances.every(isGivenUp))
    return nowMs > Math.max(lostSinceMs, loopStartedAtMs) + limits.uploadMs;
  return nowMs > Math.max(powerOffAtMs(run), loopStartedAtMs) + Math.max(2 * limits.uploadMs, SHORTEST_CLOSING_MS);
}

/** Says once for each of them that the run ends without what it may have left; nothing before that moment. */
export function notesOfOpenEpochs(world: World): Action[] {
  if (!isClosingOver(world)) return [];
  return world.instances.filter(isOpenEpoch).map(({ slot, epoch }): Action => {
    const detail =
      `slot ${slot} epoch ${epoch}: what it has left in the bucket cannot be looked for, and the run ends without it; ` +
      `orchestrator retry ${world.run.id} crawls those products again`;
    return { kind: 'note', note: { key: `not closed ${slot}.${epoch}`, event: 'decision', detail }, alarm: true };
  });
}
