/** What is said once: notes of a run, stored so that no later main server repeats them, and alarms about what lasts. */
import { type Note, NOTED_KINDS } from '../model/actions.ts';
import type { EpochId } from '../../../shared/domain/epoch-id.ts';
import type { Core } from '../model/core.ts';
import { eventOf } from '../model/run-event.ts';
import type { World } from '../model/world.ts';

/**
 * The most notes that are read, more than any run has: a few for each slot. Moves, transfers and alarms are many times
 * as many.
 */
const MAX_NOTES = 10_000;

/** The keys of what this run has noted so far. */
export async function notedKeys(core: Pick<Core, 'run'>): Promise<string[]> {
  const ofKinds = await Promise.all(NOTED_KINDS.map((kind) => core.run.events(MAX_NOTES, kind)));
  return ofKinds.flat().flatMap((e) => (e.to === null ? [] : [e.to]));
}

/** Writes the event unless its key is known, then logs it or raises an alarm (which logs it). True when it is new. */
export async function note(
  core: Core,
  world: Pick<World, 'notedKeys'>,
  { key, event, detail, at }: Note,
  isAlarm = false,
): Promise<boolean> {
  if (world.notedKeys.has(key)) return false;
  await core.run.addEvent({ ...eventOf(event, core.clock.now(), detail, at), to: key });
  world.notedKeys.add(key);
  if (isAlarm) await core.alarm(detail, at);
  else core.log.info({ ...at }, detail);
  return true;
}

/** Raises the alarm if this main server has not raised one under this key before. */
export async function alarmOnce(
  core: Pick<Core, 'alarm' | 'processState'>,
  key: string,
  detail: string,
  at?: EpochId,
): Promise<void> {
  if (core.processState.raisedAlarms.has(key)) return;
  core.processState.raisedAlarms.add(key);
  await core.alarm(detail, at);
}
