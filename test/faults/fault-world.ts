/**
 * One run in a closed world with faults. It keeps a history for the invariants, and calls its faults when each moment
 * of the run comes.
 */
import { type EpochId, epochKey } from '../../shared/domain/epoch-id.ts';
import { describeError } from '../../shared/domain/errors.ts';
import { limitsFor } from '../../shared/domain/limits.ts';
import { parsePartKey } from '../../shared/domain/keys.ts';
import { isGivenUp } from '../../orchestrator/core/model/instance-state.ts';
import type { ItemResult } from '../../shared/wire/part.ts';
import { COMPLETION_PATH } from '../../shared/wire/callbacks.ts';
import type { Callback } from '../../orchestrator/core/callbacks/callbacks.ts';
import { type CloudInstance, TAG } from '../../orchestrator/core/cloud/compute.ts';
import { MemoryCompute } from '../../orchestrator/core/simulation/cloud/memory-compute.ts';
import type {
  History,
  SeenGrant,
  SeenHostRequest,
  SeenHostWish,
  SeenIntruder,
  SeenMachine,
  SeenProduct,
  SeenRequest,
  SeenWrite,
} from '../support/invariants/history.ts';
import { readHistory } from '../support/invariants/read-history.ts';
import type { OperatorPace } from '../../orchestrator/core/plan/host-pace.ts';
import { powerOffAtMs } from '../../orchestrator/core/model/run-deadlines.ts';
import type { EventClock } from '../../orchestrator/core/simulation/event-clock.ts';
import type { Wrongs as InstanceWrongs } from '../../orchestrator/core/simulation/instance/crawl.ts';
import type { HostsWishes, ManyHosts, Visitor } from '../../orchestrator/core/simulation/instance/site.ts';
import {
  createMemoryStores,
  type MemoryStores,
} from '../../orchestrator/core/simulation/stores/create-memory-stores.ts';
import { chunkOf, type MemoryDatabase } from '../../orchestrator/core/simulation/stores/memory-database.ts';
import { inPart } from '../../orchestrator/core/simulation/simulation.ts';
import { type ServerProcess, SimulatedWorld, START_MS } from '../../orchestrator/core/simulation/world.ts';
import { noDiscovery } from '../../orchestrator/core/model/discovery.ts';
import type { InstanceRecord, NewRun, RunToStore } from '../../orchestrator/core/model/stores.ts';
import { ANY_HOST } from '../../shared/domain/domains.ts';
import { PATH_MARK } from '../../shared/domain/product.ts';
import { newRunOf, productIds, type RunShape } from '../contract/core/run-stage.ts';
import { usualResult } from '../contract/core/whole-run.ts';
import { type Mortality, mortalServer } from '../support/mortal.ts';
import { type DiscoveryDatabase, FOUND } from './discovery-database.ts';
import { FaultyBalancer, FaultyCompute, FaultyObjects, type Moment } from './faulty-cloud.ts';
import { collectGarbage } from './later-runs.ts';
import type { HostsOfRun } from './hosts.ts';
import { type Ledger, memoryLedger } from './ledger.ts';
import { LINKED_MAPPING } from './linked-site.ts';

export interface FaultyCloud {
  compute: FaultyCompute;
  balancers: FaultyBalancer;
  objects: FaultyObjects;
}

/** What a bug switch may put between the core and its world. */
export interface Wrongs {
  stores?: (stores: MemoryStores, world: FaultWorld) => MemoryStores;
  cloud?: (cloud: FaultyCloud, world: FaultWorld) => FaultyCloud;
  instance?: InstanceWrongs;
  /** Machines do not switch themselves off. */
  neverSwitchesOff?: boolean;
  /** No gc follows a run whose main server is gone. */
  neverCollects?: boolean;
  /** Done to the frontier before the second night. */
  betweenNights?: (database: DiscoveryDatabase) => Promise<void>;
}

/** The title of each row that is made up. */
export const FORGED = 'forged';

/** Main servers that end with an error are started again after this. */
const RESTART_MS = 2_000;
/** From the launch to `running`, and from there to the first hello. */
const PENDING_MS = 300;
const BOOT_MS = 200;
/** A reply that takes longer is not followed any more. */
const REPLY_MS = 5_000;
/** Rounds after which a main server has read what was stored before the first of them. */
const READ_ROUNDS = 2;
/** How long a page of one of many hosts takes. */
const PAGE_MS = 50;
const NO_ANSWER = { outcome: 'failed', reason: 'network', detail: 'no answer' } as const;
/** Of this many products one comes without one of its further pages. */
const PARTIAL_EACH = 6;
/** Far more than any run takes. */
const MAX_EVENTS = 400_000;

/** What the operator has asked for, and when a main server had certainly read it; null before that. */
interface Asked {
  pace: OperatorPace;
  server: ServerProcess | null;
  rounds: number;
  readAtMs: number | null;
}

/** What is recorded while the run is played; made before the world, whose parts write into it. */
class Record {
  readonly requests: SeenRequest[] = [];
  readonly hostRequests: SeenHostRequest[] = [];
  readonly hostWishes: SeenHostWish[] = [];
  /** What each host has asked for until now. */
  readonly #wishes = new Map<string, Pick<SeenHostWish, 'delayMs' | 'untilMs'>>();
  readonly grants: SeenGrant[] = [];
  readonly writes: SeenWrite[] = [];
  readonly machines = new Map<string, SeenMachine>();
  readonly closedAt = new Map<string, number>();
  readonly waiting = new Map<Moment, (() => void)[]>();
  readonly seen = new Set<Moment>();

  /** The moment has come, for the first time or again. */
  reach(moment: Moment): void {
    if (this.seen.has(moment)) return;
    this.seen.add(moment);
    for (const act of this.waiting.get(moment) ?? []) act();
  }

  /** An instance knows it from now on. */
  noteLearned(atMs: number, { slot, epoch }: EpochId, host: string, wish: { delayMs: number; untilMs: number }): void {
    this.#wishes.set(host, wish);
    this.hostWishes.push({ atMs, host, ...wish, owner: { slot, epoch } });
  }

  /** Grants, loads and what is known of hosts are seen where they are decided. */
  watch(stores: MemoryStores, clock: EventClock, db: MemoryDatabase): MemoryStores {
    const bind: MemoryStores['bind'] = (binding) => {
      const rows = stores.bind(binding);
      const grant = rows.work.grant.bind(rows.work);
      rows.work.grant = async (at, ...rest) => {
        const granted = await grant(at, ...rest);
        this.noteGrants(clock.now(), at, granted);
        return granted;
      };
      const noteHosts = rows.work.noteHosts.bind(rows.work);
      rows.work.noteHosts = async (at, notes) => {
        await noteHosts(at, notes);
        for (const { host, delayMs = 0, notBeforeMs = 0 } of notes) {
          const stored = db.run(binding.runId).hosts.get(host);
          const wish = this.#wishes.get(host);
          if (wish === undefined || stored === undefined) continue;
          // Every next owner has to know it.
          if (stored.delayMs >= delayMs && stored.notBeforeMs >= notBeforeMs)
            this.hostWishes.push({ atMs: clock.now(), host, ...wish, owner: null });
        }
      };
      const load = rows.results.load.bind(rows.results);
      rows.results.load = async (...call) => {
        this.reach('M');
        return load(...call);
      };
      return rows;
    };
    return { ...stores, bind };
  }

  noteGrants(atMs: number, { slot, epoch }: EpochId, granted: readonly string[]): void {
    for (const chunk of granted) {
      if (this.grants.some((g) => g.chunk === chunk && g.slot === slot && g.epoch === epoch)) continue;
      this.grants.push({ atMs, chunk, slot, epoch });
    }
  }
}

/** Another one for each machine. */
function addressOf({ id }: CloudInstance): string {
  const number = Number.parseInt(id.slice(2), 16);
  return `198.51.${number >> 8}.${number & 255}`;
}

/** The shape as a run; in a discovery, without the products that it has still to find. */
function runOf(shape: RunShape, { discovery, hosts }: Kind): RunToStore {
  const run = newRunOf(shape);
  if (hosts !== null) return hostsRunOf(run, hosts);
  if (discovery === null) return run;
  const { database, entered } = discovery;
  const { discover } = database.site;
  const site = { ...run.settings.site, productUrl: discover.origin + PATH_MARK };
  const results = { ...run.settings.results, table: FOUND };
  const settings = { ...run.settings, site, results, mapping: LINKED_MAPPING, discover };
  return { ...run, settings, planned: 0, discovery: noDiscovery(entered) };
}

function hostsRunOf(run: NewRun, { list, plan: manyHosts, places }: HostsOfRun): RunToStore {
  const { chunks, productIds: ids } = list;
  const pagesAtOnce = places > 1 ? { pagesAtOnce: places } : {};
  const site = { ...run.settings.site, ...pagesAtOnce, productUrl: ANY_HOST, robots: 'ignore' as const };
  const plan = { ...run.plan, products: ids.length, manyHosts, paceMs: PAGE_MS };
  // Hosts that never answer are part of a list.
  const limits = { ...run.settings.run, maxFailed: 1 };
  return { ...run, settings: { ...run.settings, site, run: limits }, plan, chunks, planned: ids.length };
}

function hostsFor(
  { silent, delays, rests }: HostsOfRun,
  onRequest: ManyHosts['onRequest'],
  onLearned: HostsWishes['onLearned'],
): ManyHosts {
  const resting = new Map(rests);
  return {
    isSilent: (host) => silent.has(host),
    onRequest,
    wishes: {
      delayMs: (host) => delays.get(host) ?? 0,
      restMs: (host) => {
        const restMs = resting.get(host) ?? 0;
        resting.delete(host);
        return restMs;
      },
      onLearned,
    },
  };
}

/** What is special about a run; null: nothing. */
interface Kind {
  discovery: Discovery | null;
  hosts: HostsOfRun | null;
}

/** A night of a discovery. */
export interface Discovery {
  database: DiscoveryDatabase;
  /** URLs that it begins with and that no night before has seen. */
  entered: number;
}

export class FaultWorld extends SimulatedWorld {
  declare readonly cloud: FaultyCloud;
  /** What instances know its products by. */
  readonly productIds: readonly string[];
  /** Null for a run that is no discovery. */
  readonly database: DiscoveryDatabase | null;
  outageMs = 0;
  abandoned = false;
  /** No main server is started before this. */
  downUntilMs = 0;
  /** Until when the site refuses an address; `*` for all. */
  readonly bans = new Map<string, number>();
  /** Nothing on any page can be read. */
  isLayoutChanged = false;
  /** Called for each callback that was answered. */
  onAnswered: (path: string, callback: Callback, status: number) => void = () => undefined;
  /** Parts that were damaged in the bucket: the ledger says so, and they count as not uploaded. */
  readonly spoiled = new Set<string>();
  /** Objects that an instance has put into the place of another one: none of them counts. */
  readonly planted = new Set<string>();
  /** Instances that make up rows, by `<slot>.<epoch>`: of the products that they were granted, these count. */
  readonly forgers = new Set<string>();
  /** What has struck, in order: a fault whose moment never came has not. */
  readonly struck: string[] = [];
  readonly intruders: SeenIntruder[] = [];
  readonly texts: string[] = [];
  readonly secrets: string[];
  /** Effects that the main servers have asked for, in order. */
  readonly effects: string[] = [];
  /** The effect at which the main server is killed, and on which side of it. */
  crash: { at: number; side: 'before' | 'after' } | null = null;
  readonly #wrongs: Wrongs;
  readonly #hosts: HostsOfRun | null;
  readonly #record: Record;
  readonly #ledger: Ledger;
  /** Instances as they were when the fleet last changed; null when that is to be read again. */
  #instances: readonly InstanceRecord[] | null = null;
  #gcUntilMs: number | null = null;
  readonly #asked: Asked[] = [];
  readonly #refusals: { ending: string; atMs: number }[] = [];

  constructor(shape: RunShape, wrongs: Wrongs, kind: Kind = { discovery: null, hosts: null }) {
    const record = new Record();
    const onMoment = (moment: Moment): void => record.reach(moment);
    const { discovery, hosts } = kind;
    const run = runOf(shape, kind);
    const ids = hosts?.list.productIds ?? productIds(run.planned);
    const database = discovery?.database;
    super({
      run,
      productIds: ids,
      cloud: (clock) => {
        const compute = new FaultyCompute(clock, onMoment);
        return {
          compute,
          balancers: new FaultyBalancer(clock, compute, onMoment),
          objects: new FaultyObjects(clock, onMoment),
        };
      },
      stores: (db, clock) => {
        const noteFleet = (): void => void (this.#instances = null);
        return record.watch(database?.stores(clock, db, noteFleet) ?? createMemoryStores(db), clock, db);
      },
      site: {
        pace: () => ({ gapMs: 0, pageMs: hosts === null ? 0 : PAGE_MS }),
        ...(hosts === null
          ? {}
          : {
              manyHosts: hostsFor(
                hosts,
                (instance, host) => this.#onHostRequest(instance, host),
                (instance, host, wish) => record.noteLearned(this.clock.now(), instance, host, wish),
              ),
            }),
        treat: ({ address }) => (this.isBanned(address) ? 'ban' : 'fine'),
        onRequest: (instance, product) => this.#onRequest(instance, product),
        result: (product) => this.#result(product),
      },
      bootMs: () => PENDING_MS + BOOT_MS,
      roundTripMs: 50,
      uploadMs: 10,
      ...(wrongs.instance === undefined ? {} : { wrongs: wrongs.instance }),
    });
    this.#record = record;
    this.#wrongs = wrongs;
    this.#hosts = hosts;
    this.productIds = ids;
    this.#ledger = database?.ledger(run.id) ?? memoryLedger(this.db, run.id);
    this.database = database ?? null;
    this.secrets = [run.privateKey];
    this.cloud.compute.addressOf = addressOf;
    const { fleet } = this;
    fleet.switchesOff = wrongs.neverSwitchesOff !== true;
    fleet.onBoot = () => this.#record.reach('B');
    fleet.onAnswer = (path, callback, status) => {
      if (path === COMPLETION_PATH) this.#record.reach('K');
      this.onAnswered(path, callback, status);
    };
    fleet.onOffer = (result) => {
      this.#record.reach('D');
      return result;
    };
  }

  isBanned(address: string): boolean {
    return (this.bans.get(address) ?? this.bans.get('*') ?? 0) > this.clock.now();
  }

  /** From now on the result table refuses the rows of products whose ID ends so. */
  refuseRows(ending: string): void {
    this.#refusals.push({ ending, atMs: this.clock.now() });
    const before = this.db.refusesRow;
    this.db.refusesRow = (id) => before(id) || id.endsWith(ending);
    const refused = this.database?.refuseRows(ending);
    if (refused !== undefined) this.clock.hold(refused).catch((error: unknown) => this.fleet.faults.push(error));
  }

  /** Calls back when the moment has first come; at once when it has been. */
  on(moment: Moment, act: () => void): void {
    const { seen, waiting } = this.#record;
    if (seen.has(moment)) act();
    else waiting.set(moment, [...(waiting.get(moment) ?? []), act]);
  }

  /** Does it when so much time has passed; what goes wrong in it ends the run. */
  later(ms: number, act: () => unknown): void {
    const carryOut = async (): Promise<void> => {
      await this.clock.sleep(ms);
      await act();
    };
    carryOut().catch((error: unknown) => this.fleet.faults.push(error));
  }

  /** Somebody else's machine in the same account, without our tags. */
  async addStranger(): Promise<void> {
    const request = { clientToken: 'stranger', instanceType: 't3.nano', imageId: 'ami', subnetId: 'subnet-0000000a' };
    const more = { securityGroupIds: [], instanceProfile: null, userData: '', tags: { Name: 'production' } };
    await MemoryCompute.prototype.launch.call(this.cloud.compute, { ...request, ...more });
  }

  /** Kills the main server; another one comes after `downMs`, or never. */
  kill(downMs: number): void {
    this.server?.kill();
    this.#stayDown(downMs);
  }

  /** Whoever starts the next main server looks again then, whatever else happens in between. */
  #stayDown(ms: number): void {
    this.downUntilMs = Math.max(this.downUntilMs, this.clock.now() + ms);
    if (!Number.isFinite(ms)) return;
    this.outageMs += ms;
    this.clock.at(this.downUntilMs, () => undefined);
  }

  /** Runs it to its end. */
  async play(): Promise<void> {
    const { run, clock } = this;
    await this.create();
    // Each product has rows of an earlier night.
    if (this.database === null) this.db.run(run.id).older = new Set(this.productIds);
    this.#record.reach('P');
    const lastMs = powerOffAtMs(run) + run.settings.run.graceMs;
    // Of a run without a main server nothing else may come.
    clock.at(lastMs + 1, () => undefined);
    const firstEvents = clock.events;
    for (;;) {
      if (clock.events - firstEvents > MAX_EVENTS)
        throw new Error(`the run does not come to an end: ${clock.now() - START_MS} ms`);
      if (this.fleet.faults.length > 0) throw this.fleet.faults[0];
      if (this.#isOver() || clock.now() > lastMs + this.outageMs) break;
      await this.#keepServed();
      await this.#watch();
      if (!(await clock.step())) break;
    }
    // What is left then must go by itself.
    const goneMs = clock.now() + run.settings.run.graceMs + limitsFor(run.settings.run.deadlineMs).terminateMs;
    const stop = new AbortController();
    if (this.abandoned && this.#isAnythingLeft() && !this.#wrongs.neverCollects) {
      void collectGarbage({ ...this.cloud, clock, stores: this.stores }, stop.signal);
      this.#gcUntilMs = goneMs;
    }
    clock.at(goneMs + 1_000, () => undefined);
    while (this.#isAnythingLeft() && clock.now() < goneMs + 1_000 && (await clock.step())) await this.#watch();
    await this.#watch();
    this.server?.kill();
    stop.abort();
  }

  #isAnythingLeft(): boolean {
    return this.cloud.compute.alive().some((m) => m.tags[TAG.run] === this.run.id);
  }

  #isOver(): boolean {
    if (this.abandoned) return this.clock.now() > powerOffAtMs(this.run) + this.run.settings.run.graceMs;
    return this.server?.ended?.error === null;
  }

  /** Starts a main server when there is none: what a person or a supervisor does. */
  async #keepServed(): Promise<void> {
    const { server, clock } = this;
    if (server?.ended?.error && !server.isDead) {
      this.texts.push(describeError(server.ended.error));
      this.kill(RESTART_MS);
    }
    const isDown = server === null || server.isDead;
    if (!isDown || this.abandoned || clock.now() < this.downUntilMs) return;
    try {
      await this.begin();
    } catch {
      // The database does not answer: tried again.
      this.#stayDown(RESTART_MS);
    }
  }

  /** A main server takes the lock, from a living one too, and takes the run up. */
  async begin(): Promise<void> {
    const life: Mortality = { decide: (name) => this.#decide(name), dead: false, onDeath: () => undefined };
    const ports = mortalServer(life);
    const { stores, cloud } = this.#wrongs;
    this.texts.push(...(this.server?.alarms ?? []));
    const server: ServerProcess = await this.startServer({
      ...ports,
      stores: (given) => ports.stores(stores ? stores(given, this) : given),
      cloud: () => ports.cloud(cloud ? cloud(this.cloud, this) : this.cloud),
    });
    life.onDeath = () => server.kill();
    await this.clock.settle();
  }

  /** The next main server is killed at this effect. */
  #decide(name: string): false | 'before' | 'after' {
    this.effects.push(name);
    if (this.crash?.at !== this.effects.length - 1) return false;
    const { side } = this.crash;
    this.crash = null;
    this.#stayDown(RESTART_MS);
    return side;
  }

  #result(product: { n: number; id: string }): ItemResult {
    if (!this.isLayoutChanged) return this.#usualResult(product);
    const { n, id } = product;
    const at = new Date(this.clock.now()).toISOString();
    const url = `https://shop.example/item/${id}`;
    return { n, id, url, at, attempts: 1, outcome: 'failed', reason: 'parse', detail: 'no title' };
  }

  #onHostRequest({ slot, epoch }: Visitor, host: string): void {
    this.#record.reach('C');
    this.#record.hostRequests.push({ atMs: this.clock.now(), host, slot, epoch });
  }

  #usualResult(product: { n: number; id: string }): ItemResult {
    const { database } = this;
    if (this.#hosts?.silent.has(new URL(product.id).hostname)) return { ...usualResult(product), ...NO_ANSWER };
    if (database !== null) return database.site.result(product);
    const result = usualResult(product);
    return result.outcome === 'stored' && product.n % PARTIAL_EACH === 1 ? inPart(result) : result;
  }

  /** The operator asks for this from now on. */
  notePace(pace: OperatorPace): void {
    this.#asked.push({ pace, server: this.server, rounds: this.server?.rounds ?? 0, readAtMs: null });
  }

  /**
   * What the instance must keep of it: the last that it has certainly heard of, and nothing while something newer is on
   * its way.
   */
  #heard({ orderedAtMs }: Visitor): OperatorPace | null {
    const last = this.#asked.at(-1);
    const isHeard = last?.readAtMs != null && orderedAtMs > last.readAtMs + REPLY_MS;
    return isHeard && last.pace.addresses !== null ? last.pace : null;
  }

  #onRequest(instance: Visitor, product: { n: number; id: string }): void {
    this.#record.reach('C');
    const { slot, epoch, address, robots, incident } = instance;
    const heard = this.#heard(instance);
    const intervalMs = Math.max(this.run.settings.site.intervalMs, heard?.intervalMs ?? 0);
    this.#record.requests.push({
      atMs: this.clock.now(),
      address,
      slot,
      epoch,
      product: product.n,
      intervalMs: Math.max(intervalMs, robots?.crawlDelayMs ?? 0),
      allowed: robots !== null && robots.access !== 'none',
      banned: incident?.verdict === 'banned' && incident.untilMs !== null && incident.untilMs > this.clock.now(),
      paused: (heard?.pausedUntilMs ?? 0) > this.clock.now(),
      cap: heard && { atMs: heard.atMs, addresses: heard.addresses!, delayMs: intervalMs },
    });
  }

  /** A bug switch that grants by itself says so, too. */
  noteGrants(at: EpochId, granted: readonly string[]): void {
    this.#record.noteGrants(this.clock.now(), at, granted);
  }

  noteWrite(method: string, fenced: boolean): void {
    this.#record.writes.push({ atMs: this.clock.now(), method, fenced });
  }

  /** Those of the run, past all faults; empty before it is stored. */
  async instances(): Promise<readonly InstanceRecord[]> {
    // In memory it costs nothing, and a discovery says when its fleet has changed.
    if (this.database === null || this.#instances === null)
      this.#instances = await this.clock.hold(this.#ledger.instances());
    return this.#instances;
  }

  /** Machines come and go, and epochs close, between two events. */
  async #watch(): Promise<void> {
    const now = this.clock.now();
    for (const asked of this.#asked) {
      const rounds = this.server === asked.server ? asked.rounds + READ_ROUNDS : 1;
      if ((this.server?.rounds ?? 0) >= rounds) asked.readAtMs ??= now;
    }
    for (const machine of this.cloud.compute.all()) {
      const isOver = machine.state === 'terminated' || machine.state === 'shutting-down';
      const isGone = machine.state !== 'pending' && machine.state !== 'running';
      const known = this.#record.machines.get(machine.id);
      if (!known) {
        const isOwn = machine.tags[TAG.run] === this.run.id;
        this.#record.machines.set(machine.id, {
          id: machine.id,
          slot: isOwn ? Number(machine.tags[TAG.slot]) : null,
          epoch: isOwn ? Number(machine.tags[TAG.epoch]) : null,
          fromMs: machine.launchedAtMs,
          toMs: isOver ? now : null,
          goneMs: isGone ? now : null,
          timer: true,
          terminated: false,
        });
      } else {
        if (machine.state === 'stopped') known.timer = false;
        if (isOver) known.toMs ??= now;
        if (isGone) known.goneMs ??= now;
      }
    }
    for (const record of await this.instances()) {
      const key = `${record.slot}/${record.epoch}`;
      if (record.manifestKey !== null && isGivenUp(record) && !this.#record.closedAt.has(key))
        this.#record.closedAt.set(key, now);
    }
  }

  async history(): Promise<History> {
    const { clock, db } = this;
    // What was done to the database for the sake of a fault is over.
    db.beforeCall = () => undefined;
    db.afterCall = () => undefined;
    for (const machine of this.#record.machines.values()) {
      machine.terminated = this.cloud.compute.terminated.has(machine.id);
      machine.timer &&= this.fleet.armed.has(machine.id);
    }
    const { reader } = this.#ledger;
    const texts = [...this.texts, ...(this.server?.alarms ?? [])];
    return readHistory({ ...reader, clock }, await this.#ledger.facts(), {
      outageMs: this.outageMs,
      abandoned: this.abandoned,
      gcUntilMs: this.#gcUntilMs,
      machines: [...this.#record.machines.values()],
      requests: this.#record.requests,
      hostRequests: this.#hosts && this.#record.hostRequests,
      hostWishes: this.#hosts && this.#record.hostWishes,
      grants: this.#record.grants,
      intruders: this.intruders,
      writes: this.#record.writes,
      products: await this.#products(),
      objects: this.#objectsInTime(),
      frontier: await this.#frontier(),
      texts,
      secrets: [...this.secrets, ...(await this.instances()).map((i) => i.token)],
    });
  }

  async #frontier(): Promise<History['frontier']> {
    const { database } = this;
    if (database === null) return null;
    return { urls: await database.frontier(), linksOf: (path, depth) => database.site.linksOf(path, depth) };
  }

  async #products(): Promise<SeenProduct[]> {
    const { finishedAtMs, request, phase } = (await this.#ledger.reader.run.get())!;
    const published = finishedAtMs !== null && request !== 'cancel' && phase !== 'held';
    const instances = new Map((await this.instances()).map((record) => [epochKey(record), record]));
    const items = await this.#ledger.items();
    const ofForgers = this.#record.grants.filter((grant) => this.forgers.has(epochKey(grant)));
    const forgeable = new Set(ofForgers.map(({ chunk }) => Number.parseInt(chunk)));
    return items.map(({ n, id, outcome, reason, owner, title, partial, hasOlder }) => {
      const usual = this.isLayoutChanged ? null : this.#usualResult({ n, id });
      const holder = owner === null ? undefined : instances.get(epochKey(owner));
      const hasRow = usual?.outcome === 'stored' && usual.rows.length > 0;
      // No one else has seen the page of what it was granted. Only in the result table does a title show it.
      const isForged = (title === FORGED || !published) && forgeable.has(this.#chunkOf(n));
      const isRefused =
        hasRow && this.#refusals.some((r) => id.endsWith(r.ending) && r.atMs < (finishedAtMs ?? Infinity));
      // What the table refuses fails when the run is published.
      const expected = isRefused && reason === 'load' ? 'failed' : usual?.outcome;
      return {
        n,
        id,
        outcome,
        reason,
        expected: isForged ? null : (expected ?? null),
        rowRight: isForged || !published || outcome !== 'stored' || !hasRow || (!isRefused && title === `Title ${id}`),
        partial: {
          expected: isForged || usual === null ? null : usual.outcome === 'stored' && usual.partial === true,
          ledger: partial,
        },
        hasOlder,
        stranded: outcome === 'failed' && reason === 'lost-instance' && holder !== undefined && isGivenUp(holder),
      };
    });
  }

  /** The index of a product's chunk. */
  #chunkOf(n: number): number {
    return this.#hosts === null ? Math.ceil(n / this.run.plan.chunkSize) : chunkOf(this.db.run(this.run.id), n).index;
  }

  #objectsInTime(): string[] {
    return [...this.cloud.objects.objects.keys()].filter((key) => {
      const name = parsePartKey(this.run.id, key);
      if (!name || this.spoiled.has(key) || this.planted.has(key)) return false;
      const closedMs = this.#record.closedAt.get(`${name.slot}/${name.epoch}`);
      return closedMs === undefined || (this.cloud.objects.writtenAtMs(key) ?? 0) < closedMs - 1_000;
    });
  }
}
