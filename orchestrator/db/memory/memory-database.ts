/**
 * A database in memory, for simulation and fault tests: the contents of the tables, and one transaction at a time. A
 * body checks before it changes anything, so a method is atomic; tests can make it fail before or after its commit.
 */
import type { EpochId } from '../../../shared/domain/epoch-id.ts';
import { AppError } from '../../../shared/domain/errors.ts';
import type { FailureReason, Outcome } from '../../../shared/domain/outcome.ts';
import type {
  InstanceRecord,
  LockHolder,
  PartRecord,
  RunEvent,
  RunRecord,
  AddressIncident,
  WorkCounts,
} from '../../control/stores.ts';
import type { OutcomeCounts } from '../../../shared/domain/outcome.ts';
import type { FillRates } from '../../control/guard.ts';
import type { ShownCounts } from '../settled-values.ts';
import type { Evidence } from '../../../shared/domain/verdict.ts';

export interface MemoryItem {
  n: number;
  id: string;
  outcome: Outcome | null;
  reason: FailureReason | null;
  detail: string | null;
  /** The part that settled it; null while it is open, and where the main server settled it itself. */
  slot: number | null;
  epoch: number | null;
  seq: number | null;
  rows: number;
}

export interface MemoryChunk {
  index: number;
  first: number;
  last: number;
  products: number;
  generation: number;
  state: 'waiting' | 'granted' | 'closed';
  slot: number | null;
  epoch: number | null;
  grantedAtMs: number | null;
}

export interface MemoryPart extends PartRecord {
  rows: number;
  detail: string | null;
  /** The decimal marks shown by its numbers. */
  marks: ShownCounts;
}

export interface MemoryIncident extends AddressIncident {
  slot: number;
  epoch: number;
  evidence: Evidence;
}

export type MemoryRow = Record<string, unknown> & { product_id: string };

/**
 * The tables' contents for one run. Records are replaced, never changed, so that they can be returned without copying.
 */
export interface MemoryRun {
  record: RunRecord;
  items: MemoryItem[];
  chunks: MemoryChunk[];
  /** By `<slot>.<epoch>`. */
  instances: Map<string, InstanceRecord>;
  /** The same in order; null when it has to be rebuilt. */
  ordered: InstanceRecord[] | null;
  incidents: MemoryIncident[];
  /** By `<slot>/<epoch>/<seq>`. */
  parts: Map<string, MemoryPart>;
  /** By product and key; values may be unread numbers; null once the table is dropped. */
  staging: Map<string, MemoryRow> | null;
  /** Its fill rates; left out before they are measured. */
  fill?: FillRates;
  events: RunEvent[];
  /** No chunk before this index waits. */
  firstWaiting: number;
  /** Maintained by the stores; null when they have to be recounted. */
  counts: WorkCounts | null;
  totals: (OutcomeCounts & { seen: number; loaded: number }) | null;
}

export const partPlace = (part: EpochId & { seq: number }): string => `${part.slot}/${part.epoch}/${part.seq}`;

export class MemoryDatabase {
  readonly runs = new Map<string, MemoryRun>();
  /** The user's result tables: rows by product and key. */
  readonly tables = new Map<string, Map<string, MemoryRow>>();
  lease: { fence: number; holder: LockHolder | null } = { fence: 0, holder: null };
  /** Called before a method does anything; throwing from it makes the method fail without effect. */
  beforeCall: (method: string) => void = () => undefined;
  /** Called after a method took effect; throwing from it hides that from the caller. */
  afterCall: (method: string) => void = () => undefined;

  /** One call without a fence. */
  async call<T>(method: string, body: () => T): Promise<T> {
    this.beforeCall(method);
    const result = body();
    this.afterCall(method);
    return result;
  }

  /** One transaction under a fence; throws `lock-held` when the fence is outdated. */
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

  /** The rows of a result table, which is created when it does not exist. */
  table(name: string): Map<string, MemoryRow> {
    let table = this.tables.get(name);
    if (!table) {
      table = new Map();
      this.tables.set(name, table);
    }
    return table;
  }
}
