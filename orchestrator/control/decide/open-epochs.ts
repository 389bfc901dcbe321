/** Epochs that could not be closed by the time at which every machine has powered itself off. Pure. */
import type { Action } from '../model/actions.ts';
import { isDraining, powerOffAtMs } from '../model/run-deadlines.ts';
import type { InstanceRecord } from '../model/stores.ts';
import type { World } from '../model/world.ts';
import { isGivenUp } from '../model/world.ts';

/** Minimum time for closing the open epochs, however short the run was. */
const SHORTEST_CLOSING_MS = 60_000;

/** It may have uploaded parts that no main server has looked for. */
export const isOpenEpoch = (record: InstanceRecord): boolean =>
  record.manifestKey === null && record.publicKey !== null;

/** A bucket that is gone or denies access must not block this run and every later one. */
export function isClosingOver(world: World): boolean {
  const { run, nowMs, loopStartedAtMs, limits } = world;
  const lostSinceMs = world.stallCauses?.get('lost-bucket')?.sinceMs;
  // Nothing is left of the fleet, and the bucket is known to be lost: waiting for the machines' own end would bring nothing.
  if (lostSinceMs !== undefined && isDraining(world) && world.instances.every(isGivenUp))
    return nowMs > Math.max(lostSinceMs, loopStartedAtMs) + limits.uploadMs;
  return nowMs > Math.max(powerOffAtMs(run), loopStartedAtMs) + Math.max(2 * limits.uploadMs, SHORTEST_CLOSING_MS);
}

/** One alarm for each open epoch whose last results the run ends without; none before that moment. */
export function notesOfOpenEpochs(world: World): Action[] {
  if (!isClosingOver(world)) return [];
  return world.instances.filter(isOpenEpoch).map(({ slot, epoch }): Action => {
    const detail =
      `slot ${slot} epoch ${epoch}: the bucket cannot be searched for its last results, and the run ends without them; ` +
      `orchestrator retry ${world.run.id} crawls those products again`;
    return { kind: 'note', note: { key: `not closed ${slot}.${epoch}`, event: 'decision', detail }, alarm: true };
  });
}
