/** Plays runs for tests: 6,000 products in 4 hours on EC2 unless they say otherwise, and every product is accounted for. */
import { seededRandom } from '../../../shared/adapters/random.ts';
import type { Plan, PlanInput } from '../../../orchestrator/plan/plan.ts';
import { planRun } from '../../../orchestrator/plan/plan-run.ts';
import type { SimResult } from '../../../orchestrator/simulation/result.ts';
import { scenarioOf } from '../../../orchestrator/simulation/scenario.ts';
import { simulate } from '../../../orchestrator/simulation/simulation.ts';
import type { SimulatedWorld } from '../../../orchestrator/simulation/world.ts';
import { planInput } from '../plan/plan-input.ts';

export const MINUTE = 60_000;
export const PRODUCTS = 6_000;

export interface Play {
  input?: Partial<PlanInput>;
  plan?: Partial<Plan>;
  scenario?: Parameters<typeof scenarioOf>[2];
  seed?: number;
  /** Sees the world after every event. */
  watch?: (world: SimulatedWorld) => void;
}

export async function play({
  input: change = {},
  plan: other = {},
  scenario = {},
  seed = 1,
  watch,
}: Play): Promise<SimResult> {
  const input = planInput({ products: PRODUCTS, ...change });
  const plan = { ...planRun(input, seededRandom(1)), ...other };
  const options = watch === undefined ? {} : { onStep: watch };
  const result = await simulate(scenarioOf(input, plan, scenario), seededRandom(seed), options);
  const { planned, stored, gone, failed } = result.products;
  if (stored + gone + failed !== planned) throw new Error(`${stored} + ${gone} + ${failed} is not ${planned}`);
  return result;
}

/** Room to lose some: twice what the plan needs. */
export const ROOMY: Partial<PlanInput> = { minInstances: 10 };
