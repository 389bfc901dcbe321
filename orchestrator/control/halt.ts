/** Ends the crawl permanently: instances upload their results, and no further request goes to the site. */
import { formatDuration } from '../../shared/domain/quantity.ts';
import { circuitWindowMs, openIncident, recentBans } from './decide/ban-policy.ts';
import type { HaltReason } from './model/actions.ts';
import type { Core } from './model/core.ts';
import type { StallCause } from './model/stall-causes.ts';
import { isStallCause, stallFacts } from './model/stall-causes.ts';
import type { World } from './model/world.ts';
import { isGivenUp } from './model/instance-state.ts';

const BANNED_ADVICE =
  'crawling stops and what is stored is published. ' +
  'Look at the evidence in the report; before the next run make site.interval longer, or ask the site for permission.';

const SITE_CHANGED =
  'canary pages are unreadable from every address: the site or the mapping for it has changed. Crawling stops. ' +
  'Compare the evidence in the report with the mapping (orchestrator extract shows what each field gives) and run again.';

/** Stored as the run's stop request, so that a main server that resumes the run carries it out too. */
export async function halt(core: Core, world: World, reason: HaltReason): Promise<void> {
  const run = await core.run.get();
  if (!run || run.request !== null) return;
  // A person's request from before this write stays.
  if (!(await core.run.setRequest(reason))) return;
  if (isStallCause(reason)) await core.alarm(stallText(world, reason));
  // The refusal of ELBv2 has had its own alarm.
  else if (reason !== 'no-balancer') await core.alarm(haltText(world, reason));
}

function stallText({ stall, stallCauses }: World, cause: StallCause): string {
  const { because, remedy } = stallFacts(cause);
  const detail = stallCauses?.get(cause)?.detail;
  return (
    `no progress for ${formatDuration(stall?.ms ?? 0)}, and ${because}${detail === undefined ? '' : ` (${detail})`}: ` +
    `the run ends with what it has. ${remedy}`
  );
}

/** The alarm for the user: which addresses are banned, of how many, and what to do. */
function haltText(world: World, reason: 'banned' | 'site-changed'): string {
  return reason === 'site-changed' ? SITE_CHANGED : `${whoIsBanned(world)}: ${BANNED_ADVICE}`;
}

function whoIsBanned(world: World): string {
  if (world.run.settings.site.onBan === 'stop')
    return 'the site refuses an address of this run, and site.on_ban is stop';
  const latest = [...world.fleet.latest.values()];
  const alive = latest.filter((r) => !isGivenUp(r) && r.publicKey !== null);
  const banned = alive.filter((r) => openIncident(r)?.verdict === 'banned').length;
  const served = latest.filter((r) => isGivenUp(r) && (r.progress?.stored ?? 0) > 0).length;
  if (banned === alive.length && served === 0) return 'the site refuses every address of this run';
  if (banned === alive.length) {
    const left =
      banned === 1 ? 'the one address that still has products' : `the ${banned} addresses that still have products`;
    return `the site refuses ${left}; ${served === 1 ? 'another one was' : `${served} others were`} served and done before`;
  }
  const recent = recentBans(world);
  const minutes = formatDuration(circuitWindowMs(world.run));
  return `the site has banned ${recent.banned.length} of ${recent.fleet} addresses within ${minutes}, more than a third of the fleet`;
}
