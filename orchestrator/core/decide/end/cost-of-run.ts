/** What a run costs, from its row and its instances: so far while it runs, in total once it is over. Pure. */
import type { CostBreakdown } from '../../plan/plan.ts';
import { hourlyPrice, servicePrices } from '../../plan/price-table.ts';
import { actualCost, billedHours } from '../../plan/prices.ts';
import { hasBalancer } from '../../model/regions.ts';
import { billingTerms } from '../../model/run-settings.ts';
import type { InstanceRecord, RunRecord } from '../../model/stores.ts';

interface InstanceCost {
  slot: number;
  epoch: number;
  instanceId: string;
  instanceType: string;
  /** The billed time: by the second, at least a minute. */
  seconds: number;
  usdPerHour: number;
  usd: number;
  running: boolean;
}

export interface RunCost {
  run: string;
  state: RunRecord['phase'];
  dryRun: boolean;
  /** False while something may still be added. */
  final: boolean;
  estimated: CostBreakdown;
  actual: CostBreakdown;
  maxCost: number | null;
  /** The price per 1,000 products stored; null while there are none. */
  per1000: number | null;
  instances: InstanceCost[];
}

/** The cost of a run at the prices it was planned with; AWS's bill is the truth. */
export function costOfRun(
  run: RunRecord,
  instances: readonly InstanceRecord[],
  stored: number,
  nowMs: number,
): RunCost {
  const region = run.settings.aws.region;
  const prices = run.plan.prices ?? null;
  const endMs = run.finishedAtMs ?? nowMs;
  const launched = instances.flatMap((i) => {
    if (i.instanceId === null) return [];
    const running = i.phase !== 'terminated';
    const launchedAtMs = i.launchedAtMs ?? i.claimedAtMs;
    const endedAtMs = i.terminatedAtMs ?? (running ? nowMs : endMs);
    const { instanceType, region: own = region } = i.request;
    return [{ ...i, instanceId: i.instanceId, instanceType, region: own, launchedAtMs, endedAtMs, running }];
  });
  const actual = actualCost({
    region,
    prices,
    ...billingTerms(run.settings),
    instances: launched,
    // The balancer's first hour is billed even without instances: RunInstances is called only after it is created.
    hadBalancer: hasBalancer(run) || instances.some((i) => i.attempts > 0),
    startedAtMs: run.startedAtMs,
    finishedAtMs: endMs,
    products: run.planned,
  });
  return {
    run: run.id,
    state: run.phase,
    dryRun: run.dryRun,
    final: run.finishedAtMs !== null && !launched.some((i) => i.running),
    estimated: run.plan.cost,
    actual,
    maxCost: run.settings.run.maxCost,
    per1000: stored > 0 ? round((actual.total / stored) * 1_000) : null,
    instances: launched.map(({ slot, epoch, instanceId, instanceType, running, ...i }) => {
      const hours = billedHours(i.endedAtMs - i.launchedAtMs);
      const seconds = Math.round(hours * 3_600);
      const usdPerHour = hourlyPrice(i.region, instanceType, prices).usd;
      const usd = round(hours * (usdPerHour + servicePrices(i.region, prices).ipv4Hour));
      return { slot, epoch, instanceId, instanceType, seconds, usdPerHour, usd, running };
    }),
  };
}

/** Millionths of a dollar. */
const round = (usd: number): number => Math.round(usd * 1e6) / 1e6;
