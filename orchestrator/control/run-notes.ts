/** Notes that a run makes once: stored as events, so that a main server that resumes the run does not repeat them. */
import type { Note } from './model/actions.ts';
import { NOTED_KINDS } from './model/actions.ts';
import type { Core } from './model/core.ts';
import type { World } from './model/world.ts';

/** More than any run has notes: a few for each slot. Moves, transfers and alarms are many times as many. */
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
  const place = { slot: at?.slot ?? null, epoch: at?.epoch ?? null };
  await core.run.addEvent({ atMs: core.clock.now(), kind: event, ...place, from: null, to: key, detail });
  world.notedKeys.add(key);
  if (isAlarm) await core.alarm(detail, at);
  else core.log.info({ ...at }, detail);
  return true;
}
