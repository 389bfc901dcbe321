/**
 * Plays a scenario through: the real main server in a modelled world, from the first claim to the last terminated
 * instance.
 */
import { ANY_HOST, ONE_DOMAIN } from '../../../shared/domain/domains.ts';
import type { Mapping } from '../../../shared/domain/mapping.ts';
import type { Random } from '../../../shared/ports/random.ts';
import type { ItemResult } from '../../../shared/wire/part.ts';
import { powerOffAtMs } from '../model/run-deadlines.ts';
import type { ResultStore, RunToStore } from '../model/stores.ts';
import { newRunKeys } from '../new-run.ts';
import { nightRulesOf } from '../plan/host-sums.ts';
import type { Plan, PlanInput } from '../plan/plan.ts';
import { architectureOf } from '../plan/instance-types.ts';
import { MemoryCompute } from './cloud/memory-compute.ts';
import { MemoryLoadBalancer } from './cloud/memory-load-balancer.ts';
import { MemoryObjectStore } from './cloud/memory-objects.ts';
import { Draws, type Fate } from './draws.ts';
import type { EventClock } from './event-clock.ts';
import type { SimulatedInstance } from './instance.ts';
import type { Site } from './instance/site.ts';
import { Losses } from './losses.ts';
import { drawSilent, type HostList, listOf, SimulatedHosts } from './many-hosts.ts';
import { resultOf, type SimResult } from './result.ts';
import { OUTSIDE, type Scenario } from './scenario.ts';
import { createMemoryStores } from './stores/create-memory-stores.ts';
import { type ModelledCloud, OWNER, SimulatedWorld, START_MS } from './world.ts';

/** What tests do while a scenario is played. */
export interface SimulationOptions {
  /** Called before the first event. */
  onStart?: (world: SimulatedWorld) => void;
  /** Called after every event; slows it down. */
  onStep?: (world: SimulatedWorld) => void;
}

/**
 * Plays the scenario to its end. The same scenario and random source give the same result. Throws when the run does not
 * come to an end.
 */
export async function simulate(
  scenario: Scenario,
  random: Random,
  { onStart, onStep }: SimulationOptions = {},
): Promise<SimResult> {
  const stage = new Stage(scenario, random);
  const { world } = stage;
  await world.create();
  await world.startServer();
  onStart?.(world);
  const lastMs = powerOffAtMs(world.run) + 24 * 3_600_000;
  const { clock, fleet } = world;
  await clock.settle();
  for (;;) {
    const isMore = clock.next();
    // Most events are requests of instances, for which nothing waits.
    if (!clock.isSettled) await clock.settle();
    if (fleet.faults.length > 0) throw fleet.faults[0];
    const ended = world.server?.ended ?? null;
    if (ended !== null && ended.error !== null) throw ended.error;
    if (ended !== null) return resultOf(world, scenario, stage);
    if (!isMore || clock.now() > lastMs)
      throw new Error(`the simulated run does not end: it is ${world.db.run(world.run.id).record.phase}`);
    onStep?.(world);
  }
}

/** The world of a scenario, with the fates drawn for its instances. */
class Stage {
  readonly world: SimulatedWorld;
  readonly losses = new Losses(() => this.world.clock.now());
  /** The many hosts; null for one site. */
  readonly hosts: SimulatedHosts | null;
  readonly #scenario: Scenario;
  readonly #draws: Draws;
  readonly #fates = new Map<string, Fate>();
  /** Addresses that the site refuses at their next request. */
  readonly #refused = new Set<string>();

  constructor(scenario: Scenario, random: Random) {
    const { input } = scenario;
    this.#scenario = scenario;
    this.#draws = new Draws(scenario, random);
    const list =
      scenario.loads &&
      listOf(scenario.loads, nightRulesOf(input), { deadlineMs: input.deadlineMs, size: scenario.plan.chunkSize });
    const silent = drawSilent(list?.hosts ?? [], input.hosts?.deadShare ?? 0, random);
    this.hosts = list === undefined ? null : new SimulatedHosts(() => this.world.clock.now(), silent, input.pagesEach);
    this.world = new SimulatedWorld({
      run: newRunOf(scenario, list),
      productIds: list?.productIds ?? Array.from({ length: input.products }, (_, i) => String(i + 1)),
      cloud: (clock, isHealthy) => this.#cloud(clock, isHealthy),
      stores: (db, clock) => {
        const stores = createMemoryStores(db);
        const bind: typeof stores.bind = (binding) => {
          const rows = stores.bind(binding);
          this.losses.follow(rows.work, () => db.run(binding.runId));
          slowDown(rows.results, clock, OUTSIDE.publishRowsPerSecond);
          return rows;
        };
        return { ...stores, bind };
      },
      site: this.#site(),
      bootMs: (machine) => Math.max(OUTSIDE.pendingMs, this.#fateOf(machine.id).bootMs),
      roundTripMs: OUTSIDE.roundTripMs,
      uploadMs: OUTSIDE.uploadMs,
    });
    this.world.instanceTypes = typesOf(scenario);
    const { fleet } = this.world;
    fleet.boots = (machine) => this.#fateOf(machine.id).boots;
    fleet.onBoot = (instance) => this.#scheduleFate(instance);
  }

  #fateOf(id: string): Fate {
    let fate = this.#fates.get(id);
    if (fate === undefined) {
      fate = this.#draws.fate();
      this.#fates.set(id, fate);
    }
    return fate;
  }

  /** Schedules the faults of an instance that has just booted. */
  #scheduleFate(instance: SimulatedInstance): void {
    const { clock, cloud } = this.world;
    const { slowness, diesAfterMs, diesSilently, bannedAfterMs } = this.#fateOf(instance.id);
    instance.slowness = slowness;
    const now = clock.now();
    if (diesAfterMs < Infinity)
      clock.at(now + diesAfterMs, () => (diesSilently ? instance.end() : cloud.compute.kill(instance.id)));
    if (bannedAfterMs < Infinity) clock.at(now + bannedAfterMs, () => this.#refused.add(instance.address));
  }

  #cloud(clock: EventClock, isHealthy: (id: string) => boolean): ModelledCloud {
    const { input, rules } = this.#scenario;
    const compute = new MemoryCompute({
      clock,
      pendingMs: OUTSIDE.pendingMs,
      shuttingDownMs: OUTSIDE.shuttingDownMs,
      invisibleMs: OUTSIDE.invisibleMs,
      subnets: rules.subnets.map((id) => ({ id, zone: id, vpcId: 'vpc', publicAddresses: true })),
    });
    compute.addressOf = ({ id }) => addressOf(Number.parseInt(id.slice(2), 16));
    const balancers = new MemoryLoadBalancer({
      clock,
      isRunning: (id) => compute.isRunning(id),
      isHealthy,
      provisioningMs: input.balancerMs,
      healthyAfterMs: (id) => this.#fateOf(id).healthyMs,
    });
    return { compute, balancers, objects: new MemoryObjectStore(clock) };
  }

  #site(): Site {
    const { goneShare, partialShare } = OUTSIDE;
    const isOfShare = (n: number, share: number): boolean => Math.floor(n * share) > Math.floor((n - 1) * share);
    const hasFurther = this.#scenario.plan.pages !== undefined;
    return {
      ...(this.hosts === null ? {} : { manyHosts: this.hosts }),
      pace: (products) => this.#draws.pace(products),
      onRequest: () => undefined,
      treat: ({ address }) => (this.#refused.delete(address) ? 'ban' : 'fine'),
      result: ({ n, id }): ItemResult => {
        const common = { n, id, url: '', at: START, attempts: 1 };
        // Spread evenly, the same ones for every fleet.
        if (isOfShare(n, goneShare)) return { ...common, outcome: 'gone', status: 404 };
        const stored: ItemResult = { ...common, outcome: 'stored', rows: [{ key: null, row: {} }] };
        return hasFurther && isOfShare(n + 1, partialShare) ? inPart(stored) : stored;
      },
    };
  }
}

const START = new Date(START_MS).toISOString();

/** A stored product without one of its further pages, which robots.txt forbids. */
export const inPart = (result: ItemResult & { outcome: 'stored' }): ItemResult => ({
  ...result,
  leftOut: { robots: { pages: 1, example: `${result.url}?page=2` } },
  partial: true,
});

/** The statement that publishes takes its time. */
function slowDown(results: ResultStore, clock: EventClock, rowsPerSecond: number): void {
  const publish = results.publish.bind(results);
  results.publish = async (...call) => {
    const { stored } = await results.totals();
    await clock.sleep((1_000 * stored) / rowsPerSecond);
    return publish(...call);
  };
}

/** An address of the range for tests (RFC 2544), another one for each number. */
const addressOf = (number: number): string => `198.${18 + (number >> 16)}.${(number >> 8) & 255}.${number & 255}`;

/** The plan's type first, then the other allowed ones that the same image boots. */
function typesOf({ plan, input }: Scenario): string[] {
  const architecture = architectureOf(plan.instanceType);
  const others = input.instanceTypes.filter((t) => t !== plan.instanceType && architectureOf(t) === architecture);
  return [plan.instanceType, ...others];
}

const RUN_ID = 'simulated';
const TITLE = { name: 'title', steps: [{ type: 'css' as const, selector: 'h1' }], required: true };
const MAPPING: Mapping = { pages: [{ name: 'product', urlPatterns: [], urlParsers: [], rows: null, fields: [TITLE] }] };

const pagesAtOnceOf = ({ pagesAtOnce = 1 }: PlanInput): { pagesAtOnce?: number } =>
  pagesAtOnce === 1 ? {} : { pagesAtOnce };

function newRunOf({ input, plan, rules }: Scenario, list: HostList | undefined): RunToStore {
  return {
    ...(list === undefined ? {} : { chunks: list.chunks }),
    id: RUN_ID,
    parentId: null,
    startedAtMs: START_MS,
    deadlineAtMs: START_MS + input.deadlineMs,
    dryRun: true,
    settings: {
      site: {
        productUrl:
          list === undefined
            ? (input.domains ?? ONE_DOMAIN).map(({ share }, i) => ({
                url: `http://shop${i + 1}.simulation/item/{id}`,
                weight: share,
              }))
            : ANY_HOST,
        intervalMs: plan.intervalMs,
        maxRatePerSecond: input.maxRatePerSecond,
        userAgent: 'simulation/1.0',
        timeoutMs: 30_000,
        maxPageBytes: 5_000_000,
        allowPrivate: false,
        render: 'http',
        robots: 'ignore',
        onBan: rules.onBan,
        ban: { statuses: [], redirects: [], patterns: [], coolDownMs: rules.coolDownMs },
        canaries: [],
        ...pagesAtOnceOf(input),
      },
      mapping: MAPPING,
      grantsKept: true,
      partsSigned: true,
      roleSessions: true,
      results: { table: RUN_ID, onGone: 'keep' },
      run: {
        deadlineMs: input.deadlineMs,
        maxCost: input.maxCost,
        graceMs: input.graceMs,
        minInstances: input.minInstances,
        maxInstances: input.maxInstances,
        maxFailed: rules.maxFailed,
      },
      aws: {
        region: input.region,
        endpoint: null,
        instanceTypes: input.instanceTypes,
        subnets: [...rules.subnets],
        balancerScheme: (input.balancerAddresses ?? 0) === 0 ? 'internal' : 'internet-facing',
        securityGroups: [],
        bucket: '',
        instanceProfile: null,
        image: null,
        owner: OWNER,
        recycleEveryMs: input.recycleEveryMs ?? null,
      },
      sandbox: null,
      server: { callbackUrl: 'http://main.simulation', callbackListen: '' },
    },
    // The modelled cloud has one region.
    plan: omitRegions(plan),
    planned: input.products,
    duplicates: 0,
    ...newRunKeys(),
  };
}

function omitRegions(plan: Plan): Plan {
  const single = { ...plan };
  delete single.regions;
  return single;
}
