/** A whole run in a closed world: main servers that can be killed and followed by others, and the fleet they drive. */
import { TAG } from '../../../orchestrator/core/cloud/compute.ts';
import type { InstanceRecord, RunRecord, RunStores } from '../../../orchestrator/core/model/stores.ts';
import { type Verdict, verifyRun } from '../../../orchestrator/core/verify/verify.ts';
import { MemoryCompute } from '../../../orchestrator/core/simulation/cloud/memory-compute.ts';
import { MemoryLoadBalancer } from '../../../orchestrator/core/simulation/cloud/memory-load-balancer.ts';
import { MemoryObjectStore } from '../../../orchestrator/core/simulation/cloud/memory-objects.ts';
import type { Treatment, Visitor } from '../../../orchestrator/core/simulation/instance/site.ts';
import { readMemoryFacts } from '../../support/memory-facts.ts';
import { type ServerProcess, SimulatedWorld } from '../../../orchestrator/core/simulation/world.ts';
import type { ItemResult } from '../../../shared/wire/part.ts';
import { type Mortality, mortalServer } from '../../support/mortal.ts';
import { newRunOf, productIds, type RunShape } from './run-stage.ts';

/** From the launch to `running`, and from there to the first hello. */
const PENDING_MS = 300;
const BOOT_MS = 200;

type Fetch = (product: { n: number; id: string }) => ItemResult;

export class WholeRun extends SimulatedWorld {
  /** How the site treats an instance's next request. */
  mood: (instance: Visitor) => Treatment = () => 'fine';
  /** Sees every request to the site. */
  onRequest: (instance: Visitor, product: { n: number; id: string }) => void = () => undefined;
  /** How often each product was fetched. */
  readonly fetches = new Map<string, number>();
  /** At which call the newest main server is killed. */
  life: Mortality = { decide: () => false, dead: false, onDeath: () => undefined };
  readonly #requests = new Map<Visitor, number[]>();

  private constructor(shape: RunShape, fetch: Fetch) {
    super({
      run: newRunOf(shape),
      productIds: productIds(shape.products),
      cloud: (clock, isHealthy) => {
        const [first, ...others] = Object.keys(shape.shares ?? { memory: 1 }).map((name, i) => {
          const subnets = [{ id: `subnet-${name}`, zone: `${name}a`, vpcId: `vpc-${name}`, publicAddresses: true }];
          const place = shape.shares === undefined ? {} : { subnets, firstNumber: 1 + 60 * i };
          const compute = new MemoryCompute({ clock, pendingMs: PENDING_MS, shuttingDownMs: PENDING_MS, ...place });
          const isRunning = (id: string): boolean => compute.isRunning(id);
          const balancers = new MemoryLoadBalancer({ clock, domain: name, isRunning, isHealthy });
          return [name, { compute, balancers }] as const;
        });
        return { ...first![1], objects: new MemoryObjectStore(clock), others: Object.fromEntries(others) };
      },
      site: {
        pace: () => ({ gapMs: 0, pageMs: 0 }),
        treat: (instance) => this.mood(instance),
        onRequest: (instance, product) => {
          this.requestsOf(instance).push(this.clock.now());
          this.onRequest(instance, product);
        },
        result: (product) => {
          this.fetches.set(product.id, (this.fetches.get(product.id) ?? 0) + 1);
          return fetch(product);
        },
      },
      bootMs: () => PENDING_MS + BOOT_MS,
      roundTripMs: 50,
      uploadMs: 10,
    });
    this.fleet.switchesOff = false;
  }

  static async open(shape: RunShape, fetch: Fetch = usualResult): Promise<WholeRun> {
    const whole = new WholeRun(shape, fetch);
    await whole.create();
    return whole;
  }

  /** When it sent requests, refused ones too. */
  requestsOf(instance: Visitor): number[] {
    let times = this.#requests.get(instance);
    if (times === undefined) this.#requests.set(instance, (times = []));
    return times;
  }

  /** Starts a main server under a fence of its own; `decide` says at which call it is killed. */
  async start(decide: Mortality['decide'] = () => false): Promise<ServerProcess> {
    const life: Mortality = { decide, dead: false, onDeath: () => undefined };
    this.life = life;
    const server = await this.startServer({ ...mortalServer(life), clock: this.clock });
    life.onDeath = () => server.kill();
    return server;
  }

  /** Lets time pass until this holds; fails after `limitMs` of the run's own time. */
  async until(what: string, over: () => boolean | Promise<boolean>, limitMs = 600_000): Promise<void> {
    const endMs = this.clock.now() + limitMs;
    await this.clock.settle();
    while (!(await over())) {
      const { ended } = this.server ?? {};
      if (ended?.error) throw ended.error;
      if (this.fleet.faults.length > 0) throw this.fleet.faults[0];
      if (this.clock.now() > endMs || !(await this.clock.step())) throw new Error(`waited ${limitMs} ms for ${what}`);
    }
  }

  /** A main server from here to the end of the run. */
  async play(limitMs?: number): Promise<void> {
    await this.start();
    await this.untilEnd(limitMs);
  }

  untilEnd(limitMs?: number): Promise<void> {
    return this.until('the end of the run', () => this.server!.ended !== null, limitMs);
  }

  untilDead(limitMs?: number): Promise<void> {
    return this.until('the kill', () => this.server!.isDead || this.server!.ended !== null, limitMs);
  }

  /** Lets this much time pass. */
  async pass(ms: number): Promise<void> {
    const endMs = this.clock.now() + ms;
    this.clock.at(endMs, () => undefined);
    await this.clock.settle();
    while (this.clock.now() < endMs) await this.clock.step();
  }

  elapsedMs(): number {
    return this.clock.now() - this.run.startedAtMs;
  }

  /** Calls of RunInstances. */
  launches(): number {
    return this.cloud.compute.calls.filter((c) => c.name === 'launch').length;
  }

  instances(): Promise<InstanceRecord[]> {
    return this.stores.of(this.run.id).fleet.instances();
  }

  outcomes(): ReturnType<RunStores['work']['outcomes']> {
    return this.stores.of(this.run.id).work.outcomes();
  }

  record(): RunRecord {
    return this.db.run(this.run.id).record;
  }

  /** Rows of the result table, by product. */
  rows(): Record<string, unknown>[] {
    const rows = [...this.db.run(this.run.id).rows.values()];
    return rows.sort((a, b) => (a.product_id < b.product_id ? -1 : 1));
  }

  async verdict(): Promise<Verdict> {
    const { stores, run, db, cloud } = this;
    const [instances, parts] = await Promise.all([this.instances(), stores.of(run.id).results.parts()]);
    return verifyRun({
      run: this.record(),
      facts: await readMemoryFacts(db, run.id),
      instances,
      parts,
      objects: cloud.objects,
    });
  }

  /** `slot.epoch` of every machine EC2 ever gave, sorted. */
  machines(): string[] {
    return this.cloud.compute
      .all()
      .map((i) => `${i.tags[TAG.slot]}.${i.tags[TAG.epoch]}`)
      .sort();
  }
}

/** Every tenth product is gone, the seventh fails, the others give a row. */
export function usualResult({ n, id }: { n: number; id: string }): ItemResult {
  const common = { n, id, url: `https://shop.example/item/${id}`, at: '2026-01-01T00:00:00.000Z', attempts: 1 };
  if (n % 10 === 0) return { ...common, outcome: 'gone', status: 404 };
  if (n === 7) return { ...common, outcome: 'failed', reason: 'parse', detail: 'no title' };
  return { ...common, outcome: 'stored', rows: [{ key: null, row: { title: `Title ${id}` } }] };
}
