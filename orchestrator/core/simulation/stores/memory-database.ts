/**
 * A database in memory, for simulation and fault tests: what the tables hold, and one transaction at a time. A body
 * checks first and changes then, so a method either happens or does not; it can be told to fail before or after its
 * commit. Runs know nothing of each other and give one row a product: what several runs of one table owe each other,
 * records and ambiguous numbers are the SQL stores' alone.
 */
import { type EpochId, epochKey } from '../../../../shared/domain/epoch-id.ts';
import { AppError } from '../../../../shared/domain/errors.ts';
import type { LeftOutCounts } from '../../../../shared/domain/left-out.ts';
import type { FailureReason, Outcome } from '../../../../shared/domain/outcome.ts';
import type { ChunkHosts } from '../../../../shared/domain/sharing.ts';
import type {
  HostNote,
  InstanceRecord,
  LockHolder,
  PartId,
  PartRecord,
  RunBinding,
  RunEvent,
  RunRecord,
  AddressIncident,
  WorkCounts,
  LoadTotals,
} from '../../model/stores.ts';
import type { Evidence } from '../../../../shared/domain/verdict.ts';

export interface MemoryItem {
  n: number;
  id: string;
  /** As it is requested; omitted where its ID makes the URL, or is it. */
  url?: string;
  outcome: Outcome | null;
  reason: FailureReason | null;
  detail: string | null;
  /** The part that settled it; null while it is open, and where the main server settled it itself. */
  slot: number | null;
  epoch: number | null;
  seq: number | null;
  rows: number;
  /** How many pages a partial product was stored without; omitted: it is whole. */
  leftOut?: number;
  /** It was stored, and refused before its rows were published. */
  refused?: true;
}

export interface MemoryChunk {
  /** `<index>-<generation>`. */
  id: string;
  index: number;
  first: number;
  last: number;
  products: number;
  generation: number;
  state: 'waiting' | 'granted' | 'closed';
  /** While it is granted. */
  grant: (EpochId & { atMs: number }) | null;
  /** Where products are at many hosts; else null. */
  hosts: ChunkHosts | null;
  /** While it waits as a slice of a host that this instance owns. */
  owner: EpochId | null;
  /** As `SliceDue` has it; null: no host has to rest. */
  dueAtMs: number | null;
  /** Its last grant, and the how-manieth of the run that was; omitted: it was never granted. */
  lastGrant?: EpochId & { number: number };
}

export interface MemoryPart extends PartRecord {
  rows: number;
  partial: number;
  leftOut: LeftOutCounts;
  putAside?: number;
  detail: string | null;
}

export interface MemoryIncident extends AddressIncident {
  slot: number;
  epoch: number;
  evidence: Evidence;
}

type MemoryRow = Record<string, unknown> & { product_id: string };

/** What the tables hold of one run. Records are replaced, never changed, so that they can be handed out as they are. */
export interface MemoryRun {
  record: RunRecord;
  items: MemoryItem[];
  chunks: MemoryChunk[];
  /** The instances by `<slot>.<epoch>`. */
  instances: Map<string, InstanceRecord>;
  /** The same in order; null when it has to be made again. */
  ordered: InstanceRecord[] | null;
  incidents: MemoryIncident[];
  /** The parts by `<slot>/<epoch>/<seq>`. */
  parts: Map<string, MemoryPart>;
  /** Those that are not loaded. */
  openParts: Map<string, MemoryPart>;
  /** The staged rows by product; null once staging is dropped. */
  staging: Map<string, MemoryRow> | null;
  /** The page on which the request of a staged product ended, if it is not its own. */
  landings: Map<string, string>;
  /** What it has published, by product. */
  rows: Map<string, MemoryRow>;
  /** Products with rows of earlier nights that the pages of this one do not show. */
  older: Set<string>;
  events: RunEvent[];
  /** No chunk before this place waits. */
  firstWaiting: number;
  /** Number of chunks that wait. */
  waiting: number;
  /** Granted chunks by their owner, `<slot>.<epoch>`. */
  granted: Map<string, Set<MemoryChunk>>;
  /** Indexes of the chunks that each instance was granted at any time, by `<slot>.<epoch>`. */
  grants: Map<string, Set<number>>;
  /** Number of grants of chunks so far. */
  grantsMade: number;
  /** What instances have learnt of hosts, and until when these rest after their last owner, by host. */
  hosts: Map<string, Required<HostNote> & { restUntilMs: number }>;
  /** Until when the hosts rest that an instance has returned, by `<slot>.<epoch>`. */
  rests: Map<string, number>;
  /** The counts of chunks; null when they have to be counted again. */
  counts: WorkCounts | null;
  /** The totals, kept up by the store of results. */
  totals: LoadTotals;
}

/**
 * Whether the product with a number was granted to the instance at some time; in a run that keeps no grants, each was.
 */
export function wereGranted(run: MemoryRun, at: EpochId): (n: number) => boolean {
  if (run.record.settings.grantsKept !== true) return () => true;
  const own = run.grants.get(epochKey(at));
  return (n) => own?.has(chunkOf(run, n).index) === true;
}

/** The chunk of the product with this number. */
export function chunkOf({ chunks }: Pick<MemoryRun, 'chunks'>, n: number): MemoryChunk {
  let low = 0;
  let high = chunks.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (chunks[middle]!.first <= n) low = middle;
    else high = middle - 1;
  }
  return chunks[low]!;
}

export const partPlace = (part: PartId): string => `${part.slot}/${part.epoch}/${part.seq}`;

export class MemoryDatabase {
  readonly runs = new Map<string, MemoryRun>();
  lease: { fence: number; holder: LockHolder | null } = { fence: 0, holder: null };
  /** Called before a method does anything; throw from it and nothing has happened. */
  beforeCall: (method: string) => void = () => undefined;
  /** Called when a method has happened; throw from it and the caller does not know. */
  afterCall: (method: string) => void = () => undefined;
  /** True for products whose rows the result table refuses. */
  refusesRow: (productId: string) => boolean = () => false;

  /** One call without a fence. */
  async call<T>(method: string, body: () => T): Promise<T> {
    this.beforeCall(method);
    const result = body();
    this.afterCall(method);
    return result;
  }

  /** One transaction under a fence; throws `lock-held` when it is past. */
  write<T>(method: string, fence: number, body: () => T): Promise<T> {
    return this.call(method, () => {
      this.assertFence(fence);
      return body();
    });
  }

  assertFence(fence: number): void {
    if (this.lease.fence !== fence)
      throw new AppError('lock-held', 'this main server has lost its lock on the memory; it writes nothing more');
  }

  /** Throws `run-unknown`. */
  run(id: string): MemoryRun {
    const run = this.runs.get(id);
    if (!run) throw new AppError('run-unknown', `there is no run ${id} in the database`);
    return run;
  }
}

/** One run of the database as its stores see it, and the fence under which they write. */
export class BoundMemory {
  readonly db: MemoryDatabase;
  readonly #binding: RunBinding;

  constructor(db: MemoryDatabase, binding: RunBinding) {
    this.db = db;
    this.#binding = binding;
  }

  now(): number {
    return this.#binding.clock.now();
  }

  read<T>(method: string, look: (run: MemoryRun) => T): Promise<T> {
    return this.db.call(method, () => look(this.db.run(this.#binding.runId)));
  }

  write<T>(method: string, body: (run: MemoryRun) => T): Promise<T> {
    return this.db.write(method, this.#binding.fence, () => body(this.db.run(this.#binding.runId)));
  }
}
