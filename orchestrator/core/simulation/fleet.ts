/**
 * The modelled fleet: boots an instance on each machine that EC2 starts, routes offers to them, and carries their
 * callbacks.
 */
import { HEARTBEAT_PATH, HELLO_PATH } from '../../../shared/wire/callbacks.ts';
import type { Offer } from '../../../shared/wire/instance-api.ts';
import type { Signatures } from '../../../shared/wire/signature.ts';
import { type CrawlSettings, unpackCrawlSettings } from '../../../shared/wire/crawl-settings.ts';
import { type AnyUserData, parseUserData } from '../../../shared/wire/settings.ts';
import { type CloudInstance, TAG } from '../cloud/compute.ts';
import type { Callback, CallbackReply, Callbacks } from '../callbacks/callbacks.ts';
import type { OfferResult, OfferSender } from '../cloud/offers.ts';
import type { MemoryCompute } from './cloud/memory-compute.ts';
import type { MemoryObjectStore } from './cloud/memory-objects.ts';
import type { MemoryLoadBalancer } from './cloud/memory-load-balancer.ts';
import type { EventClock } from './event-clock.ts';
import { SimulatedInstance } from './instance.ts';
import type { Wrongs } from './instance/crawl.ts';
import type { WrittenParts } from './instance/uploads.ts';
import type { Site } from './instance/site.ts';
import type { MachineClock } from './machine-clock.ts';

/** Time-out of a callback; longer than any answer takes without a fault. */
const CALL_TIMEOUT_MS = 5_000;

export interface FleetOptions {
  clock: EventClock;
  regions: readonly { compute: MemoryCompute; balancers: MemoryLoadBalancer }[];
  objects: MemoryObjectStore;
  signatures: Signatures;
  site: Site;
  runId: string;
  /** The time from the launch to the first hello. */
  bootMs: (machine: CloudInstance) => number;
  roundTripMs: number;
  uploadMs: number;
  wrongs?: Wrongs;
}

/** What the network does to one callback. */
export interface Delivery {
  lose?: 'request' | 'reply';
  delayMs?: number;
  /** Delays after which copies of it arrive. */
  copiesAfterMs?: number[];
}

/** Ends the wait for a reply. */
type Resolve = (reply: CallbackReply | null) => void;

export class SimulatedFleet implements OfferSender {
  readonly instances: SimulatedInstance[] = [];
  /** Errors that end the simulation: a reply with a wrong signature, unreadable user data. */
  readonly faults: unknown[] = [];
  /** Changes the answer to an offer that was delivered, as a balancer between may. */
  onOffer: (result: OfferResult) => OfferResult = (result) => result;
  /** Called when a callback was answered, before its instance goes on. */
  onAnswer: (path: string, callback: Callback, status: number) => void = () => undefined;
  /** What the network does to the next callback. */
  network: (path: string, instance: { slot: number; epoch: number }) => Delivery | null = () => null;
  /** Which of the healthy targets gets the next offer; round robin. */
  route: (targets: readonly SimulatedInstance[], turn: number) => SimulatedInstance | undefined = (targets, turn) =>
    targets[turn % Math.max(1, targets.length)];
  /** False: the user data of this machine never runs. */
  boots: (machine: CloudInstance) => boolean = () => true;
  /** Called with each instance before its hello. */
  onBoot: (instance: SimulatedInstance) => void = () => undefined;
  /** False: machines neither power off at the end of their time nor when they are fenced. */
  switchesOff = true;
  /** The results in each part that an instance has written. */
  readonly written: WrittenParts = new Map();
  /** Machines whose user data ran: they have armed their timer, whatever becomes of the rest. */
  readonly armed = new Set<string>();
  readonly #o: FleetOptions;
  readonly #byId = new Map<string, SimulatedInstance>();
  /** The main server that answers; null while none runs. */
  #server: { callbacks: Callbacks; clock: MachineClock; unanswered: Set<Resolve> } | null = null;
  #turn = 0;
  #crawlSettings: { sha256: string; settings: CrawlSettings } | null = null;
  /** Targets of the last offer: a round of offers takes no time. */
  #routed: { url: string; atMs: number; targets: SimulatedInstance[] | null } = { url: '', atMs: -1, targets: null };

  constructor(options: FleetOptions) {
    this.#o = options;
    for (const { compute } of options.regions) {
      compute.onLaunched = (machine) => this.#launched(machine, compute);
      compute.onEnded = (id) => this.#byId.get(id)?.end();
    }
  }

  /** Sends callbacks to this main server from now on, until it dies; while it is stopped they wait. */
  connect(callbacks: Callbacks, died: AbortSignal, clock: MachineClock): void {
    const unanswered = new Set<Resolve>();
    const server = { callbacks, clock, unanswered };
    const end = (): void => {
      if (this.#server === server) this.#server = null;
      for (const resolve of unanswered) resolve(null);
      unanswered.clear();
    };
    died.addEventListener('abort', end, { once: true });
    this.#server = died.aborted ? null : server;
  }

  /** Throws when there is none. */
  of(slot: number, epoch = 1): SimulatedInstance {
    const found = this.instances.find((i) => i.slot === slot && i.epoch === epoch);
    if (!found) throw new Error(`no instance of slot ${slot} epoch ${epoch}`);
    return found;
  }

  /** What the balancer's health check of this machine finds. */
  isHealthy(id: string): boolean {
    return this.#byId.get(id)?.isHealthy === true;
  }

  send(url: string, _run: unknown, offer: Offer): Promise<OfferResult> {
    const { clock, regions } = this.#o;
    if (this.#routed.atMs !== clock.now() || this.#routed.url !== url) {
      const ids = regions.map(({ balancers }) => balancers.targetsBehind(url)).find((found) => found !== null) ?? null;
      const targets = ids && ids.map((id) => this.#byId.get(id)).filter((i) => i !== undefined);
      this.#routed = { url, atMs: clock.now(), targets };
    }
    const { targets } = this.#routed;
    if (targets === null) return Promise.resolve({ kind: 'unreachable', message: `${url}: no such balancer` });
    const target = this.route(targets, this.#turn++);
    if (!target?.isListening) return Promise.resolve({ kind: 'not-ready', message: 'HTTP 503' });
    return Promise.resolve(this.onOffer(target.offer(offer)));
  }

  #launched(machine: CloudInstance, compute: MemoryCompute): void {
    const { clock, bootMs, runId } = this.#o;
    if (machine.tags[TAG.run] !== runId || !this.boots(machine)) return;
    clock.at(clock.now() + bootMs(machine), () => {
      if (compute.isRunning(machine.id)) this.#boot(machine, compute);
    });
  }

  #boot(machine: CloudInstance, compute: MemoryCompute): void {
    const { clock, objects, signatures, site, roundTripMs, uploadMs, wrongs = {} } = this.#o;
    const { id } = machine;
    try {
      const userData = parseUserData(compute.userDataOf(id));
      this.armed.add(id);
      clock.at(Date.parse(userData.powerOffAt), () => this.#switchOff(id, compute));
      const instance = new SimulatedInstance({
        id,
        settings: { ...userData, ...this.#crawlSettingsOf(userData) },
        address: compute.addressOf(machine),
        clock,
        objects,
        signatures,
        site,
        call: (path, callback) => this.#call(path, callback),
        roundTripMs,
        uploadMs,
        onFenced: () => this.#switchOff(id, compute),
        onFault: (error) => this.faults.push(error),
        written: this.written,
        wrongs,
      });
      this.onBoot(instance);
      this.instances.push(instance);
      this.#byId.set(id, instance);
      instance.start();
    } catch (error) {
      this.faults.push(error);
    }
  }

  /** The crawl settings, unpacked once for all instances. */
  #crawlSettingsOf({ crawlSettings: named }: AnyUserData): CrawlSettings {
    if (named !== undefined && named.sha256 === this.#crawlSettings?.sha256) return this.#crawlSettings.settings;
    const bytes = named && this.#o.objects.read(named.url);
    const settings = bytes && unpackCrawlSettings(bytes, named.sha256);
    if (named === undefined || settings?.version !== 2) throw new Error('the crawl settings cannot be read');
    this.#crawlSettings = { sha256: named.sha256, settings };
    return settings;
  }

  /** A machine that is stopped has no timer. */
  #switchOff(id: string, compute: MemoryCompute): void {
    if (this.switchesOff && compute.isRunning(id)) compute.kill(id);
  }

  #call(path: string, callback: Callback): Promise<CallbackReply | null> {
    const delivery = this.network(path, callback);
    return delivery === null ? this.deliver(path, callback) : this.#carry(delivery, path, callback);
  }

  async #carry(delivery: Delivery, path: string, callback: Callback): Promise<CallbackReply | null> {
    const { clock } = this.#o;
    for (const afterMs of delivery.copiesAfterMs ?? [])
      void clock.sleep(afterMs).then(() => this.deliver(path, callback));
    const timeout = clock.sleep(CALL_TIMEOUT_MS).then(() => null);
    if (delivery.lose === 'request') return timeout;
    const answer = clock.sleep(delivery.delayMs ?? 0).then(() => this.deliver(path, callback));
    return delivery.lose === 'reply' ? answer.then(() => timeout) : Promise.race([answer, timeout]);
  }

  /** What is under way when the main server dies gets no answer. */
  deliver(path: string, callback: Callback): Promise<CallbackReply | null> {
    const server = this.#server;
    if (!server) return Promise.resolve(null);
    return new Promise((resolve) => {
      server.unanswered.add(resolve);
      const answer = (reply: CallbackReply | null): void => {
        if (!server.unanswered.delete(resolve)) return;
        if (reply) this.onAnswer(path, callback, reply.status);
        resolve(reply);
      };
      // A failing database is a 500 to an instance: it sends it again.
      const ask = (): void => void answerOf(server.callbacks, path, callback).then(answer, () => answer(null));
      if (!server.clock.isStopped) return ask();
      // The instance gives up waiting; its message stays in the socket of a process that does not read.
      void server.clock.untilReading().then(ask);
      void this.#o.clock.sleep(CALL_TIMEOUT_MS).then(() => resolve(null));
    });
  }
}

function answerOf(callbacks: Callbacks, path: string, callback: Callback): Promise<CallbackReply> {
  if (path === HELLO_PATH) return callbacks.hello(callback);
  return path === HEARTBEAT_PATH ? callbacks.heartbeat(callback) : callbacks.completion(callback);
}
