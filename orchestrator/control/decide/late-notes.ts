/**
 * Warns that a run will probably be late, while something can still be done: once at half, three quarters and nine
 * tenths of its time. Pure.
 */
import { formatDuration } from '../../../shared/domain/quantity.ts';
import type { Action } from '../model/actions.ts';
import { drainAtMs, isDraining } from '../model/run-deadlines.ts';
import type { World } from '../model/world.ts';

const MARKS = [90, 75, 50] as const;

export function lateNotes(world: World): Action[] {
  const { run, nowMs, forecast } = world;
  if (forecast === null || isDraining(world)) return [];
  const gone = (nowMs - run.startedAtMs) / (run.deadlineAtMs - run.startedAtMs);
  const mark = MARKS.find((m) => gone * 100 >= m);
  if (mark === undefined) return [];
  const key = `late ${mark}%`;
  const { p50Ms, p95Ms } = forecast.end;
  const latestMs = drainAtMs(run);
  if (world.notedKeys.has(key) || (p95Ms !== null && p95Ms <= latestMs)) return [];
  const end =
    p50Ms === null || p95Ms === null
      ? 'no instance is left that could crawl the open products'
      : `the crawl ends ${inWords(p50Ms - latestMs)} (p50), ${inWords(p95Ms - latestMs)} (p95)`;
  const detail = `${mark} % of the time is gone and the run may be late: ${end}; the results at that time are published without the rest`;
  return [{ kind: 'note', note: { key, event: 'forecast', detail }, alarm: true }];
}

const inWords = (ms: number): string =>
  ms > 0
    ? `${formatDuration(ms)} after the last moment for it`
    : `${formatDuration(-ms)} before the last moment for it`;
