/** Builds worlds for tests of the control core: a small, healthy run that the test modifies. */
import { mapAll } from '../../../shared/domain/non-empty.ts';
import { type Heartbeat, NO_PROGRESS } from '../../../shared/wire/callbacks.ts';
import type { Action } from '../../../orchestrator/core/model/actions.ts';
import { LOSS_REASON } from '../../../orchestrator/core/model/loss-reason.ts';
import { type CloudInstance, type RefusalCause, TAG } from '../../../orchestrator/core/cloud/compute.ts';
import type { RobotsPolicy } from '../../../shared/domain/robots-matcher.ts';
import type { InstanceRecord, RunRecord, AddressIncident } from '../../../orchestrator/core/model/stores.ts';
import type { Pools } from '../../../orchestrator/core/model/launch-history.ts';
import { CloudSnapshot } from '../../../orchestrator/core/model/cloud-snapshot.ts';
import { FleetSnapshot } from '../../../orchestrator/core/model/fleet-snapshot.ts';
import { chunkLimits } from '../../../orchestrator/core/decide/shares/chunk-limits.ts';
import { type RegionState, regionsFromRow } from '../../../orchestrator/core/model/regions.ts';
import { observedInRows, type World } from '../../../orchestrator/core/model/world.ts';
import type { Plan } from '../../../orchestrator/core/plan/plan.ts';

export const START_MS = Date.UTC(2026, 0, 1);
const DEADLINE_MS = 4 * 3_600_000;

export const ALLOW_ALL: RobotsPolicy = {
  version: 'all',
  access: 'all',
  rules: [],
  crawlDelayMs: null,
  source: 'no robots.txt (HTTP 404)',
};

/** An open incident one minute after the start. */
export function anIncident(change: Partial<AddressIncident> = {}): AddressIncident {
  return {
    verdict: 'banned',
    rule: 'status-403',
    atMs: START_MS + 60_000,
    untilMs: START_MS + 1_860_000,
    returnedAtMs: null,
    overAtMs: null,
    ...change,
  };
}

export function aPlan(change: Partial<Plan> = {}): Plan {
  return {
    products: 300,
    instances: 3,
    productsEach: 100,
    chunkSize: 5,
    chunks: 60,
    capacityEach: 200,
    intervalMs: 10_000,
    paceMs: 10_100,
    deadlineMs: DEADLINE_MS,
    bootP95Ms: 3_000,
    rampMs: 1_500,
    endP50Ms: 1_000_000,
    endP95Ms: 1_100_000,
    onTimeProbability: 1,
    lowerBoundInstances: 1,
    instanceType: 't4g.nano',
    vcpus: 6,
    vcpuQuota: null,
    cost: { instances: 0, ipv4: 0, ebs: 0, balancer: 0, s3: 0, total: 0, currency: 'USD', pricesOf: '2026-01-01' },
    verdict: 'feasible',
    faults: [],
    earliestEndMs: null,
    remedies: [],
    warnings: [],
    ...change,
  };
}

export function aRun(change: Partial<RunRecord> = {}): RunRecord {
  return {
    id: '20260101-000000-test',
    parentId: null,
    phase: 'crawling',
    reason: null,
    exitCode: null,
    startedAtMs: START_MS,
    deadlineAtMs: START_MS + DEADLINE_MS,
    finishedAtMs: null,
    prunedAtMs: null,
    dryRun: true,
    settings: {
      site: {
        productUrl: 'http://127.0.0.1:1/item/{id}',
        intervalMs: 10_000,
        maxRatePerSecond: null,
        userAgent: 'test/1.0',
        timeoutMs: 30_000,
        maxPageBytes: 5_000_000,
        allowPrivate: false,
        render: 'http',
        robots: 'respect',
        onBan: 'cool-down',
        ban: { statuses: [], redirects: [], patterns: [], coolDownMs: 1_800_000 },
        canaries: [],
      },
      mapping: {
        pages: [
          {
            name: 'test',
            urlPatterns: [],
            urlParsers: [],
            rows: null,
            fields: [{ name: 'title', steps: [{ type: 'css', selector: 'h1' }], required: true }],
          },
        ],
      },
      grantsKept: true,
      partsSigned: true,
      roleSessions: true,
      results: { table: 'product_snapshots', onGone: 'keep' },
      run: {
        deadlineMs: DEADLINE_MS,
        maxCost: null,
        graceMs: 600_000,
        minInstances: 1,
        maxInstances: 100,
        maxFailed: 0.05,
      },
      aws: {
        region: 'ap-northeast-1',
        endpoint: null,
        instanceTypes: ['t4g.nano'],
        subnets: [],
        balancerScheme: 'internal',
        securityGroups: [],
        bucket: 'b',
        instanceProfile: null,
        image: null,
      },
      sandbox: null,
      server: { callbackUrl: 'http://127.0.0.1:1', callbackListen: '127.0.0.1:1' },
    },
    plan: aPlan(),
    planned: 300,
    duplicates: 0,
    privateKey: '',
    publicKey: '',
    balancers: {
      'ap-northeast-1': { url: 'http://127.0.0.1:2', loadBalancerArn: 'lb', targetGroupArn: 'tg', listenerArn: 'l' },
    },
    request: null,
    report: null,
    ...change,
  };
}

/** A ready, registered instance with a recent heartbeat. */
export function anInstance(slot: number, change: Partial<InstanceRecord> = {}): InstanceRecord {
  return {
    slot,
    epoch: 1,
    phase: 'ready',
    phaseAtMs: START_MS,
    reason: null,
    instanceId: `i-${slot}-${change.epoch ?? 1}`,
    address: `127.1.0.${slot + 1}`,
    zone: 'a',
    request: {
      clientToken: 't',
      instanceType: 't4g.nano',
      imageId: 'ami',
      subnetId: 'subnet',
      securityGroupIds: [],
      instanceProfile: null,
      userData: '',
      tags: {},
    },
    token: '00',
    attempts: 1,
    answer: null,
    lastError: null,
    claimedAtMs: START_MS,
    launchedAtMs: START_MS,
    terminatedAtMs: null,
    cloudState: 'running',
    stateReason: null,
    registered: true,
    secretsKey: null,
    publicKey: 'key',
    counter: 1,
    lastHeartbeatAtMs: START_MS,
    progress: { ...NO_PROGRESS },
    problem: null,
    sealed: false,
    rotateAtMs: null,
    manifestKey: null,
    manifestSha256: null,
    consoleOutput: null,
    incident: null,
    ...change,
  };
}

/** A claimed slot for which EC2 was not asked yet. */
export function aClaim(slot: number, change: Partial<InstanceRecord> = {}): InstanceRecord {
  return anInstance(slot, {
    phase: 'claimed',
    attempts: 0,
    instanceId: null,
    cloudState: null,
    registered: false,
    publicKey: null,
    progress: null,
    launchedAtMs: null,
    ...change,
  });
}

/** An instance that EC2 shows running and that has not sent its hello. */
export function aBooting(slot: number, change: Partial<InstanceRecord> = {}): InstanceRecord {
  const unheard = { publicKey: null, registered: false, progress: null, lastHeartbeatAtMs: null };
  return anInstance(slot, { phase: 'booting', ...unheard, ...change });
}

/** A slot whose launch EC2 has refused. */
export function aRefusal(
  slot: number,
  cause: RefusalCause,
  atMs: number,
  change: Partial<InstanceRecord> = {},
): InstanceRecord {
  return aClaim(slot, {
    phase: 'terminated',
    manifestKey: 'm',
    attempts: 1,
    reason: LOSS_REASON.refused,
    answer: { kind: 'refused', cause, message: 'no' },
    launchedAtMs: atMs,
    ...change,
  });
}

/** All chunks are granted: nothing waits for another instance. */
export const ALL_GRANTED: World['work'] = { chunks: 60, waiting: 0, granted: 60, bySlot: [] };

/** `launch 0.1`, `offer` … */
export const kindsOf = (actions: readonly Action[]): string[] =>
  actions.map((a) => ('slot' in a ? `${a.kind} ${a.slot}.${a.epoch}` : a.kind));

/** The changes of phase: `0.1 ready>lost never-healthy`. */
export const movesOf = (actions: readonly Action[]): string[] =>
  actions.flatMap((a) =>
    a.kind === 'move-instance' ? [`${a.slot}.${a.epoch} ${a.from}>${a.to} ${a.reason ?? ''}`.trim()] : [],
  );

/** Of a crawling instance with nothing to report. */
export function aHeartbeat(change: Partial<Heartbeat> = {}): Heartbeat {
  return {
    phase: 'crawling',
    clock: new Date(START_MS).toISOString(),
    offered: [],
    transferred: [],
    progress: { ...NO_PROGRESS },
    parts: [],
    problem: null,
    incident: null,
    robots: null,
    ...change,
  };
}

export function aCloudInstance(record: InstanceRecord, change: Partial<CloudInstance> = {}): CloudInstance {
  return {
    id: record.instanceId ?? `i-${record.slot}-${record.epoch}`,
    state: 'running',
    publicAddress: record.address,
    privateAddress: record.address,
    instanceType: 't4g.nano',
    zone: 'a',
    launchedAtMs: START_MS,
    tags: { [TAG.slot]: String(record.slot), [TAG.epoch]: String(record.epoch) },
    ...change,
  };
}

/** One type in two zones; none of them is the pool of `anInstance`. */
const POOLS: Pools = {
  regions: [{ name: 'ap-northeast-1', subnetIds: ['subnet-a', 'subnet-c'] }],
  instanceTypes: ['t4g.nano'],
};

/** What differs from `aWorld`; `instances` makes the snapshot of the fleet, and what AWS shows goes to each region. */
export type WorldChange = Partial<World> &
  Partial<Omit<RegionState, 'name'>> & { instances?: readonly InstanceRecord[] };

/** Three ready instances one minute after the start; all chunks wait, and EC2 agrees with the rows. */
export function aWorld({ instances: rows, ...change }: WorldChange = {}): World {
  const run = change.run ?? aRun();
  const nowMs = change.nowMs ?? START_MS + 60_000;
  const three = (): InstanceRecord[] => [0, 1, 2].map((slot) => anInstance(slot, { lastHeartbeatAtMs: nowMs }));
  const fleet = rows ? new FleetSnapshot(rows) : (change.fleet ?? new FleetSnapshot(three()));
  const instances = fleet.all;
  const shown = instances.filter((i) => i.instanceId !== null && i.phase !== 'terminated');
  const work = { chunks: 60, waiting: 60, granted: 0, bySlot: [] };
  const world: Omit<World, 'chunkLimits'> = {
    ...observedInRows({ nowMs, run, fleet, work, robots: ALLOW_ALL }),
    site: { slowdown: 1, detail: null, suspicion: null },
    stall: null,
    forecast: null,
    loopStartedAtMs: START_MS,
    requestSeenAtMs: run.request === null ? null : nowMs,
    regions: mapAll(regionsFromRow(run), (region) => ({
      ...region,
      cloud: new CloudSnapshot(
        shown.map((i) => aCloudInstance(i, { state: i.cloudState ?? 'running' })),
        nowMs,
      ),
      balancerActive: true,
      ...pick(change, Object.keys(region)),
    })),
    pools: POOLS,
    targets: new Map(instances.filter((i) => i.registered).map((i) => [i.instanceId ?? '', 'healthy'])),
    ...change,
    fleet,
  };
  return { ...world, chunkLimits: change.chunkLimits ?? chunkLimits(world) };
}

const pick = (from: object, keys: readonly string[]): object =>
  Object.fromEntries(Object.entries(from).filter(([key]) => keys.includes(key)));
