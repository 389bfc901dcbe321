/** What came out of one simulated run. */
import { EXIT, type ExitCode } from '../../../shared/domain/exit-codes.ts';
import type { RunPhase } from '../../../shared/domain/states.ts';
import { actualCost } from '../plan/prices.ts';
import { type TimelineEntry, timelineOf } from '../read/timeline.ts';
import type { Losses } from './losses.ts';
import type { HostsSeen, SimulatedHosts } from './many-hosts.ts';
import type { Scenario } from './scenario.ts';
import type { SimulatedWorld } from './world.ts';

export interface SimResult {
  state: RunPhase;
  reason: string | null;
  exitCode: ExitCode;
  onTime: boolean;
  /** When the rows were in the table, after the start. */
  endMs: number;
  products: { planned: number; stored: number; gone: number; failed: number };
  instances: { planned: number; launched: number; replaced: number; banned: number };
  /** USD, at list prices. */
  cost: number;
  /** Time for which instances were paid, all together. */
  instanceMs: number;
  /**
   * The times from the last heartbeat of each lost instance until all of its products had new owners; null where they
   * never had.
   */
  reassignedAfterMs: (number | null)[];
  /** What happened, in words; times count from the start of the run. */
  timeline: TimelineEntry[];
  /** What the many hosts saw; omitted for one site. */
  hosts?: HostsSeen;
  /** What the simulation itself did. */
  effort: { events: number; decisions: number };
}

/**
 * The run is billed on the terms of its plan, and each instance where the plan has it: all of them run in one region.
 */
export function resultOf(
  { db, run: { id }, cloud, clock, server }: SimulatedWorld,
  { input, plan }: Pick<Scenario, 'input' | 'plan'>,
  { losses, hosts }: { losses: Losses; hosts: SimulatedHosts | null },
): SimResult {
  const { record, instances, items, events } = db.run(id);
  const used = [...instances.values()].filter((r) => r.instanceId !== null);
  const finishedAtMs = record.finishedAtMs ?? clock.now();
  const products = { planned: record.planned, stored: 0, gone: 0, failed: 0 };
  let late = 0;
  for (const { outcome, reason } of items) {
    products[outcome ?? 'failed']++;
    // Hosts that never answer are part of a list of many.
    if ((outcome ?? 'failed') === 'failed' && !(hosts !== null && reason === 'network')) late++;
  }
  // As EC2 bills it, which need not be what the main server has noticed.
  const homes = (plan.regions ?? []).flatMap(({ region, instances: n }) =>
    Array.from({ length: n }, () => ({ region })),
  );
  const billed = cloud.compute.all().map(({ id: machine, instanceType, launchedAtMs }, i) => ({
    ...homes[i % homes.length],
    instanceType,
    launchedAtMs,
    endedAtMs: cloud.compute.endedAtMs(machine) ?? clock.now(),
  }));
  return {
    state: record.phase,
    reason: record.reason,
    exitCode: record.exitCode ?? EXIT.internal,
    onTime: finishedAtMs <= record.deadlineAtMs && late === 0,
    endMs: finishedAtMs - record.startedAtMs,
    products,
    instances: {
      planned: record.plan.instances,
      launched: used.length,
      replaced: used.filter((r) => r.epoch > 1).length,
      banned: used.filter((r) => r.incident?.verdict === 'banned').length,
    },
    cost: actualCost({ ...input, instances: billed, startedAtMs: record.startedAtMs, finishedAtMs }).total,
    instanceMs: billed.reduce((sum, i) => sum + i.endedAtMs - i.launchedAtMs, 0),
    reassignedAfterMs: losses.latencies(),
    timeline: timelineOf(record, events).map(({ atMs, text }) => ({ atMs: atMs - record.startedAtMs, text })),
    ...(hosts === null ? {} : { hosts: hosts.seen }),
    effort: { events: clock.events, decisions: server?.rounds ?? 0 },
  };
}
