/** I16: over all instances of a run each of many hosts has one owner at a time, and is asked in its pace. */
import { epochKey } from '../../../shared/domain/epoch-id.ts';
import { type History, placeOf, type SeenHostRequest, type Violation, violationsOf } from './history.ts';

export function checkHosts({ hostRequests, hostWishes, run }: History): Violation[] {
  const found: string[] = [];
  const wishes = Map.groupBy(hostWishes ?? [], ({ host }) => host);
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
      for (const { atMs, delayMs, untilMs, owner } of wishes.get(host) ?? []) {
        // Its owner may ask again only once all others can know it.
        const isKnown = (before: SeenHostRequest): boolean =>
          owner === null || (epochKey(before) === epochKey(owner) && before.atMs > atMs);
        if (request.atMs <= atMs || !ordered.slice(0, i + 1).some(isKnown)) continue;
        const who = `${placeOf(request)} ${gapMs} ms after ${placeOf(last)}`;
        if (gapMs < delayMs) found.push(`${host} was asked by ${who}, instead of its Crawl-delay of ${delayMs} ms`);
        if (request.atMs < untilMs)
          found.push(`${host} was asked by ${who}, ${untilMs - request.atMs} ms before its rest ends`);
      }
      if (epochKey(last) === epochKey(request)) continue;
      earlier.add(epochKey(last));
      if (earlier.has(epochKey(request)))
        found.push(`${host} was asked by ${placeOf(request)} again after ${placeOf(last)}`);
    }
  }
  return violationsOf('I16', found.slice(0, 5));
}
