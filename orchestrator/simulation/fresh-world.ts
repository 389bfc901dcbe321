/** The world of a run that has just been stored: nothing launched, every chunk waiting. */
import type { EpochId } from '../../shared/domain/epoch-id.ts';
import { claimedRecord } from '../control/launching/claimed-record.ts';
import { limitsOf } from '../control/model/run-deadlines.ts';
import type { RobotsPolicy } from '../../shared/domain/robots-matcher.ts';
import type { LaunchRequest } from '../cloud/compute.ts';
import { TAG } from '../cloud/compute.ts';
import type { InstanceRecord, RunRecord } from '../control/model/stores.ts';
import type { World } from '../control/model/world.ts';
import { architectureOf } from '../plan/instance-types.ts';
import type { Scenario } from './scenario.ts';
import type { Work } from './work.ts';

/** Any day does: nothing depends on the date. */
export const START_MS = Date.UTC(2026, 0, 1);
const RUN_ID = 'simulated';

const ALLOW_ALL: RobotsPolicy = { version: 'all', access: 'all', rules: [], crawlDelayMs: null, source: 'simulated' };

export function freshWorld(scenario: Scenario, work: Work): World {
  const run = freshRun(scenario);
  return {
    nowMs: START_MS,
    loopStartedAtMs: START_MS,
    requestSeenAtMs: null,
    robots: ALLOW_ALL,
    run,
    limits: limitsOf(run),
    instances: [],
    pools: { instanceTypes: typesOf(scenario), subnetIds: [...scenario.rules.subnets] },
    cloud: null,
    balancerActive: false,
    balancerGone: false,
    targets: new Map(),
    work: work.counts,
    lastTransferAtMs: null,
    forecast: null,
    notedKeys: new Set(),
    totals: work.totals,
  };
}

/** The plan's type first, then the other allowed ones that the same image boots. */
function typesOf({ plan, input }: Scenario): string[] {
  const architecture = architectureOf(plan.instanceType);
  const others = input.instanceTypes.filter((t) => t !== plan.instanceType && architectureOf(t) === architecture);
  return [plan.instanceType, ...others];
}

function freshRun({ input, plan, rules }: Scenario): RunRecord {
  return {
    id: RUN_ID,
    parentId: null,
    phase: 'planned',
    reason: null,
    exitCode: null,
    startedAtMs: START_MS,
    deadlineAtMs: START_MS + input.deadlineMs,
    finishedAtMs: null,
    dryRun: true,
    settings: {
      site: {
        productUrl: '',
        intervalMs: plan.intervalMs,
        maxRatePerSecond: input.maxRatePerSecond,
        userAgent: '',
        timeoutMs: 30_000,
        maxPageBytes: 5_000_000,
        allowPrivate: false,
        render: 'http',
        robots: 'ignore',
        onBan: rules.onBan,
        ban: { statuses: [], redirects: [], patterns: [], coolDownMs: rules.coolDownMs },
        canaries: [],
      },
      mapping: { pages: [] },
      results: { table: RUN_ID, onGone: 'keep' },
      run: {
        deadlineMs: input.deadlineMs,
        maxCost: input.maxCost,
        graceMs: input.graceMs,
        minInstances: input.minInstances,
        maxInstances: input.maxInstances,
        maxFailed: rules.maxFailed,
      },
      aws: {
        region: input.region,
        endpoint: null,
        instanceTypes: input.instanceTypes,
        subnets: [...rules.subnets],
        balancerScheme: 'internal',
        securityGroups: [],
        bucket: '',
        instanceProfile: null,
        image: null,
        recycleEveryMs: input.recycleEveryMs ?? null,
      },
      sandbox: null,
      server: { callbackUrl: '', callbackListen: '' },
    },
    plan,
    planned: input.products,
    duplicates: 0,
    privateKey: '',
    publicKey: '',
    balancer: null,
    request: null,
    report: null,
  };
}

/** What a simulated balancer is called; nobody looks it up. */
export const SIMULATED_BALANCER = { url: '', loadBalancerArn: '', targetGroupArn: '', listenerArn: '' };

/** The row of a claim that has just been written. */
export function simulatedClaim(
  at: EpochId,
  pool: { instanceType: string; subnetId: string },
  nowMs: number,
): InstanceRecord {
  const request: LaunchRequest = {
    clientToken: '',
    ...pool,
    imageId: '',
    securityGroupIds: [],
    instanceProfile: null,
    userData: '',
    tags: { [TAG.run]: RUN_ID, [TAG.slot]: String(at.slot), [TAG.epoch]: String(at.epoch) },
  };
  return claimedRecord({ ...at, request, token: '' }, nowMs);
}
