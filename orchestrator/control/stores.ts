/**
 * What the control core needs of the database, in four small ports, one table family each. The adapters are in db/, one
 * set for MySQL, MariaDB and SQLite. Every method is one transaction. Methods that change a run's rows take the fence:
 * the number under which the caller holds the lock. A caller with an old fence changes nothing and gets `lock-held`.
 */
import type { FailureReason, OutcomeCounts } from '../../shared/domain/outcome.ts';
import type { InstancePhase, RunPhase } from '../../shared/domain/states.ts';
import type { Product } from '../../shared/domain/product.ts';
import type { Hello, PartRef, Progress } from '../../shared/wire/callbacks.ts';
import type { ItemResult } from '../../shared/wire/part.ts';
import type { Balancer } from '../cloud/load-balancer.ts';
import type { CloudState, LaunchRequest } from '../cloud/compute.ts';
import type { Plan } from '../plan/plan.ts';
import type { ExitCode } from '../../shared/domain/exit-codes.ts';
import type { RunReport } from './report.ts';
import type { RunSettings } from './run-settings.ts';

export interface RunRecord {
  id: string;
  /** The run whose failed products this one retries. */
  parentId: string | null;
  phase: RunPhase;
  reason: string | null;
  exitCode: ExitCode | null;
  startedAtMs: number;
  deadlineAtMs: number;
  finishedAtMs: number | null;
  dryRun: boolean;
  /** The configuration as it was when the run began: a changed file does not change a running run. */
  settings: RunSettings;
  plan: Plan;
  /** Distinct products. */
  planned: number;
  /** How many further times IDs were listed. */
  duplicates: number;
  /** Base64 PKCS 8 and SPKI of the run's Ed25519 key. */
  privateKey: string;
  publicKey: string;
  balancer: Balancer | null;
  /** A person's wish that the loop has yet to carry out. */
  request: 'stop' | 'cancel' | null;
  report: RunReport | null;
}

export type NewRun = Omit<
  RunRecord,
  'phase' | 'reason' | 'exitCode' | 'finishedAtMs' | 'balancer' | 'request' | 'report'
>;

export interface RunEvent {
  atMs: number;
  /** `run`, `instance`, `chunk`, `part`, `alarm` … */
  kind: string;
  slot: number | null;
  epoch: number | null;
  from: string | null;
  to: string | null;
  detail: string | null;
}

export interface LockHolder {
  /** `host:pid` */
  owner: string;
  runId: string | null;
  expiresAtMs: number;
}

export interface RunStore {
  /** Takes the lock for `leaseMs`, or says who has it. An expired lease is taken over; `steal` takes a live one (its holder is known to be dead). */
  acquireLock(
    owner: string,
    nowMs: number,
    leaseMs: number,
    steal?: LockHolder,
  ): Promise<{ fence: number } | { heldBy: LockHolder }>;
  /** Prolongs the lease and names the run it is for; false when the lock has been lost. */
  renewLock(fence: number, nowMs: number, leaseMs: number, runId: string | null): Promise<boolean>;
  releaseLock(fence: number): Promise<void>;

  /** Run, items (numbered 1.. in the order given) and chunks in one transaction; also makes the staging table. */
  create(run: NewRun, productIds: readonly string[], fence: number, nowMs: number): Promise<void>;
  get(id: string): Promise<RunRecord | null>;
  /** Newest first. */
  list(limit: number): Promise<RunRecord[]>;
  /** Moves the run if it is in `from`, with an event; false when it was elsewhere. The only way a phase changes. */
  move(
    id: string,
    from: RunPhase,
    to: RunPhase,
    fence: number,
    nowMs: number,
    detail?: { reason?: string; exitCode?: ExitCode },
  ): Promise<boolean>;
  setBalancer(id: string, balancer: Balancer | null, fence: number): Promise<void>;
  /** Written by `stop` and `cancel` from another process: needs no lock. */
  setRequest(id: string, request: 'stop' | 'cancel'): Promise<void>;
  setReport(id: string, report: RunReport, fence: number): Promise<void>;
  addEvent(id: string, event: RunEvent): Promise<void>;
  events(id: string, limit: number): Promise<RunEvent[]>;
}

export interface InstanceRecord {
  slot: number;
  epoch: number;
  phase: InstancePhase;
  /** When it entered the phase. */
  phaseAtMs: number;
  reason: string | null;
  instanceId: string | null;
  address: string | null;
  zone: string | null;
  /** The claim: what EC2 is or was asked. */
  request: LaunchRequest;
  /** MAC key of the hello. */
  token: string;
  /** RunInstances calls sent so far. */
  attempts: number;
  lastError: string | null;
  claimedAtMs: number;
  launchedAtMs: number | null;
  terminatedAtMs: number | null;
  /** Last state EC2 showed; null before it was seen. */
  cloudState: CloudState | null;
  registered: boolean;
  publicKey: string | null;
  counter: number;
  lastHeartbeatAtMs: number | null;
  progress: Progress | null;
  problem: string | null;
  sealed: boolean;
  manifestKey: string | null;
  manifestSha256: string | null;
  consoleOutput: string | null;
}

export type HelloResult = 'accepted' | 'repeated' | 'other-key' | 'other-instance' | 'too-late' | 'unknown';

/** What may change on an instance's row beside its phase. */
export type InstancePatch = Partial<
  Pick<
    InstanceRecord,
    | 'instanceId'
    | 'address'
    | 'zone'
    | 'attempts'
    | 'lastError'
    | 'launchedAtMs'
    | 'terminatedAtMs'
    | 'cloudState'
    | 'registered'
    | 'sealed'
    | 'manifestKey'
    | 'manifestSha256'
    | 'consoleOutput'
    | 'problem'
  >
>;

export interface FleetStore {
  /** Writes the claim (phase `claimed`); false when (run, slot, epoch) is claimed already. */
  claim(
    runId: string,
    claim: { slot: number; epoch: number; request: LaunchRequest; token: string },
    fence: number,
    nowMs: number,
  ): Promise<boolean>;
  /** Every claim of the run, all epochs, ordered by slot and epoch. */
  instances(runId: string): Promise<InstanceRecord[]>;
  get(runId: string, slot: number, epoch: number): Promise<InstanceRecord | null>;
  patch(runId: string, slot: number, epoch: number, patch: InstancePatch, fence: number): Promise<void>;
  /** Moves the instance if it is in `from`, with an event; false when it was elsewhere. The only way a phase changes. */
  move(
    runId: string,
    slot: number,
    epoch: number,
    from: InstancePhase,
    to: InstancePhase,
    fence: number,
    nowMs: number,
    reason?: string,
  ): Promise<boolean>;
  /** Binds the key to (slot, epoch) once: phase pending or booting → ready. `other-instance` when the id is not the one EC2 gave; `too-late` when the phase is past `ready` or given up. */
  hello(runId: string, slot: number, epoch: number, hello: Hello, fence: number, nowMs: number): Promise<HelloResult>;
  /** Takes a heartbeat whose counter is higher than any before; false for a replay. */
  heartbeat(
    runId: string,
    slot: number,
    epoch: number,
    beat: { counter: number; progress: Progress; problem: string | null },
    fence: number,
    nowMs: number,
  ): Promise<boolean>;
}

/** Chunk with what is left to crawl in it. */
export interface OpenChunk {
  /** `<index>-<generation>` */
  id: string;
  products: Product[];
}

export interface WorkCounts {
  chunks: number;
  waiting: number;
  granted: number;
  /** Chunks granted to each (slot, epoch). */
  bySlot: { slot: number; epoch: number; chunks: number; products: number }[];
}

export interface WorkStore {
  counts(runId: string): Promise<WorkCounts>;
  /** Chunks nobody owns, in order, with their products that have no outcome; at most `limit`, none of `except`. */
  waiting(runId: string, limit: number, except: ReadonlySet<string>): Promise<OpenChunk[]>;
  /**
   * Gives each chunk to (slot, epoch) unless somebody has it or its generation is past. Returns the ids that are now (or
   * were already) its own; `limitChunks` is the most it may own in all.
   */
  grant(
    runId: string,
    slot: number,
    epoch: number,
    chunkIds: readonly string[],
    limitChunks: number,
    fence: number,
    nowMs: number,
  ): Promise<string[]>;
  /** Takes back every chunk of (slot, epoch) that still has products without outcome, as the next generation; returns how many products. */
  release(runId: string, slot: number, epoch: number, fence: number, nowMs: number): Promise<number>;
  /** Ends every product that has no outcome as failed(reason); returns how many. */
  failRest(runId: string, reason: FailureReason, fence: number, nowMs: number): Promise<number>;
  /** Truth by counting items: slow on millions, for the report and `verify`. */
  outcomes(
    runId: string,
  ): Promise<OutcomeCounts & { planned: number; open: number; reasons: Partial<Record<FailureReason, number>> }>;
  /** Outcomes of the products of one (slot, epoch), from the ledger. */
  outcomesBySlot(runId: string): Promise<({ slot: number; epoch: number } & OutcomeCounts)[]>;
}

export interface PartRecord extends PartRef {
  slot: number;
  epoch: number;
  state: 'seen' | 'loaded' | 'failed';
  stored: number;
  gone: number;
  failed: number;
}

export interface ResultStore {
  /** Enters parts into the ledger as `seen`; known ones are left as they are. Returns the highest seq without a gap below it, -1 for none. */
  register(runId: string, slot: number, epoch: number, parts: readonly PartRef[], fence: number): Promise<number>;
  parts(runId: string): Promise<PartRecord[]>;
  /**
   * Loads one part in one transaction: rows into staging (first write wins), outcomes into items (first outcome wins),
   * the ledger row to `loaded`. Loading it again changes nothing. A row the database refuses becomes failed(load).
   */
  load(
    runId: string,
    part: { slot: number; epoch: number; seq: number },
    results: readonly ItemResult[],
    fence: number,
    nowMs: number,
  ): Promise<OutcomeCounts>;
  /** The part cannot be read: its products stay open, its row says `failed`. */
  failPart(
    runId: string,
    part: { slot: number; epoch: number; seq: number },
    detail: string,
    fence: number,
  ): Promise<void>;
  /** Sums over loaded parts: quick. */
  totals(runId: string): Promise<OutcomeCounts & { seen: number; loaded: number }>;
  /**
   * Staging → result table by one INSERT … SELECT upsert, together with the run's move from `loading` to the given end,
   * in one transaction. With on_gone `delete` the gone products' rows go in the same transaction. Publishing again changes nothing.
   */
  publish(
    runId: string,
    to: 'completed' | 'banned' | 'failed' | 'cancelled',
    end: { exitCode: ExitCode; reason: string | null },
    fence: number,
    nowMs: number,
  ): Promise<{ rows: number }>;
  /** Drops the staging table once the run is published. */
  dropStaging(runId: string): Promise<void>;
  /** Number of rows of the result table with this run_id, and the first few for the report. */
  resultRows(runId: string, sample: number): Promise<{ rows: number; sample: Record<string, unknown>[] }>;
}

/** The user's product query, read once, as text, in order. Throws `products-query` and `product-id-invalid`. */
export interface ProductSource {
  read(): AsyncIterable<string>;
}
