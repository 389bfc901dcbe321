/** What came out of one simulated run. */
import type { ExitCode } from '../../shared/domain/exit-codes.ts';
import { EXIT } from '../../shared/domain/exit-codes.ts';
import type { RunPhase } from '../../shared/domain/states.ts';
import { billingTerms } from '../control/model/run-settings.ts';
import { actualCost } from '../plan/prices.ts';
import type { SimState } from './state.ts';

/** Something that happened, after the start of the run. */
export interface Tale {
  atMs: number;
  text: string;
}

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
  /** From the last word of each lost instance until all of its products had new owners; null where they never had. */
  reassignedAfterMs: (number | null)[];
  tale: Tale[];
  /** What the simulation itself did. */
  effort: { events: number; decisions: number };
}

export function resultOf(state: SimState, tale: Tale[], effort: SimResult['effort']): SimResult {
  const { world, work, ordered, machines, losses, nowMs } = state;
  const { run } = world;
  const used = ordered.filter((r) => r.instanceId !== null);
  const finishedAtMs = run.finishedAtMs ?? nowMs;
  // As EC2 bills it, which need not be what the main server has noticed.
  const billed = machines.map(({ cloud, endedAtMs }) => ({
    instanceType: cloud.instanceType,
    launchedAtMs: cloud.launchedAtMs,
    endedAtMs: endedAtMs ?? nowMs,
  }));
  return {
    state: run.phase,
    reason: run.reason,
    exitCode: run.exitCode ?? EXIT.internal,
    onTime: finishedAtMs <= run.deadlineAtMs && work.totals.failed === 0,
    endMs: finishedAtMs - run.startedAtMs,
    products: {
      planned: run.planned,
      stored: work.totals.stored,
      gone: work.totals.gone,
      failed: work.totals.failed,
    },
    instances: {
      planned: run.plan.instances,
      launched: used.length,
      replaced: used.filter((r) => r.epoch > 1).length,
      banned: used.filter((r) => r.incident?.verdict === 'banned').length,
    },
    cost: actualCost({
      region: run.settings.aws.region,
      ...billingTerms(run.settings),
      instances: billed,
      startedAtMs: run.startedAtMs,
      finishedAtMs,
      products: run.planned,
    }).total,
    instanceMs: billed.reduce((sum, i) => sum + i.endedAtMs - i.launchedAtMs, 0),
    reassignedAfterMs: losses.map((l) => (l.reassignedAtMs === null ? null : l.reassignedAtMs - l.lastHeardMs)),
    tale,
    effort,
  };
}
