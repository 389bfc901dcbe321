/** The alarms of act(): what has happened, and what to do about it. */
import { describeError } from '../../../shared/domain/errors.ts';
import { formatDuration } from '../../../shared/domain/quantity.ts';
import { namesOf } from '../../../shared/domain/reason-row.ts';
import { ALL_GONE, banRemedy, circuitWindowMs, openIncident, recentBans } from '../decide/ban-policy.ts';
import type { bansOf } from '../decide/end/report.ts';
import type { liveReasons } from '../decide/end/reasons.ts';
import { isGivenUp } from '../model/instance-state.ts';
import { type StallCause, stallKind } from '../model/stall-causes.ts';
import type { InstanceRecord } from '../model/stores.ts';
import { adviceFor } from '../model/try-again.ts';
import type { World } from '../model/world.ts';

export const BALANCER_GONE = 'the load balancer of this run is gone; the main server creates it again';

/** @param detail with which other instance */
export const sharesAddress = (slot: number, detail: string | null): string =>
  `slot ${slot} is ended, ${detail}: together they would send requests at twice the pace. Instances must not sit behind a NAT or a proxy before server.url: ` +
  `check that the route table of its subnet leads to an internet gateway (aws.subnets)`;

export function banned(slot: number, record: InstanceRecord | undefined): string {
  const address = record?.address ?? 'its address';
  const what =
    record?.incident?.rule === ALL_GONE
      ? `${address} got nothing but missing pages while others are served: other instances check its products again`
      : `the site has banned ${address} (${record?.incident?.rule})`;
  return `slot ${slot}: ${what}`;
}

/** @param state what EC2 shows */
export const endsSlowly = (instanceId: string, state: string): string =>
  `${instanceId} was terminated, but EC2 still shows it as ${state}; TerminateInstances is retried`;

export const cannotEnd = (instanceId: string, error: unknown): string =>
  `${instanceId} cannot be terminated: ${describeError(error)}; the call is retried, and the instance powers itself off after the deadline`;

export function stalled({ run, stall, stallCauses }: World, cause: StallCause): string {
  const { because, remedy, certain } = stallKind(cause);
  const detail = stallCauses.get(cause)?.detail;
  const seen = detail === undefined ? because : `${because} (${detail})`;
  const advice = adviceFor(remedy, run);
  return certain === true
    ? `${seen}: the run ends with what it has. ${advice}`
    : `no progress for ${formatDuration(stall?.ms ?? 0)}, and ${seen}: the run ends with what it has. ${advice}`;
}

const SITE_CHANGED =
  'canary pages are unreadable from every address: the site or the mapping for it has changed. Crawling stops. ' +
  'Compare the evidence in the report with the mapping (orchestrator extract shows what each field gives) and run again.';

/** @param reasons why products have failed so far */
export const siteChanged = (reasons: ReturnType<typeof liveReasons>): string =>
  reasons.length === 0 ? SITE_CHANGED : `${SITE_CHANGED} Tried so far: ${namesOf(reasons)}`;

/** Which addresses are banned, of how many, and what to do. */
export function siteBans(world: World, bans: ReturnType<typeof bansOf>): string {
  const advice = banRemedy(bans, world.run.settings.site);
  return `${whoIsBanned(world)}: crawling stops and what is stored is published; look at the evidence in the report; ${advice}`;
}

function whoIsBanned(world: World): string {
  if (world.run.settings.site.onBan === 'stop')
    return 'the site refuses an address of this run, and site.on_ban is stop';
  const latest = [...world.fleet.latest.values()];
  const alive = latest.filter((r) => !isGivenUp(r) && r.publicKey !== null);
  const refused = alive.filter((r) => openIncident(r)?.verdict === 'banned').length;
  const served = latest.filter((r) => isGivenUp(r) && (r.progress?.stored ?? 0) > 0).length;
  if (refused === alive.length && served === 0) return 'the site refuses every address of this run';
  if (refused === alive.length) {
    const left =
      refused === 1 ? 'the one address that still has products' : `the ${refused} addresses that still have products`;
    return `the site refuses ${left}; ${served === 1 ? 'another one was' : `${served} others were`} served and done before`;
  }
  const recent = recentBans(world);
  const minutes = formatDuration(circuitWindowMs(world.run));
  return `the site has banned ${recent.banned.length} of ${recent.fleet} addresses within ${minutes}, more than a third of the fleet`;
}
