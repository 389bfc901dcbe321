/** A run on a real database with everything else in memory, for contract tests of control core and callbacks. */
import { pino } from 'pino';
import { MemoryObjectStore } from '../../../orchestrator/core/simulation/cloud/memory-objects.ts';
import { seededRandom } from '../../../shared/adapters/random.ts';
import { systemClock } from '../../../shared/adapters/system-clock.ts';
import type { Clock } from '../../../shared/ports/clock.ts';
import { MemoryCompute } from '../../../orchestrator/core/simulation/cloud/memory-compute.ts';
import { MemoryLoadBalancer } from '../../../orchestrator/core/simulation/cloud/memory-load-balancer.ts';
import type { ModelledCloud } from '../../../orchestrator/core/simulation/world.ts';
import { watchStore } from '../../../orchestrator/core/cloud/watched-store.ts';
import { bucketWatcher } from '../../../orchestrator/core/main-server.ts';
import { createQueueOfOne } from '../../../shared/domain/queue-of-one.ts';
import type { RegionSettings } from '../../../orchestrator/core/model/run-settings.ts';
import type { Plan } from '../../../orchestrator/core/plan/plan.ts';
import type { Core } from '../../../orchestrator/core/model/core.ts';
import type { OfferSender } from '../../../orchestrator/core/cloud/offers.ts';
import { TokenBucket } from '../../../orchestrator/core/model/token-bucket.ts';
import { readPart } from '../../../orchestrator/core/act/results/load-parts.ts';
import { ProcessState } from '../../../orchestrator/core/model/process-state.ts';
import { newRunKeys } from '../../../orchestrator/core/new-run.ts';
import type { NewRun, Stores } from '../../../orchestrator/core/model/stores.ts';
import { type Database, openDatabase } from '../../../orchestrator/core/db/connect.ts';
import { createStores } from '../../../orchestrator/core/db/create-stores.ts';
import { migrate } from '../../../orchestrator/core/db/migrate.ts';
import { createResultTable } from '../../../orchestrator/core/db/result-table.ts';
import { ALLOW_ALL, START_MS, aPlan, aRun } from '../../unit/core/builders.ts';
import { ED25519 } from '../../../shared/wire/signature.ts';
import type { TestDatabase } from '../../support/mariadb/database.ts';
import { lockRequest } from '../../support/lock-request.ts';
import { features } from '../../support/features.ts';

export interface Base {
  db: Database;
  stores: Stores;
  fence: number;
}

/** A migrated database whose lock is held. */
export async function openBase(database: TestDatabase): Promise<Base> {
  const db = await openDatabase(database.url);
  await migrate(db);
  const stores = createStores(db, features);
  return { db, stores, fence: await takeLock(stores) };
}

/** Takes the lock from any holder, as a main server does whose predecessor is known to be dead. */
async function takeLock(stores: Stores): Promise<number> {
  const lock = await stores.runs.acquireLock(lockRequest('test', 0, 1));
  if (!('fence' in lock)) {
    const stolen = await stores.runs.acquireLock(lockRequest('test', 0, 1, lock.heldBy));
    if ('fence' in stolen) return stolen.fence;
    throw new Error('the lock cannot be taken');
  }
  return lock.fence;
}

let made = 0;

export interface RunShape {
  products: number;
  instances: number;
  chunkSize: number;
  deadlineMs?: number;
  intervalMs?: number;
  site?: Partial<NewRun['settings']['site']>;
  maxCost?: number;
  recycleEveryMs?: number;
  /** By region; left out: all instances are in one. */
  shares?: Record<string, number>;
}

/** A planned run with products `p1`, `p2` … and a result table of its own. */
export async function createRun(base: Base, shape: RunShape): Promise<NewRun> {
  const run = newRunOf(shape);
  await createResultTable(base.db, run.settings.results, run.settings.mapping, features);
  await base.stores.runs.create(run, productIds(shape.products), base.fence, START_MS);
  return run;
}

export const productIds = (products: number): string[] => Array.from({ length: products }, (_, i) => `p${i + 1}`);

/** The run that `createRun` stores. */
export function newRunOf(shape: RunShape): NewRun {
  const number = ++made;
  const { products, instances, chunkSize } = shape;
  const deadlineMs = shape.deadlineMs ?? 480_000;
  const chunks = Math.ceil(products / chunkSize);
  const template = aRun({ id: `20260101-0000${String(number).padStart(2, '0')}-mem`, ...newRunKeys() });
  const { settings } = template;
  const run: NewRun = {
    id: template.id,
    parentId: null,
    startedAtMs: START_MS,
    deadlineAtMs: START_MS + deadlineMs,
    dryRun: true,
    settings: {
      ...settings,
      site: { ...settings.site, intervalMs: shape.intervalMs ?? 1_000, ...shape.site },
      results: { table: `snapshots_${number}`, onGone: 'keep' },
      run: { ...settings.run, deadlineMs, maxCost: shape.maxCost ?? null },
      aws: {
        ...settings.aws,
        recycleEveryMs: shape.recycleEveryMs ?? null,
        ...(shape.shares === undefined ? {} : { regions: Object.keys(shape.shares).map(aRegion) }),
      },
    },
    plan: aPlan({ products, instances, chunkSize, chunks, deadlineMs, ...sharesOf(shape) }),
    planned: products,
    duplicates: 0,
    privateKey: template.privateKey,
    publicKey: template.publicKey,
  };
  return run;
}

const aRegion = (region: string): RegionSettings => ({
  region,
  subnets: [],
  securityGroups: [],
  image: null,
  loadBalancer: null,
});

function sharesOf({ shares }: RunShape): Pick<Plan, 'regions'> {
  if (shares === undefined) return {};
  const regions = Object.entries(shares).map(([region, instances]) => {
    return { region, instances, vcpus: 2 * instances, vcpuQuota: null, cost: 0 };
  });
  return { regions };
}

export interface MemoryCloud {
  compute: MemoryCompute;
  balancers: MemoryLoadBalancer;
  objects: MemoryObjectStore;
}

export function memoryCloud(clock: Clock): MemoryCloud {
  const compute = new MemoryCompute({ clock, pendingMs: 300, shuttingDownMs: 300 });
  const balancers = new MemoryLoadBalancer({ clock, isRunning: (id) => compute.isRunning(id) });
  return { compute, balancers, objects: new MemoryObjectStore(clock) };
}

/** Owner tag on everything that a run in memory launches. */
const OWNER = 'test';
const REGION = 'ap-northeast-1';

const NOBODY: OfferSender = { send: () => Promise.resolve({ kind: 'not-ready', message: 'no fleet' }) };

/** A core as the main server builds it; its alarms are in `alarms`. */
export function createCore(
  base: Pick<Base, 'stores' | 'fence'>,
  runId: string,
  { compute, balancers, objects }: ModelledCloud,
  clock: Clock = systemClock,
): Core & { alarms: string[] } {
  const alarms: string[] = [];
  const processState = new ProcessState();
  const alarm = async (detail: string): Promise<void> => void alarms.push(detail);
  return {
    runId,
    clock,
    random: seededRandom(1),
    log: pino({ level: 'silent' }),
    ...base.stores.bind({ runId, fence: base.fence, clock }),
    regions: [{ name: REGION, compute, balancers, launchTurn: new TokenBucket(clock, Infinity, 1) }],
    objects: watchStore(objects, 'b', bucketWatcher({ processState, clock, alarm })),
    readPart,
    robots: { policy: ALLOW_ALL },
    offers: NOBODY,
    signatures: ED25519,
    launchTemplate: async () => ({
      owner: OWNER,
      regions: [{ name: REGION, imageId: 'ami-1', subnets: await compute.subnets([]), securityGroupIds: ['sg-1'] }],
      instanceTypes: ['t4g.nano'],
      bundle: { key: 'bundles/b.mjs', sha256: 'b'.repeat(64) },
      crawlSettings: { key: 'runs/r/crawl-settings-c.json.gz', sha256: 'c'.repeat(64) },
    }),
    alarm,
    oneAtATime: createQueueOfOne(),
    processState,
    alarms,
  };
}
