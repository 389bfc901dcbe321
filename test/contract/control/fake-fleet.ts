/** A fleet in memory: boots an instance for each machine EC2 shows, and plays the balancer in front of them. */
import type { Clock } from '../../../shared/ports/clock.ts';
import { COMPLETION_PATH, HEARTBEAT_PATH, HELLO_PATH } from '../../../shared/wire/callbacks.ts';
import type { Offer } from '../../../shared/wire/instance-api.ts';
import type { ItemResult } from '../../../shared/wire/part.ts';
import { parseUserData } from '../../../shared/wire/settings.ts';
import { TAG } from '../../../orchestrator/cloud/compute.ts';
import type { Callback, CallbackReply, Callbacks } from '../../../orchestrator/control/callbacks.ts';
import type { OfferResult, OfferSender } from '../../../orchestrator/control/dispatch.ts';
import { FakeInstance } from './fake-instance.ts';
import type { MemoryCloud, Stores } from './run-stage.ts';

/** From `running` to the first hello. */
const BOOT_MS = 200;

export interface FleetOptions {
  clock: Clock;
  cloud: MemoryCloud;
  stores: Stores;
  runId: string;
  fetch: (product: { n: number; id: string }) => ItemResult;
}

export class FakeFleet implements OfferSender {
  readonly instances: FakeInstance[] = [];
  /** Faults that the fake met: a reply with a wrong signature, orders it cannot follow. */
  readonly faults: unknown[] = [];
  /** How often each product was fetched. */
  readonly fetches = new Map<string, number>();
  /** Changes the answer to an offer that was delivered, as a balancer between may. */
  onOffer: (result: OfferResult) => OfferResult = (result) => result;
  /** Called when a call-back was answered, before its instance goes on. */
  onAnswer: (path: string, instance: { slot: number; epoch: number }) => void = () => undefined;
  readonly #o: FleetOptions;
  readonly #known = new Set<string>();
  #server: { callbacks: Callbacks; died: AbortSignal } | null = null;
  #turn = 0;

  constructor(options: FleetOptions) {
    this.#o = options;
  }

  /** From now on call-backs go to this main server, until it dies. */
  connect(callbacks: Callbacks, died: AbortSignal): void {
    this.#server = { callbacks, died };
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
        if (instance) instance.dead ||= machine.state !== 'running';
        else if (machine.state === 'running' && !this.#known.has(machine.id)) {
          this.#known.add(machine.id);
          void this.#boot(machine.id, Number(machine.tags[TAG.slot]), Number(machine.tags[TAG.epoch]));
        }
      }
      await clock.sleep(50);
    }
    for (const instance of this.instances) instance.dead = true;
  }

  send(_url: string, _run: unknown, offer: Offer): Promise<OfferResult> {
    const targets = this.instances.filter((i) => i.takesOffers);
    const target = targets[this.#turn++ % Math.max(1, targets.length)];
    if (!target) return Promise.resolve({ kind: 'not-ready', message: 'HTTP 503' });
    return Promise.resolve(this.onOffer(target.offer(offer)));
  }

  async #boot(id: string, slot: number, epoch: number): Promise<void> {
    const { clock, cloud, stores, runId } = this.#o;
    try {
      await clock.sleep(BOOT_MS);
      const record = await stores.fleet.get(runId, slot, epoch);
      const settings = parseUserData(record!.request.userData);
      const fetch = (product: { n: number; id: string }): ItemResult => {
        this.fetches.set(product.id, (this.fetches.get(product.id) ?? 0) + 1);
        return this.#o.fetch(product);
      };
      const call = (path: string, callback: Callback) => this.#call(path, callback);
      const instance = new FakeInstance({ id, settings, clock, objects: cloud.objects, call, fetch });
      this.instances.push(instance);
      await instance.run();
    } catch (error) {
      this.faults.push(error);
    }
  }

  /** What is under way when the main server dies gets no answer. */
  async #call(path: string, callback: Callback): Promise<CallbackReply | null> {
    const server = this.#server;
    if (!server || server.died.aborted) return null;
    const { callbacks, died } = server;
    const answer =
      path === HELLO_PATH
        ? callbacks.hello(callback)
        : path === HEARTBEAT_PATH
          ? callbacks.heartbeat(callback)
          : path === COMPLETION_PATH
            ? callbacks.completion(callback)
            : Promise.reject(new Error(`no route ${path}`));
    const death = new Promise<null>((resolve) => died.addEventListener('abort', () => resolve(null), { once: true }));
    // A failing database is a 500 to an instance: it says it again.
    const reply = await Promise.race([answer.catch(() => null), death]);
    if (reply) this.onAnswer(path, callback);
    return reply;
  }
}
