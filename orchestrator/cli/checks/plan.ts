/** Whether the run fits deadline, quota, rate and money. */
import { formatDuration } from '../../../shared/domain/quantity.ts';
import { refusalOfPlan } from '../make-plan.ts';
import type { Check } from './check.ts';
import { ok } from './check.ts';
import { lacksRegion } from './lacks.ts';
import { findingOf } from './run-checks.ts';

export const plan: Check = {
  id: 'plan',
  title: 'plan against deadline, quota and cost',
  kinds: ['aws', 'dry'],
  needs: ['products'],
  // Quota and prices are the region's.
  lacks: lacksRegion,
  limitMs: 25_000,
  isSlow: true,
  beforeLaunch: true,
  async run({ facts }) {
    const found = await facts.plan();
    const refusal = refusalOfPlan(found);
    if (refusal !== null) return [findingOf(refusal)];
    const quota = found.vcpuQuota === null ? 'the quota is not known' : `${found.vcpuQuota} are left in the quota`;
    return [
      ok(
        `${found.instances} x ${found.instanceType} for ${found.products.toLocaleString('en')} products in ${formatDuration(found.deadlineMs)}; ${found.vcpus} vCPUs, ${quota}`,
      ),
    ];
  },
};
