/** The document of `run --json`, also kept in the run's row. */
import type { ExitCode } from '../../shared/domain/exit-codes.ts';
import type { FailureReason } from '../../shared/domain/outcome.ts';
import type { RobotsPolicy } from '../../shared/domain/robots.ts';
import type { RunPhase } from '../../shared/domain/states.ts';
import type { BanReport } from './ban-report.ts';
import type { NumberReport } from './number-report.ts';
import type { RunRecord } from './stores.ts';

export interface ShardReport {
  slot: number;
  epoch: number;
  instanceId: string | null;
  address: string | null;
  assigned: number;
  stored: number;
  gone: number;
  failed: number;
  minGapMs: number | null;
  requests: number;
}

export interface RunReport {
  run: string;
  /** The run whose failed products this one has tried again. */
  parent: string | null;
  state: RunPhase;
  reason: string | null;
  exitCode: ExitCode;
  deadline: string;
  startedAt: string;
  finishedAt: string | null;
  onTime: boolean;
  products: {
    planned: number;
    /** Mean number in the last whole runs; null without a run to compare with. */
    usual: number | null;
    duplicates: number;
    stored: number;
    gone: number;
    failed: number;
    reasons: Partial<Record<FailureReason, number>>;
  };
  instances: { planned: number; launched: number; replaced: number; terminated: number };
  shards: ShardReport[];
  politeness: {
    /** The interval at the end: planned, or the Crawl-delay of robots.txt where that is longer. */
    intervalMs: number;
    minGapMs: number | null;
    /** Requests of all instances, canaries among them. */
    requests: number;
    /** Requests for canary pages. */
    canaries: number;
    /** Null when the main server that wrote the report never read it. */
    robots: Pick<RobotsPolicy, 'access' | 'crawlDelayMs' | 'source'> | null;
  };
  /** Every time the site refused an address, in order. */
  bans: BanReport[];
  /** Pages got with a browser. */
  rendered: number;
  cost: { estimated: number; actual: number; currency: 'USD' };
  timings: {
    launchMs: number | null;
    dispatchMs: number | null;
    crawlMs: number | null;
    loadMs: number | null;
    publishMs: number | null;
  };
  /** Fields with ambiguous numbers; reports of earlier versions have none. */
  numbers?: readonly NumberReport[];
  /** What a person should read: console output of boots that failed, uneven shards, skewed clocks … */
  notes: string[];
}

/** Prefix of the note in finish.ts about held rows. */
const HELD_NOTE = 'nothing was published: ';

/**
 * The run's stored report. A crash between the end of a held run and its report leaves a report with the state `held`:
 * then the end of the run is taken from its row.
 */
export function reportOf(run: RunRecord): RunReport | null {
  const { report, phase, reason, exitCode, finishedAtMs } = run;
  if (report === null || report.state === phase) return report;
  return {
    ...report,
    state: phase,
    reason,
    exitCode: exitCode ?? report.exitCode,
    finishedAt: finishedAtMs === null ? null : new Date(finishedAtMs).toISOString(),
    onTime: phase !== 'held' && finishedAtMs !== null && finishedAtMs <= run.deadlineAtMs,
    notes: report.notes.filter((note) => !note.startsWith(HELD_NOTE)),
  };
}
