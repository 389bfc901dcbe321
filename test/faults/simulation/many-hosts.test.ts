/** Records at many hosts: the simulator against the sums, and one owner for each host whatever happens to instances. */
import { describe, expect, it } from 'vitest';
import { seededRandom } from '../../../shared/adapters/random.ts';
import { type HostsPlan, nightOfHosts, nightRulesOf } from '../../../orchestrator/core/plan/host-sums.ts';
import { type Plan, type PlanInput } from '../../../orchestrator/core/plan/plan.ts';
import { planRun } from '../../../orchestrator/core/plan/plan-run.ts';
import { zipfLoads } from '../../../orchestrator/core/simulation/many-hosts.ts';
import type { SimResult } from '../../../orchestrator/core/simulation/result.ts';
import { type Chances, scenarioOf } from '../../../orchestrator/core/simulation/scenario.ts';
import { simulate, type SimulationOptions } from '../../../orchestrator/core/simulation/simulation.ts';
import { HOUR, planInput } from '../../support/plan-input.ts';

const INTERVAL_MS = 15_000;
const MINUTE = 60_000;

interface Night {
  hosts: number;
  records: number;
  exponent?: number;
  dead?: number;
  input?: Partial<PlanInput>;
  chances?: Partial<Chances>;
  options?: SimulationOptions;
  seed?: number;
}

async function play(night: Night): Promise<SimResult & { plan: Plan; night: HostsPlan }> {
  const { hosts: count, records, exponent = 1, dead = 0.15, chances = {}, options = {}, seed = 1 } = night;
  const base = planInput({ intervalMs: INTERVAL_MS, pagesAtOnce: 8, ...night.input });
  const loads = zipfLoads(count, records, exponent);
  const hosts = nightOfHosts(loads, nightRulesOf(base), dead);
  const input = { ...base, products: hosts.records, hosts };
  const plan = planRun(input, seededRandom(1));
  const scenario = scenarioOf(input, plan, { rules: { maxFailed: 1 }, chances, loads });
  return { ...(await simulate(scenario, seededRandom(seed), options)), plan, night: hosts };
}

/** The promise to every host. */
function expectPolite({ hosts }: SimResult): void {
  expect(hosts?.minGapMs).toBeGreaterThanOrEqual(INTERVAL_MS);
  expect(hosts?.twoOwners).toBe(0);
}

describe('a calm night over many hosts', () => {
  it('ends as the sums say, with every record that a host allows', async () => {
    const result = await play({ hosts: 2_000, records: 30_000 });
    const { plan, night, products } = result;
    expect(night).toMatchObject({ listed: 30_000, cutHosts: 3 });
    expect(result).toMatchObject({ state: 'completed', exitCode: 0, onTime: true });
    expect(products.stored + products.gone + products.failed).toBe(night.records);
    expect(products.failed / night.records).toBeLessThan(0.2);
    expect(result.endMs).toBeGreaterThan(night.longestMs);
    expect(result.endMs).toBeLessThan(1.03 * plan.endP50Ms);
    expectPolite(result);
  });

  it('ends as the sums say where hosts are short and places are what is scarce', async () => {
    const result = await play({ hosts: 20_000, records: 60_000, exponent: 0, input: { deadlineMs: HOUR } });
    expect(result.endMs / result.plan.endP50Ms).toBeGreaterThan(0.8);
    expect(result.endMs / result.plan.endP50Ms).toBeLessThan(1.2);
    expectPolite(result);
  });

  it('sends each request once, for pages and hourly for robots.txt, and few to hosts without an answer', async () => {
    const { hosts, night } = await play({ hosts: 500, records: 5_000, exponent: 0, dead: 0 });
    expect(hosts?.requests).toBe(night.requests);
    const some = await play({ hosts: 500, records: 5_000, exponent: 0, dead: 0.5 });
    expect(some.hosts?.requests).toBeLessThan(0.8 * night.requests);
  });

  it.each([1.3, 2.6])('plays %f requests a record as the plan counts them', async (pagesEach) => {
    const result = await play({ hosts: 500, records: 5_000, dead: 0, input: { pagesEach, deadlineMs: HOUR } });
    const { hosts, night, products, plan } = result;
    expect(hosts!.requests / night.requests).toBeCloseTo(1, 2);
    expect(products.stored + products.gone).toBe(night.records);
    expect(result.endMs).toBeGreaterThan(night.longestMs);
    expect(result.endMs).toBeLessThan(1.03 * plan.endP50Ms);
    expectPolite(result);
  });

  it('plays 1.3 requests a record where places are what is scarce', async () => {
    const input = { deadlineMs: HOUR, minInstances: 4 };
    const night: Night = { hosts: 8_000, records: 40_000, exponent: 0, dead: 0, input };
    const one = await play(night);
    const more = await play({ ...night, input: { ...input, pagesEach: 1.3 } });
    // The day has the same luck with its pages, which decides how early it ends.
    expect(more.endMs / more.plan.endP50Ms / (one.endMs / one.plan.endP50Ms)).toBeCloseTo(1, 1);
    expect(more.plan.endP50Ms).toBeGreaterThan(1.1 * one.plan.endP50Ms);
  });
});

describe('a night over many hosts on which instances are slow or lost', () => {
  it('ends within 1.1 of the sums where one of eight has a third of its speed', async () => {
    const night: Night = {
      hosts: 20_000,
      records: 120_000,
      exponent: 0,
      dead: 0,
      input: { minInstances: 8, deadlineMs: HOUR },
    };
    const result = await play({
      ...night,
      options: {
        onStart: ({ fleet }) => {
          const { onBoot } = fleet;
          fleet.onBoot = (instance) => {
            onBoot(instance);
            if (instance.slot === 0) instance.slowness = 3;
          };
        },
      },
    });
    const calm = await play(night);
    // What is beside the crawl, such as boots and publishing, is the same.
    const crawlMs = (calm.night.records * calm.plan.paceMs) / 8;
    const besideMs = calm.endMs - crawlMs;
    expect(result.endMs).toBeLessThan(1.1 * (besideMs + (crawlMs * 8) / (7 + 1 / 3)));
    expectPolite(result);
  });

  const halfLost = async (seed: number): Promise<void> => {
    const lost = { input: { minInstances: 6 }, chances: { loss: 0.5 } };
    const result = await play({ hosts: 2_000, records: 30_000, ...lost, seed });
    expect(result.instances.replaced).toBeGreaterThan(0);
    expectPolite(result);
    const { products, night } = result;
    expect(products.stored + products.gone + products.failed).toBe(night.records);
  };

  it('keeps each host with one owner at its pace when half of them are lost', () => halfLost(1));

  it.each([2, 3, 4, 5, 6])(
    'keeps each host with one owner when half are lost: seed %i',
    { tags: ['nightly'] },
    halfLost,
  );

  it('lets a host rest when its owner was killed, and never lets a frozen one ask again', async () => {
    let frozen = 0;
    const result = await play({
      hosts: 200,
      records: 20_000,
      dead: 0,
      input: { minInstances: 4 },
      options: {
        onStart: ({ clock, fleet, cloud }) => {
          // EC2 does not end the machine, so only its lease keeps it from its hosts.
          cloud.compute.terminate = () => Promise.resolve();
          for (const [slot, thawMs] of [5, 6, 7, 12].entries()) {
            clock.at(clock.now() + 20 * MINUTE, () => {
              fleet.of(slot).freeze();
              frozen++;
            });
            clock.at(clock.now() + (20 + thawMs) * MINUTE, () => fleet.of(slot).thaw());
          }
        },
      },
    });
    expect(frozen).toBe(4);
    expectPolite(result);
  });

  it('gives no instance more work than it has time for in half an hour', async () => {
    let most = 0;
    let pageMs = 0;
    const { plan, night } = await play({
      hosts: 100_000,
      records: 200_000,
      exponent: 0,
      dead: 0,
      input: { deadlineMs: 8 * HOUR },
      options: {
        onStep: ({ fleet, server }) => {
          for (const { open } of fleet.instances) most = Math.max(most, open);
          pageMs = server?.loop.world()?.fleet.all[0]?.progress?.pageMs ?? pageMs;
        },
      },
    });
    // A page takes a place for that long on this day, and its robots.txt the half of it.
    const halfAnHour = (30 * MINUTE) / ((pageMs * 1.5) / 8);
    expect(night.records / plan.instances).toBeGreaterThan(1.5 * halfAnHour);
    expect(most).toBeLessThan(1.2 * halfAnHour);
  });
});
