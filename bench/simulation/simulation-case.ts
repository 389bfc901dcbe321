/** One case of the simulation bench, as a process: `simulation-case.ts run|skeleton PRODUCTS INSTANCES [EVENTS]`. Prints its figures. */
import { seededRandom } from '../../shared/adapters/random.ts';
import { defaultsFor } from '../../orchestrator/plan/defaults.ts';
import type { PlanInput } from '../../orchestrator/plan/plan.ts';
import { planRun } from '../../orchestrator/plan/plan-run.ts';
import { EventQueue } from '../../orchestrator/simulation/event-queue.ts';
import { scenarioOf } from '../../orchestrator/simulation/scenario.ts';
import { simulate } from '../../orchestrator/simulation/simulation.ts';

export interface CaseFigures {
  /** For the loop only, without the start of the process. */
  cpuMs: number;
  events: number;
  decisions: number;
}

const [mode, products, instances, events] = process.argv.slice(2);
const before = process.cpuUsage();
const done =
  mode === 'skeleton' ? skeleton(Number(events), Number(instances)) : play(Number(products), Number(instances));
const { user, system } = process.cpuUsage(before);
process.stdout.write(JSON.stringify({ cpuMs: (user + system) / 1_000, ...done } satisfies CaseFigures));

function play(count: number, fleet: number): Omit<CaseFigures, 'cpuMs'> {
  const input: PlanInput = {
    products: count,
    deadlineMs: 4 * 3_600_000,
    intervalMs: 10_000,
    pagesEach: 1,
    memoryGb: 0.5,
    maxRatePerSecond: null,
    ...defaultsFor('aws'),
    minInstances: fleet,
    maxInstances: fleet,
    maxCost: null,
    vcpuQuota: null,
    graceMs: 600_000,
    region: 'ap-northeast-1',
    instanceTypes: ['t4g.nano'],
  };
  const plan = planRun(input, seededRandom(1));
  const result = simulate(scenarioOf(input, plan), seededRandom(1));
  if (plan.instances !== fleet || result.exitCode !== 0) throw new Error(`the run ended with ${result.exitCode}`);
  return result.effort;
}

/** The same number of events through the same queue; each only enqueues the next. */
function skeleton(count: number, fleet: number): Omit<CaseFigures, 'cpuMs'> {
  const queue = new EventQueue<{ slot: number }>();
  const random = seededRandom(1);
  for (let slot = 0; slot < fleet; slot++) queue.add(random.next() * 15_000, { slot });
  for (let taken = 0; taken < count; taken++) {
    const nowMs = queue.nextMs;
    queue.add(nowMs + 15_000, queue.take());
  }
  return { events: count, decisions: 0 };
}
