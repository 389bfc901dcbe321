/**
 * A closed world around the real main server: its loop, dispatcher and callbacks run on stores, cloud and instances in
 * memory, on a clock that jumps from event to event. `orchestrator simulate`, the fault campaign and the tests of whole
 * runs all play in it.
 */
import { IGNORED_ROBOTS } from '../model/robots-pace.ts';
import { pino } from 'pino';
import { seededRandom } from '../../../shared/adapters/random.ts';
import type { EpochId } from '../../../shared/domain/epoch-id.ts';
import { crawlSettingsKey } from '../../../shared/domain/keys.ts';
import type { RobotsPolicy } from '../../../shared/domain/robots-matcher.ts';
import type { Clock } from '../../../shared/ports/clock.ts';
import type { ObjectStore } from '../../../shared/ports/object-store.ts';
import type { CloudInstance, Compute } from '../cloud/compute.ts';
import type { LoadBalancer } from '../cloud/load-balancer.ts';
import { watchStore } from '../cloud/watched-store.ts';
import { createMainServer, type MainServer, type MainServerParts } from '../main-server.ts';
import { eventOf } from '../model/run-event.ts';
import { readPart } from '../act/results/load-parts.ts';
import { packSettingsOf } from '../act/launches/crawl-settings.ts';
import type { ObjectName } from '../model/core.ts';
import { regionsOf } from '../model/run-settings.ts';
import type { LockHolder, RunToStore } from '../model/stores.ts';
import type { World } from '../model/world.ts';
import type { MemoryCompute } from './cloud/memory-compute.ts';
import type { MemoryLoadBalancer } from './cloud/memory-load-balancer.ts';
import type { MemoryObjectStore } from './cloud/memory-objects.ts';
import { EventClock } from './event-clock.ts';
import { SimulatedFleet } from './fleet.ts';
import type { Wrongs } from './instance/crawl.ts';
import type { Site } from './instance/site.ts';
import { MachineClock } from './machine-clock.ts';
import { createMemoryStores, type MemoryStores } from './stores/create-memory-stores.ts';
import { MemoryDatabase } from './stores/memory-database.ts';
import { createPublicKey, hash, type KeyObject } from 'node:crypto';
import { type Envelope, exportPublicKey, sha256Hex, type Signatures } from '../../../shared/wire/signature.ts';

/** Nothing depends on the date. */
export const START_MS = Date.UTC(2026, 0, 1);
/** Value of the owner tag on everything that a modelled run launches. */
export const OWNER = 'simulation';

const ALLOW_ALL: RobotsPolicy = {
  version: 'all',
  access: 'all',
  rules: [],
  crawlDelayMs: null,
  source: 'no robots.txt (HTTP 404)',
};

/** A lease that no modelled run outlives: the lock passes to another main server by force. */
const LEASE_MS = 365 * 24 * 3_600_000;

interface ModelledRegion {
  compute: MemoryCompute;
  balancers: MemoryLoadBalancer;
}

export interface ModelledCloud extends ModelledRegion {
  objects: MemoryObjectStore;
  /** Further regions of the run, by name; omitted: it has one. */
  others?: Readonly<Record<string, ModelledRegion>>;
}

export interface WorldOptions {
  run: RunToStore;
  productIds: readonly string[];
  /** EC2, ELBv2 and S3 on the clock of this world. `isHealthy`: what a health check of an instance finds. */
  cloud: (clock: EventClock, isHealthy: (id: string) => boolean) => ModelledCloud;
  /** Stores on this database; left out: as they are. */
  stores?: (db: MemoryDatabase, clock: EventClock) => MemoryStores;
  site: Site;
  /** The time from the launch of a machine to the hello of its instance. */
  bootMs: (machine: CloudInstance) => number;
  roundTripMs: number;
  uploadMs: number;
  wrongs?: Wrongs;
}

interface ServerCloud {
  compute: Compute;
  balancers: LoadBalancer;
  objects: ObjectStore;
  others?: Readonly<Record<string, { compute: Compute; balancers: LoadBalancer }>>;
}

/** What may stand between one main server and its world, and when it dies. */
export interface ServerOptions {
  stores?: (stores: MemoryStores) => MemoryStores;
  cloud?: (cloud: ModelledCloud) => ServerCloud;
  offers?: (fleet: SimulatedFleet) => MainServerParts['offers'];
  /** Its own clock; left out: the world's. */
  clock?: Clock;
}

/** A main server at work in this world. */
export interface ServerProcess extends MainServer {
  fence: number;
  /** The clock of the process. While it is stopped, callbacks wait; when it wakes, the loop goes on first. */
  clock: MachineClock;
  alarms: string[];
  /** How often it has observed and decided. */
  rounds: number;
  /** Why the loop ended; null while it runs and after a kill. */
  ended: { error: unknown } | null;
  isDead: boolean;
  /** Kills the process as `kill -9` does: no call of its own has an effect from here on, no callback gets an answer. */
  kill(): void;
}

export class SimulatedWorld {
  readonly clock = new EventClock(START_MS);
  readonly db = new MemoryDatabase();
  readonly run: RunToStore;
  readonly cloud: ModelledCloud;
  readonly stores: MemoryStores;
  readonly fleet: SimulatedFleet;
  server: ServerProcess | null = null;
  /** What reading robots.txt gives from now on. */
  robots: RobotsPolicy = ALLOW_ALL;
  robotsReads = 0;
  /** Types that launches try, in this order. */
  instanceTypes: string[];
  readonly #productIds: readonly string[];
  readonly #crawlSettings: ObjectName & { bytes: Uint8Array };

  constructor(options: WorldOptions) {
    const { clock, db } = this;
    const { run, site, bootMs, roundTripMs, uploadMs } = options;
    this.run = run;
    this.#productIds = options.productIds;
    const packed = packSettingsOf(run.settings);
    this.#crawlSettings = { ...packed, key: crawlSettingsKey(run.id, packed.sha256) };
    this.instanceTypes = [run.plan.instanceType];
    this.cloud = options.cloud(clock, (id) => this.fleet.isHealthy(id));
    this.stores = options.stores?.(db, clock) ?? createMemoryStores(db);
    const { objects, others = {}, ...first } = this.cloud;
    this.fleet = new SimulatedFleet({
      clock,
      regions: [first, ...Object.values(others)],
      objects,
      signatures: QUICK_SIGNATURES,
      site,
      runId: run.id,
      bootMs,
      roundTripMs,
      uploadMs,
      ...(options.wrongs === undefined ? {} : { wrongs: options.wrongs }),
    });
  }

  /** Stores the run: from here on a main server can take it up. */
  async create(): Promise<void> {
    const { key, bytes } = this.#crawlSettings;
    await this.cloud.objects.putIfAbsent(key, bytes);
    const fence = await this.#takeLock('planner');
    await this.stores.runs.create(this.run, this.#productIds, fence, this.clock.now());
  }

  /** Starts a main server, which takes the lock from its holder. */
  async startServer(options: ServerOptions = {}): Promise<ServerProcess> {
    const fence = await this.#takeLock('main');
    const { run, fleet } = this;
    const clock = new MachineClock(options.clock ?? this.clock);
    const { site, aws } = run.settings;
    const stores = options.stores?.(this.stores) ?? this.stores;
    const cloud: ServerCloud = options.cloud?.(this.cloud) ?? this.cloud;
    const { compute, balancers, others = {} } = cloud;
    const regions = [
      { name: regionsOf(aws)[0].region, compute, balancers },
      ...Object.entries(others).map(([name, ports]) => ({ name, ...ports })),
    ];
    const death = new AbortController();
    const alarms: string[] = [];
    const rows = stores.bind({ runId: run.id, fence, clock });
    const server = createMainServer({
      runId: run.id,
      clock,
      random: seededRandom(1),
      log: pino({ level: 'silent' }),
      ...rows,
      regions,
      objects: cloud.objects,
      watchBucket: (objects, onChange) => watchStore(objects, aws.bucket, onChange),
      offers: options.offers?.(fleet) ?? fleet,
      signatures: QUICK_SIGNATURES,
      launchTemplate: async () => ({
        owner: OWNER,
        regions: await Promise.all(
          regions.map(async ({ name, compute: there }) => ({
            name,
            imageId: 'ami-1',
            subnets: await there.subnets(regionsOf(aws).find((r) => r.region === name)?.subnets ?? []),
            securityGroupIds: ['sg-1'],
          })),
        ),
        instanceTypes: this.instanceTypes,
        bundle: { key: 'bundles/b.mjs', sha256: 'b'.repeat(64) },
        crawlSettings: this.#crawlSettings,
      }),
      alarm: async (detail: string, at?: EpochId) => {
        alarms.push(detail);
        await rows.run.addEvent(eventOf('alarm', clock.now(), detail, at));
      },
      privateKey: run.privateKey,
      robots: {
        reader:
          site.robots === 'ignore'
            ? IGNORED_ROBOTS
            : {
                read: () => {
                  this.robotsReads++;
                  return Promise.resolve(this.robots);
                },
              },
        deadlineMs: run.settings.run.deadlineMs,
      },
      // What still has the hash under which its instance wrote it says the same.
      readPart: async (bucket, part) => {
        const results = fleet.written.get(part.sha256);
        if (results === undefined || results.length !== part.products) return readPart(bucket, part);
        const bytes = await bucket.get(part.key, part.sizeBytes);
        return bytes !== null && sha256Hex(bytes) === part.sha256 ? results : readPart(bucket, part);
      },
      onWorld: () => {
        process.rounds++;
      },
    });
    const process: ServerProcess = {
      ...server,
      fence,
      clock,
      alarms,
      rounds: 0,
      ended: null,
      isDead: false,
      kill() {
        this.isDead = true;
        death.abort();
      },
    };
    const end = (error: unknown): void => {
      if (process.isDead) return;
      process.ended = { error };
      death.abort();
    };
    fleet.connect(server.callbacks, death.signal, clock);
    server.run(death.signal).then(() => end(null), end);
    this.server = process;
    return process;
  }

  /** The last state of the world that the main server has seen; null before the first. */
  seen(): World | null {
    return this.server?.loop.world() ?? null;
  }

  /** Takes the lock by force: writes of the earlier main server are fenced off. */
  async #takeLock(owner: string): Promise<number> {
    const { runs } = this.stores;
    const request = (steal: LockHolder[] = []) => ({
      owner,
      // All main servers of this world work on one run.
      names: ['run'],
      nowMs: this.clock.now(),
      leaseMs: LEASE_MS,
      steal,
    });
    const first = await runs.acquireLock(request());
    const lock = 'fence' in first ? first : await runs.acquireLock(request([first.heldBy]));
    if (!('fence' in lock)) throw new Error('the lock of the modelled database cannot be taken');
    return lock.fence;
  }
}

const names = new WeakMap<KeyObject, string>();

/** The public key as text, for either half of a pair. */
function nameOf(key: KeyObject): string {
  let name = names.get(key);
  if (name === undefined) {
    name = exportPublicKey(key.type === 'private' ? createPublicKey(key) : key);
    names.set(key, name);
  }
  return name;
}

const numbers = new Map<string, number>();
const numberByKey = new WeakMap<KeyObject, number>();

/** The same for both halves of a pair, and shorter than its name: each heartbeat makes four signatures. */
function numberOf(key: KeyObject): number {
  let number = numberByKey.get(key);
  if (number === undefined) {
    const name = nameOf(key);
    number = numbers.get(name) ?? numbers.size;
    numbers.set(name, number);
    numberByKey.set(key, number);
  }
  return number;
}

function signatureOf(key: KeyObject, envelope: Envelope, body: Uint8Array | string): string {
  const { method, path, run, slot, epoch, counter } = envelope;
  return `${numberOf(key)} ${method} ${path} ${run} ${slot} ${epoch} ${counter} ${body.length}`;
}

const textSignatureOf = (key: KeyObject, text: Uint8Array): Buffer =>
  hash('sha512', Buffer.concat([Buffer.from(nameOf(key)), text]), 'buffer');

const QUICK_SIGNATURES: Signatures = {
  sign: signatureOf,
  verify: (publicKey, envelope, body, signature) => signature === signatureOf(publicKey, envelope, body),
  signText: textSignatureOf,
  verifyText: (publicKey, text, signature) => textSignatureOf(publicKey, text).equals(signature),
};
