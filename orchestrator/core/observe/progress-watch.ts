/**
 * Measures how long nothing has come in while products waited. Progress is a page that any instance judged right or
 * gone, and a part. Time in which nothing could come in does not count.
 */
import { openIncident } from '../decide/ban-policy.ts';
import { isResting } from '../decide/site-cap.ts';
import { isDraining } from '../model/run-deadlines.ts';
import type { InstanceRecord } from '../model/stores.ts';
import type { Stall, Observed } from '../model/world.ts';

/** Maximum time counted between two observations: beyond it the database or this machine was away. */
const LONGEST_LOOK_HEARTBEATS = 2;
/** An instance counts as silent after `lostMs` divided by this. */
const SILENT_SHARE = 3;

export class ProgressWatch {
  #seen = -1;
  #lookedMs: number | null = null;
  #stall: Stall | null = null;

  /** Looks for a stall; null while there is nothing to wait for. */
  look(world: Observed, monotonicMs: number): Stall | null {
    const sinceLookMs = this.#lookedMs === null ? 0 : monotonicMs - this.#lookedMs;
    this.#lookedMs = monotonicMs;
    const seen = progressOf(world);
    const came = seen !== this.#seen;
    this.#seen = seen;
    if (world.run.phase !== 'crawling' || isDraining(world) || !isWaiting(world)) return (this.#stall = null);
    if (came || this.#stall === null) return (this.#stall = { ms: 0, sinceMs: world.nowMs });
    const { ms, sinceMs } = this.#stall;
    if (isExcused(world, sinceMs)) return this.#stall;
    const mostMs = LONGEST_LOOK_HEARTBEATS * world.limits.heartbeatMs;
    return (this.#stall = { ms: ms + Math.min(Math.max(0, sinceLookMs), mostMs), sinceMs });
  }
}

/** A number that changes when something has come in. Results that cannot be uploaded are no progress. */
function progressOf(world: Observed): number {
  const parts = world.totals.seen;
  if (isBucketLost(world)) return parts;
  return world.fleet.all.reduce((sum, { progress }) => sum + (progress?.served ?? 0), parts);
}

const isBucketLost = ({ stallCauses }: Observed): boolean => stallCauses.has('lost-bucket');

/** True when a product is still to be crawled or, with the bucket lost, its result has not arrived. */
function isWaiting(world: Observed): boolean {
  if (world.work.waiting > 0 || world.fleet.serving.some((r) => pendingOf(r) > 0)) return true;
  const { stored, gone, failed } = world.totals;
  return isBucketLost(world) && stored + gone + failed < world.run.planned;
}

const pendingOf = (record: InstanceRecord): number => record.progress?.pending ?? 0;

/** True when no page can come in for a reason that has a limit of its own: its time does not count. */
function isExcused(world: Observed, sinceMs: number): boolean {
  if (isBucketLost(world)) return false;
  const up = world.fleet.serving;
  // Boots, launches and silence end by their own limits.
  const able = up.filter((r) => openIncident(r) === null && !isResting(world, r) && !isSilent(world, r));
  if (able.length === 0) return true;
  const isYoung = world.nowMs - sinceMs <= world.limits.bootMs;
  if (able.some((r) => pendingOf(r) > 0)) return isYoung && isBrowserStarting(world);
  // Resting instances keep their products, and waiting chunks may be kept for a booting one.
  const isBooting = world.fleet.all.some((r) => r.phase === 'pending' || r.phase === 'booting');
  return world.work.waiting === 0 || areAllHostsResting(world) || isBooting || (isYoung && !isServed(world));
}

/** Of many hosts: those that are left rest, for an owner that was lost or because they have asked for it. */
const areAllHostsResting = ({ work, nowMs }: Observed): boolean => (work.byHost?.restUntilMs ?? 0) > nowMs;

/** Some heartbeats are missing: its state is unknown, and it will soon be given up. */
function isSilent({ nowMs, limits }: Observed, { lastHeartbeatAtMs, phaseAtMs }: InstanceRecord): boolean {
  return nowMs - (lastHeartbeatAtMs ?? phaseAtMs) > limits.lostMs / SILENT_SHARE;
}

/** A balancer takes minutes until it serves. */
const isServed = ({ regions, targets }: Observed): boolean =>
  regions.some((r) => r.balancerActive) && [...targets.values()].includes('healthy');

/** True before the first request of a fleet that renders. */
const isBrowserStarting = ({ run, fleet }: Observed): boolean =>
  run.settings.site.render !== 'http' && fleet.all.every((r) => (r.progress?.tried ?? 0) === 0);
