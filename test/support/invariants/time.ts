/** I4, I6: the deadline is met or its miss is reported, and no address sends requests more often than it may. */
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
  found.push(...overOperatorPace(requests ?? []));
  return violationsOf('I6', found.slice(0, 5));
}

/** Intervals over which the requests of all addresses are counted. */
const COUNTED = 10;

/**
 * Where the addresses together sent more than the operator lets them, in any {@link COUNTED} intervals: each of them at
 * most one more than its share of the sum. The first request of a successor is not at any pace: another address sent
 * the one before.
 */
function overOperatorPace(requests: readonly SeenRequest[]): string[] {
  const begun = new Set<string>();
  const counted = requests.filter((request) => {
    const place = placeOf(request);
    const isFirst = !begun.has(place);
    begun.add(place);
    return request.cap !== null && !(isFirst && request.epoch > 1);
  });
  return [...Map.groupBy(counted, ({ cap }) => cap!.atMs).values()].flatMap((own) => {
    const { addresses, delayMs } = own[0]!.cap!;
    const ordered = own.toSorted((a, b) => a.atMs - b.atMs);
    return ordered.flatMap(({ atMs }, i) => {
      const window = ordered.slice(i).filter((other) => other.atMs < atMs + COUNTED * delayMs);
      const senders = new Set(window.map(({ address }) => address)).size;
      const most = addresses * COUNTED + (senders > addresses ? senders : 0);
      return window.length > most
        ? [
            `${senders} addresses sent ${window.length} requests in ${COUNTED * delayMs} ms, the operator allows ${most}`,
          ]
        : [];
    });
  });
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
