/**
 * What a run did, as far as it was observed: the same structure for simulated runs, runs in the sandbox and runs on
 * AWS. The invariants are checkers over it. A list that was not recorded is null, and what needs it is not checked.
 */
import type { EpochId } from '../../../shared/domain/epoch-id.ts';
import type { RunEvent, InstanceRecord, PartRecord, RunRecord } from '../../../orchestrator/core/model/stores.ts';
import type { FrontierRow } from '../../../orchestrator/features/discovery/frontier.ts';
import type { VerifyFacts } from '../../../orchestrator/core/verify/verify-facts.ts';

/** A machine, as the cloud shows it. */
export interface SeenMachine {
  id: string;
  /** Null where it carries no tags of this run: a foreign machine. */
  slot: number | null;
  epoch: number | null;
  fromMs: number;
  /** When it ceased to cost money; null while it runs. */
  toMs: number | null;
  /** When it ceased to run, stopped ones too; null while it runs. Omitted where that was not observed. */
  goneMs?: number | null;
  /**
   * False when no timer of its own can end it: its user data never ran, or it was stopped. Omitted where that was not
   * observed.
   */
  timer?: boolean;
  /** True when this run asked the cloud to terminate it. */
  terminated: boolean;
}

/** A request to the site. */
export interface SeenRequest {
  atMs: number;
  address: string;
  slot: number;
  epoch: number;
  product: number;
  /** What the site and robots.txt allowed an address at that time, start to start. */
  intervalMs: number;
  /** False where robots.txt, as the instance knew it, forbids the page. */
  allowed: boolean;
  /** The address was in its ban window. */
  banned: boolean;
  /** The operator had paused the run, and the instance had heard of it. */
  paused: boolean;
  /** The most that the operator lets all addresses send that have heard of it; null for one that has not. */
  cap: SeenCap | null;
}

/** A request to one of many hosts, for a page or for its robots.txt. */
export interface SeenHostRequest {
  atMs: number;
  host: string;
  slot: number;
  epoch: number;
}

/** From then on a host gets no request before `untilMs`, and none within `delayMs` of the one before. */
export interface SeenHostWish {
  atMs: number;
  host: string;
  delayMs: number;
  untilMs: number;
  /** Who knows it; null: the main server, and so every owner that comes later. */
  owner: EpochId | null;
}

/** The rate of this number of addresses at this interval, all together. */
interface SeenCap {
  /** When it was asked for. */
  atMs: number;
  addresses: number;
  delayMs: number;
}

/** A chunk that the main server has given to an instance. */
export interface SeenGrant {
  atMs: number;
  chunk: string;
  slot: number;
  epoch: number;
}

/** A callback that should change nothing: forged, replayed, of another slot or of an old epoch. */
export interface SeenIntruder {
  atMs: number;
  what: string;
  status: number;
  /** True when it was answered as if it were valid; a reply that only fences the caller changes nothing. */
  accepted: boolean;
}

/** A write to the database, and whether its fence was the one in force. */
export interface SeenWrite {
  atMs: number;
  method: string;
  fenced: boolean;
}

/** The outcome of a product compared with what the site would have given. */
export interface SeenProduct {
  n: number;
  id: string;
  outcome: string | null;
  reason: string | null;
  /** What the site gives for it: null where that is not known. */
  expected: string | null;
  /** False where the row in the result table is not the one that the site gave. */
  rowRight: boolean;
  /** True where it failed although its chunk is still owned by an instance that is gone. */
  stranded: boolean;
  /** Whether it is partial: as the site gives it, where that is known, and in the ledger. */
  partial: { expected: boolean | null; ledger: boolean };
  /** Whether rows of an earlier night stand that this one does not show; null where there were none. */
  hasOlder: boolean | null;
}

/** A URL of a discovery's frontier, when its run was over. */
export type SeenUrl = Pick<FrontierRow, 'path' | 'id' | 'state' | 'depth' | 'found_run' | 'run_id' | 'n'>;

/** The links of a page, by the rules: those that may be taken by what they are known by, and how many may not. */
interface SeenLinks {
  found: number;
  keys: readonly string[];
  denied: number;
}

/** What stores and parts count of products that were stored without further pages. */
interface SeenPartial {
  /** Partial products, by the totals. */
  products: number;
  /** Products with pages left out, by reason. */
  leftOut: readonly number[];
}

export interface History {
  run: RunRecord;
  partial: SeenPartial;
  facts: VerifyFacts;
  instances: readonly InstanceRecord[];
  parts: readonly PartRecord[];
  /** Oldest first. */
  events: readonly RunEvent[];
  /** When the history ends. */
  nowMs: number;
  /** How long the main server, the database or the cloud were away: time limits are extended by it. */
  outageMs: number;
  /**
   * True when the main server was killed permanently: then machines end by their own timers, those without one by gc.
   */
  abandoned: boolean;
  /** Until when gc ran repeatedly after a run without a main server; null when it did not run. */
  gcUntilMs: number | null;
  machines: readonly SeenMachine[] | null;
  requests: readonly SeenRequest[] | null;
  /** Of a run of many hosts. */
  hostRequests: readonly SeenHostRequest[] | null;
  hostWishes: readonly SeenHostWish[] | null;
  grants: readonly SeenGrant[] | null;
  intruders: readonly SeenIntruder[] | null;
  writes: readonly SeenWrite[] | null;
  products: readonly SeenProduct[] | null;
  /**
   * Keys of complete parts that were in the bucket before their epoch was closed: products of later parts went to
   * others.
   */
  objects: readonly string[] | null;
  /** Of a discovery: its URLs, and what the page of a path links to. */
  frontier: { urls: readonly SeenUrl[]; linksOf: (path: string, depth: number) => SeenLinks } | null;
  /** Texts that people read (logs, report, alarms), and the secrets that may be in none of them. */
  texts: readonly string[] | null;
  secrets: readonly string[] | null;
}

export interface Violation {
  invariant: `I${number}`;
  sentence: string;
}

export type Invariant = (history: History) => Violation[];

/** A violation for each sentence. */
export const violationsOf = (invariant: Violation['invariant'], sentences: readonly string[]): Violation[] =>
  sentences.map((sentence) => ({ invariant, sentence }));

export const placeOf = (at: { slot: number | null; epoch: number | null }): string =>
  `slot ${at.slot} epoch ${at.epoch}`;
