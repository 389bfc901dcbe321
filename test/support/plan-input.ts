/** Builds plan inputs; default: 30,000 products at 10 s in 4 h on EC2 in Tokyo. */
import { DEFAULT_INSTANCE_TYPES, defaultsFor } from '../../orchestrator/core/plan/defaults.ts';
import { planRun } from '../../orchestrator/core/plan/plan-run.ts';
import type { Plan, PlanInput } from '../../orchestrator/core/plan/plan.ts';
import { seededRandom } from '../../shared/adapters/random.ts';

export const HOUR = 3_600_000;

export const planInput = (change: Partial<PlanInput> = {}): PlanInput => ({
  products: 30_000,
  deadlineMs: 4 * HOUR,
  intervalMs: 10_000,
  maxRatePerSecond: null,
  pagesEach: 1,
  memoryGb: 0.5,
  ...defaultsFor('aws'),
  minInstances: 1,
  maxInstances: 5_000,
  maxCost: null,
  vcpuQuota: null,
  graceMs: 600_000,
  region: 'ap-northeast-1',
  instanceTypes: [...DEFAULT_INSTANCE_TYPES],
  ...change,
});

export const plan = (change: Partial<PlanInput> = {}, seed = 1): Plan => planRun(planInput(change), seededRandom(seed));
