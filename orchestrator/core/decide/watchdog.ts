/**
 * The watchdog: reports a run without progress, stops extra launches, and ends the run when the stall lasts. Pure:
 * progress-watch.ts measures the stall, stall-causes.ts defines each cause.
 */
import { formatDuration } from '../../../shared/domain/quantity.ts';
import type { Action } from '../model/actions.ts';
import { restOfLostMs } from './host-rest.ts';
import { isDraining } from '../model/run-deadlines.ts';
import { likeliestCause, type StallCause, stallKind } from '../model/stall-causes.ts';
import { adviceFor } from '../model/try-again.ts';
import type { World } from '../model/world.ts';
import { intervalUnder } from '../model/robots-pace.ts';
import type { RobotsPolicy } from '../../../shared/domain/robots-matcher.ts';
import type { RunRecord } from '../model/stores.ts';

const MINUTE_MS = 60_000;
const SOONEST_END_MS = 15 * MINUTE_MS;
/** Minimum request gaps of one address before an alarm, however short the run is. */
const FEWEST_GAPS = 3;
/** Minimum pages, of usual duration, before an alarm. */
const PAGES = 3;

interface StallLimits {
  alarmMs: number;
  endMs: number;
}

/** After how long without progress the alarm is raised, and after how long the run ends. */
export function stallLimits(world: World): StallLimits {
  const { run, robots, fleet } = world;
  const windowMs = run.deadlineAtMs - run.startedAtMs;
  const gapMs = plannedGapMs(run, robots);
  const pageMs = fleet.all.reduce((most, r) => Math.max(most, r.progress?.pageMs ?? 0), 0);
  // However short the run is, requests come an interval apart, and a page takes its time.
  const leastMs = Math.max(FEWEST_GAPS * gapMs, gapMs + PAGES * pageMs);
  // The last hosts of a night may be those of an instance that is lost.
  const alarmMs = Math.max(stallWindowMs(run, robots), leastMs, restOfLostMs(run));
  return { alarmMs, endMs: Math.max(windowMs < SHORT_RUN_MS ? windowMs / 4 : SOONEST_END_MS, 2 * alarmMs) };
}

/** True from the alarm on: no extra instance is launched, because another address would do no better. */
export const isStalled = (world: World): boolean =>
  // No alarm is sooner than its window; in most rounds that decides it without a look at the fleet.
  world.stall !== null &&
  world.stall.ms >= stallWindowMs(world.run, world.robots) &&
  world.stall.ms >= stallLimits(world).alarmMs;

/** Why the run has to end; null while it may still make progress. */
export function stallEnd(world: World): StallCause | null {
  const { stall } = world;
  if (stall === null || !isStalled(world) || isDraining(world) || stall.ms < stallLimits(world).endMs) return null;
  return likeliestCause(world.stallCauses);
}

/** One alarm for each stall and cause. */
export function stallNotes(world: World): Action[] {
  const { stall } = world;
  if (stall === null || !isStalled(world) || isDraining(world)) return [];
  const { endMs } = stallLimits(world);
  const cause = likeliestCause(world.stallCauses);
  const { because, remedy } = stallKind(cause);
  const seen = world.stallCauses.get(cause)?.detail;
  const what = cause === 'no-progress' ? 'the cause is not known' : `likely because ${because}`;
  const detail =
    `no progress for ${formatDuration(stall.ms)}: no page was right or gone and no part came; ${what}` +
    `${seen === undefined ? '' : ` (${seen})`}. ${adviceFor(remedy, world.run)} Without progress the run ends in ${formatDuration(Math.max(0, endMs - stall.ms))}`;
  return [
    {
      kind: 'note',
      note: { key: `stall ${stall.sinceMs.toString(36)} ${cause}`, event: 'forecast', detail },
      alarm: true,
    },
  ];
}

/**
 * The reason of a run that the watchdog has ended. `detail`: what was observed, where the main server still knows it.
 */
export function stallReason(cause: StallCause, left: number, detail?: string): string {
  const { because, quotes, certain } = stallKind(cause);
  const words = quotes !== true || detail === undefined ? '' : ` (${detail})`;
  const what = `${because}${words}: ${left} products not crawled`;
  return certain === true ? what : `no progress, ${what}`;
}

/** How long offers may stay unanswered while targets are healthy: a minute, less on a short run. */
const silentOfferMs = (run: World['run']): number =>
  Math.min(MINUTE_MS, Math.max(5_000, (run.deadlineAtMs - run.startedAtMs) / 16));

/** An alarm when no offer gets through although ELBv2 reports healthy targets. */
export function unansweredNotes(world: World): Action[] {
  const { unansweredOffers, run, nowMs } = world;
  if (unansweredOffers === null || nowMs - unansweredOffers.sinceMs < silentOfferMs(run)) return [];
  if (isDraining(world) || ![...world.targets.values()].includes('healthy')) return [];
  const { url, kind, message } = unansweredOffers;
  const what =
    kind === 'unreachable'
      ? `this machine cannot reach the load balancer at ${url} (${message}), so no product is handed out. ${adviceFor(stallKind('unreachable').remedy, run)}`
      : `no instance answers an offer through the load balancer at ${url} (${message}), although its targets are healthy`;
  return [{ kind: 'note', note: { key: `offers ${kind}`, event: 'forecast', detail: what }, alarm: true }];
}

/** Runs shorter than this have limits in proportion. */
const SHORT_RUN_MS = 16 * 60_000;
const LEAST_MS = 120_000;
/** Minimum stall window in request gaps of one address. */
const REQUESTS = 10;

/**
 * Milliseconds: two minutes, or ten planned gaps where that is longer; in runs under 16 minutes an eighth of the run.
 */
export function stallWindowMs(run: RunRecord, robots: RobotsPolicy | null): number {
  const lengthMs = run.deadlineAtMs - run.startedAtMs;
  return lengthMs < SHORT_RUN_MS ? lengthMs / 8 : Math.max(LEAST_MS, REQUESTS * plannedGapMs(run, robots));
}

/** Time between two requests of an address under interval, Crawl-delay and max_rate. */
function plannedGapMs(run: RunRecord, robots: RobotsPolicy | null): number {
  const { intervalMs, maxRatePerSecond } = run.settings.site;
  const rated = maxRatePerSecond === null ? 0 : (run.plan.instances * 1_000) / maxRatePerSecond;
  return Math.max(intervalUnder(robots, intervalMs), rated);
}
