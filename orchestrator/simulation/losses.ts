/** Measures how long the products of a lost instance wait for new owners. */
import { epochKey } from '../../shared/domain/epoch-id.ts';
import type { Clock } from '../../shared/ports/clock.ts';
import { isGivenUp } from '../control/model/instance-state.ts';
import type { MemoryDatabase } from './stores/memory-database.ts';
import { MemoryWorkStore } from './stores/memory-work-store.ts';

interface Loss {
  /** The last heartbeat of the lost instance. */
  lastHeardMs: number;
  /** Chunks that wait for a new owner. */
  waiting: number;
  /** Null until none does. */
  reassignedAtMs: number | null;
}

/** Notes what is lost and who gets it. */
export class LossTrackingStore extends MemoryWorkStore {
  readonly #db: MemoryDatabase;
  readonly #clock: Clock;
  readonly #losses: Loss[] = [];
  /** By the index of the chunk. */
  readonly #ofChunk = new Map<number, Loss>();

  constructor(db: MemoryDatabase, clock: Clock) {
    super(db);
    this.#db = db;
    this.#clock = clock;
  }

  override async returnChunks(...call: Parameters<MemoryWorkStore['returnChunks']>): Promise<number> {
    const [runId, slot, epoch] = call;
    const { instances, chunks } = this.#db.run(runId);
    const record = instances.get(epochKey({ slot, epoch }));
    const owned = chunks.filter((c) => c.state === 'granted' && c.slot === slot && c.epoch === epoch);
    const products = await super.returnChunks(...call);
    const returned = owned.filter((c) => c.state === 'waiting');
    // One that serves still, or is through, gives back what it was not to crawl.
    if (record && isGivenUp(record) && record.phase !== 'done' && returned.length > 0) {
      const lastHeardMs = record.lastHeartbeatAtMs ?? this.#clock.now();
      const loss: Loss = { lastHeardMs, waiting: returned.length, reassignedAtMs: null };
      this.#losses.push(loss);
      for (const { index } of returned) this.#ofChunk.set(index, loss);
    }
    return products;
  }

  override async grant(...call: Parameters<MemoryWorkStore['grant']>): Promise<string[]> {
    const granted = await super.grant(...call);
    if (this.#ofChunk.size > 0) for (const id of granted) this.#reassigned(Number.parseInt(id, 10));
    return granted;
  }

  #reassigned(index: number): void {
    const loss = this.#ofChunk.get(index);
    if (loss === undefined) return;
    this.#ofChunk.delete(index);
    if (--loss.waiting === 0) loss.reassignedAtMs = this.#clock.now();
  }

  /** From the last heartbeat of each lost instance until all of its products had new owners; null where they never had. */
  latencies(): (number | null)[] {
    return this.#losses.map((l) => (l.reassignedAtMs === null ? null : l.reassignedAtMs - l.lastHeardMs));
  }
}
