/** What many simulated runs of one scenario have in common: shares and percentiles. */
import type { ExitCode } from '../../../shared/domain/exit-codes.ts';
import type { Plan } from '../../core/plan/plan.ts';
import type { SimResult } from '../../core/simulation/result.ts';
import type { Chances, Scenario } from '../../core/simulation/scenario.ts';

interface Spread {
  p50: number;
  p95: number;
}

export interface SimSummary {
  runs: number;
  /** The most frequent exit code; the higher one of a tie. */
  exitCode: ExitCode;
  /** Runs by exit code. */
  exitCodes: Record<string, number>;
  /** What goes wrong in these runs; the plan counts none of it. */
  chances: Chances;
  /** Share of runs with every product done and the rows in the table by the deadline. */
  onTimeShare: number;
  /** The same by the plan. */
  plannedOnTimeShare: number;
  endMs: Spread;
  plannedEndMs: Spread;
  /** The products per run, on average. */
  products: { planned: number; stored: number; gone: number; failed: number };
  instances: { planned: number; lowerBound: number; launched: Spread; replaced: Spread; banned: Spread };
  costUsd: Spread;
  plannedCostUsd: number;
  /** Planned instances over the fewest that could do it if they booted in no time. */
  waste: number;
  /** Paid time of instances over the time that the requests alone take, on average. */
  paidTimeRatio: number;
  /**
   * The time from the last heartbeat of a lost instance until others have all of its products; null without any such
   * loss.
   */
  reassignmentMs: { losses: number; p50: number; max: number } | null;
  /** What the hosts saw; omitted for one site. */
  hosts?: SimHosts;
}

export interface SimHosts {
  listed: number;
  /** Requests of a run, on average, robots.txt included. */
  requests: number;
  /** The shortest time between two requests to one host in any run; null before any second one. */
  minGapMs: number | null;
  /** Requests of an instance to a host that another one had taken over from it, in all runs. */
  twoOwners: number;
}

export function summarize({ plan, input, chances }: Scenario, results: readonly SimResult[]): SimSummary {
  const exitCodes: Record<string, number> = {};
  for (const { exitCode } of results) exitCodes[exitCode] = (exitCodes[exitCode] ?? 0) + 1;
  const spreadOf = (of: (result: SimResult) => number): Spread => spread(results.map(of));
  const meanOf = (of: (result: SimResult) => number): number => results.reduce((s, r) => s + of(r), 0) / results.length;
  const latencies = results.flatMap((r) => r.reassignedAfterMs.filter((ms) => ms !== null)).sort((a, b) => a - b);
  const requestsMs = requestsMsOf(plan, input.pagesEach);
  return {
    runs: results.length,
    exitCode: usualExit(results),
    exitCodes,
    chances,
    onTimeShare: meanOf((r) => (r.onTime ? 1 : 0)),
    plannedOnTimeShare: plan.onTimeProbability,
    endMs: spreadOf((r) => r.endMs),
    plannedEndMs: { p50: plan.endP50Ms, p95: plan.endP95Ms },
    products: {
      planned: plan.products,
      stored: meanOf((r) => r.products.stored),
      gone: meanOf((r) => r.products.gone),
      failed: meanOf((r) => r.products.failed),
    },
    instances: {
      planned: plan.instances,
      lowerBound: plan.lowerBoundInstances,
      launched: spreadOf((r) => r.instances.launched),
      replaced: spreadOf((r) => r.instances.replaced),
      banned: spreadOf((r) => r.instances.banned),
    },
    costUsd: spreadOf((r) => r.cost),
    plannedCostUsd: plan.cost.total,
    waste: wasteOf(plan, input.pagesEach),
    paidTimeRatio: meanOf((r) => r.instanceMs) / Math.max(1, requestsMs),
    reassignmentMs:
      latencies.length === 0
        ? null
        : { losses: latencies.length, p50: quantile(latencies, 0.5), max: latencies.at(-1)! },
    ...(plan.manyHosts === undefined ? {} : { hosts: hostsOf(plan.manyHosts.hosts, results) }),
  };
}

function hostsOf(listed: number, results: readonly SimResult[]): SimHosts {
  const seen = results.flatMap(({ hosts }) => hosts ?? []);
  const gaps = seen.flatMap(({ minGapMs }) => minGapMs ?? []);
  return {
    listed,
    requests: seen.reduce((sum, { requests }) => sum + requests, 0) / Math.max(1, seen.length),
    minGapMs: gaps.length === 0 ? null : Math.min(...gaps),
    twoOwners: seen.reduce((sum, { twoOwners }) => sum + twoOwners, 0),
  };
}

/** Planned instances over products x interval / deadline, not rounded up. */
export const wasteOf = (plan: Plan, pagesEach: number): number =>
  plan.instances / Math.max(Number.MIN_VALUE, requestsMsOf(plan, pagesEach) / plan.deadlineMs);

/**
 * Time that one address would need for the requests alone: to the busiest domain, as others come between. Over many
 * hosts the time of its places.
 */
const requestsMsOf = ({ products, intervalMs, domains, manyHosts, paceMs }: Plan, pagesEach: number): number =>
  manyHosts !== undefined ? products * paceMs : products * pagesEach * intervalMs * (domains?.busiestShare ?? 1);

function usualExit(results: readonly SimResult[]): ExitCode {
  const counts = new Map<ExitCode, number>();
  for (const { exitCode } of results) counts.set(exitCode, (counts.get(exitCode) ?? 0) + 1);
  const [usual] = [...counts].sort(([codeA, a], [codeB, b]) => b - a || codeB - codeA);
  if (usual === undefined) throw new Error('no run was simulated');
  return usual[0];
}

function spread(values: readonly number[]): Spread {
  const sorted = [...values].sort((a, b) => a - b);
  return { p50: quantile(sorted, 0.5), p95: quantile(sorted, 0.95) };
}

/** The smallest value that at least this share of the sorted values does not exceed. */
const quantile = (sorted: readonly number[], share: number): number =>
  sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)]!;
