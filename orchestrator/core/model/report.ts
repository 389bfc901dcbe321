/** Documents stored with a run: its report, and figures that later runs are compared with. */
import type { MarkCounts } from '../../../shared/domain/ambiguous-number.ts';
import type { DecimalMark } from '../../../shared/domain/currencies.ts';
import type { Evidence } from '../../../shared/domain/verdict.ts';
import type { ExitCode } from '../../../shared/domain/exit-codes.ts';
import type { ReasonRow } from '../../../shared/domain/reason-row.ts';
import type { LeftOutCounts } from '../../../shared/domain/left-out.ts';
import type { FailureReason, OutcomeCounts } from '../../../shared/domain/outcome.ts';
import type { EpochId } from '../../../shared/domain/epoch-id.ts';
import type { RobotsPolicy } from '../../../shared/domain/robots-matcher.ts';
import type { DiscoveryCounts } from './discovery.ts';
import type { HostCounts } from './run-hosts.ts';
import type { RunPhase } from '../../../shared/domain/states.ts';

export interface BanReport extends EpochId {
  address: string | null;
  /** Name of the ban rule that matched; docs/bans.md lists them. */
  rule: string;
  atMs: number;
  /** When the address left, or would have left, its cool-down. */
  untilMs: number | null;
  overAtMs: number | null;
  evidence: Evidence;
}

export interface NumberReport {
  field: string;
  /** The decimal mark of the column; null where its values show none, too few of one, or both. */
  mark: DecimalMark | null;
  /** Products whose numbers show each mark beyond doubt. */
  shown: MarkCounts;
  /** Values that were read by that mark. */
  decided: number;
  /** Values that were left empty. */
  empty: number;
  /** The text of one of those; null when there is none. */
  example: string | null;
}

export interface ShardReport extends EpochId, OutcomeCounts {
  /** The region; omitted in a run of one. */
  region?: string;
  instanceId: string | null;
  address: string | null;
  assigned: number;
  minGapMs: number | null;
  requests: number;
}

/** Pages for which the site answered 304 (`site.conditional`). */
export interface UnchangedPages {
  products: number;
  /** The size of these pages' bodies, as they were transferred when they were read last. */
  savedBytes: number;
}

/** Further pages that products were stored without. */
export interface FurtherPagesReport {
  leftOut: LeftOutCounts;
  /** Products whose rows may not be all, with a few of them; older rows of theirs were kept. Only with `rows`. */
  partial: { products: number; examples: string[] };
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
  products: OutcomeCounts & {
    planned: number;
    /** Mean number in the last whole runs; null without a run to compare with. */
    usual: number | null;
    duplicates: number;
    reasons: Partial<Record<FailureReason, number>>;
  };
  /** What has become of the hosts; omitted for a run of one site. */
  hosts?: HostCounts;
  /** Why products have no row, the most frequent reason first; reports of earlier versions have none. */
  reasons?: readonly ReasonRow[];
  instances: { planned: number; launched: number; replaced: number; terminated: number };
  shards: ShardReport[];
  politeness: {
    /** The interval at the end: planned, or the Crawl-delay of robots.txt where that is longer. */
    intervalMs: number;
    minGapMs: number | null;
    /** Requests of all instances, canaries among them. */
    requests: number;
    canaries: number;
    /** The robots.txt policy; null when the main server that wrote the report never read it. */
    robots: Pick<RobotsPolicy, 'access' | 'crawlDelayMs' | 'source'> | null;
  };
  /** Every time the site refused an address, in order. */
  bans: BanReport[];
  /** Pages got with a browser. */
  rendered: number;
  /** The stored products whose page was unchanged; omitted where there was none. */
  unchanged?: UnchangedPages;
  /** What stored products come without; omitted where no page was left out. */
  furtherPages?: FurtherPagesReport;
  cost: { estimated: number; actual: number; currency: 'USD' };
  timings: {
    launchMs: number | null;
    dispatchMs: number | null;
    crawlMs: number | null;
    loadMs: number | null;
    publishMs: number | null;
  };
  /** What the values look like; omitted where no row was stored, and by earlier versions. */
  values?: ValueProfile;
  /** Fields with ambiguous numbers; reports of earlier versions have none. */
  numbers?: readonly NumberReport[];
  /** What was discovered; omitted for a run that is no discovery. */
  discovery?: DiscoveryCounts & {
    /** URLs that wait for the next one. */
    waiting: number;
    /** Pages without a product, which are in no count of `products`; reports of earlier versions count them there. */
    linkPages?: OutcomeCounts & { planned: number };
  };
  /** What AWS has not let the run remove, with its price a month; omitted where nothing is left. */
  leftBehind?: readonly string[];
  /** What a person should read: console output of boots that failed, uneven shards, skewed clocks … */
  notes: string[];
}

/** How full the results of one run were. Shares lie between 0 and 1. */
export interface FillRates {
  /** Products that were stored, of those that were crawled. */
  stored: number;
  /** Rows with a value, by field; no entry when there was no row. */
  fields: Record<string, number>;
  /**
   * Pages and rows that several stored products share, and assertions that values broke, a line each; omitted where
   * there are none.
   */
  notes?: string[];
}

/** The values of one field in a sample. Shares lie between 0 and 1. */
export interface FieldValues {
  /** Rows with a value. */
  filled: number;
  /** The share of the values that are zero, or a text without a character. */
  empty: number;
  /** The share of the values that are the most frequent one. */
  top: number;
  /** The median of numbers, and what nine in ten of them lie between. */
  numbers?: { low: number; median: number; high: number };
  /** Shares of the most frequent currencies, by ISO 4217 code. */
  currencies?: Record<string, number>;
  /** Rows with another value than before; omitted where there was none before. */
  changed?: number;
  /**
   * What the guard compares, over products that earlier runs had as well if there are enough: values that are not zero
   * or empty, that are not the most frequent one, that have kept their magnitude or currency.
   */
  sound: { nonzero?: number; varied?: number; kept?: number };
}

/** What the values of a run look like, in a sample of its stored products. */
export interface ValueProfile {
  /** The fingerprint of the mapping and the rules by which pages are read: only runs with the same one are compared. */
  fingerprint: string;
  /** Products of the sample. */
  products: number;
  /** Those of them that an earlier run with this fingerprint has published. */
  common: number;
  /** No entry for a field without a value. */
  fields: Record<string, FieldValues>;
  /** Why nothing was compared; omitted when it was. */
  note?: string;
}

/** What a run over the whole of `products.query` records about its list. Runs over other products record none. */
export interface ListRecord {
  /** Runs with the same key are compared with each other. */
  key: string;
  /** Mean number of products in earlier runs; null without any. */
  usual: number | null;
  /** Length of the list, where the run crawls only what is due of it. */
  length?: number;
  /** The user has accepted this length: runs before this one no longer count. */
  accepted: boolean;
}

/** An earlier run of the same list. */
export interface ListedRun {
  products: number;
  accepted: boolean;
}
