/**
 * One case of the simulation bench, as a process: `simulation-case.ts run|skeleton PRODUCTS INSTANCES [EVENTS]`, or
 * `simulation-case.ts hosts RECORDS HOSTS`. Prints its figures.
 */
import { seededRandom } from '../../shared/adapters/random.ts';
import { defaultsFor } from '../../orchestrator/core/plan/defaults.ts';
import { nightOfHosts, nightRulesOf } from '../../orchestrator/core/plan/host-sums.ts';
import type { PlanInput } from '../../orchestrator/core/plan/plan.ts';
import { planRun } from '../../orchestrator/core/plan/plan-run.ts';
import { EventClock } from '../../orchestrator/core/simulation/event-clock.ts';
import { zipfLoads } from '../../orchestrator/core/simulation/many-hosts.ts';
import { scenarioOf } from '../../orchestrator/core/simulation/scenario.ts';
import { simulate } from '../../orchestrator/core/simulation/simulation.ts';

export interface CaseFigures {
  /** Of the loop alone, without the start of the process. */
  cpuMs: number;
  events: number;
  decisions: number;
}

type Effort = Omit<CaseFigures, 'cpuMs'>;

const MODES: Record<string, (first: number, second: number, third: number) => Promise<Effort>> = {
  run: play,
  hosts: playHosts,
  skeleton: (_, instances, events) => skeleton(events, instances),
};

const [mode = '', ...numbers] = process.argv.slice(2);
const [first = 0, second = 0, third = 0] = numbers.map(Number);
const before = process.cpuUsage();
const done = await MODES[mode]?.(first, second, third);
const { user, system } = process.cpuUsage(before);
process.stdout.write(JSON.stringify({ cpuMs: (user + system) / 1_000, ...done }));

function inputOf(change: Partial<PlanInput> & { products: number }): PlanInput {
  return {
    deadlineMs: 4 * 3_600_000,
    intervalMs: 10_000,
    pagesEach: 1,
    memoryGb: 0.5,
    maxRatePerSecond: null,
    ...defaultsFor('aws'),
    minInstances: 1,
    maxInstances: 5_000,
    maxCost: null,
    vcpuQuota: null,
    graceMs: 600_000,
    region: 'ap-northeast-1',
    instanceTypes: ['t4g.nano'],
    ...change,
  };
}

async function play(products: number, fleet: number): Promise<Effort> {
  const input = inputOf({ products, minInstances: fleet, maxInstances: fleet });
  const plan = planRun(input, seededRandom(1));
  const result = await simulate(scenarioOf(input, plan), seededRandom(1));
  if (plan.instances !== fleet || result.exitCode !== 0) throw new Error(`the run ended with ${result.exitCode}`);
  return result.effort;
}

/** All of the records in one night of 24 hours, 15 % of the hosts without an answer. */
async function playHosts(records: number, count: number): Promise<Effort> {
  const intervalMs = 15_000;
  const base = inputOf({ products: records, deadlineMs: 24 * 3_600_000, intervalMs, pagesAtOnce: 8 });
  const loads = zipfLoads(count, records, 0.5);
  const hosts = nightOfHosts(loads, nightRulesOf(base), 0.15);
  const input = { ...base, hosts };
  const scenario = scenarioOf(input, planRun(input, seededRandom(1)), { rules: { maxFailed: 1 }, loads });
  const { exitCode, effort, hosts: seen } = await simulate(scenario, seededRandom(1));
  if (hosts.records !== records || exitCode !== 0) throw new Error(`the run ended with ${exitCode}`);
  if ((seen?.minGapMs ?? 0) < intervalMs || seen?.twoOwners !== 0) throw new Error('a host was asked too often');
  return effort;
}

/** The same number of events on the same clock, each of which puts in the next one and does nothing else. */
async function skeleton(count: number, fleet: number): Promise<Effort> {
  const clock = new EventClock(0);
  const random = seededRandom(1);
  const tick = (): void => void clock.at(clock.now() + 15_000, tick);
  for (let slot = 0; slot < fleet; slot++) clock.at(random.next() * 15_000, tick);
  while (clock.events < count) await clock.step();
  return { events: count, decisions: 0 };
}
