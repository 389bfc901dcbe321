/** WorkStore in memory: the contract of core/db/work-store.ts. Nothing that a heartbeat causes visits all chunks. */
import { type EpochId, epochKey } from '../../../../shared/domain/epoch-id.ts';
import { kindText, missReason } from '../../../../shared/domain/failure-kind.ts';
import type { FailureReason, OutcomeCounts } from '../../../../shared/domain/outcome.ts';
import { isServing } from '../../../../shared/domain/states.ts';
import type { FailedProduct, LedgerMisses, OpenChunk, OwnedChunk, WorkCounts, WorkStore } from '../../model/stores.ts';
import { chunkId, parseChunkId } from '../../db/chunk-rows.ts';
import { BoundMemory, type MemoryChunk, type MemoryItem, type MemoryRun } from './memory-database.ts';

export class MemoryWorkStore extends BoundMemory implements WorkStore {
  counts(): Promise<WorkCounts> {
    return this.read('work.counts', (run) => (run.counts ??= count(run)));
  }

  waiting(limit: number, except: Pick<ReadonlySet<string>, 'has' | 'size'>): Promise<OpenChunk[]> {
    return this.read('work.waiting', (run) => {
      const found: OpenChunk[] = [];
      let seen = 0;
      for (let i = run.firstWaiting; seen < limit; i++) {
        const chunk = run.chunks[i];
        if (chunk === undefined) break;
        if (chunk.state !== 'waiting') {
          if (i === run.firstWaiting) run.firstWaiting++;
          continue;
        }
        if (except.has(chunk.id)) continue;
        seen++;
        const products = openItems(run, chunk).map(({ n, id }) => ({ n, id }));
        if (products.length > 0) found.push({ id: chunk.id, products });
        else close(run, chunk);
      }
      return found;
    });
  }

  grant({ slot, epoch }: EpochId, chunkIds: readonly string[], limitChunks: number): Promise<string[]> {
    const asked = chunkIds.map(parseChunkId).filter((c) => c !== null);
    if (asked.length === 0) return Promise.resolve([]);
    return this.write('work.grant', (run) => {
      const key = epochKey({ slot, epoch });
      const holder = run.instances.get(key);
      const mayTake = holder !== undefined && isServing(holder.phase);
      let room = mayTake ? limitChunks - owned(run, { slot, epoch }).length : 0;
      const granted: string[] = [];
      const taken = new Set<number>();
      for (const { index, generation } of asked) {
        const chunk = run.chunks[index - 1];
        if (!chunk || chunk.generation !== generation || taken.has(index)) continue;
        if (isOwn(chunk, { slot, epoch })) granted.push(chunk.id);
        if (chunk.state !== 'waiting' || room <= 0) continue;
        room--;
        taken.add(index);
        granted.push(chunk.id);
        change(run, chunk, { state: 'granted', grant: { slot, epoch, atMs: this.now() } });
        const kept = run.grants.get(key) ?? new Set();
        run.grants.set(key, kept.add(chunk.index));
      }
      return granted;
    });
  }

  returnChunks(at: EpochId): Promise<number> {
    return this.write('work.returnChunks', (run) =>
      owned(run, at).reduce((sum, chunk) => sum + nextGeneration(run, chunk), 0),
    );
  }

  chunksOf(at: EpochId): Promise<OwnedChunk[]> {
    return this.read('work.chunksOf', (run) =>
      owned(run, at)
        .sort((a, b) => (b.grant?.atMs ?? 0) - (a.grant?.atMs ?? 0) || b.index - a.index)
        .map((chunk) => ({ id: chunk.id, open: openItems(run, chunk).length }))
        .filter((chunk) => chunk.open > 0),
    );
  }

  transferChunks(at: EpochId, chunkIds: readonly string[]): Promise<number> {
    const asked = new Set(chunkIds);
    if (asked.size === 0) return Promise.resolve(0);
    return this.write('work.transferChunks', (run) =>
      owned(run, at)
        .filter((chunk) => asked.has(chunk.id))
        .reduce((sum, chunk) => sum + nextGeneration(run, chunk), 0),
    );
  }

  anyStored(): Promise<string | null> {
    const find = ({ items }: MemoryRun): string | null => items.find(({ outcome }) => outcome === 'stored')?.id ?? null;
    return this.read('work.anyStored', find);
  }

  failedProducts(after: number, limit: number, reasons?: readonly FailureReason[]): Promise<FailedProduct[]> {
    return this.read('work.failedProducts', (run) =>
      run.items
        .flatMap(({ n, id, outcome, reason, detail }) =>
          outcome === 'failed' && reason !== null && n > after && (reasons?.includes(reason) ?? true)
            ? [{ n, id, reason, detail }]
            : [],
        )
        .slice(0, limit),
    );
  }

  failRest(reason: FailureReason): Promise<number> {
    return this.write('work.failRest', (run) => {
      const open = run.items.filter((item) => item.outcome === null);
      for (const item of open) Object.assign(item, { outcome: 'failed', reason });
      for (const chunk of run.chunks) if (chunk.state === 'waiting') close(run, chunk);
      return open.length;
    });
  }

  outcomes(): ReturnType<WorkStore['outcomes']> {
    const counts = { planned: 0, open: 0, stored: 0, gone: 0, failed: 0 };
    const reasons: Partial<Record<FailureReason, number>> = {};
    return this.read('work.outcomes', ({ items }) => {
      for (const { outcome, reason } of items) {
        counts[outcome ?? 'open']++;
        if (outcome === 'failed' && reason) reasons[reason] = (reasons[reason] ?? 0) + 1;
      }
      return { ...counts, planned: items.length, reasons };
    });
  }

  misses(limit: number): Promise<LedgerMisses[]> {
    return this.read('work.misses', ({ items }) => {
      const groups = new Map<string, LedgerMisses>();
      for (const { id, outcome, reason, ...item } of items) {
        const why = missReason(outcome, reason);
        if (why === null) continue;
        const detail = item.detail === null ? null : kindText(why, item.detail);
        const key = `${why} ${detail}`;
        const group = groups.get(key) ?? { reason: why, detail, products: 0, example: id };
        group.products++;
        groups.set(key, group);
      }
      return [...groups.values()].sort((a, b) => b.products - a.products).slice(0, limit);
    });
  }

  outcomesBySlot(): Promise<(EpochId & OutcomeCounts)[]> {
    return this.read('work.outcomesBySlot', ({ items }) => {
      const bySlot = new Map<string, EpochId & OutcomeCounts>();
      for (const { slot, epoch, outcome } of items) {
        if (slot === null || epoch === null || outcome === null) continue;
        const key = epochKey({ slot, epoch });
        const counts = bySlot.get(key) ?? { slot, epoch, stored: 0, gone: 0, failed: 0 };
        counts[outcome]++;
        bySlot.set(key, counts);
      }
      return [...bySlot.values()].sort((a, b) => a.slot - b.slot || a.epoch - b.epoch);
    });
  }
}

/** Closes these products' waiting chunks that were reassigned and have nothing left to crawl. */
export function closeReturned(run: MemoryRun, settled: readonly MemoryItem[]): void {
  const size = run.record.plan.chunkSize;
  for (const index of new Set(settled.map((item) => Math.ceil(item.n / size)))) {
    const chunk = run.chunks[index - 1];
    if (chunk?.state === 'waiting' && chunk.generation > 1 && openItems(run, chunk).length === 0) close(run, chunk);
  }
}

function openItems(run: MemoryRun, chunk: MemoryChunk): MemoryItem[] {
  return run.items.slice(chunk.first - 1, chunk.last).filter((item) => item.outcome === null);
}

const isOwn = (chunk: MemoryChunk, { slot, epoch }: EpochId): boolean =>
  chunk.grant?.slot === slot && chunk.grant.epoch === epoch;

const owned = (run: MemoryRun, at: EpochId): MemoryChunk[] => [...(run.granted.get(epochKey(at)) ?? [])];

function close(run: MemoryRun, chunk: MemoryChunk): void {
  change(run, chunk, { state: 'closed', grant: null });
}

/** The only way a chunk changes: a recount of all of them at each heartbeat would take most of a large run. */
function change(run: MemoryRun, chunk: MemoryChunk, values: Partial<MemoryChunk>): void {
  if (chunk.state === 'waiting') run.waiting--;
  if (chunk.grant !== null) run.granted.get(epochKey(chunk.grant))?.delete(chunk);
  Object.assign(chunk, values);
  if (chunk.state === 'waiting') run.waiting++;
  if (chunk.grant !== null) {
    const key = epochKey(chunk.grant);
    const own = run.granted.get(key) ?? new Set();
    run.granted.set(key, own.add(chunk));
  }
  run.counts = null;
}

/** Makes a chunk wait again if it has products without outcome; returns how many. */
function nextGeneration(run: MemoryRun, chunk: MemoryChunk): number {
  const products = openItems(run, chunk).length;
  if (products === 0) return 0;
  const generation = chunk.generation + 1;
  const id = chunkId({ idx: chunk.index, generation });
  change(run, chunk, { id, state: 'waiting', generation, products, grant: null });
  run.firstWaiting = Math.min(run.firstWaiting, chunk.index - 1);
  return products;
}

function count({ chunks, waiting, granted }: MemoryRun): WorkCounts {
  const bySlot = [...granted.values()].flatMap((own) => {
    const [first] = own;
    if (first?.grant == null) return [];
    let products = 0;
    for (const chunk of own) products += chunk.products;
    const { slot, epoch } = first.grant;
    return [{ slot, epoch, chunks: own.size, products }];
  });
  bySlot.sort((a, b) => a.slot - b.slot || a.epoch - b.epoch);
  return { chunks: chunks.length, waiting, granted: bySlot.reduce((sum, own) => sum + own.chunks, 0), bySlot };
}
