/** Measures how long the products of a lost instance wait for new owners. */
import type { WorkStore } from '../model/stores.ts';
import { epochKey } from '../../../shared/domain/epoch-id.ts';
import { isGivenUp } from '../model/instance-state.ts';
import type { MemoryRun } from './stores/memory-database.ts';

interface Loss {
  /** The last heartbeat of the lost instance. */
  lastHeardMs: number;
  /** Chunks that wait for a new owner. */
  waiting: number;
  /** When no chunk waited any more; null until then. */
  reassignedAtMs: number | null;
}

export class Losses {
  readonly #now: () => number;
  readonly #losses: Loss[] = [];
  /** The losses by the index of the chunk. */
  readonly #ofChunk = new Map<number, Loss>();

  constructor(now: () => number) {
    this.#now = now;
  }

  /** Wraps the chunk calls of a main server. */
  follow(work: WorkStore, run: () => MemoryRun): void {
    const returnChunks = work.returnChunks.bind(work);
    const grant = work.grant.bind(work);
    work.returnChunks = async (at, ...rest) => {
      const { instances, granted } = run();
      const record = instances.get(epochKey(at));
      const owned = [...(granted.get(epochKey(at)) ?? [])];
      const products = await returnChunks(at, ...rest);
      const returned = owned.filter((c) => c.state === 'waiting');
      // A serving or finished instance only returns chunks that others can crawl sooner.
      if (record && isGivenUp(record) && record.phase !== 'done' && returned.length > 0) {
        const lastHeardMs = record.lastHeartbeatAtMs ?? this.#now();
        const loss: Loss = { lastHeardMs, waiting: returned.length, reassignedAtMs: null };
        this.#losses.push(loss);
        for (const { index } of returned) this.#ofChunk.set(index, loss);
      }
      return products;
    };
    work.grant = async (...call) => {
      const granted = await grant(...call);
      if (this.#ofChunk.size > 0) for (const id of granted) this.#reassigned(Number.parseInt(id, 10));
      return granted;
    };
  }

  #reassigned(index: number): void {
    const loss = this.#ofChunk.get(index);
    if (loss === undefined) return;
    this.#ofChunk.delete(index);
    if (--loss.waiting === 0) loss.reassignedAtMs = this.#now();
  }

  /**
   * The times from the last heartbeat of each lost instance until all of its products had new owners; null where they
   * never had.
   */
  latencies(): (number | null)[] {
    return this.#losses.map((l) => (l.reassignedAtMs === null ? null : l.reassignedAtMs - l.lastHeardMs));
  }
}
