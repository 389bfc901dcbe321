/** The documents that are kept of a run: its report, and what later runs are compared with. */

import type { MarkCounts } from '../../../shared/domain/unread-number.ts';
import type { DecimalMark } from '../../../shared/domain/currencies.ts';
import type { Evidence } from '../../../shared/domain/verdict.ts';
import type { ExitCode } from '../../../shared/domain/exit-codes.ts';
import type { FailureReason } from '../../../shared/domain/outcome.ts';
import type { RobotsPolicy } from '../../../shared/domain/robots-matcher.ts';
import type { RunPhase } from '../../../shared/domain/states.ts';

export interface BanReport {
  slot: number;
  epoch: number;
  address: string | null;
  /** Name of the ban rule that spoke; docs/bans.md lists them. */
  rule: string;
  atMs: number;
  /** When the address left, or would have left, its cool-down. */
  untilMs: number | null;
  /** When it was let in again; null when it was not. */
  overAtMs: number | null;
  evidence: Evidence;
}

export interface NumberReport {
  field: string;
  /** The decimal mark that the other values of the column show; null where they show none or both. */
  mark: DecimalMark | null;
  /** Products whose numbers show each mark beyond doubt. */
  shown: MarkCounts;
  /** Values that were read by it. */
  decided: number;
  /** Values that were left empty. */
  empty: number;
  /** The text of one of those; null when there is none. */
  example: string | null;
}
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
    /** How many there were in the last whole runs, on average; null where there was none to compare with. */
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
    /** As it was kept in the end: planned, or what robots.txt asks for where that is longer. */
    intervalMs: number;
    minGapMs: number | null;
    /** Requests of all instances, canaries among them. */
    requests: number;
    /** Requests for canary pages, asked again in doubt. */
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
  /** Fields with numbers that their own texts do not decide; reports of earlier versions have none. */
  numbers?: readonly NumberReport[];
  /** What a person should read: console output of boots that failed, uneven shards, skewed clocks … */
  notes: string[];
}
/** How full the results of one run were. Shares lie between 0 and 1. */

export interface FillRates {
  /** Products that were stored, of those that were crawled. */
  stored: number;
  /** Rows with a value, by field; no entry when there was no row. */
  fields: Record<string, number>;
}
/** What a run over the whole of `products.query` keeps of its list. Runs of other products (a retry) keep none: they are no measure. */

export interface ListRecord {
  /** Runs with the same key are compared with each other. */
  key: string;
  /** How many products there were in earlier runs, on average; null where there was none. */
  usual: number | null;
  /** A person has said that this length is right: earlier runs are no measure any more. */
  accepted: boolean;
}
/** An earlier run of the same list. */

export interface ListedRun {
  products: number;
  accepted: boolean;
}
