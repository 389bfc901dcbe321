/**
 * Keys that expire and rights that are revoked during a run. They may be renewed within seconds or minutes, and IAM
 * itself shows a new role only after a delay: so calls are retried with a back-off, and rights count as lost only after
 * a while. This state is process-local, not in the rows: a main server that resumes the run tries for itself.
 */
import { isNonEmpty } from '../../../../shared/domain/non-empty.ts';
import { backoffMs } from '../../../../shared/domain/backoff.ts';
import { isServing } from '../../../../shared/domain/states.ts';
import type { LaunchGate, Observed } from '../../model/world.ts';
import { stallWindowMs } from '../watchdog.ts';
import type { RegionState } from '../../model/regions.ts';
import { isRepeated, neededRefused, type Refused, type Rights } from '../../model/rights.ts';
import { isDraining } from '../../model/run-deadlines.ts';
import type { Action } from '../../model/actions.ts';
import { formatDuration } from '../../../../shared/domain/quantity.ts';

/**
 * The gate after a refused launch: `held` for a pause that doubles from half a second to two heartbeats, then one
 * launch at a time.
 */
export function rightsGate({ nowMs, limits }: Observed, { rights }: RegionState): LaunchGate {
  const refused = rights.launch;
  if (refused === null) return 'open';
  const pauseMs = backoffMs(refused.count - 1, { firstMs: 500, maxMs: limits.heartbeatMs * 2 });
  return nowMs >= refused.lastMs + pauseMs ? 'one' : 'held';
}

/** A refusal that has lasted for the stall window in each region while no instance serves any more; null otherwise. */
export function lostRights({ regions, run, fleet }: LostRights): Refused | null {
  // Running instances go on: they have a role of their own, and the keys may come back.
  if (fleet.all.some((r) => isServing(r.phase) || r.phase === 'pending' || r.phase === 'booting')) return null;
  return regions.map(({ rights }) => lastingRefusal(rights, run)).reduce((all, one) => all && one);
}

interface LostRights extends Pick<Observed, 'run' | 'fleet'> {
  regions: readonly Pick<RegionState, 'rights'>[];
}

/**
 * Why no product could come of the run: AWS refuses for good, in each region, what new instances need, before any
 * product was handed out; or to store results. Null otherwise.
 */
export function refusedEnd(world: Observed): 'refused-right' | 'refused-upload' | null {
  const { run, regions, stallCauses, nowMs } = world;
  if (isDraining(world)) return null;
  const since = stallCauses.get('refused-upload')?.sinceMs ?? Infinity;
  if (nowMs - since >= stallWindowMs(run, null)) return 'refused-upload';
  if (isAnythingHandedOut(world)) return null;
  const isRefused = regions.every(({ rights }) => neededRefused(rights).some((refused) => isLasting(refused, run)));
  return isRefused ? 'refused-right' : null;
}

/**
 * What the bucket says to instances that may not store their results; null while that is not definite. They have one
 * role: two of them, or the only one, have tried again, and no other stores anything.
 */
export function uploadRefusal({ fleet: { serving } }: Pick<Observed, 'fleet'>): string | null {
  const refused = serving.filter(({ progress }) => progress?.storeRefused === true);
  if (!isNonEmpty(refused) || refused.length < Math.min(2, serving.length)) return null;
  const isStored = serving.some(
    ({ progress }) => progress !== null && !progress.storeRefused && progress.uploadMs !== null,
  );
  return isStored ? null : (refused[0].problem ?? 'AccessDenied');
}

export const isAnythingHandedOut = ({ work, fleet }: Pick<Observed, 'work' | 'fleet'>): boolean =>
  work.granted > 0 || fleet.all.some((r) => (r.progress?.assigned ?? 0) > 0);

/** One alarm for each region and call. */
export function refusedNotes(world: Observed): Action[] {
  const { regions, limits, run } = world;
  return regions.flatMap(({ name, rights }) =>
    neededRefused(rights)
      .filter((refused) => isRepeated(refused, limits))
      .slice(0, 1)
      .map((refused): Action => {
        const what = isAnythingHandedOut(world)
          ? 'instances that have products go on'
          : `the run ends if that lasts for ${formatDuration(stallWindowMs(run, null))}`;
        const detail = `AWS refuses a call that the run needs in ${name}: ${refused.message}; nothing is launched there, and ${what}; ${rightsRemedy(refused)}`;
        return { kind: 'note', note: { key: `refused in ${name}`, event: 'decision', detail }, alarm: true };
      }),
  );
}

/** The refusal of a call that new instances need, lasting for the stall window; null when there is none. */
export function lastingRefusal(rights: Rights, run: Observed['run']): Refused | null {
  return Object.values({ ...rights, terminate: null }).find((r) => isLasting(r, run)) ?? null;
}

/** It has lasted for the stall window. */
export const isLasting = (refused: Refused | null, run: Observed['run']): boolean =>
  refused !== null && refused.lastMs - refused.sinceMs >= stallWindowMs(run, null);

/**
 * The remedy for a refusal by a policy of the organisation, which no right of this account lifts; null for any other.
 * https://docs.aws.amazon.com/IAM/latest/UserGuide/troubleshoot_access-denied.html
 */
export const organisationRemedy = (message: string): string | null =>
  /explicit deny in a service control policy|TagPolicyViolation/.test(message)
    ? "set the tags that the organisation's policy demands in aws.tags; if it demands something else, ask who keeps it"
    : null;

/** What the user can do about it. */
export function rightsRemedy({ cause, message }: Pick<Refused, 'cause' | 'message'>): string {
  if (/RequestTimeTooSkewed/.test(message))
    return 'set the clock of the main server (orchestrator doctor shows by how much)';
  if (cause === 'credentials')
    return 'renew the keys that the AWS SDK finds on the main server (aws sso login, aws login, or a new credentials file), or give it an instance role';
  const organisation = organisationRemedy(message);
  if (organisation !== null) return organisation;
  if (/instance profile/i.test(message))
    return 'check whether aws.instance_profile exists; IAM shows a new one some seconds after its creation';
  return 'allow what orchestrator doctor names under "EC2 rights" (deploy/policies/controller.json has the policy)';
}
