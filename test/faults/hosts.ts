/** The hosts of a run of many, from its seed: how many, how unevenly records fall on them, and which never answer. */
import { type HostsPlan, nightOfHosts, type NightRules } from '../../orchestrator/core/plan/host-sums.ts';
import { drawSilent, type HostList, listOf, zipfLoads } from '../../orchestrator/core/simulation/many-hosts.ts';
import { seededRandom } from '../../shared/adapters/random.ts';
import type { RunShape } from '../contract/core/run-stage.ts';
import { Dice } from './dice.ts';

export interface HostsOfRun {
  list: HostList;
  /** Those that never answer. */
  silent: ReadonlySet<string>;
  /** The Crawl-delay of those that ask for one, and for how long some want no request once (Retry-After). */
  delays: ReadonlyMap<string, number>;
  rests: ReadonlyMap<string, number>;
  plan: HostsPlan;
  /** Pages of an instance under way at once. */
  places: number;
}

/** Time from the start until the first boot, and from the last page to its row. */
const AROUND_MS = 10_000;

export function hostsOf(
  seed: number,
  { products, chunkSize, intervalMs = 1_000, deadlineMs = 480_000 }: RunShape,
): HostsOfRun {
  const random = seededRandom(seed ^ 0x40575);
  const dice = new Dice(random);
  const loads = zipfLoads(Math.min(products, dice.between(1, 12)), products, dice.pick([0, 1, 2])!);
  const rules: NightRules = { windowMs: deadlineMs - AROUND_MS, intervalMs, requestsEach: 1 };
  const places = dice.between(1, 4);
  const list = listOf(loads, rules, { deadlineMs, size: 4 * chunkSize });
  const silent = drawSilent(list.hosts, 0.15, random);
  const delays = new Map<string, number>();
  const rests = new Map<string, number>();
  for (const host of list.hosts) {
    if (dice.chance(0.25)) delays.set(host, intervalMs * dice.between(2, 6));
    if (dice.chance(0.25)) rests.set(host, dice.between(intervalMs, 60_000));
  }
  return { list, silent, delays, rests, plan: nightOfHosts(loads, rules), places };
}
