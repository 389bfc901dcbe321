/** `orchestrator simulate`: runs on a virtual clock, with failures, as often as requested. Touches nothing. */
import type { Features } from '../../core/feature.ts';
import { existsSync } from 'node:fs';
import { formatDuration } from '../../../shared/domain/quantity.ts';
import { isAnyHost } from '../../../shared/domain/domains.ts';
import { seededRandom } from '../../../shared/adapters/random.ts';
import { AppError } from '../../../shared/domain/errors.ts';
import type { ExitCode } from '../../../shared/domain/exit-codes.ts';
import { openDatabase } from '../../core/db/connect.ts';
import { largestChunk, shareOf, workOf } from '../../core/plan/fleet-sums.ts';
import { type HostLoad, nightOfHosts, nightRulesOf } from '../../core/plan/host-sums.ts';
import type { Plan, PlanInput } from '../../core/plan/plan.ts';
import { zipfLoads } from '../../core/simulation/many-hosts.ts';
import { planRun } from '../../core/plan/plan-run.ts';
import { hosts, noun, renderPlan, tonight } from '../../core/plan/render-plan.ts';
import { renderSummary, renderTimeline } from './render-summary.ts';
import type { SimResult } from '../../core/simulation/result.ts';
import { type Chances, NO_CHANCES, type Rules, scenarioOf } from '../../core/simulation/scenario.ts';
import { simulate } from '../../core/simulation/simulation.ts';
import { summarize } from './summary.ts';
import { type Config, type Environment, type FlagValue, loadConfig } from '../../core/config/load-config.ts';
import { configSchema } from '../../core/config/schema.ts';
import { planInputOf, type PlanFacts, planWhatFits, refusalOfPlan, unbalanced } from '../../core/prepare/make-plan.ts';
import { withKnownDelays } from '../../core/prepare/asked-paces.ts';
import { offlineFacts } from '../../core/prepare/preflight.ts';
import { type ProductList, readList } from '../../core/prepare/products.ts';
import { assumedTarget } from '../../core/config/target.ts';
import type { Output } from '../../cli/output.ts';

export interface SimulateOptions {
  /** Default: `fleet.yaml`, if it exists. */
  configPath: string | undefined;
  flags: readonly FlagValue[];
  deadlineMs?: number | undefined;
  maxCost?: number | undefined;
  products?: number | undefined;
  intervalMs?: number | undefined;
  /** Simulates with this many, whatever the plan says. */
  instances?: number | undefined;
  chances: Partial<Chances>;
  /** Records at this number of hosts, in place of products of one site. */
  hosts?: number | undefined;
  /** How unevenly records fall on hosts; 1 is usual, 0 even. */
  zipf?: number | undefined;
  /** Share of hosts that never answer. */
  dead?: number | undefined;
  runs: number;
  seed: number;
  /** Boot and page times of this machine. */
  dryRun: boolean;
  environment: Environment;
  features: Features;
}

const DEFAULT_CONFIG = 'fleet.yaml';
/** All products are held in memory: 2 GB at this limit. */
const MAX_SIMULATED = 1_000_000;
const DEFAULT_PRODUCTS = 30_000;
const DEFAULT_DEADLINE_MS = 4 * 3_600_000;
/** The most instances, more than a target group takes: a simulation may explore thousands. */
const MOST_INSTANCES = 5_000;
/** Keeps the seeds of neighbouring runs far apart. */
const SEED_STEP = 1_000_003;

/** Prints what happened; the exit code is the most frequent one of the runs, or the plan's when it is infeasible. */
export async function simulateCommand(options: SimulateOptions, output: Output): Promise<ExitCode> {
  const path = options.configPath ?? (existsSync(DEFAULT_CONFIG) ? DEFAULT_CONFIG : null);
  const config = configFor(options, path === null ? null : loadConfig({ ...options, configPath: path }));
  const count = options.products ?? (path === null ? DEFAULT_PRODUCTS : undefined);
  const products = count === undefined ? await readTonight(config) : { ids: [], duplicates: 0 };
  const target = assumedTarget(config, options.dryRun, options.environment);
  const facts = await offlineFacts({ config, target, products });
  refuseHostless(options, isAnyHost(config.values.site.product_url));
  const loads = options.hosts
    ? zipfLoads(options.hosts, count ?? products.ids.length, options.zipf ?? 1)
    : products.loads;
  const night = loads ? nightOfMany(facts, loads, options) : nightOfSite(facts, count);
  const { input } = night;
  refuseTooMany(input.products);
  const plan = withInstances(night.plan, input, options.instances);
  if (plan.verdict !== 'feasible' && options.instances === undefined) return refuse(plan, output);
  const scenario = scenarioOf(input, plan, {
    // Hosts that never answer fail a share of the records, which only a configuration can judge.
    rules: { ...rulesOf(config), ...(loads && path === null ? { maxFailed: 1 } : {}) },
    chances: { ...NO_CHANCES, ...options.chances },
    ...(loads ? { loads } : {}),
  });
  const results: SimResult[] = [];
  for (let run = 0; run < options.runs; run++) {
    const random = seededRandom(options.seed + run * SEED_STEP);
    results.push(await simulate(scenario, random));
  }
  const summary = summarize(scenario, results);
  const [only] = results;
  output.line(
    `${plan.products.toLocaleString('en-US')} ${noun(plan)}s on ${plan.instances} x ${plan.instanceType}, seed ${options.seed}`,
  );
  if (plan.manyHosts) output.line(`${tonight(plan.manyHosts)}; hosts: ${hosts(plan.manyHosts)}`);
  output.line();
  if (options.runs === 1 && only) output.line(`${renderTimeline(only)}\n`);
  output.line(renderSummary(summary));
  output.document({
    seed: options.seed,
    ...summary,
    ...(options.runs === 1 && only ? { timeline: only.timeline } : {}),
  });
  return summary.exitCode;
}

/** @param isAny the configuration has records at any hosts */
function refuseHostless({ hosts, zipf, dead, products }: SimulateOptions, isAny: boolean): void {
  const hint = 'Add --hosts with the number of hosts, such as --hosts 20000.';
  if (hosts !== undefined) return;
  if (zipf !== undefined || (dead !== undefined && !isAny))
    throw new AppError('usage', '--zipf and --dead are about the hosts of --hosts', { hint });
  if (isAny && products !== undefined)
    throw new AppError('usage', 'records at any hosts are simulated as they are listed, or on --hosts', { hint });
}

interface Night {
  plan: Plan;
  input: PlanInput;
}

function nightOfSite(facts: PlanFacts, count: number | undefined): Night {
  const { plan } = planWhatFits(facts, count);
  const balanced = { ...planInputOf(facts), products: plan.products };
  return { plan, input: plan.noBalancer ? unbalanced(balanced) : balanced };
}

/** Pages of an instance at once over many hosts, unless the configuration says so. */
const PLACES = 8;

function nightOfMany(
  facts: PlanFacts,
  loads: readonly HostLoad[],
  { dead = facts.products.deadShare ?? 0 }: SimulateOptions,
): Night {
  const { pagesAtOnce = PLACES, ...given } = planInputOf(facts);
  const site = { ...given, pagesAtOnce };
  const hosts = nightOfHosts(loads, nightRulesOf(site), dead);
  if (hosts.records === 0 && hosts.listed > 0) {
    const pace = `one request per ${formatDuration(site.intervalMs)} and host`;
    throw new AppError(
      'infeasible',
      `no record can be asked for within ${formatDuration(site.deadlineMs)} at ${pace}`,
      {
        hint: 'Each host is asked for its robots.txt first and hourly. Lengthen --deadline or shorten --interval.',
      },
    );
  }
  const input = { ...site, products: hosts.records, hosts };
  return { input, plan: planRun(input, seededRandom(1)) };
}

/** What the flags leave of the configuration, or of the defaults without one. */
function configFor({ deadlineMs, intervalMs, maxCost, instances }: SimulateOptions, given: Config | null): Config {
  const config = given ?? NO_CONFIG;
  const { site, run } = config.values;
  return {
    ...config,
    values: {
      ...config.values,
      site: { ...site, interval: intervalMs ?? site.interval },
      run: {
        ...run,
        deadline: deadlineMs ?? run.deadline ?? DEFAULT_DEADLINE_MS,
        max_cost: maxCost ?? run.max_cost,
        max_instances: Math.max(instances ?? 0, given === null ? MOST_INSTANCES : run.max_instances),
      },
    },
  };
}

const NO_CONFIG: Config = {
  file: DEFAULT_CONFIG,
  mapping: { pages: [] },
  features: [],
  values: configSchema.parse({
    site: { product_url: 'https://shop.example/item/{id}', mapping: {} },
    products: { query: 'select id from products' },
    database: { url: 'sqlite::memory:' },
    aws: { region: 'ap-northeast-1' },
  }),
};

/** The list of the night, as a plan reads it; without denied hosts, which get no request. */
async function readTonight(config: Config): Promise<ProductList> {
  await using database = await openDatabase(config.values.database.url);
  const list = await readList(config, database);
  if (list.loads === undefined) return list;
  const loads = await withKnownDelays(database, list.loads);
  return { ...list, loads: loads.filter(({ isDenied }) => !isDenied) };
}

function refuseTooMany(products: number): void {
  if (products <= MAX_SIMULATED) return;
  throw new AppError('usage', `a simulation takes at most ${MAX_SIMULATED.toLocaleString('en-US')} products`, {
    hint: 'Divide --products and --instances by the same number.',
  });
}

/** The plan, or with `instances` that of exactly so many, whether they suffice or not. */
function withInstances(night: Plan, input: PlanInput, instances: number | undefined): Plan {
  if (instances === undefined) return night;
  const plan = planRun({ ...input, minInstances: instances, maxInstances: instances }, seededRandom(1));
  if (plan.instances === instances) return plan;
  const { each, chunks, chunkSize } = shareOf(input.products, instances, largestChunk(input, workOf(input)));
  return { ...plan, instances, productsEach: each, chunks, chunkSize };
}

function rulesOf({ values: { site, run, aws } }: Config): Partial<Rules> {
  return {
    onBan: site.on_ban,
    coolDownMs: site.ban.cool_down,
    maxFailed: run.max_failed,
    ...(aws.subnets.length > 0 ? { subnets: aws.subnets } : {}),
  };
}

/** A run with this plan would not start. */
function refuse(plan: Plan, output: Output): ExitCode {
  output.line(renderPlan(plan));
  output.document(plan);
  return refusalOfPlan(plan)!.exitCode;
}
