/** A whole run on a virtual clock: main servers that can be killed and succeeded, and the fake fleet they drive. */
import { VirtualClock } from '../../../shared/adapters/virtual-clock.ts';
import type { RobotsPolicy } from '../../../shared/domain/robots.ts';
import type { ItemResult } from '../../../shared/wire/part.ts';
import { TAG } from '../../../orchestrator/cloud/compute.ts';
import type { NewRun, RunRecord } from '../../../orchestrator/control/stores.ts';
import type { Verdict } from '../../../orchestrator/control/verify.ts';
import { verifyRun } from '../../../orchestrator/control/verify.ts';
import { readVerifyFacts } from '../../../orchestrator/db/verify-queries.ts';
import { ALLOW_ALL, START_MS } from '../../unit/control/builders.ts';
import { FakeFleet } from './fake-fleet.ts';
import type { Mortality } from './mortal.ts';
import type { MainServer } from './main-server.ts';
import { startMainServer, wrapStores } from './main-server.ts';
import type { Base, MemoryCloud, RunShape } from './run-stage.ts';
import { createRun, memoryCloud, takeLock } from './run-stage.ts';
import { SkewedClock } from './skewed-clock.ts';

/** How far time advances between two checks whether all actors wait. */
const STEP_MS = 10;

export class WholeRun {
  readonly base: Base;
  readonly run: NewRun;
  readonly clock: VirtualClock;
  /** The main server's own clock. */
  readonly serverClock: SkewedClock;
  readonly cloud: MemoryCloud;
  readonly fleet: FakeFleet;
  server: MainServer | null = null;
  /** The result of reading robots.txt from now on. */
  robots: RobotsPolicy = ALLOW_ALL;
  robotsReads = 0;
  /** The instance types that the next main server tries. */
  instanceTypes = ['t4g.nano'];
  readonly #stop = new AbortController();
  readonly #lives: Mortality[] = [];

  private constructor(base: Base, run: NewRun, fetch: (product: { n: number; id: string }) => ItemResult) {
    this.base = base;
    this.run = run;
    this.clock = new VirtualClock(START_MS);
    this.serverClock = new SkewedClock(this.clock);
    this.cloud = memoryCloud(this.clock);
    const stores = wrapStores(base.stores, this.#newLife());
    this.fleet = new FakeFleet({ clock: this.clock, cloud: this.cloud, stores, runId: run.id, fetch });
  }

  static async open(base: Base, shape: RunShape, fetch = usualResult): Promise<WholeRun> {
    const whole = new WholeRun(base, await createRun(base, shape), fetch);
    void whole.fleet.run(whole.#stop.signal);
    return whole;
  }

  /** Starts a main server under its own fence; `decide` chooses the call at which it is killed. */
  async start(decide: Mortality['decide'] = () => false): Promise<MainServer> {
    const { base, run, cloud, serverClock: clock, fleet } = this;
    const fence = await takeLock(base.stores);
    base.fence = fence;
    const life = this.#newLife(decide);
    const readRobots = (): Promise<RobotsPolicy> => {
      this.robotsReads++;
      return Promise.resolve(this.robots);
    };
    const { instanceTypes } = this;
    const server = startMainServer({
      run,
      stores: base.stores,
      fence,
      cloud,
      clock,
      fleet,
      life,
      readRobots,
      instanceTypes,
    });
    this.server = server;
    return server;
  }

  /** Advances time until `over` holds; fails after `limitMs` of the run's own time. */
  async until(what: string, over: () => boolean | Promise<boolean>, limitMs = 600_000): Promise<void> {
    const endMs = this.clock.now() + limitMs;
    while (!(await over())) {
      if (this.clock.now() > endMs) throw new Error(`waited ${limitMs} ms for ${what}`);
      const { ended } = this.server ?? {};
      if (ended?.error) throw ended.error;
      if (this.fleet.faults.length > 0) throw this.fleet.faults[0];
      do await new Promise<void>((resolve) => setImmediate(resolve));
      while (this.#lives.some((life) => life.busy > 0));
      await this.clock.advance(STEP_MS);
    }
  }

  untilEnd(limitMs?: number): Promise<void> {
    return this.until('the end of the run', () => this.server!.ended !== null, limitMs);
  }

  untilDead(limitMs?: number): Promise<void> {
    return this.until('the kill', () => this.server!.life.dead || this.server!.ended !== null, limitMs);
  }

  /** Ends the fake fleet. */
  async close(): Promise<void> {
    this.#stop.abort();
    this.server?.kill();
    await this.clock.advance(1_000);
  }

  async record(): Promise<RunRecord> {
    return (await this.base.stores.runs.get(this.run.id))!;
  }

  async rows(): Promise<Record<string, unknown>[]> {
    return (await this.base.db.knex(this.run.settings.results.table).orderBy('product_id')) as Record<
      string,
      unknown
    >[];
  }

  async verdict(): Promise<Verdict> {
    const { stores } = this.base;
    const [facts, instances, parts] = await Promise.all([
      readVerifyFacts(this.base.db, this.run.id),
      stores.fleet.instances(this.run.id),
      stores.results.parts(this.run.id),
    ]);
    return verifyRun({ run: await this.record(), facts, instances, parts, objects: this.cloud.objects });
  }

  /** `slot.epoch` of every machine that EC2 ever launched, sorted. */
  machines(): string[] {
    return this.cloud.compute
      .all()
      .map((i) => `${i.tags[TAG.slot]}.${i.tags[TAG.epoch]}`)
      .sort();
  }

  #newLife(decide: Mortality['decide'] = () => false): Mortality {
    const life: Mortality = { decide, dead: false, onDeath: () => undefined, busy: 0 };
    this.#lives.push(life);
    return life;
  }
}

/** Every tenth product is gone, the seventh fails, the rest give a row. */
export function usualResult({ n, id }: { n: number; id: string }): ItemResult {
  const common = { n, id, url: `https://shop.example/item/${id}`, at: '2026-01-01T00:00:00.000Z', attempts: 1 };
  if (n % 10 === 0) return { ...common, outcome: 'gone', status: 404 };
  if (n === 7) return { ...common, outcome: 'failed', reason: 'parse', detail: 'no title' };
  return { ...common, outcome: 'stored', rows: [{ key: null, row: { title: `Title ${id}` } }] };
}
