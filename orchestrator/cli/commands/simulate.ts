/** `orchestrator simulate`: runs on a virtual clock, with failures, as often as requested. Touches nothing. */
import { existsSync } from 'node:fs';
import { seededRandom } from '../../../shared/adapters/random.ts';
import { domainPaces } from '../../../shared/domain/domains.ts';
import { AppError } from '../../../shared/domain/errors.ts';
import { EXIT, type ExitCode } from '../../../shared/domain/exit-codes.ts';
import { createProductSource } from '../../db/product-source.ts';
import { DEFAULT_INSTANCE_TYPES, defaultsFor } from '../../plan/defaults.ts';
import { largestChunk, shareOf, workOf } from '../../plan/fleet-sums.ts';
import { BROWSER_MEMORY_GB, HTTP_MEMORY_GB } from '../../plan/instance-types.ts';
import type { Plan, PlanInput } from '../../plan/plan.ts';
import { planRun } from '../../plan/plan-run.ts';
import { renderPlan } from '../../plan/render-plan.ts';
import { renderSummary, renderTimeline } from '../../simulation/render-summary.ts';
import type { SimResult } from '../../simulation/result.ts';
import { type Chances, NO_CHANCES, type Rules, scenarioOf } from '../../simulation/scenario.ts';
import { simulate } from '../../simulation/simulation.ts';
import { summarize } from '../../simulation/summary.ts';
import { type Config, type Environment, type FlagValue, loadConfig } from '../../app/config/load-config.ts';
import type { Output } from '../output.ts';
import { pagesEachOf } from '../../app/plan/make-plan.ts';
import { readProducts } from '../../app/plan/products.ts';

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
  runs: number;
  seed: number;
  /** Boot and page times of this machine. */
  dryRun: boolean;
  environment: Environment;
}

const DEFAULT_CONFIG = 'fleet.yaml';
/** All products are held in memory: 2 GB at this limit. */
const MAX_SIMULATED = 1_000_000;
const DEFAULT_PRODUCTS = 30_000;
const DEFAULT_DEADLINE_MS = 4 * 3_600_000;
const DEFAULT_INTERVAL_MS = 10_000;
/** More than a target group takes: a simulation may explore thousands. */
const MOST_INSTANCES = 5_000;
/** Keeps the seeds of neighbouring runs far apart. */
const SEED_STEP = 1_000_003;

/** Prints what happened; the exit code is the most frequent one of the runs, or the plan's when it is infeasible. */
export async function simulateCommand(options: SimulateOptions, output: Output): Promise<ExitCode> {
  const path = options.configPath ?? (existsSync(DEFAULT_CONFIG) ? DEFAULT_CONFIG : null);
  const config = path === null ? null : loadConfig(path, options.environment, options.flags);
  const input = planInput(options, config, await countProducts(options, config));
  const plan = planFor(input, options.instances);
  if (plan.verdict !== 'feasible' && options.instances === undefined) return refuse(plan, output);
  const scenario = scenarioOf(input, plan, {
    rules: config === null ? {} : rulesOf(config),
    chances: { ...NO_CHANCES, ...options.chances },
  });
  const results: SimResult[] = [];
  for (let run = 0; run < options.runs; run++) {
    const random = seededRandom(options.seed + run * SEED_STEP);
    results.push(await simulate(scenario, random));
  }
  const summary = summarize(scenario, results);
  const [only] = results;
  output.line(
    `${plan.products.toLocaleString('en-US')} products on ${plan.instances} x ${plan.instanceType}, seed ${options.seed}`,
  );
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

async function countProducts({ products }: SimulateOptions, config: Config | null): Promise<number> {
  const count = products ?? (config === null ? DEFAULT_PRODUCTS : await countListed(config));
  if (count <= MAX_SIMULATED) return count;
  throw new AppError('usage', `a simulation takes at most ${MAX_SIMULATED.toLocaleString('en-US')} products`, {
    hint: 'Divide --products and --instances by the same number.',
  });
}

async function countListed({ values: { database, products } }: Config): Promise<number> {
  return (await readProducts(createProductSource(database.url, products.query))).ids.length;
}

function planInput(options: SimulateOptions, config: Config | null, products: number): PlanInput {
  const site = config?.values.site;
  const run = config?.values.run;
  const aws = config?.values.aws;
  return {
    products,
    deadlineMs: options.deadlineMs ?? run?.deadline ?? DEFAULT_DEADLINE_MS,
    intervalMs: options.intervalMs ?? site?.interval ?? DEFAULT_INTERVAL_MS,
    ...(site ? { domains: domainPaces(site.product_url, null) } : {}),
    pagesEach: site ? pagesEachOf(site) : 1,
    memoryGb: (site?.render ?? 'http') === 'http' ? HTTP_MEMORY_GB : BROWSER_MEMORY_GB,
    maxRatePerSecond: site?.max_rate ?? null,
    ...defaultsFor(options.dryRun ? 'sandbox' : 'aws'),
    minInstances: run?.min_instances ?? 1,
    maxInstances: Math.max(options.instances ?? 0, run?.max_instances ?? MOST_INSTANCES),
    maxCost: options.maxCost ?? run?.max_cost ?? null,
    vcpuQuota: aws?.vcpu_quota ?? null,
    graceMs: run?.grace ?? 600_000,
    recycleEveryMs: aws?.recycle_every ?? null,
    region: aws?.region ?? aws?.regions?.[0]?.region ?? 'ap-northeast-1',
    instanceTypes: aws?.instance_types ?? [...DEFAULT_INSTANCE_TYPES],
  };
}

/** The plan of a run, or with `instances` the plan of exactly that many, whether they suffice or not. */
function planFor(input: PlanInput, instances: number | undefined): Plan {
  if (instances === undefined) return planRun(input, seededRandom(1));
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
  if (plan.verdict === 'over-budget') return EXIT.budget;
  return plan.verdict === 'over-quota' ? EXIT.capacity : EXIT.infeasible;
}
