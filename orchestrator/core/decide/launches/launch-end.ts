/** The end of a run in which no launch brought an instance any more. Pure. */
import type { NonEmpty } from '../../../../shared/domain/non-empty.ts';
import { wasAsked } from '../../model/instance-state.ts';
import { FleetSnapshot } from '../../model/fleet-snapshot.ts';
import { deathAtLaunch } from '../../model/launch-history.ts';
import { neededRefused, type Refused, type Rights } from '../../model/rights.ts';
import { lostRights, rightsRemedy } from './rights.ts';
import { stateReasonRemedy, stateReasonText } from './state-reason.ts';
import type { InstanceRecord, RunRecord } from '../../model/stores.ts';

export interface LaunchEnd {
  /** Where the cause lies: AWS's machines and the account's limits, or the user's settings, rights and keys. */
  cause: 'capacity' | 'rights';
  /** One sentence: what happened and what to do. */
  reason: string;
}

/**
 * Why the launches of the run failed; null when they did not. The caller decides whether that left products uncrawled.
 * @param regions calls that AWS refuses at the moment, by region
 */
export function launchEndOf(
  run: RunRecord,
  instances: readonly InstanceRecord[],
  regions: NonEmpty<{ rights: Rights }>,
): LaunchEnd | null {
  const asked = instances.filter(wasAsked).filter((r) => r.attempts > 0);
  const last = asked.toSorted((a, b) => a.launchedAtMs - b.launchedAtMs).at(-1);
  const { launch } = regions[0].rights;
  const refused = lostRights({ run, fleet: new FleetSnapshot(instances), regions }) ?? launch;
  if (refused !== null) return refusedRights(refused, neededRefused(regions[0].rights).includes(refused));
  const answer = last?.answer;
  if (last === undefined || answer === undefined) return null;
  const death = deathAtLaunch(last);
  if (death !== null) {
    const dead = asked.filter((r) => deathAtLaunch(r) !== null).length;
    return {
      cause: 'capacity',
      reason: `EC2 ended ${dead === 1 ? 'the instance' : `all ${dead} instances`} at launch, ${stateReasonText(death)}; ${stateReasonRemedy(death)}`,
    };
  }
  if (answer?.kind === 'refused') {
    const { cause, message } = answer;
    if (cause === 'credentials' || cause === 'denied') return refusedRights({ cause, message });
    if (cause === 'invalid')
      return { cause: 'rights', reason: `AWS refuses to launch, a parameter is wrong: ${message}` };
    if (cause === 'type' || cause === 'zone') return { cause: 'capacity', reason: typesText(asked) };
  }
  if (asked.some((r) => r.instanceId !== null)) return null;
  return { cause: 'capacity', reason: `EC2 gave no instance${typesText(asked, '; ')}` };
}

const refusedRights = (refused: Pick<Refused, 'cause' | 'message'>, isNeeded = false): LaunchEnd => ({
  cause: 'rights',
  reason: `AWS refuses ${isNeeded ? 'a call that the run needs' : 'to launch'}: ${refused.message}; ${rightsRemedy(refused)}`,
});

/** The types that the account may not launch, with what to do; empty when there are none. */
function typesText(asked: readonly InstanceRecord[], before = ''): string {
  const refused = new Map<string, string>();
  for (const { answer, request } of asked)
    if (answer?.kind === 'refused' && (answer.cause === 'type' || answer.cause === 'zone'))
      refused.set(request.instanceType, answer.message);
  if (refused.size === 0) return '';
  return (
    `${before}EC2 refuses ${[...refused.keys()].join(', ')} in this account or its zones (${[...refused.values()].at(-1)}): ` +
    'allow other types in aws.instance_types (on the free plan of AWS t3.micro, t3.small, t4g.micro, t4g.small), ' +
    'or upgrade the account to the paid plan'
  );
}
