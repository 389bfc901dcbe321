/** I16: over all instances of a run each of many hosts has one owner at a time, and is asked in its pace. */
import { epochKey } from '../../../shared/domain/epoch-id.ts';
import { type History, placeOf, type Violation, violationsOf } from './history.ts';

export function checkHosts({ hostRequests, run }: History): Violation[] {
  const found: string[] = [];
  const { intervalMs } = run.settings.site;
  for (const [host, own] of Map.groupBy(hostRequests ?? [], (r) => r.host)) {
    const earlier = new Set<string>();
    const ordered = own.toSorted((a, b) => a.atMs - b.atMs);
    for (const [i, request] of ordered.entries()) {
      const last = ordered[i - 1];
      if (last === undefined) continue;
      const gapMs = request.atMs - last.atMs;
      if (gapMs < intervalMs)
        found.push(
          `${host} was asked by ${placeOf(request)} ${gapMs} ms after ${placeOf(last)}, instead of ${intervalMs} ms`,
        );
      if (epochKey(last) === epochKey(request)) continue;
      earlier.add(epochKey(last));
      if (earlier.has(epochKey(request)))
        found.push(`${host} was asked by ${placeOf(request)} again after ${placeOf(last)}`);
    }
  }
  return violationsOf('I16', found.slice(0, 5));
}
