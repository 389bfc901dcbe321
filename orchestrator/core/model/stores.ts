/**
 * The database ports of the control core, one per table family. The adapters are in db/, one set for MySQL, MariaDB and
 * SQLite. Every method is one transaction. The stores of a run are bound to a fence, the number under which the caller
 * holds the lock. A write under an old fence changes nothing and throws `lock-held`.
 */
import type { PartResults } from './part-results.ts';
import type { HostKey } from '../../../shared/domain/host-key.ts';
import type { EpochId } from '../../../shared/domain/epoch-id.ts';
import type { MissReason } from '../../../shared/domain/failure-kind.ts';
import type { LeftOutCounts } from '../../../shared/domain/left-out.ts';
import type { FailureReason, OutcomeCounts } from '../../../shared/domain/outcome.ts';
import type { InstancePhase, RunPhase } from '../../../shared/domain/states.ts';
import type { Product } from '../../../shared/domain/product.ts';
import type { ChunkRange } from '../../../shared/domain/sharing.ts';
import type { Clock } from '../../../shared/ports/clock.ts';
import type { Evidence } from '../../../shared/domain/verdict.ts';
import type { Hello, PartRef, Progress } from '../../../shared/wire/callbacks.ts';
import type { Balancer } from '../cloud/load-balancer.ts';
import type { CloudState, LaunchFailure, LaunchRequest, StateReason } from '../cloud/compute.ts';
import type { AskedPace, HostPace, OperatorPace } from '../plan/host-pace.ts';
import type { Plan } from '../plan/plan.ts';
import type { ExitCode } from '../../../shared/domain/exit-codes.ts';
import type { AssertCounts } from './assertions.ts';
import type { Column } from '../../../shared/domain/mapping.ts';
import type { FillRates, ListedRun, NumberReport, RunReport, UnchangedPages, ValueProfile } from './report.ts';
import type { HostsAsker, RunHosts } from './run-hosts.ts';
import type { RunSettings } from './run-settings.ts';
import type { RunSample } from './sample.ts';
import type { StallCause } from './stall-causes.ts';
import type { DiscoveryCounts } from './discovery.ts';

/** The user requests `stop` and `cancel`; the main server the others, where going on would harm or achieve nothing. */
export type StopRequest = 'stop' | 'cancel' | 'banned' | 'site-changed' | StallCause;

/** A run as it is stored when it begins; all but `planned` and `discovery` stays as it is. */
export interface NewRun {
  id: string;
  /** The run whose failed products this one retries. */
  parentId: string | null;
  startedAtMs: number;
  deadlineAtMs: number;
  dryRun: boolean;
  /** The configuration as it was when the run began: a changed file does not change a running run. */
  settings: RunSettings;
  plan: Plan;
  planned: number;
  /** Number of repeated IDs in the product list. */
  duplicates: number;
  /** Base64 PKCS 8 and SPKI of the run's Ed25519 key. */
  privateKey: string;
  publicKey: string;
  /** What a discovery has found so far, its seeds when it begins; omitted for any other run. */
  discovery?: DiscoveryCounts;
}

/** IDs of products in an order: what reads an array of them. */
export interface IdList extends Iterable<string> {
  readonly length: number;
  at(index: number): string | undefined;
  slice(from?: number, to?: number): string[];
}

/** URLs of products by ID: what reads a map of them. */
export type UrlsById = Pick<ReadonlyMap<string, string>, 'get'>;

/** A run that is stored for the first time. */
export interface RunToStore extends NewRun {
  /** The URLs of its products by ID, as they are requested; omitted where IDs make the URLs. */
  urls?: UrlsById;
  /** How its products are cut by host; omitted: into chunks of the plan's size. */
  chunks?: readonly ChunkRange[];
}

export interface RunRecord extends NewRun {
  phase: RunPhase;
  reason: string | null;
  exitCode: ExitCode | null;
  finishedAtMs: number | null;
  /** When its ledger and its events were removed (`retention`); null: they are there. */
  prunedAtMs: number | null;
  /** The balancers that the run has, by region. */
  balancers: Readonly<Record<string, Balancer>>;
  /** Why the run must end early; the loop carries it out. */
  request: StopRequest | null;
  /** What the hosts of the site ask for since one of them asked for a slower pace; omitted before that. */
  paces?: readonly HostPace[];
  /** What its operator asks of it (`orchestrator pace`); omitted: as the plan says. */
  operatorPace?: OperatorPace;
  /** How long uploading and loading have taken so far. Not in the database: the observer adds it. */
  measuredTailMs?: number | undefined;
  report: RunReport | null;
  /** How full its rows were; known once they are judged. */
  fill?: FillRates;
  /** What the values look like; undefined until the run has been measured, and for one without rows. */
  values?: ValueProfile;
  /**
   * How numbers were read, of fields with a decimal mark or ambiguous ones; known once the rows are held or published.
   */
  numbers?: readonly NumberReport[];
}

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
  /** One of the names that were asked about and that it has a lease of. */
  name: string;
  /** `host:pid` */
  owner: string;
  runId: string | null;
  expiresAtMs: number;
}

/** A request for leases, all or none, of the hosts that a run crawls and the table that it publishes into. */
export interface LockRequest {
  owner: string;
  /** Such as `host:shop.example` and `table:products`. */
  names: readonly string[];
  nowMs: number;
  leaseMs: number;
  /** Holders known to be dead: their leases are taken over though they have not expired. */
  steal?: readonly LockHolder[];
}

/** A lock that ends with the connection it was taken on. Throws `database-unreachable` when there is no answer. */
export interface ConnectionLock {
  /** Tries to take the lock without waiting; reconnects if the connection was lost. Idempotent. */
  acquire(): Promise<'ours' | 'others'>;
  /** Kills the holder's connection, then takes the lock. Throws `lock-held` when that is not allowed. */
  evict(): Promise<'ours' | 'others'>;
  /** Releases the lock and closes the connection; never throws. */
  release(): Promise<void>;
}

/** What protects a lease besides its row: docs/decisions/0008-locks.md. */
export interface LockGuard {
  /** The time on the clock that all main servers of this database share. */
  nowMs(): Promise<number>;
  /** The holders of leases with these names, of all leases without names; expired ones too. */
  holders(names?: readonly string[]): Promise<LockHolder[]>;
  /** The database is a file on this machine, so a failed write is this machine's fault. */
  isFile: boolean;
  /** A lock of these names; null where the database has no such locks. */
  connection: ((names: readonly string[]) => ConnectionLock) | null;
}

/** The run that stores are for, the fence under which they write, and the clock whose time they store. */
export interface RunBinding {
  runId: string;
  fence: number;
  clock: Pick<Clock, 'now'>;
}

/** What anyone may read of runs. */
export interface StoreReaders {
  runs: RunStore;
  of(runId: string): RunReader;
}

export interface Stores extends StoreReaders {
  bind(binding: RunBinding): RunStores;
}

export interface RunReader {
  run: RunRowReader;
  fleet: FleetReader;
  work: WorkReader;
  results: ResultReader;
  /** The feed of a run that finds products; null: the list of its products is fixed. */
  feed: Pick<RunFeed, 'waiting'> | null;
}

export interface RunStores extends RunReader {
  run: RunRow;
  fleet: FleetStore;
  work: WorkStore;
  results: ResultStore;
  feed: RunFeed | null;
}

/** The URLs that a run finds while it crawls, a discovery. */
export interface RunFeed {
  /**
   * How many wait (exact below 10,000), how many the run has taken, and how many of those have no outcome yet: those
   * may still lead to more. One consistent view.
   */
  state(): Promise<FeedState>;
  /** Exactly how many wait. */
  waiting(): Promise<number>;
  /** Makes the best of what waits products of the run, in chunks; returns how many. At most `limit`. */
  take(limit: number): Promise<number>;
  /** Stored products that are pages of another known product, whose ID is `of`. */
  aliases(): Promise<{ id: string; of: string }[]>;
}

export interface FeedState {
  waiting: number;
  planned: number;
  open: number;
}

/** Who wants hosts. */
export interface HostAsker {
  /** The run; null: it is not stored yet. */
  runId: string | null;
  /** Its instance that wants them; omitted: the claims of the run are no hindrance. */
  at?: EpochId;
  nowMs: number;
  /** Its interval; null: as its row says. Of two runs of a host the slower one decides on the gap between them. */
  intervalMs: number | null;
  /** What it has hosts by; omitted: by domain. */
  hostKey?: HostKey | undefined;
}

/** Concerns several runs, or needs no fence. */
export interface RunStore {
  /** The guard against another process; omitted where none can compete (in memory). */
  readonly guard?: LockGuard;
  /**
   * Takes the leases of all names, or returns a holder of one. A holder with an expired one loses all of its leases,
   * and its fence.
   */
  acquireLock(request: LockRequest): Promise<{ fence: number } | { heldBy: LockHolder }>;
  /** Extends the lease and records its run; false when the lock has been lost. */
  renewLock(fence: number, nowMs: number, leaseMs: number, runId: string | null): Promise<boolean>;
  releaseLock(fence: number): Promise<void>;

  /** Run, items (numbered 1.. in the order given) and chunks in one transaction; also makes the staging table. */
  create(run: RunToStore, productIds: IdList, fence: number, nowMs: number): Promise<void>;
  get(id: string): Promise<RunRecord | null>;
  /** Newest first. */
  list(limit: number): Promise<RunRecord[]>;
  /** The runs that have not ended, or have no report yet, newest first. */
  unfinished(): Promise<RunRecord[]>;
  /** Ended runs over this product list, newest first, without cancelled and held ones. */
  listedRuns(listKey: string, limit: number): Promise<ListedRun[]>;
  /**
   * Median time of a page (milliseconds) over the instances of the newest of these runs that rendered alike, among the
   * last `limit`; null without one.
   */
  measuredPageMs(listKey: string, render: RunSettings['site']['render'], limit: number): Promise<number | null>;
  /**
   * Requests for pages that a record took on average in the newest of these runs that has records enough to tell,
   * among the last `limit`: redirects, further pages and second tries included, those without an answer not. Null
   * without one.
   */
  measuredRequests(listKey: string, limit: number): Promise<number | null>;
  /**
   * Share of the hosts that gave no answer in the newest of these runs that has hosts enough to tell, among the last
   * `limit`; null without one.
   */
  measuredSilence(listKey: string, limit: number): Promise<number | null>;
  /**
   * What this host asked of the last run that crawled it, probes apart, and whether it has banned an address of a run
   * since then; null if none of the last 1,000 runs did.
   */
  lastPace(host: string, bannedSinceMs: number): Promise<AskedPace | null>;
  /**
   * True when the run will end because of this request. False when the run has ended or is held, or a request is
   * already stored: only `cancel` replaces any other. Idempotent.
   */
  setRequest(id: string, request: 'stop' | 'cancel'): Promise<boolean>;
  /** Stores what the operator asks of the run. False: the run has ended, which takes only a reset. Idempotent. */
  setOperatorPace(id: string, pace: OperatorPace): Promise<boolean>;
  /**
   * Stores a point of the run's charts; one of the same moment stays. Omitted in memory, where no page shows charts.
   */
  addSample?(id: string, sample: RunSample): Promise<void>;
  /** Those after `afterMs`, in order of time. */
  samples?(id: string, afterMs: number): Promise<RunSample[]>;

  /**
   * Those of these domains of which a run of many hosts has a host, or had one so lately that it has to rest. Waits
   * for grants under way: one that it does not see will see the locks that were committed before this call. Omitted
   * where no other run can compete (in memory).
   */
  hostsInUse?(hosts: readonly string[], asker: HostAsker): Promise<HostInUse[]>;
  /** Stores what an operator asks of a host; what is omitted stays, and null takes it back. */
  setHost(host: string, wish: Partial<Pick<HostWish, 'denied' | 'paceMs'>>): Promise<void>;
  /** All that is stored of a host; null: nothing is. */
  hostRow(host: string): Promise<HostRecord | null>;
  /** The names in a domain that runs with `site.host_key: host` had, each with the last one; in order of the names. */
  hostNames(domain: string): Promise<{ host: string; runId: string | null }[]>;
}

/** The reader of a run's row, with its events, which anyone may add. */
interface RunRowReader {
  get(): Promise<RunRecord | null>;
  /** Newest first; only events of `kind` if given. */
  events(limit: number, kind?: string): Promise<RunEvent[]>;
  /** Needs no fence: every reader of a run may note something about it. */
  addEvent(event: RunEvent): Promise<void>;
}

export interface RunRow extends RunRowReader {
  /**
   * Moves the run if it is in `from`, and writes an event; false when it was in another phase, and for `held` when a
   * cancel request is stored. The only way a phase changes. A run that was held keeps its end time. `request` is
   * written with the phase.
   */
  move(
    from: RunPhase,
    to: RunPhase,
    detail?: { reason?: string; exitCode?: ExitCode; request?: StopRequest },
  ): Promise<boolean>;
  /** Replaces how a run has ended that is over already: something of it was left behind. */
  setEnd(exitCode: ExitCode, reason: string): Promise<void>;
  /** Stores the balancer of one region, or with null that there is none. */
  setBalancer(region: string, balancer: Balancer | null): Promise<void>;
  /** Sets a stop request as RunStore does, for the requests of the main server too. */
  setRequest(request: StopRequest): Promise<boolean>;
  setReport(report: RunReport): Promise<void>;
  setPaces(paces: readonly HostPace[]): Promise<void>;
}

/** The columns of an instance's row that a patch may change. */
interface InstanceColumns {
  instanceId: string | null;
  address: string | null;
  zone: string | null;
  /** RunInstances calls sent so far. */
  attempts: number;
  /** EC2's answer to the last call; null before the first answer, and once the instance exists. */
  answer: LaunchFailure | null;
  /** The last fault that a service reported, such as ELBv2's reason for an unhealthy target. */
  lastError: string | null;
  launchedAtMs: number | null;
  terminatedAtMs: number | null;
  /** Last state EC2 showed; null before EC2 showed the instance. */
  cloudState: CloudState | null;
  /** Why EC2 ended the instance on its own; null while it has not, or gives no reason. */
  stateReason: StateReason | null;
  registered: boolean;
  problem: string | null;
  sealed: boolean;
  /** When its address rotation was ordered (`aws.recycle_every`); null before that. */
  rotateAtMs: number | null;
  manifestKey: string | null;
  manifestSha256: string | null;
  consoleOutput: string | null;
}

export type InstancePatch = Partial<InstanceColumns>;

export interface InstanceRecord extends EpochId, InstanceColumns {
  phase: InstancePhase;
  phaseAtMs: number;
  reason: string | null;
  /** The claim: the launch request for EC2. */
  request: LaunchRequest;
  /** MAC key of the hello. */
  token: string;
  claimedAtMs: number;
  publicKey: string | null;
  /** The key of its last process that secrets are encrypted to; null where the site needs none. */
  secretsKey: string | null;
  counter: number;
  lastHeartbeatAtMs: number | null;
  progress: Progress | null;
  /** The last incident it reported, over or not. */
  incident: AddressIncident | null;
}

/** Why an address stopped crawling on its own, and what has happened since. Times are by the main server's clock. */
export interface AddressIncident {
  verdict: 'suspect' | 'banned';
  rule: string;
  atMs: number;
  /** When the address leaves its cool-down; null for `suspect`. */
  untilMs: number | null;
  /** When its uncrawled products were reassigned. */
  returnedAtMs: number | null;
  /** When the instance reported its end. */
  overAtMs: number | null;
}

/** An incident as its instance reports it. */
export interface IncidentReport extends Pick<AddressIncident, 'verdict' | 'atMs' | 'untilMs'> {
  evidence: Evidence;
}

/** One incident of one instance with its evidence, for the report. */
export interface IncidentRecord extends AddressIncident, EpochId {
  address: string | null;
  evidence: Evidence;
}

export type HelloResult = 'accepted' | 'repeated' | 'other-key' | 'other-instance' | 'too-late' | 'unknown';

/** The claim of a slot and epoch. */
export interface NewClaim extends EpochId {
  request: LaunchRequest;
  token: string;
  /** Now, unless given. */
  claimedAtMs?: number;
}

export interface MoveReason {
  reason?: string | null | undefined;
  /** The detail for the event only; the reason unless given. */
  detail?: string | null;
}

interface FleetReader {
  /** Every claim of the run, all epochs, ordered by slot and epoch. */
  instances(): Promise<InstanceRecord[]>;
  get(at: EpochId): Promise<InstanceRecord | null>;
  /** Every incident of the run, ordered by start. */
  incidents(): Promise<IncidentRecord[]>;
}

export interface FleetStore extends FleetReader {
  /** Writes the claim (phase `claimed`); false when (run, slot, epoch) is claimed already. */
  claim(claim: NewClaim): Promise<boolean>;
  patch(at: EpochId, patch: InstancePatch): Promise<void>;
  /** Records the reported manifest, unless one is recorded or the instance no longer serves; true when recorded. */
  noteManifest(at: EpochId, manifest: { manifestKey: string; manifestSha256: string | null }): Promise<boolean>;
  /**
   * Moves the instance if it is in `from`, and writes an event; false when it was in another phase. The only way a
   * phase changes. A move to `lost` drops the manifest, because an unchecked manifest closes nothing. A move to
   * `terminated` sets the end time unless it is already known.
   */
  move(at: EpochId, from: InstancePhase, to: InstancePhase, why?: MoveReason): Promise<boolean>;
  /**
   * Binds the key to (slot, epoch) once: phase pending or booting → ready. `other-instance` when the id is not the one
   * EC2 gave; `too-late` when the phase is past `ready` or given up. The secrets key is that of the last hello.
   */
  hello(at: EpochId, hello: Hello): Promise<HelloResult>;
  /** Records a heartbeat whose counter is higher than any before; false for a replay, and of one that is given up. */
  heartbeat(at: EpochId, beat: { counter: number; progress: Progress; problem: string | null }): Promise<boolean>;
  /** Records an incident, updates the open one, or with null ends it. Idempotent. */
  recordIncident(at: EpochId, incident: IncidentReport | null): Promise<void>;
  /** Records that the instance's products were reassigned after its last incident. */
  recordReturned(at: EpochId): Promise<void>;
}

/** A chunk with its products still to crawl. */
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
  /** Its own URL; omitted where the ID makes it. */
  url?: string;
  reason: FailureReason;
  /** One line for people; null when no instance crawled the product. */
  detail: string | null;
}

/** Products of the ledger that ended without a row and whose details begin alike. */
export interface LedgerMisses {
  reason: MissReason;
  /** The beginning of the detail; null where no instance has tried the product. */
  detail: string | null;
  products: number;
  /** Id of the first one. */
  example: string;
}

export interface WorkCounts {
  chunks: number;
  waiting: number;
  granted: number;
  /** Chunks granted to each (slot, epoch). */
  bySlot: GrantedShare[];
  /** Omitted in a run of one site. */
  byHost?: WaitingHosts;
}

/** What waits in a run of many hosts, whose chunks are of many sizes. */
export interface WaitingHosts {
  /** Products of the chunks that wait. */
  products: number;
  /** How long the longest host takes of which no slice is granted, in milliseconds. */
  longestMs: number;
  /** When the first of those may be granted that wait for any instance; 0: there is none, or one does not rest. */
  restUntilMs: number;
}

export interface GrantedShare extends EpochId {
  chunks: number;
  products: number;
  /** When it will be done with the last of its hosts at their pace; omitted without many hosts. */
  hostsEndMs?: number;
}

/** Items of a run by outcome. */
export interface LedgerCounts extends OutcomeCounts {
  planned: number;
  open: number;
  reasons: Partial<Record<FailureReason, number>>;
}

/** What an instance has learnt of a host (`hostGroupOf`). */
export interface HostNote {
  host: string;
  /** Its Crawl-delay. */
  delayMs?: number;
  /** No request before, by the clock of main servers. */
  notBeforeMs?: number;
  /** How often it has refused this run, as REFUSALS says. */
  refusals?: number;
}

/** What is stored of a host; null: nothing. */
export interface NotedHost extends Required<{ [name in keyof Omit<HostNote, 'host'>]: number | null }> {
  host: string;
  /** The gap that an operator asks for. */
  paceMs: number | null;
  /** An operator wants no request there. */
  denied: boolean | null;
}

/** What an operator asks of a host; null: nothing, or no longer. */
export interface HostWish extends Pick<NotedHost, 'host' | 'paceMs' | 'denied'> {
  /** When it was asked, or taken back. */
  wishedAtMs: number;
}

/** A host over all runs of the database. */
export interface HostRecord extends NotedHost {
  /** When an operator last asked for something there, or took it back; null: never. */
  wishedAtMs: number | null;
  /** The last grant of it, and its products in that grant; null: it was never granted. */
  claim: (EpochId & { runId: string; first: number; last: number }) | null;
}

/** A host that is not free. */
export interface HostInUse {
  host: string;
  /** The run that has it, or had it last; null: none did. */
  runId: string | null;
  /** When it is free at the latest; while its run has a main server, that may go on. */
  untilMs: number;
  /** It is asked no more, and rests until then. */
  isResting: boolean;
  /** How long it rests at most, once its owner is gone. */
  restMs: number;
  /** How often the run that has it settles products; omitted: no run has it. */
  partMs?: number;
  /** The instance that asks has it; omitted: another one. */
  isOwn?: true;
}

export interface WorkReader {
  counts(): Promise<WorkCounts>;
  /**
   * Chunks that any instance may take, in order, with their open products; at most `limit`, none of `except`. Of many
   * hosts none before the rest between two owners is over, and no slice of a host that has an owner.
   */
  waiting(limit: number, except: Pick<ReadonlySet<string>, 'has' | 'size'>): Promise<OpenChunk[]>;
  /**
   * Slices that are due of hosts that (slot, epoch) owns, with their open products: the first of each host that waits.
   * As many as have `limit` products, and at least one.
   */
  nextSlices(at: EpochId, limit: number): Promise<OpenChunk[]>;
  /** Chunks of (slot, epoch) with open products; the last granted first, of those the highest index first. */
  chunksOf(at: EpochId): Promise<OwnedChunk[]>;
  /** What is stored of the hosts of open products in these chunks, in order; nothing of those without a note. */
  hostNotes(chunkIds: readonly string[]): Promise<NotedHost[]>;
  /** What operators have asked since then of hosts of which the run had the last grant, the oldest first. */
  hostWishes(sinceMs: number): Promise<HostWish[]>;
  /** The id of any stored product; null while there is none. */
  anyStored(): Promise<string | null>;
  /** Failed products by number, after `after`; at most `limit`, only those with `reasons` if given. */
  failedProducts(after: number, limit: number, reasons?: readonly FailureReason[]): Promise<FailedProduct[]>;
  /**
   * Exact counts over all items: slow on millions, for the report and `verify`. `linkPages`: those of them that are
   * pages of a discovery without a product; omitted: none.
   */
  outcomes(): Promise<LedgerCounts & { linkPages?: LedgerCounts }>;
  /** What became of the products without a row, the most frequent first, at most `limit`; as slow as `outcomes`. */
  misses(limit: number): Promise<LedgerMisses[]>;
  /** Failed products that are left alone because the user or an operator wants it so: as slow as `outcomes`. */
  leftAlone(): Promise<number>;
  /** What has become of the hosts of a run of many hosts: as slow as `outcomes`. */
  hosts(asker: HostsAsker): Promise<RunHosts>;
  /** Outcomes of the products of one (slot, epoch), from the ledger. */
  outcomesBySlot(): Promise<(EpochId & OutcomeCounts)[]>;
}

export interface WorkStore extends WorkReader {
  /**
   * Grants each chunk to (slot, epoch) unless it has an owner or its generation is past. Returns the ids that are now
   * (or were already) its own; `limitChunks` is the maximum it may own in total. A slice of a host that it owns is
   * granted beyond that limit, and to no other instance.
   *
   * With many hosts no chunk is granted of which another run of the database, or another instance, has a host, or had
   * it less than a gap ago: it is offered again later, and without these hosts at once. Products of hosts that are
   * denied fail (`redirect`), and those of hosts that have asked for a rest beyond the end of the run (`banned`).
   */
  grant(at: EpochId, chunkIds: readonly string[], limitChunks: number): Promise<string[]>;
  /**
   * Takes back every chunk of (slot, epoch) with open products, as its next generation; returns how many products.
   * @param freeAtMs before that, no other instance gets a chunk with one of its hosts, in no run; default: at once
   */
  returnChunks(at: EpochId, freeAtMs?: number): Promise<number>;
  /**
   * (slot, epoch) is known to ask no more: the rest of its hosts that `returnChunks` has begun ends at this time, if
   * that is sooner. What the hosts themselves have asked for stays.
   */
  freeHosts(at: EpochId, freeAtMs: number): Promise<void>;
  /** Moves the rests of hosts that end after `afterMs`, because the clock has been set. @param byMs milliseconds */
  moveRests(byMs: number, afterMs: number): Promise<void>;
  /**
   * Takes back those of the chunks that (slot, epoch) still owns in that generation, each as its next generation;
   * returns the number of products. Idempotent. A chunk without open products stays where it is.
   */
  transferChunks(at: EpochId, chunkIds: readonly string[]): Promise<number>;
  /**
   * Stores what (slot, epoch) has learnt of hosts, where it says more than what is known; only a single refusal is
   * forgotten that it does not report any more. Ignored for hosts of which it did not have the last grant.
   */
  noteHosts(at: EpochId, notes: readonly HostNote[]): Promise<void>;
  /** Sets every open product to failed(reason); returns their number. */
  failRest(reason: FailureReason): Promise<number>;
}

/** A part: the results of one instance under this sequence number. */
export interface PartId extends EpochId {
  seq: number;
}

export interface PartRecord extends PartRef, EpochId, OutcomeCounts {
  state: 'seen' | 'loaded' | 'failed';
}

/** What one part has settled. */
export interface LoadedPart extends OutcomeCounts {
  /** Its results for products that its instance was never granted, which count for nothing; omitted: none. */
  putAside?: number;
}

/** What the parts of a run come to. */
export interface LoadTotals extends OutcomeCounts {
  seen: number;
  loaded: number;
  /** The stored products whose page was unchanged (304); omitted where there was none. */
  unchanged?: UnchangedPages;
  /** The stored products that are partial: their rows may not be all; omitted where there is none. */
  partial?: number;
}

/** How a run ends whose rows are published. */
export type PublishedPhase = 'completed' | 'banned' | 'failed' | 'cancelled';

export interface PublishEnd {
  exitCode: ExitCode;
  reason: string | null;
  held?: boolean;
  overNewer?: boolean;
  /** Refused products with which the search for them may end. Default: as many as there are. */
  most?: number;
}

/** What several stored products have in common. */
interface Shared {
  products: number;
  /** A few of them. */
  examples: string[];
}

/** A page on which requests of several products ended, and which is the own page of none of them. */
export interface SharedPage extends Shared {
  /** The page as landingOf() spells it; ends with `?` for a page whose addresses differ in their query. */
  page: string;
  /** The ID of the product of this run whose own page it is. */
  ownerId: string | null;
  /** Fields that nine in ten of the other rows fill, and none of these. */
  lacks: string[];
  /** Number of different titles that its products have. */
  titles: number;
}

/** A row that several products have. */
export interface SharedRow extends Shared {
  /** How many rows of the result table have the same title and ID before the run is published. */
  before: number;
}

/** What stored products share before they are published, most products first. */
export interface SharedResults {
  pages: SharedPage[];
  rows: SharedRow[];
}

/** A stored product whose rows are not to be published. */
export interface Refusal {
  id: string;
  outcome: 'gone' | 'failed';
  /** The reason; null for `gone`. */
  reason: FailureReason | null;
  detail: string;
}

/** Stored products whose rows the result table refuses. */
export interface RefusedRows {
  /** Each is `failed(load)`, with the database's words. */
  refusals: Refusal[];
  /** False: the search ended before all rows were tried. */
  complete: boolean;
  /** The error of the whole statement. */
  words: string;
}

/** A row of the sample; values as text, in the order of the columns. */
export interface SampledRow {
  /** The ID of the product. */
  id: string;
  now: (string | null)[];
  /** The row that an earlier run with the same fingerprint has published under this key; null without one. */
  before: (string | null)[] | null;
}

/** Rows of some stored products of the run, evenly drawn from its list. */
export interface ValueSample {
  fingerprint: string;
  columns: Column[];
  rows: SampledRow[];
}

/** Rows of the run in the result table; or why nothing was published. */
export type Published = { rows: number } | { refused: RefusedRows };

/** A rule of the result table that a row may break. */
export interface TableRule {
  kind: 'check' | 'foreign key' | 'generated column' | 'trigger';
  /** The name as the database's messages call it; '' without one. */
  name: string;
  /** Its column, condition or event. */
  about: string;
}

interface ResultReader {
  /** The parts in order of slot, epoch and number; with `only` those of one epoch, or in one state. */
  parts(only?: Partial<Pick<PartRecord, 'slot' | 'epoch' | 'state'>>): Promise<PartRecord[]>;
  /** Sums over loaded parts: quick. */
  totals(): Promise<LoadTotals>;
  /** The further pages that the stored products of loaded parts come without. */
  leftOut(): Promise<LeftOutCounts>;
  /** The first partial products, by number: at most `limit`. */
  partialProducts(limit: number): Promise<string[]>;
  /** Runs that began after this one and have published into its result table, newest first. */
  newerRuns(): Promise<string[]>;
  /**
   * Share of staged rows with a value, by field (empty texts, empty lists and undecided numbers are no values); no
   * entry without rows.
   */
  fillOfFields(): Promise<FillRates['fields']>;
  /** Groups of `least` products or more with details, and a bounded number of smaller ones. */
  sharedResults(least: number): Promise<SharedResults>;
  /** Stored products that have moved to one page at another host, to which many lead. Only of many hosts. */
  movedTogether(): Promise<{ page: string; products: number; ids: string[] }[]>;
  /** IDs of the stored products whose requests ended on this page. */
  productsOn(page: string): Promise<string[]>;
  /** Fill rates of the newest completed runs of the same result table that began before this one. */
  earlierFills(limit: number): Promise<FillRates[]>;
  /**
   * Judges what could not be judged as it was loaded: numbers that only the whole column decides. Returns how many
   * values of the run broke an assertion, and one of each field. Repeated, it changes nothing.
   */
  assertDecided(): Promise<AssertCounts>;
  /** The values that are about to be published, beside those that stand. */
  valueSample(): Promise<ValueSample>;
  /** Profiles of the last published runs of the same result table with this fingerprint, newest first. */
  earlierValues(fingerprint: string, limit: number): Promise<ValueProfile[]>;
  /** Number of rows of the result table with this run_id, and the first few for the report. */
  resultRows(sample: number): Promise<{ rows: number; sample: Record<string, unknown>[] }>;
}

export interface ResultStore extends ResultReader {
  /** Adds parts to the ledger as `seen`; known ones do not change. */
  register(at: EpochId, parts: readonly PartRef[]): Promise<void>;
  /**
   * Loads one part in one transaction: rows into staging (first write wins), outcomes into items (first outcome wins),
   * the ledger row to `loaded`. Loading it again changes nothing. A product is loaded with all its rows or none: one
   * row that the database rejects makes it failed(load). What reading a piece throws rolls all of it back. Results for
   * products that (slot, epoch) was never granted are put aside, in a run that keeps its grants.
   */
  load(part: PartId, results: PartResults): Promise<LoadedPart>;
  /** Marks an unreadable part as `failed`; its products stay open. */
  failPart(part: PartId, detail: string): Promise<void>;
  /**
   * Copies staging into the result table by one INSERT … SELECT upsert and moves the run from `loading` to the given
   * end, in one transaction. A run with a cancel request ends `cancelled`, whatever the given end, and publishes no
   * rows. With `rows` in the mapping, the same transaction deletes rows of stored products that this run did not
   * produce, unless the product is partial; with on_gone `delete` also the rows of gone products. Publishing again
   * changes nothing. Products that a later run has published to the same table keep that run's rows.
   * `held`: moves the run from `held` instead and keeps its end time. `overNewer`: overwrites newer rows too.
   * If the result table refuses rows, nothing changes, and the result names them: at most one more than `most`, and
   * those that were found in a minute; for a held run, all.
   */
  publish(to: PublishedPhase, end: PublishEnd): Promise<Published>;
  /**
   * Moves stored products to the given outcome before they are published, with one event `note` about all of them:
   * their rows leave staging, and the counts of their parts follow. Others than stored ones do not change. Returns how
   * many were moved.
   */
  refuse(refusals: readonly Refusal[], note: string): Promise<number>;
  /** Records in the run's row how ambiguous staged numbers are read; publishing does so too. */
  noteNumbers(): Promise<void>;
  setFill(fill: FillRates, values: ValueProfile | null): Promise<void>;
  /** Drops the staging table once the run is published. */
  dropStaging(): Promise<void>;
}
