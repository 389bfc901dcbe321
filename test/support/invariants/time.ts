/** I4, I6: the deadline is met or its miss is reported, and no address sends requests more often than it may. */
import { intervalOf, operatorPaceOf } from '../../../orchestrator/core/model/operator-pace.ts';
import type { RunRecord } from '../../../orchestrator/core/model/stores.ts';
import { isRunEnd } from '../../../shared/domain/states.ts';
import { type History, placeOf, type SeenRequest, type Violation, violationsOf } from './history.ts';

/** Maximum time after the deadline until a miss is recorded. */
const REPORT_MS = 60_000;

/** I4: the end is before the deadline, or the run reports that it is not. */
export function checkDeadline({ run, outageMs, facts, abandoned }: History): Violation[] {
  const found: string[] = [];
  const { finishedAtMs, deadlineAtMs, exitCode } = run;
  if (!isRunEnd(run.phase) || finishedAtMs === null || abandoned) return [];
  const lateMs = finishedAtMs - deadlineAtMs;
  if (lateMs > 0 && exitCode === 0) found.push(`it ended ${lateMs} ms after the deadline, and calls itself complete`);
  if (lateMs > REPORT_MS + outageMs) found.push(`its end was recorded ${lateMs} ms after the deadline`);
  if (exitCode === 0 && (facts.reasons.deadline ?? 0) > 0)
    found.push(`${facts.reasons.deadline} products missed the deadline, and it calls itself complete`);
  return violationsOf('I4', found);
}

/** I6: gap, robots.txt and ban windows, by address. */
export function checkPoliteness({ requests, run, instances }: History): Violation[] {
  const found: string[] = [];
  for (const [address, own] of Map.groupBy(requests ?? [], (r) => r.address)) {
    const ordered = own.toSorted((a, b) => a.atMs - b.atMs);
    let last: SeenRequest | null = null;
    for (const request of ordered) {
      const gapMs = last === null ? Infinity : request.atMs - last.atMs;
      if (gapMs < request.intervalMs)
        found.push(`${address} sent a request after ${gapMs} ms instead of ${request.intervalMs} ms`);
      if (!request.allowed) found.push(`${address} requested product ${request.product}, which robots.txt forbids`);
      if (request.paused) found.push(`${address} requested product ${request.product} in a pause`);
      if (request.banned) found.push(`${address} requested product ${request.product} in its ban window`);
      last = request;
    }
  }
  for (const { slot, epoch, progress } of instances)
    if (progress?.minGapMs != null && progress.minGapMs < run.settings.site.intervalMs)
      found.push(`slot ${slot} epoch ${epoch} reports a request after ${progress.minGapMs} ms`);
  found.push(...overOperatorPace(requests ?? [], run));
  return violationsOf('I6', found.slice(0, 5));
}

/** Intervals over which the requests of all addresses are counted, and what an order on its way adds to them. */
const COUNTED = 10;
const UNDER_WAY = 2;

/**
 * The requests of those that know what the operator asks for: together no more than the addresses that it counts. The
 * first one of an epoch is not at any pace: another address sent the one before.
 */
function overOperatorPace(requests: readonly SeenRequest[], run: RunRecord): string[] {
  const pace = operatorPaceOf(run);
  if (pace === null) return [];
  const delayMs = intervalOf(run);
  const begun = new Set<string>();
  const times = requests.flatMap(({ slot, epoch, atMs, intervalMs }) => {
    const place = placeOf({ slot, epoch });
    const isFirst = !begun.has(place);
    begun.add(place);
    return !isFirst && atMs >= pace.atMs && intervalMs >= delayMs ? [atMs] : [];
  });
  const most = pace.addresses * (COUNTED + UNDER_WAY);
  const worst = times
    .toSorted((a, b) => a - b)
    .reduce((max, fromMs, i, all) => {
      let last = i;
      while (last < all.length && all[last]! < fromMs + COUNTED * delayMs) last++;
      return Math.max(max, last - i);
    }, 0);
  return worst > most ? [`the site got ${worst} requests in ${COUNTED * delayMs} ms, the operator allows ${most}`] : [];
}

/** I9: forged, replayed and foreign callbacks are refused, and a main server without the lock writes nothing. */
export function checkIntruders({ intruders, writes }: History): Violation[] {
  const found: string[] = [];
  for (const { what, status, accepted } of intruders ?? [])
    if (accepted) found.push(`${what} was answered with ${status}`);
  for (const { method, fenced } of writes ?? []) if (!fenced) found.push(`${method} was written under an old fence`);
  return violationsOf('I9', found.slice(0, 5));
}

/** I12: no secret in logs, alarms and reports. */
export function checkSecrets({ texts, secrets }: History): Violation[] {
  const leaked = (secrets ?? []).filter((secret) => (texts ?? []).some((text) => text.includes(secret)));
  return violationsOf('I12', leaked.length > 0 ? [`${leaked.length} secrets are in logs, alarms or the report`] : []);
}
