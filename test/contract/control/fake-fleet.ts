/** A fleet in memory: boots an instance for each machine in EC2, and acts as the load balancer in front of them. */
import type { Clock } from '../../../shared/ports/clock.ts';
import { COMPLETION_PATH, HEARTBEAT_PATH, HELLO_PATH } from '../../../shared/wire/callbacks.ts';
import type { Offer } from '../../../shared/wire/instance-api.ts';
import type { ItemResult } from '../../../shared/wire/part.ts';
import { parseUserData } from '../../../shared/wire/settings.ts';
import type { CloudInstance } from '../../../orchestrator/cloud/compute.ts';
import { TAG } from '../../../orchestrator/cloud/compute.ts';
import type { Callback, CallbackReply, Callbacks } from '../../../orchestrator/control/callbacks.ts';
import type { OfferResult, OfferSender } from '../../../orchestrator/control/dispatch.ts';
import type { FakeInstanceOptions } from './fake-instance.ts';
import { FakeInstance } from './fake-instance.ts';
import type { MemoryCloud, Stores } from './run-stage.ts';

/** From `running` to the first hello. */
const BOOT_MS = 200;
/** After this an instance takes a callback for lost; more than any answer takes without a fault. */
const CALL_TIMEOUT_MS = 5_000;

export interface FleetOptions {
  clock: Clock;
  cloud: MemoryCloud;
  stores: Stores;
  runId: string;
  fetch: (product: { n: number; id: string }) => ItemResult;
  /** How often EC2 is polled for new machines. Default 50 ms. */
  pollMs?: number;
  /** Machines switch themselves off when their time is over, and when they are fenced. Default: never. */
  switchesOff?: boolean;
  /** The address of a machine. Default: by its slot. */
  addressOf?: (machine: CloudInstance) => string;
  wrongs?: FakeInstanceOptions['wrongs'];
}

/** What the network does to one callback. */
export interface Delivery {
  lose?: 'request' | 'reply';
  delayMs?: number;
  /** Delay of each duplicate of it. */
  copiesAfterMs?: number[];
}

export class FakeFleet implements OfferSender {
  readonly instances: FakeInstance[] = [];
  /** Faults that the fake observed: a reply with a wrong signature, orders it cannot follow. */
  readonly faults: unknown[] = [];
  /** How often each product was fetched. */
  readonly fetches = new Map<string, number>();
  /** How the site answers an instance's next request. */
  mood: FakeInstanceOptions['mood'] = () => 'fine';
  /** Changes the answer to a delivered offer, as a load balancer on the way may. */
  onOffer: (result: OfferResult) => OfferResult = (result) => result;
  /** Called when a callback was answered, before its instance continues. */
  onAnswer: (path: string, callback: Callback, status: number) => void = () => undefined;
  /** What the network does to the next callback. */
  network: (path: string, instance: { slot: number; epoch: number }) => Delivery | null = () => null;
  /** Sees every request to the site. */
  onRequest: NonNullable<FakeInstanceOptions['onRequest']> = () => undefined;
  /** Chooses the target of the next offer among those that accept one; round robin. */
  route: (targets: readonly FakeInstance[], turn: number) => FakeInstance | undefined = (targets, turn) =>
    targets[turn % Math.max(1, targets.length)];
  /** False: the user data of this machine never runs. */
  boots: (machine: CloudInstance) => boolean = () => true;
  /** Called with each instance before its first callback. */
  onBoot: (instance: FakeInstance) => void = () => undefined;
  /** Machines whose user data ran: their timer is armed, whatever happens afterwards. */
  readonly armed = new Set<string>();
  readonly #o: FleetOptions;
  readonly #known = new Set<string>();
  #server: { callbacks: Callbacks; died: AbortSignal; death: Promise<null> } | null = null;
  #turn = 0;

  constructor(options: FleetOptions) {
    this.#o = options;
  }

  /** From now on callbacks go to this main server, until it dies. */
  connect(callbacks: Callbacks, died: AbortSignal): void {
    const death = new Promise<null>((resolve) => died.addEventListener('abort', () => resolve(null), { once: true }));
    this.#server = { callbacks, died, death };
  }

  of(slot: number, epoch = 1): FakeInstance {
    const found = this.instances.find((i) => i.slot === slot && i.epoch === epoch);
    if (!found) throw new Error(`no instance of slot ${slot} epoch ${epoch}`);
    return found;
  }

  /** Watches EC2 until the signal aborts. */
  async run(stop: AbortSignal): Promise<void> {
    const { clock, cloud } = this.#o;
    while (!stop.aborted) {
      for (const machine of cloud.compute.all()) {
        const instance = this.instances.find((i) => i.id === machine.id);
        if (instance) {
          instance.dead ||= machine.state !== 'running';
          if (instance.fenced && this.#o.switchesOff) cloud.compute.kill(machine.id);
        } else if (machine.state === 'running' && !this.#known.has(machine.id)) {
          this.#known.add(machine.id);
          if (this.boots(machine)) void this.#boot(machine);
        }
      }
      await clock.sleep(this.#o.pollMs ?? 50);
    }
    for (const instance of this.instances) instance.dead = true;
  }

  send(_url: string, _run: unknown, offer: Offer): Promise<OfferResult> {
    const targets = this.instances.filter((i) => i.takesOffers);
    const target = this.route(targets, this.#turn++);
    if (!target) return Promise.resolve({ kind: 'not-ready', message: 'HTTP 503' });
    return Promise.resolve(this.onOffer(target.offer(offer)));
  }

  async #boot(machine: CloudInstance): Promise<void> {
    const { clock, cloud, stores, runId } = this.#o;
    const { id } = machine;
    const [slot, epoch] = [Number(machine.tags[TAG.slot]), Number(machine.tags[TAG.epoch])];
    try {
      await clock.sleep(BOOT_MS);
      const record = await stores.fleet.get(runId, slot, epoch);
      const settings = parseUserData(record!.request.userData);
      this.armed.add(id);
      const fetch = (product: { n: number; id: string }): ItemResult => {
        this.fetches.set(product.id, (this.fetches.get(product.id) ?? 0) + 1);
        return this.#o.fetch(product);
      };
      const call = (path: string, callback: Callback) => this.#call(path, callback);
      if (this.#o.switchesOff) void this.#switchOff(id, Date.parse(settings.powerOffAt));
      const instance = new FakeInstance({
        id,
        settings,
        clock,
        objects: cloud.objects,
        call,
        fetch,
        mood: (i) => this.mood(i),
        onRequest: (i, product) => this.onRequest(i, product),
        ...(this.#o.addressOf ? { address: this.#o.addressOf(machine) } : {}),
        ...(this.#o.wrongs ? { wrongs: this.#o.wrongs } : {}),
      });
      this.onBoot(instance);
      this.instances.push(instance);
      await instance.run();
    } catch (error) {
      this.faults.push(error);
    }
  }

  /** The timer that user data arms first at boot. A stopped machine has none. */
  async #switchOff(id: string, atMs: number): Promise<void> {
    const { clock, cloud } = this.#o;
    await clock.sleep(atMs - clock.now());
    if (cloud.compute.isRunning(id)) cloud.compute.kill(id);
  }

  async #call(path: string, callback: Callback): Promise<CallbackReply | null> {
    const delivery = this.network(path, callback);
    if (delivery === null) return this.deliver(path, callback);
    const { clock } = this.#o;
    for (const afterMs of delivery.copiesAfterMs ?? [])
      void clock.sleep(afterMs).then(() => this.deliver(path, callback));
    const timeout = clock.sleep(CALL_TIMEOUT_MS).then(() => null);
    if (delivery.lose === 'request') return timeout;
    const answer = clock.sleep(delivery.delayMs ?? 0).then(() => this.deliver(path, callback));
    return delivery.lose === 'reply' ? answer.then(() => timeout) : Promise.race([answer, timeout]);
  }

  /** Callbacks in progress when the main server dies get no answer. */
  async deliver(path: string, callback: Callback): Promise<CallbackReply | null> {
    const server = this.#server;
    if (!server || server.died.aborted) return null;
    const { callbacks, death } = server;
    const answer =
      path === HELLO_PATH
        ? callbacks.hello(callback)
        : path === HEARTBEAT_PATH
          ? callbacks.heartbeat(callback)
          : path === COMPLETION_PATH
            ? callbacks.completion(callback)
            : Promise.reject(new Error(`no route ${path}`));
    // A failing database is a 500 to an instance, which retries.
    const reply = await Promise.race([answer.catch(() => null), death]);
    if (reply) this.onAnswer(path, callback, reply.status);
    return reply;
  }
}
