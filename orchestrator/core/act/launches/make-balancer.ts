/** The run's load balancer: its creation, refusals and removal. */
import { formatDuration } from '../../../../shared/domain/quantity.ts';
import { AppError, describeError } from '../../../../shared/domain/errors.ts';
import { API_PORT, HEALTH_PATH } from '../../../../shared/wire/instance-api.ts';
import { TAG } from '../../cloud/compute.ts';
import { type BalancerRequest, isRefusal, PartsLeft } from '../../cloud/load-balancer.ts';
import { balancerName } from '../../model/balancer-name.ts';
import { describeBalancerLeft } from '../results/left-behind.ts';
import { alarmOnce } from '../run-notes.ts';
import type { Core } from '../../model/core.ts';
import { BALANCER_PORT } from './launch.ts';
import { stallWindowMs } from '../../decide/watchdog.ts';
import { lastingRefusal, rightsRemedy } from '../../decide/launches/rights.ts';
import { regionNamed } from '../../model/regions.ts';
import { noteRefused } from '../../model/rights.ts';
import { setStallCause, stallKind } from '../../model/stall-causes.ts';
import { adviceFor } from '../../model/try-again.ts';
import { powerOffAtMs } from '../../model/run-deadlines.ts';
import type { RunRecord } from '../../model/stores.ts';
import type { World } from '../../model/world.ts';

/**
 * The longest time that a balancer is asked for that the account has no room for; another run may be removing its own.
 */
const LONGEST_FULL_MS = 300_000;

/** Keys or rights may come back. */
const isDenied = (error: unknown): boolean => error instanceof AppError && error.code === 'aws-denied';

/**
 * Creates what is missing of the run's balancer and stores it. Throws when that fails: the caller retries. A refusal is
 * reported immediately and blocks launches; other failures are reported once they persist.
 */
export async function makeBalancer(core: Core, world: World, region: string): Promise<void> {
  const known = core.processState.region(region);
  const request = await requestFor(core, world.run, region);
  known.balancerMayRemain = true;
  const { balancers } = regionNamed(core.regions, region);
  const balancer = await balancers.ensure(request).catch(async (error: unknown) => {
    // The balancer may have been swept while this call was in flight.
    known.balancerMayRemain = true;
    await reportFailure(core, world, region, error);
    throw error;
  });
  known.balancerRefused = false;
  known.rights.balancer = null;
  known.balancerFailingMs = known.balancerFullMs = null;
  for (const cause of ['balancer-quota', 'no-balancer'] as const)
    setStallCause(core.processState.stallCauses, cause, null, core.clock.now());
  await core.run.setBalancer(region, balancer);
}

async function reportFailure(core: Core, world: World, region: string, error: unknown): Promise<void> {
  const { limits, run } = world;
  const { clock } = core;
  const known = core.processState.region(region);
  const words = describeError(error);
  if (isRefusal(error)) setStallCause(core.processState.stallCauses, 'no-balancer', words, clock.now());
  if (isDenied(error)) {
    const refused = { cause: 'denied', message: words } as const;
    noteRefused(known.rights, 'balancer', { ...refused, nowMs: clock.now() });
    known.balancerRefused = lastingRefusal(known.rights, run) !== null;
    return alarmOnce(
      core,
      `balancer denied ${region}`,
      `the load balancer of this run in ${region} is refused: ${words}; creation is retried for ${formatDuration(stallWindowMs(run, null))}, then nothing more is launched ` +
        `and the run ends when no instance has anything left to crawl; ${rightsRemedy(refused)}`,
    );
  }
  if (isRefusal(error)) {
    known.balancerRefused = true;
    return alarmOnce(
      core,
      `balancer refused ${region}`,
      `the load balancer of this run in ${region} is refused: ${words}; nothing more is launched, and the run ends when no instance has anything left to crawl`,
    );
  }
  if (error instanceof AppError && error.code === 'capacity') {
    known.balancerFullMs ??= clock.monotonic();
    const patienceMs = Math.min(LONGEST_FULL_MS, (run.deadlineAtMs - run.startedAtMs) / 4);
    setStallCause(core.processState.stallCauses, 'balancer-quota', words, clock.now());
    known.balancerRefused = clock.monotonic() - known.balancerFullMs >= patienceMs;
    return alarmOnce(
      core,
      `balancer full ${region}`,
      `the load balancer of this run in ${region} is refused: ${words}; it is asked for again for ${formatDuration(patienceMs)}, nothing is launched meanwhile, and then the run ends. ${adviceFor(stallKind('balancer-quota').remedy, run)}`,
    );
  }
  known.balancerFailingMs ??= clock.monotonic();
  const sinceMs = clock.monotonic() - known.balancerFailingMs;
  // The first retries come within seconds of each other; brief throttling needs no alarm.
  if (sinceMs < 2 * limits.heartbeatMs) return;
  await alarmOnce(
    core,
    `balancer fails ${region}`,
    `the load balancer of this run in ${region} cannot be created: ${words}; creation is retried, and no product can be handed out before it succeeds`,
  );
}

async function requestFor(core: Core, run: RunRecord, region: string): Promise<BalancerRequest> {
  const { owner, regions } = await core.launchTemplate();
  const template = regions.find(({ name }) => name === region);
  if (template === undefined) throw new AppError('aws-failed', `no launch could be prepared in ${region}`);
  return {
    name: balancerName(run.id),
    existing: template.balancer?.existing ?? null,
    scheme: template.balancer?.scheme ?? 'internal',
    vpcId: template.subnets[0]!.vpcId,
    subnetIds: oneSubnetPerZone(template.subnets),
    securityGroupIds: template.balancer?.securityGroupIds ?? template.securityGroupIds,
    ...(run.settings.aws.certificate ? { certificate: run.settings.aws.certificate.arn } : {}),
    listenPort: BALANCER_PORT,
    targetPort: API_PORT,
    healthPath: HEALTH_PATH,
    tags: {
      ...run.settings.aws.tags,
      [TAG.owner]: owner,
      [TAG.run]: run.id,
      [TAG.expiresAt]: new Date(powerOffAtMs(run)).toISOString(),
    },
  };
}

/** A balancer takes one subnet of each zone. */
function oneSubnetPerZone(subnets: readonly { id: string; zone: string }[]): string[] {
  return [...new Map(subnets.map((s) => [s.zone, s.id])).values()];
}

/** Removes the balancer that the run's row names. Throws to be retried, after a refusal with an alarm. */
export async function removeBalancer(core: Core, { run, regions }: World, region: string): Promise<void> {
  const known = core.processState.region(region);
  const { balancers } = regionNamed(core.regions, region);
  try {
    const { balancer } = regionNamed(regions, region);
    if (balancer !== null) await balancers.remove(balancer);
  } catch (error) {
    if (isRefusal(error)) await reportLeftBehind(core, run, region, error);
    throw error;
  }
  known.balancerLeft = null;
  known.balancerMayRemain = false;
  await core.run.setBalancer(region, null);
}

/**
 * Removes what ELBv2 has under the run's name at its end: the row names only a complete balancer. Throws to be retried;
 * where a retry is of no use, it raises an alarm instead.
 */
export async function sweepBalancer(core: Core, { run, limits }: World, region: string): Promise<void> {
  const { clock } = core;
  const known = core.processState.region(region);
  try {
    await regionNamed(core.regions, region).balancers.removeByName(balancerName(run.id));
  } catch (error) {
    known.sweepFailingMs ??= clock.monotonic();
    const lastsMs = clock.monotonic() - known.sweepFailingMs;
    if (!isRefusal(error) && lastsMs < limits.terminateMs) throw error;
    await reportLeftBehind(core, run, region, error);
  }
  known.balancerMayRemain = false;
}

/** Remembers what the end of the run leaves behind, unless a later attempt removes it. */
async function reportLeftBehind(core: Core, run: RunRecord, region: string, error: unknown): Promise<void> {
  const parts = error instanceof PartsLeft ? error.parts : null;
  const left = { parts, words: describeError(error) };
  core.processState.region(region).balancerLeft = left;
  const { line } = describeBalancerLeft(run, region, left);
  await alarmOnce(core, `balancer left ${region}`, `not removed: ${line}`);
}
