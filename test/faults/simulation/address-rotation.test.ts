/** Fresh addresses on the way (`aws.recycle_every`), on whole runs. */
import { describe, expect, it } from 'vitest';
import { epochKey } from '../../../shared/domain/epoch-id.ts';
import { seededRandom } from '../../../shared/adapters/random.ts';
import { planRun } from '../../../orchestrator/core/plan/plan-run.ts';
import { scenarioOf } from '../../../orchestrator/core/simulation/scenario.ts';
import { simulate } from '../../../orchestrator/core/simulation/simulation.ts';
import { HOUR, plan, planInput } from '../../support/plan-input.ts';
import { MINUTE, dry, play, quota, serverDown } from './play.ts';

const NIGHT = { products: 3_000, deadlineMs: 4 * HOUR, recycleEveryMs: 20 * MINUTE };

/**
 * The largest age any address came to while it crawled, and the most slots without one at any moment after the first
 * boots.
 */
async function watch(change: Parameters<typeof planInput>[0], seed: number) {
  const input = planInput(change);
  let oldestMs = 0;
  let mostLeaving = 0;
  const result = await simulate(scenarioOf(input, planRun(input, seededRandom(1))), seededRandom(seed), {
    onStep: ({ db, run, fleet, clock }) => {
      const { instances } = db.run(run.id);
      for (const { slot, epoch, isCrawling } of fleet.instances) {
        const launchedMs = instances.get(epochKey({ slot, epoch }))!.launchedAtMs;
        if (isCrawling) oldestMs = Math.max(oldestMs, clock.now() - (launchedMs ?? Infinity));
      }
      const leaving = [...instances.values()].filter((r) => r.rotateAtMs !== null && r.manifestKey === null).length;
      mostLeaving = Math.max(mostLeaving, leaving);
    },
  });
  return { result, oldestMs, mostLeaving };
}

describe('a night with fresh addresses', () => {
  const endsOnTime = async (seed: number): Promise<number> => {
    const result = await play({ input: NIGHT, seed });
    expect(result).toMatchObject({ state: 'completed', exitCode: 0, onTime: true });
    expect(result.products).toEqual({ planned: 3_000, stored: 2_970, gone: 30, failed: 0 });
    expect(result.instances.replaced).toBeGreaterThan(2 * result.instances.planned);
    return result.cost;
  };
  it('ends on time with every product once, at the planned cost, seed 1', async () => {
    const cost = await endsOnTime(1);
    const planned = plan(NIGHT).cost.total;
    expect(cost).toBeGreaterThan(0.85 * planned);
    expect(cost).toBeLessThan(1.1 * planned);
  });
  it.each([2, 3, 4, 5])('ends on time with every product once, seed %i', { tags: ['nightly'] }, async (seed) => {
    await endsOnTime(seed);
  });

  it('does so for 12,000 products, a fifth of the fleet at a time', { tags: ['nightly'] }, async () => {
    const { result, oldestMs, mostLeaving } = await watch({ products: 12_000, recycleEveryMs: HOUR }, 1);
    expect(result).toMatchObject({ state: 'completed', exitCode: 0, onTime: true });
    expect(result.instances.replaced).toBeGreaterThan(2 * result.instances.planned);
    expect(mostLeaving).toBeLessThanOrEqual(Math.ceil(result.instances.planned / 5));
    expect(oldestMs).toBeLessThan(1.25 * HOUR);
  });

  it('works for a fleet of one', async () => {
    const result = await play({ input: { ...NIGHT, products: 600, recycleEveryMs: HOUR } });
    expect(result).toMatchObject({ state: 'completed', onTime: true });
    expect(result.instances).toMatchObject({ planned: 1 });
    expect(result.instances.replaced).toBeGreaterThanOrEqual(1);
  });

  it('stays within the cap of money', { tags: ['nightly'] }, async () => {
    const least = plan({ ...NIGHT, maxCost: 0.01 })
      .remedies.join(' ')
      .match(/run\.max_cost: ([\d.]+)/)?.[1];
    const maxCost = Number(least);
    expect(plan({ ...NIGHT, maxCost }).verdict).toBe('feasible');
    const result = await play({ input: { ...NIGHT, maxCost } });
    expect(result).toMatchObject({ state: 'completed', onTime: true });
    expect(result.cost).toBeLessThanOrEqual(maxCost);
  });

  const survives = async (seed: number): Promise<void> => {
    const result = await play({
      input: { ...NIGHT, minInstances: 8 },
      scenario: { chances: { loss: 0.1, ban: 0, slow: 0.05, bootFailure: 0.05 } },
      faults: [serverDown(50 * MINUTE, 5 * MINUTE)],
      seed,
    });
    expect(result).toMatchObject({ state: 'completed', onTime: true });
  };
  const rough = 'survives losses, boots that never come and a main server that is away, seed %i';
  it.each([1])(rough, survives);
  it.each([2, 3])(rough, { tags: ['nightly'] }, survives);

  const isNotLate = async (seed: number): Promise<void> => {
    const result = await play({
      input: { ...NIGHT, minInstances: 3, maxInstances: 3 },
      faults: [dry(0, 50 * MINUTE)],
      seed,
    });
    expect(result).toMatchObject({ state: 'completed', exitCode: 0, onTime: true });
    expect(result.products.failed).toBe(0);
  };
  it.each([1, 2])(
    'makes no run late that began late and has no minute left to give, seed %i',
    { tags: ['nightly'] },
    isNotLate,
  );

  it('goes on renewing, one address at a time, at a quota of one instance less', { tags: ['nightly'] }, async () => {
    const fleet = { products: 6_000, deadlineMs: 4 * HOUR, recycleEveryMs: HOUR, minInstances: 7, maxInstances: 7 };
    const { vcpus } = plan(fleet);
    const result = await play({ input: fleet, faults: [quota(vcpus - vcpus / 7)] });
    expect(result).toMatchObject({ state: 'completed', onTime: true });
    expect(result.instances.replaced).toBeGreaterThan(6);
  });

  it('renews nothing while EC2 has no machines, and goes on with what it has', async () => {
    const result = await play({ input: NIGHT, faults: [dry(15 * MINUTE, 30 * MINUTE)] });
    expect(result).toMatchObject({ state: 'completed', onTime: true });
  });
});
