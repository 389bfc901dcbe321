/**
 * One case of the simulation bench, as a process: `simulation-case.ts run|skeleton PRODUCTS INSTANCES [EVENTS]`. Prints
 * its figures.
 */
import { seededRandom } from '../../shared/adapters/random.ts';
import { defaultsFor } from '../../orchestrator/core/plan/defaults.ts';
import type { PlanInput } from '../../orchestrator/core/plan/plan.ts';
import { planRun } from '../../orchestrator/core/plan/plan-run.ts';
import { EventClock } from '../../orchestrator/core/simulation/event-clock.ts';
import { scenarioOf } from '../../orchestrator/core/simulation/scenario.ts';
import { simulate } from '../../orchestrator/core/simulation/simulation.ts';

export interface CaseFigures {
  /** Of the loop alone, without the start of the process. */
  cpuMs: number;
  events: number;
  decisions: number;
}

const [mode, products, instances, events] = process.argv.slice(2);
const before = process.cpuUsage();
const done =
  mode === 'skeleton'
    ? await skeleton(Number(events), Number(instances))
    : await play(Number(products), Number(instances));
const { user, system } = process.cpuUsage(before);
process.stdout.write(JSON.stringify({ cpuMs: (user + system) / 1_000, ...done } satisfies CaseFigures));

async function play(count: number, fleet: number): Promise<Omit<CaseFigures, 'cpuMs'>> {
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
  const result = await simulate(scenarioOf(input, plan), seededRandom(1));
  if (plan.instances !== fleet || result.exitCode !== 0) throw new Error(`the run ended with ${result.exitCode}`);
  return result.effort;
}

/** The same number of events on the same clock, each of which puts in the next one and does nothing else. */
async function skeleton(count: number, fleet: number): Promise<Omit<CaseFigures, 'cpuMs'>> {
  const clock = new EventClock(0);
  const random = seededRandom(1);
  const tick = (): void => void clock.at(clock.now() + 15_000, tick);
  for (let slot = 0; slot < fleet; slot++) clock.at(random.next() * 15_000, tick);
  while (clock.events < count) await clock.step();
  return { events: count, decisions: 0 };
}
