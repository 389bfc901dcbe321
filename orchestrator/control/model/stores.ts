/**
 * What the control core needs of the database, in four small ports, one table family each. The adapters are in db/, one
 * set for MySQL, MariaDB and SQLite. Every method is one transaction. Methods that change a run's rows take the fence:
 * the number under which the caller holds the lock. A caller with an old fence changes nothing and gets `lock-held`.
 */
import type { EpochId } from '../../../shared/domain/epoch-id.ts';
import type { FailureReason, OutcomeCounts } from '../../../shared/domain/outcome.ts';
import type { InstancePhase, RunPhase } from '../../../shared/domain/states.ts';
import type { Product } from '../../../shared/domain/product.ts';
import type { Evidence } from '../../../shared/domain/verdict.ts';
import type { Hello, PartRef, Progress } from '../../../shared/wire/callbacks.ts';
import type { ItemResult } from '../../../shared/wire/part.ts';
import type { Balancer } from '../../cloud/load-balancer.ts';
import type { CloudState, LaunchFailure, LaunchRequest, StateReason } from '../../cloud/compute.ts';
import type { Plan } from '../../plan/plan.ts';
import type { ExitCode } from '../../../shared/domain/exit-codes.ts';
import type { FillRates } from './report.ts';
import type { NumberReport } from './report.ts';
import type { ListedRun } from './report.ts';
import type { RunReport } from './report.ts';
import type { RunSettings } from './run-settings.ts';
import type { StallCause } from './stall-causes.ts';

/** `stop` and `cancel`: a person's wish. The others: the main server's own, when going on would only do harm or bring nothing. */
export type StopRequest = 'stop' | 'cancel' | 'banned' | 'site-changed' | 'no-balancer' | StallCause;

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
  /** Why the run is to end early; the loop has yet to carry it out. */
  request: StopRequest | null;
  /** What uploading and loading have taken so far; not in the database: the observer adds it to what it has read. */
  measuredTailMs?: number | undefined;
  report: RunReport | null;
  /** What became of numbers that their texts did not decide; known when the rows are held or published. */
  numbers?: readonly NumberReport[];
}

export type NewRun = Omit<
  RunRecord,
  'phase' | 'reason' | 'exitCode' | 'finishedAtMs' | 'balancer' | 'request' | 'report' | 'numbers' | 'measuredTailMs'
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

/** A lock that ends with the connection it was taken on. Throws `database-unreachable` when there is no answer. */
export interface ConnectionLock {
  /** Takes it, or finds it taken, without waiting; a lost connection is made anew. Repeatable. */
  acquire(): Promise<'ours' | 'others'>;
  /** Ends the connection of whoever has it, then takes it. Throws `lock-held` when that is not allowed. */
  evict(): Promise<'ours' | 'others'>;
  /** Gives it up and closes the connection; never throws. */
  release(): Promise<void>;
}

/** What keeps a lease honest beside its row: docs/decisions/locks.md. */
export interface LockGuard {
  /** By the one clock that every main server of this database shares. */
  nowMs(): Promise<number>;
  /** Whose name is on the lease, expired or not; null when it is free. */
  holder(): Promise<LockHolder | null>;
  /** The database is a file of this machine: what keeps it from being written is this machine's fault. */
  isFile: boolean;
  /** Null where the database has no such locks. */
  connection: ConnectionLock | null;
}

export interface RunStore {
  /** Left out where nobody else can come (in memory). */
  readonly guard?: LockGuard;
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
  /** Runs over this product list that have come to an end, newest first; not the cancelled, nor those that are held back. */
  listedRuns(listKey: string, limit: number): Promise<ListedRun[]>;
  /**
   * Moves the run if it is in `from`, with an event; false when it was elsewhere, and for `held` when it is to be cancelled.
   * The only way a phase changes. A run that was held keeps its time of ending. `request` is written with the phase.
   */
  move(
    id: string,
    from: RunPhase,
    to: RunPhase,
    fence: number,
    nowMs: number,
    detail?: { reason?: string; exitCode?: ExitCode; request?: StopRequest },
  ): Promise<boolean>;
  setBalancer(id: string, balancer: Balancer | null, fence: number): Promise<void>;
  /**
   * `stop` and `cancel` are written from another process: they need no fence; the main server's own wishes are under its. True
   * when the run will end by it. False for a run that has ended or is held, and where another wish is there already: only
   * `cancel` takes the place of any. Repeating it changes nothing.
   */
  setRequest(id: string, request: 'stop' | 'cancel'): Promise<boolean>;
  setRequest(id: string, request: StopRequest, fence: number): Promise<boolean>;
  setReport(id: string, report: RunReport, fence: number): Promise<void>;
  addEvent(id: string, event: RunEvent): Promise<void>;
  /** Newest first; only those of a kind if one is given. */
  events(id: string, limit: number, kind?: string): Promise<RunEvent[]>;
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
  /** What EC2 said to the last call; null before the first answer, and once the instance is there. */
  answer: LaunchFailure | null;
  /** What is wrong with it by others' word, such as ELBv2's of an unhealthy target. */
  lastError: string | null;
  claimedAtMs: number;
  launchedAtMs: number | null;
  terminatedAtMs: number | null;
  /** Last state EC2 showed; null before it was seen. */
  cloudState: CloudState | null;
  /** Why EC2 ended it without our asking; null while it has not, or does not say. */
  stateReason: StateReason | null;
  registered: boolean;
  publicKey: string | null;
  counter: number;
  lastHeartbeatAtMs: number | null;
  progress: Progress | null;
  problem: string | null;
  sealed: boolean;
  /** When it was asked to make room for a fresh address (`aws.recycle_every`); null while it was not. */
  rotateAtMs: number | null;
  manifestKey: string | null;
  manifestSha256: string | null;
  consoleOutput: string | null;
  /** The last incident it told of, over or not. */
  incident: AddressIncident | null;
}

/** Why an address has stopped by itself, and how far that has come. Times are the main server's. */
export interface AddressIncident {
  verdict: 'suspect' | 'banned';
  /** The ban rule that spoke. */
  rule: string;
  atMs: number;
  /** When the address leaves its cool-down; null for `suspect`. */
  untilMs: number | null;
  /** When the products it had not crawled were taken back. */
  returnedAtMs: number | null;
  /** When the instance said that it was over. */
  overAtMs: number | null;
}

/** What an instance says of its incident. */
export interface IncidentReport extends Pick<AddressIncident, 'verdict' | 'atMs' | 'untilMs'> {
  evidence: Evidence;
}

/** One incident of one instance with its proof, for the report. */
export interface IncidentRecord extends AddressIncident {
  slot: number;
  epoch: number;
  address: string | null;
  evidence: Evidence;
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
    | 'answer'
    | 'lastError'
    | 'stateReason'
    | 'launchedAtMs'
    | 'terminatedAtMs'
    | 'cloudState'
    | 'registered'
    | 'sealed'
    | 'rotateAtMs'
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
    claim: EpochId & { request: LaunchRequest; token: string },
    fence: number,
    nowMs: number,
  ): Promise<boolean>;
  /** Every claim of the run, all epochs, ordered by slot and epoch. */
  instances(runId: string): Promise<InstanceRecord[]>;
  get(runId: string, slot: number, epoch: number): Promise<InstanceRecord | null>;
  patch(runId: string, slot: number, epoch: number, patch: InstancePatch, fence: number): Promise<void>;
  /** Enters the manifest that an instance is said to have written, unless it has one or serves no more; true when it was entered. */
  noteManifest(
    runId: string,
    slot: number,
    epoch: number,
    manifest: { manifestKey: string; manifestSha256: string | null },
    fence: number,
  ): Promise<boolean>;
  /**
   * Moves the instance if it is in `from`, with an event; false when it was elsewhere. The only way a phase changes. To `lost`
   * it goes without its manifest: one that nobody has checked closes nothing. To `terminated` it goes with the time of its end,
   * unless that was known before.
   */
  move(
    runId: string,
    slot: number,
    epoch: number,
    from: InstancePhase,
    to: InstancePhase,
    fence: number,
    nowMs: number,
    reason?: string,
    /** For the event alone; the reason stands in it otherwise. */
    detail?: string,
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
  /** Enters an incident, brings the open one up to date, or with null ends it. Repeating it changes nothing. */
  recordIncident(
    runId: string,
    slot: number,
    epoch: number,
    incident: IncidentReport | null,
    fence: number,
    nowMs: number,
  ): Promise<void>;
  /** Notes that the products of the last incident's instance were taken back. */
  recordReturned(runId: string, slot: number, epoch: number, fence: number, nowMs: number): Promise<void>;
  /** Every incident of the run, in the order in which they began. */
  incidents(runId: string): Promise<IncidentRecord[]>;
}

/** Chunk with what is left to crawl in it. */
export interface OpenChunk {
  /** `<index>-<generation>` */
  id: string;
  products: Product[];
}

/** A chunk that an instance owns. */
export interface OwnedChunk {
  /** `<index>-<generation>` */
  id: string;
  /** Products without an outcome. */
  open: number;
}

/** A product that failed, and why. */
export interface FailedProduct extends Product {
  reason: FailureReason;
  /** One line for people; null for those that nobody has crawled. */
  detail: string | null;
}

export interface WorkCounts {
  chunks: number;
  waiting: number;
  granted: number;
  /** Chunks granted to each (slot, epoch). */
  bySlot: (EpochId & { chunks: number; products: number })[];
}

export interface WorkStore {
  counts(runId: string): Promise<WorkCounts>;
  /** Chunks nobody owns, in order, with their products that have no outcome; at most `limit`, none of `except`. */
  waiting(runId: string, limit: number, except: Pick<ReadonlySet<string>, 'has' | 'size'>): Promise<OpenChunk[]>;
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
  returnChunks(runId: string, slot: number, epoch: number, fence: number, nowMs: number): Promise<number>;
  /**
   * Chunks of (slot, epoch) that still have products without outcome, the last granted first (of those granted at once, the
   * highest index), with how many.
   */
  chunksOf(runId: string, slot: number, epoch: number): Promise<OwnedChunk[]>;
  /**
   * Takes back those of the chunks that (slot, epoch) still owns in that very generation, each as the next generation;
   * returns how many products. Repeating it changes nothing. A chunk without open products stays where it is.
   */
  transferChunks(
    runId: string,
    slot: number,
    epoch: number,
    chunkIds: readonly string[],
    fence: number,
    nowMs: number,
  ): Promise<number>;
  /** The id of a product that is stored; null while there is none. */
  anyStored(runId: string): Promise<string | null>;
  /** Failed products by number, those after number `after`; at most `limit`, only with these reasons if any are given. */
  failedProducts(
    runId: string,
    after: number,
    limit: number,
    reasons?: readonly FailureReason[],
  ): Promise<FailedProduct[]>;
  /** Ends every product that has no outcome as failed(reason); returns how many. */
  failRest(runId: string, reason: FailureReason, fence: number, nowMs: number): Promise<number>;
  /** Truth by counting items: slow on millions, for the report and `verify`. */
  outcomes(
    runId: string,
  ): Promise<OutcomeCounts & { planned: number; open: number; reasons: Partial<Record<FailureReason, number>> }>;
  /** Outcomes of the products of one (slot, epoch), from the ledger. */
  outcomesBySlot(runId: string): Promise<(EpochId & OutcomeCounts)[]>;
}

export interface PartRecord extends PartRef {
  slot: number;
  epoch: number;
  state: 'seen' | 'loaded' | 'failed';
  stored: number;
  gone: number;
  failed: number;
}

export interface PublishEnd {
  exitCode: ExitCode;
  reason: string | null;
  held?: boolean;
  overNewer?: boolean;
}

export interface ResultStore {
  /** Enters parts into the ledger as `seen`; known ones are left as they are. */
  register(runId: string, slot: number, epoch: number, parts: readonly PartRef[], fence: number): Promise<void>;
  /** In order of slot, epoch and number; with `only` those of one epoch, or in one state. */
  parts(runId: string, only?: Partial<Pick<PartRecord, 'slot' | 'epoch' | 'state'>>): Promise<PartRecord[]>;
  /**
   * Loads one part in one transaction: rows into staging (first write wins), outcomes into items (first outcome wins),
   * the ledger row to `loaded`. Loading it again changes nothing. A product goes in with all of its rows: one that the
   * database refuses makes it failed(load).
   */
  load(
    runId: string,
    part: EpochId & { seq: number },
    results: readonly ItemResult[],
    fence: number,
    nowMs: number,
  ): Promise<OutcomeCounts>;
  /** The part cannot be read: its products stay open, its row says `failed`. */
  failPart(runId: string, part: EpochId & { seq: number }, detail: string, fence: number): Promise<void>;
  /** Sums over loaded parts: quick. */
  totals(runId: string): Promise<OutcomeCounts & { seen: number; loaded: number }>;
  /**
   * Staging → result table by one INSERT … SELECT upsert, together with the run's move from `loading` to the given end,
   * in one transaction; a run that is to be cancelled ends `cancelled`, whatever the given end, and gives no rows. With `rows` in the mapping, rows of the stored products that this run did not give go in the same
   * transaction; with on_gone `delete` those of the gone ones too. Publishing again changes nothing. Products that a run
   * which began later has published for the same table are left as that run has them.
   * `held`: the run is moved from `held` instead; its time of ending stays. `overNewer`: newer rows are overwritten, too.
   */
  publish(
    runId: string,
    to: 'completed' | 'banned' | 'failed' | 'cancelled',
    end: PublishEnd,
    fence: number,
    nowMs: number,
  ): Promise<{ rows: number }>;
  /** Runs that began after this one and have published into its result table, newest first. */
  newerRuns(runId: string): Promise<string[]>;
  /** Share of staged rows with a value, by field (empty texts and lists are none, nor are numbers that the column does not decide); no entry without any row. */
  fillOfFields(runId: string): Promise<FillRates['fields']>;
  /** Writes into the run's row how the staged numbers that can be read in two ways are decided; publishing does, too. */
  noteNumbers(runId: string, fence: number): Promise<void>;
  /** Fill rates of the newest completed runs of the same result table that began before this one. */
  earlierFills(runId: string, limit: number): Promise<FillRates[]>;
  setFill(runId: string, fill: FillRates, fence: number): Promise<void>;
  /** Drops the staging table once the run is published. */
  dropStaging(runId: string): Promise<void>;
  /** Number of rows of the result table with this run_id, and the first few for the report. */
  resultRows(runId: string, sample: number): Promise<{ rows: number; sample: Record<string, unknown>[] }>;
}

/** The user's product query, read once, as text, in order. Throws `products-query` and `product-id-invalid`. */
export interface ProductSource {
  read(): AsyncIterable<string>;
}
