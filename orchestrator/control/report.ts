/** The document of `run --json`, also kept in the run's row. */
import type { ExitCode } from '../../shared/domain/exit-codes.ts';
import type { FailureReason } from '../../shared/domain/outcome.ts';
import type { RunPhase } from '../../shared/domain/states.ts';

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
  state: RunPhase;
  reason: string | null;
  exitCode: ExitCode;
  deadline: string;
  startedAt: string;
  finishedAt: string | null;
  onTime: boolean;
  products: {
    planned: number;
    duplicates: number;
    stored: number;
    gone: number;
    failed: number;
    reasons: Partial<Record<FailureReason, number>>;
  };
  instances: { planned: number; launched: number; replaced: number; terminated: number };
  shards: ShardReport[];
  politeness: { intervalMs: number; minGapMs: number | null };
  cost: { estimated: number; actual: number; currency: 'USD' };
  timings: {
    launchMs: number | null;
    dispatchMs: number | null;
    crawlMs: number | null;
    loadMs: number | null;
    publishMs: number | null;
  };
  /** What a person should read: console output of boots that failed, uneven shards, skewed clocks … */
  notes: string[];
}
