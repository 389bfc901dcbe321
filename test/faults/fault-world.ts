/**
 * One run in a closed world: the real control core on stores, cloud and fleet in memory, on a clock that jumps. It
 * keeps a history for the invariants, and triggers its faults at each moment of the run.
 */
import type { RobotsPolicy } from '../../shared/domain/robots.ts';
import { describeError } from '../../shared/domain/errors.ts';
import { limitsFor } from '../../shared/domain/limits.ts';
import { parsePartKey } from '../../shared/domain/keys.ts';
import { isGivenUp } from '../../orchestrator/control/world.ts';
import type { ItemResult } from '../../shared/wire/part.ts';
import { seededRandom } from '../../shared/adapters/random.ts';
import { COMPLETION_PATH } from '../../shared/wire/callbacks.ts';
import type { Callback } from '../../orchestrator/control/callbacks.ts';
import { TAG } from '../../orchestrator/cloud/compute.ts';
import { MemoryCompute } from '../../orchestrator/cloud/memory-compute.ts';
import type { CloudInstance } from '../../orchestrator/cloud/compute.ts';
import type {
  History,
  SeenGrant,
  SeenIntruder,
  SeenMachine,
  SeenProduct,
  SeenRequest,
  SeenWrite,
} from '../../orchestrator/control/invariants/history.ts';
import { readHistory } from '../../orchestrator/control/invariants/read-history.ts';
import type { NewRun } from '../../orchestrator/control/stores.ts';
import { powerOffAtMs } from '../../orchestrator/control/run-deadlines.ts';
import { MemoryDatabase } from '../../orchestrator/db/memory/memory-database.ts';
import { createMemoryStores } from '../../orchestrator/db/memory/create-memory-stores.ts';
import { readMemoryFacts } from '../../orchestrator/db/memory/memory-facts.ts';
import { FakeFleet } from '../contract/control/fake-fleet.ts';
import type { FakeInstance } from '../contract/control/fake-instance.ts';
import type { MainServer } from '../contract/control/main-server.ts';
import { startMainServer } from '../contract/control/main-server.ts';
import type { Mortality } from '../contract/control/mortal.ts';
import type { MemoryCloud, RunShape, Stores } from '../contract/control/run-stage.ts';
import { newRunOf, productIds } from '../contract/control/run-stage.ts';
import { usualResult } from '../contract/control/whole-run.ts';
import { ALLOW_ALL, START_MS } from '../unit/control/builders.ts';
import { EventClock } from './event-clock.ts';
import type { Moment } from './faulty-cloud.ts';
import { collectGarbage } from './later-runs.ts';
import { FaultyBalancer, FaultyCompute, FaultyObjects } from './faulty-cloud.ts';

export interface FaultyCloud extends MemoryCloud {
  compute: FaultyCompute;
  balancers: FaultyBalancer;
  objects: FaultyObjects;
}

/** What a bug switch may put between the core and its world. */
export interface Wrongs {
  stores?: (stores: Stores, world: FaultWorld) => Stores;
  cloud?: (cloud: FaultyCloud, world: FaultWorld) => FaultyCloud;
  instance?: { forgetsPace?: boolean; keepsCrawlingBanned?: boolean };
  /** Machines do not switch themselves off. */
  neverSwitchesOff?: boolean;
  /** No gc follows a run whose main server is gone. */
  neverCollects?: boolean;
}

/** Delay before a main server that ended with an error is started again. */
const RESTART_MS = 2_000;

export class FaultWorld {
  readonly clock = new EventClock(START_MS);
  readonly db = new MemoryDatabase();
  readonly random;
  readonly run: NewRun;
  readonly compute: FaultyCompute;
  readonly balancers: FaultyBalancer;
  readonly objects: FaultyObjects;
  readonly fleet: FakeFleet;
  readonly stores: Stores;
  server: MainServer | null = null;
  robots: RobotsPolicy = ALLOW_ALL;
  outageMs = 0;
  abandoned = false;
  /** No main server is started before this. */
  downUntilMs = 0;
  /** How the site treats an instance: it is banned until this time. */
  readonly bans = new Map<string, number>();
  /** No field of any page can be read. */
  isLayoutChanged = false;
  /** Called for each callback that was answered. */
  onAnswered: (path: string, callback: Callback, status: number) => void = () => undefined;
  /** Parts that were damaged in the bucket: the ledger marks them, and they count as not uploaded. */
  readonly spoiled = new Set<string>();
  readonly intruders: SeenIntruder[] = [];
  readonly texts: string[] = [];
  readonly secrets: string[] = [];
  readonly #wrongs: Wrongs;
  readonly #requests: SeenRequest[] = [];
  readonly #grants: SeenGrant[] = [];
  readonly #writes: SeenWrite[] = [];
  readonly #life: Mortality[] = [];
  readonly #machines = new Map<string, SeenMachine>();
  readonly #closedAt = new Map<string, number>();
  #gcUntilMs: number | null = null;
  readonly #waiting = new Map<Moment, (() => void)[]>();
  readonly #seen = new Set<Moment>();
  /** Effects that the main servers have requested, in order. */
  readonly effects: string[] = [];
  /** The effect at which the main server is killed, and on which side of it; -1 for none. */
  crash: { at: number; side: 'before' | 'after' } | null = null;

  constructor(seed: number, shape: RunShape, wrongs: Wrongs) {
    this.random = seededRandom(seed);
    this.#wrongs = wrongs;
    this.run = newRunOf(shape);
    const { clock } = this;
    const onMoment = (moment: Moment): void => this.reach(moment);
    this.compute = new FaultyCompute(clock, onMoment);
    this.balancers = new FaultyBalancer(clock, this.compute, onMoment);
    this.objects = new FaultyObjects(clock, onMoment);
    this.stores = createMemoryStores(this.db);
    this.#record();
    this.fleet = new FakeFleet({
      clock,
      cloud: this.cloud,
      // Instances read their own user data, even if the database fails.
      stores: {
        ...this.stores,
        fleet: { get: async (...at: [string, number, number]) => this.#claim(...at) } as never,
      },
      runId: this.run.id,
      pollMs: 200,
      switchesOff: !wrongs.neverSwitchesOff,
      addressOf: (machine) => this.addressOf(machine),
      fetch: (product) => this.#fetch(product),
      ...(wrongs.instance ? { wrongs: wrongs.instance } : {}),
    });
    this.fleet.boots = (machine) => machine.tags[TAG.run] === this.run.id;
    this.fleet.mood = (i) => (this.isBanned(i.address) ? 'ban' : 'fine');
    this.fleet.onRequest = (i, product) => this.#onRequest(i, product);
    this.fleet.onBoot = () => this.reach('B');
    this.fleet.onAnswer = (path, callback, status) => {
      if (path === COMPLETION_PATH) this.reach('K');
      this.onAnswered(path, callback, status);
    };
    const { onOffer } = this.fleet;
    this.fleet.onOffer = (result) => {
      this.reach('D');
      return onOffer(result);
    };
    this.secrets.push(this.run.privateKey);
  }

  get cloud(): FaultyCloud {
    return { compute: this.compute, balancers: this.balancers, objects: this.objects };
  }

  /** Another address for each machine, unless a fault changes it. */
  addressOf: (machine: CloudInstance) => string = (machine) => {
    const number = Number.parseInt(machine.id.slice(2), 16);
    return `198.51.${number >> 8}.${number & 255}`;
  };

  isBanned(address: string): boolean {
    return (this.bans.get(address) ?? this.bans.get('*') ?? 0) > this.clock.now();
  }

  /** Calls back when the moment first occurs; at once if it already has. */
  on(moment: Moment, act: () => void): void {
    if (this.#seen.has(moment)) act();
    else this.#waiting.set(moment, [...(this.#waiting.get(moment) ?? []), act]);
  }

  /** Runs `act` after this delay; an error in it ends the run. */
  later(ms: number, act: () => unknown): void {
    const carryOut = async (): Promise<void> => {
      await this.clock.sleep(ms);
      await act();
    };
    carryOut().catch((error: unknown) => this.fleet.faults.push(error));
  }

  reach(moment: Moment): void {
    if (this.#seen.has(moment)) return;
    this.#seen.add(moment);
    for (const act of this.#waiting.get(moment) ?? []) act();
  }

  /** A machine of another owner in the same account, without our tags. */
  async addStranger(): Promise<void> {
    const request = { clientToken: 'stranger', instanceType: 't3.nano', imageId: 'ami', subnetId: 'subnet-0000000a' };
    const more = { securityGroupIds: [], instanceProfile: null, userData: '', tags: { Name: 'production' } };
    await MemoryCompute.prototype.launch.call(this.compute, { ...request, ...more });
  }

  /** Kills the main server; a successor starts after `downMs`, or never. */
  kill(downMs: number): void {
    this.server?.kill();
    this.downUntilMs = Math.max(this.downUntilMs, this.clock.now() + downMs);
    this.outageMs += Number.isFinite(downMs) ? downMs : 0;
  }

  /** Plays the run to its end. */
  async play(): Promise<void> {
    const { stores, run, clock } = this;
    const lock = await stores.runs.acquireLock('planner', clock.now(), 1);
    if (!('fence' in lock)) throw new Error('the lock of a fresh database is taken');
    await stores.runs.create(run, productIds(run.planned), lock.fence, clock.now());
    const stop = new AbortController();
    void this.fleet.run(stop.signal);
    this.reach('P');
    const lastMs = powerOffAtMs(run) + run.settings.run.graceMs;
    for (let steps = 0; ; steps++) {
      if (steps > 400_000) throw new Error(`the run does not end: ${clock.now() - START_MS} ms`);
      if (this.fleet.faults.length > 0) throw this.fleet.faults[0];
      if (await this.#isOver()) break;
      if (clock.now() > lastMs + this.outageMs) break;
      await this.#keepServed();
      this.#watch();
      if (!(await clock.step())) break;
    }
    this.reach('Z');
    // Whatever is left then must end on its own.
    const goneMs = clock.now() + run.settings.run.graceMs + limitsFor(run.settings.run.deadlineMs).terminateMs;
    if (this.abandoned && this.#isAnythingLeft() && !this.#wrongs.neverCollects) {
      void collectGarbage(this, stop.signal);
      this.#gcUntilMs = goneMs;
    }
    while (this.#isAnythingLeft() && clock.now() < goneMs + 1_000 && (await clock.step())) this.#watch();
    this.#watch();
    this.server?.kill();
    stop.abort();
  }

  #isAnythingLeft(): boolean {
    return this.compute.alive().some((m) => m.tags[TAG.run] === this.run.id);
  }

  async #isOver(): Promise<boolean> {
    if (this.abandoned) return this.clock.now() > powerOffAtMs(this.run) + this.run.settings.run.graceMs;
    return this.server !== null && this.server.ended !== null && this.server.ended.error === null;
  }

  /** Starts a main server when there is none, as a person or a supervisor does. */
  async #keepServed(): Promise<void> {
    const { server, clock } = this;
    if (server?.ended?.error && !server.life.dead) {
      this.texts.push(describeError(server.ended.error));
      this.kill(RESTART_MS);
    }
    const isDown = server === null || server.life.dead;
    if (!isDown || this.abandoned || clock.now() < this.downUntilMs) return;
    try {
      await this.startServer();
    } catch {
      // The database does not answer: retry.
      this.downUntilMs = clock.now() + RESTART_MS;
      this.outageMs += RESTART_MS;
      void clock.sleep(RESTART_MS);
    }
  }

  /** A main server takes the lock, even from a dead one, and resumes the run. */
  async startServer(): Promise<MainServer> {
    const { clock } = this;
    const first = await this.stores.runs.acquireLock('main', clock.now(), 3_600_000);
    const lock =
      'fence' in first ? first : await this.stores.runs.acquireLock('main', clock.now(), 3_600_000, first.heldBy);
    if (!('fence' in lock)) throw new Error('the lock cannot be taken');
    const life: Mortality = { decide: (name) => this.#decide(name), dead: false, onDeath: () => undefined, busy: 0 };
    this.#life.push(life);
    const { stores, cloud } = this.#wrongs;
    this.server = startMainServer({
      run: this.run,
      stores: stores ? stores(this.stores, this) : this.stores,
      fence: lock.fence,
      cloud: cloud ? cloud(this.cloud, this) : this.cloud,
      clock,
      fleet: this.fleet,
      life,
      readRobots: () => Promise.resolve(this.robots),
    });
    this.texts.push(...this.server.alarms);
    return this.server;
  }

  /** The next main server is killed at this effect. */
  #decide(name: string): false | 'before' | 'after' {
    this.effects.push(name);
    if (this.crash?.at !== this.effects.length - 1) return false;
    const { side } = this.crash;
    this.crash = null;
    this.downUntilMs = this.clock.now() + RESTART_MS;
    this.outageMs += RESTART_MS;
    return side;
  }

  #claim(runId: string, slot: number, epoch: number): unknown {
    return this.db.run(runId).instances.get(`${slot}.${epoch}`) ?? null;
  }

  #fetch(product: { n: number; id: string }): ItemResult {
    if (!this.isLayoutChanged) return usualResult(product);
    const { n, id } = product;
    const at = new Date(this.clock.now()).toISOString();
    const url = `https://shop.example/item/${id}`;
    return { n, id, url, at, attempts: 1, outcome: 'failed', reason: 'parse', detail: 'no title' };
  }

  #onRequest(instance: FakeInstance, product: { n: number; id: string }): void {
    this.reach('C');
    const { slot, epoch, address, robots, incident } = instance;
    const { intervalMs } = this.run.settings.site;
    this.#requests.push({
      atMs: this.clock.now(),
      address,
      slot,
      epoch,
      product: product.n,
      intervalMs: Math.max(intervalMs, robots?.crawlDelayMs ?? 0),
      allowed: robots !== null && robots.access !== 'none',
      banned: incident?.verdict === 'banned' && incident.untilMs !== null && incident.untilMs > this.clock.now(),
    });
  }

  /** Grants and fences are recorded where they are decided. */
  #record(): void {
    const { work, results } = this.stores;
    const grant = work.grant.bind(work);
    work.grant = async (runId, slot, epoch, ...rest) => {
      const granted = await grant(runId, slot, epoch, ...rest);
      this.noteGrants(slot, epoch, granted);
      return granted;
    };
    const load = results.load.bind(results);
    results.load = async (...call) => {
      this.reach('M');
      return load(...call);
    };
  }

  /** Also called by a bug switch that grants on its own. */
  noteGrants(slot: number, epoch: number, granted: readonly string[]): void {
    const atMs = this.clock.now();
    for (const chunk of granted) {
      if (this.#grants.some((g) => g.chunk === chunk && g.slot === slot && g.epoch === epoch)) continue;
      this.#grants.push({ atMs, chunk, slot, epoch });
    }
  }

  noteWrite(method: string, fenced: boolean): void {
    this.#writes.push({ atMs: this.clock.now(), method, fenced });
  }

  /** Machines appear and vanish, and epochs close, between two events. */
  #watch(): void {
    const now = this.clock.now();
    for (const machine of this.compute.all()) {
      const isOver = machine.state === 'terminated' || machine.state === 'shutting-down';
      const isGone = machine.state !== 'pending' && machine.state !== 'running';
      const known = this.#machines.get(machine.id);
      if (!known) {
        const isOwn = machine.tags[TAG.run] === this.run.id;
        this.#machines.set(machine.id, {
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
    for (const record of this.db.runs.get(this.run.id)?.instances.values() ?? []) {
      const key = `${record.slot}/${record.epoch}`;
      if (record.manifestKey !== null && isGivenUp(record) && !this.#closedAt.has(key)) this.#closedAt.set(key, now);
    }
  }

  async history(): Promise<History> {
    const { run, clock, db } = this;
    // Undo the faults injected into the database.
    db.beforeCall = () => undefined;
    db.afterCall = () => undefined;
    for (const machine of this.#machines.values()) {
      machine.terminated = this.compute.terminated.has(machine.id);
      machine.timer &&= this.fleet.armed.has(machine.id);
    }
    const facts = readMemoryFacts(db, run.id);
    const stores = createMemoryStores(db);
    const texts = [...this.texts, ...(this.server?.alarms ?? [])];
    return readHistory({ ...stores, clock }, facts, run.id, {
      outageMs: this.outageMs,
      abandoned: this.abandoned,
      gcUntilMs: this.#gcUntilMs,
      machines: [...this.#machines.values()],
      requests: this.#requests,
      grants: this.#grants,
      intruders: this.intruders,
      writes: this.#writes,
      products: this.#products(),
      objects: this.#objectsInTime(),
      texts,
      secrets: [...this.secrets, ...[...db.run(run.id).instances.values()].map((i) => i.token)],
    });
  }

  #products(): SeenProduct[] {
    const { items, chunks, instances, record } = this.db.run(this.run.id);
    const table = this.db.table(record.settings.results.table);
    const published = record.finishedAtMs !== null && record.request !== 'cancel';
    return items.map((item) => {
      const expected = this.isLayoutChanged ? null : usualResult(item);
      const row = table.get(item.id);
      const chunk = chunks[Math.ceil(item.n / record.plan.chunkSize) - 1]!;
      const owner = chunk.state === 'granted' ? instances.get(`${chunk.slot}.${chunk.epoch}`) : undefined;
      const isRowRight = !published || item.outcome !== 'stored' || row?.title === `Title ${item.id}`;
      return {
        n: item.n,
        id: item.id,
        outcome: item.outcome,
        reason: item.reason,
        expected: expected?.outcome ?? null,
        rowRight: isRowRight,
        stranded:
          item.outcome === 'failed' && item.reason === 'lost-instance' && owner !== undefined && isGivenUp(owner),
      };
    });
  }

  #objectsInTime(): string[] {
    return [...this.objects.objects.keys()].filter((key) => {
      const name = parsePartKey(this.run.id, key);
      if (!name || this.spoiled.has(key)) return false;
      const closedMs = this.#closedAt.get(`${name.slot}/${name.epoch}`);
      return closedMs === undefined || (this.objects.writtenAtMs(key) ?? 0) < closedMs - 1_000;
    });
  }
}
