/**
 * Plays runs for tests: 6,000 products in 4 hours on EC2 unless they say otherwise, and every product is accounted for.
 */
import { seededRandom } from '../../../shared/adapters/random.ts';
import type { Plan, PlanInput } from '../../../orchestrator/core/plan/plan.ts';
import { planRun } from '../../../orchestrator/core/plan/plan-run.ts';
import type { SimResult } from '../../../orchestrator/core/simulation/result.ts';
import { scenarioOf } from '../../../orchestrator/core/simulation/scenario.ts';
import { simulate } from '../../../orchestrator/core/simulation/simulation.ts';
import { type SimulatedWorld, START_MS } from '../../../orchestrator/core/simulation/world.ts';
import type { SimulatedInstance } from '../../../orchestrator/core/simulation/instance.ts';
import { describeInstanceType } from '../../../orchestrator/core/plan/instance-types.ts';
import { planInput } from '../../support/plan-input.ts';

export const MINUTE = 60_000;
export const PRODUCTS = 6_000;

export interface Play {
  input?: Partial<PlanInput>;
  plan?: Partial<Plan>;
  scenario?: Parameters<typeof scenarioOf>[2];
  faults?: readonly Fault[];
  seed?: number;
  /** Sees the world after every event. */
  watch?: (world: SimulatedWorld) => void;
}

export async function play({
  input: change = {},
  plan: other = {},
  scenario = {},
  faults = [],
  seed = 1,
  watch,
}: Play): Promise<SimResult> {
  const input = planInput({ products: PRODUCTS, ...change });
  const plan = { ...planRun(input, seededRandom(1)), ...other };
  const result = await simulate(scenarioOf(input, plan, scenario), seededRandom(seed), {
    onStart: (world) => faults.forEach((fault) => fault(world)),
    ...(watch === undefined ? {} : { onStep: watch }),
  });
  const { planned, stored, gone, failed } = result.products;
  if (stored + gone + failed !== planned) throw new Error(`${stored} + ${gone} + ${failed} is not ${planned}`);
  return result;
}

/** Room to lose some: twice what the plan needs. */
export const ROOMY: Partial<PlanInput> = { minInstances: 10 };

/** Something that goes wrong in the world; times count from the start of the run. */
type Fault = (world: SimulatedWorld) => void;

/** Something that befalls the first `count` of those that crawl at that moment. */
const inject =
  (atMs: number, count: number, act: (victim: SimulatedInstance, world: SimulatedWorld) => void): Fault =>
  (world) =>
    void world.clock.at(START_MS + atMs, () => {
      const crawling = world.fleet.instances.filter((i) => i.isCrawling);
      for (const victim of crawling.slice(0, count)) act(victim, world);
    });

/** `silent`: EC2 goes on showing them as running, as with a kernel panic. */
export const kill = (atMs: number, count: number, silent = false): Fault =>
  inject(atMs, count, (victim, { cloud }) => (silent ? victim.end() : cloud.compute.kill(victim.id)));

export const slow = (atMs: number, count: number, factor: number): Fault =>
  inject(atMs, count, (victim) => void (victim.slowness *= factor));

export const serverDown =
  (atMs: number, forMs: number): Fault =>
  (world) => {
    world.clock.at(START_MS + atMs, () => world.server?.kill());
    world.clock.at(START_MS + atMs + forMs, () => void world.startServer());
  };

/** EC2 has no machines for that long. */
export const dry =
  (atMs: number, forMs: number): Fault =>
  ({ cloud, clock }) => {
    const [fromMs, untilMs] = [START_MS + atMs, START_MS + atMs + forMs];
    cloud.compute.refusalOf = () =>
      clock.now() < fromMs || clock.now() >= untilMs ? null : { kind: 'refused', cause: 'pool', message: 'dry' };
  };

export const quota =
  (vcpus: number): Fault =>
  ({ cloud: { compute } }) => {
    const vcpusOf = ({ instanceType }: { instanceType: string }): number => describeInstanceType(instanceType).vcpus;
    compute.refusalOf = (request) => {
      const used = compute.alive().reduce((sum, i) => sum + vcpusOf(i), vcpusOf(request));
      return used <= vcpus ? null : { kind: 'refused', cause: 'quota', message: 'VcpuLimitExceeded' };
    };
  };

/** The main server does nothing for that long, and then goes on. */
export const standstill =
  (atMs: number, forMs: number): Fault =>
  (world) =>
    void world.clock.at(START_MS + atMs, () => world.server?.clock.stop(forMs));
