/**
 * What every step of planning shares: the input with its sums, its probability model, the instance type and the prices.
 */
import { limitsFor } from '../../shared/domain/limits.ts';
import { type Day, FinishModel } from './finish-model.ts';
import { rotationsFor, type Work, workOf } from './fleet-sums.ts';
import { chooseInstanceType, type InstanceType } from './instance-types.ts';
import type { CostBreakdown, PlanInput } from './plan.ts';
import { estimateCost, requestsOf } from './prices.ts';

export interface Planning {
  input: PlanInput;
  work: Work;
  model: FinishModel;
  type: InstanceType;
  /** Expected price of n instances. */
  priceOf(instances: number): CostBreakdown;
  /** The price if every instance lasts until the deadline plus grace: the most that launching n may cost. */
  worstPriceOf(instances: number): CostBreakdown;
  /** The same with other input, on the same simulated days. */
  with(change: Partial<PlanInput>): Planning;
}

/** A rotating machine is billed beside its successor until EC2 has terminated it. */
const RENEWAL_OVERLAP_MS = 120_000;

export function prepare(input: PlanInput, days: readonly Day[]): Planning {
  const work = workOf(input);
  const model = new FinishModel(input, work, days);
  const type = chooseInstanceType(input.instanceTypes, input.region, input.memoryGb, input.prices);
  const { partMs } = limitsFor(input.deadlineMs);
  const price = (instances: number, lifeMs: number, balancerMs: number): CostBreakdown => {
    return estimateCost({
      region: input.region,
      prices: input.prices ?? null,
      instanceType: type.name,
      instances,
      lifeMs,
      balancerMs: instances === 0 ? 0 : balancerMs,
      ownBalancer: input.ownBalancer ?? false,
      balancerAddresses: input.balancerAddresses ?? 0,
      browser: input.browser ?? false,
      // No part is empty, so there are at most as many as products.
      ...requestsOf(instances, Math.min(input.products, instances * Math.ceil(lifeMs / partMs))),
    });
  };
  const latestMs = input.deadlineMs + input.graceMs;
  return {
    input,
    work,
    model,
    type,
    priceOf: (n) => price(n, n === 0 ? 0 : model.meanLifeMs(n), n === 0 ? 0 : model.endMs(0.5, n)),
    worstPriceOf: (n) => price(n, latestMs + rotationsFor(input, input.deadlineMs, n) * RENEWAL_OVERLAP_MS, latestMs),
    with: (change) => prepare({ ...input, ...change }, days),
  };
}
