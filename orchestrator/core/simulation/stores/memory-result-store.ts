/**
 * ResultStore in memory: the contract of core/db/result-store.ts without SQL, as far as one run goes. Rows are kept as
 * given in the part.
 */
import type { EpochId } from '../../../../shared/domain/epoch-id.ts';
import { AppError } from '../../../../shared/domain/errors.ts';
import { ledgerDetail } from '../../../../shared/domain/failure-kind.ts';
import { landingOf } from '../../../../shared/domain/landing.ts';
import {
  countLeftOut,
  type LeftOut,
  type LeftOutCounts,
  pagesLeftOut,
  sumLeftOut,
} from '../../../../shared/domain/left-out.ts';
import { isRunEnd } from '../../../../shared/domain/states.ts';
import type { PartRef } from '../../../../shared/wire/callbacks.ts';
import type { ItemResult } from '../../../../shared/wire/part.ts';
import { type PartResults, piecesOf } from '../../model/part-results.ts';
import type { FillRates, ValueProfile } from '../../model/report.ts';
import type { AssertCounts } from '../../model/assertions.ts';
import { eventOf } from '../../model/run-event.ts';
import { CANCELLED } from '../../decide/end/exit-code.ts';
import type {
  LoadedPart,
  LoadTotals,
  PartId,
  PartRecord,
  Published,
  PublishEnd,
  PublishedPhase,
  Refusal,
  ResultStore,
  SharedResults,
  ValueSample,
} from '../../model/stores.ts';
import {
  BoundMemory,
  type MemoryItem,
  type MemoryPart,
  type MemoryRun,
  partPlace,
  wereGranted,
} from './memory-database.ts';
import { moveRun } from './memory-run-store.ts';
import { closeReturned } from './memory-work-store.ts';

export class MemoryResultStore extends BoundMemory implements ResultStore {
  register({ slot, epoch }: EpochId, parts: readonly PartRef[]): Promise<void> {
    if (parts.length === 0) return Promise.resolve();
    return this.write('results.register', (run) => {
      for (const part of parts) {
        const place = partPlace({ slot, epoch, seq: part.seq });
        if (run.parts.has(place)) continue;
        const { seq, key, sha256, sizeBytes, products } = part;
        const counts = { stored: 0, gone: 0, failed: 0, rows: 0, partial: 0, leftOut: {} };
        const nothing = { ...counts, state: 'seen', detail: null } as const;
        const record = { slot, epoch, seq, key, sha256, sizeBytes, products, ...nothing };
        run.parts.set(place, record);
        run.openParts.set(place, record);
        run.totals = { ...run.totals, seen: run.totals.seen + 1 };
      }
    });
  }

  parts({ slot, epoch, state }: Parameters<ResultStore['parts']>[0] = {}): Promise<PartRecord[]> {
    const isWanted = (part: MemoryPart): boolean =>
      (state ?? part.state) === part.state && (slot ?? part.slot) === part.slot && (epoch ?? part.epoch) === part.epoch;
    return this.read('results.parts', (run) =>
      [...run[state === undefined || state === 'loaded' ? 'parts' : 'openParts'].values()]
        .filter(isWanted)
        .sort((a, b) => a.slot - b.slot || a.epoch - b.epoch || a.seq - b.seq)
        .map(
          ({ rows: _rows, partial: _partial, leftOut: _leftOut, detail: _detail, putAside: _putAside, ...part }) =>
            part,
        ),
    );
  }

  async load(part: PartId, given: PartResults): Promise<LoadedPart> {
    const results: ItemResult[] = [];
    for await (const piece of piecesOf(given)) results.push(...piece);
    return this.write('results.load', (run) => {
      const known = run.parts.get(partPlace(part));
      if (!known)
        throw new AppError(
          'internal',
          `part ${part.seq} of slot ${part.slot} epoch ${part.epoch} is not in the ledger`,
        );
      if (known.state !== 'loaded') {
        // One that could not be read counts as seen again.
        const seen = run.totals.seen + (known.state === 'failed' ? 1 : 0);
        const isGranted = wereGranted(run, part);
        const granted = results.filter(({ n }) => isGranted(n));
        if (granted.length < results.length) known.putAside = results.length - granted.length;
        Object.assign(known, loadResults(run, part, granted), { state: 'loaded', detail: null });
        run.openParts.delete(partPlace(part));
        const { totals } = run;
        const partial = (totals.partial ?? 0) + known.partial;
        run.totals = {
          ...(partial > 0 ? { partial } : {}),
          seen,
          loaded: totals.loaded + 1,
          stored: totals.stored + known.stored,
          gone: totals.gone + known.gone,
          failed: totals.failed + known.failed,
        };
      }
      const { stored, gone, failed, putAside } = known;
      return { stored, gone, failed, ...(putAside === undefined ? {} : { putAside }) };
    });
  }

  failPart(part: PartId, detail: string): Promise<void> {
    return this.write('results.failPart', (run) => {
      const known = run.parts.get(partPlace(part));
      if (known?.state !== 'seen') return;
      Object.assign(known, { state: 'failed', detail });
      run.totals = { ...run.totals, seen: run.totals.seen - 1 };
    });
  }

  totals(): Promise<LoadTotals> {
    return this.read('results.totals', (run) => run.totals);
  }

  leftOut(): Promise<LeftOutCounts> {
    return this.read('results.leftOut', ({ parts }) => sumLeftOut([...parts.values()].map(({ leftOut }) => leftOut)));
  }

  partialProducts(limit: number): Promise<string[]> {
    return this.read('results.partialProducts', ({ items }) =>
      items
        .filter(({ leftOut }) => leftOut !== undefined)
        .slice(0, limit)
        .map(({ id }) => id),
    );
  }

  publish(to: PublishedPhase, end: PublishEnd): Promise<Published> {
    return this.write<Published>('results.publish', (run) => {
      const { id, phase, request } = run.record;
      if (phase !== (end.held === true ? 'held' : 'loading')) {
        if (isRunEnd(phase)) return { rows: run.rows.size };
        throw new AppError('internal', `the run ${id} is ${phase}, so it cannot be published`);
      }
      const isCancelled = request === 'cancel';
      const refused = isCancelled ? [] : [...(run.staging?.keys() ?? [])].filter((key) => this.db.refusesRow(key));
      if (refused.length > 0) {
        const words = 'the result table refuses the row';
        const refusals = refused.map((key): Refusal => ({ id: key, outcome: 'failed', reason: 'load', detail: words }));
        return { refused: { refusals, complete: true, words } };
      }
      if (!isCancelled) {
        for (const [product, row] of run.staging ?? []) run.rows.set(product, { ...row, run_id: id });
        for (const item of run.items)
          if (item.outcome === 'stored' && item.leftOut === undefined) run.older.delete(item.id);
      }
      const { exitCode, reason } = isCancelled ? CANCELLED : end;
      moveRun(run, isCancelled ? 'cancelled' : to, this.now(), { exitCode, reason });
      return { rows: run.rows.size };
    });
  }

  newerRuns(): Promise<string[]> {
    return this.read('results.newerRuns', () => []);
  }

  fillOfFields(): Promise<FillRates['fields']> {
    return this.read('results.fillOfFields', () => ({}));
  }

  sharedResults(): Promise<SharedResults> {
    return this.read('results.sharedResults', ({ landings }) => {
      const pages = [...Map.groupBy(landings, ([, page]) => page)].map(([page, on]) => {
        const ids = on.map(([id]) => id).sort();
        return { page, products: ids.length, examples: ids.slice(0, 3), ownerId: null, lacks: [], titles: 1 };
      });
      const shared = pages.filter(({ products }) => products > 1).sort((a, b) => b.products - a.products);
      return { pages: shared, rows: [] };
    });
  }

  /** No modelled page redirects. */
  movedTogether(): Promise<[]> {
    return Promise.resolve([]);
  }

  productsOn(page: string): Promise<string[]> {
    return this.read('results.productsOn', ({ landings }) =>
      [...landings].flatMap(([id, own]) => (own === page ? [id] : [])),
    );
  }

  refuse(refusals: readonly Refusal[], note: string): Promise<number> {
    return this.write('results.refuse', (run) => {
      const byId = new Map(refusals.map((refusal) => [refusal.id, refusal]));
      const refused = run.items.filter(({ id, outcome }) => outcome === 'stored' && byId.has(id));
      for (const item of refused) {
        const [refusal, part] = [byId.get(item.id), run.parts.get(partPlace(item as PartId))];
        if (refusal === undefined || part === undefined) continue;
        const { id, outcome, reason, detail } = refusal;
        part.stored--;
        part[outcome]++;
        part.rows -= item.rows;
        const { stored, partial = 0 } = run.totals;
        run.totals = { ...run.totals, stored: stored - 1, [outcome]: run.totals[outcome] + 1 };
        if (item.leftOut !== undefined) {
          part.partial--;
          run.totals.partial = partial - 1;
          delete item.leftOut;
        }
        Object.assign(item, { outcome, reason, detail, rows: 0, refused: true });
        run.staging?.delete(id);
        run.landings.delete(id);
      }
      if (refused.length > 0) run.events.push(eventOf('alarm', this.now(), note));
      return refused.length;
    });
  }

  noteNumbers(): Promise<void> {
    return this.write('results.noteNumbers', () => undefined);
  }

  earlierFills(): Promise<FillRates[]> {
    return this.read('results.earlierFills', () => []);
  }

  assertDecided(): Promise<AssertCounts> {
    return this.write('results.assertDecided', () => ({}));
  }

  valueSample(): Promise<ValueSample> {
    return this.read('results.valueSample', () => ({ fingerprint: '', columns: [], rows: [] }));
  }

  earlierValues(): Promise<ValueProfile[]> {
    return this.read('results.earlierValues', () => []);
  }

  setFill(): Promise<void> {
    return this.write('results.setFill', () => undefined);
  }

  dropStaging(): Promise<void> {
    return this.read('results.dropStaging', (run) => {
      run.staging = null;
    });
  }

  resultRows(sample: number): Promise<{ rows: number; sample: Record<string, unknown>[] }> {
    return this.read('results.resultRows', ({ rows }) => {
      const sorted = [...rows.values()].sort((a, b) => (a.product_id < b.product_id ? -1 : 1));
      return { rows: rows.size, sample: sorted.slice(0, sample).map((row) => ({ ...row })) };
    });
  }
}

/** Counts only outcomes of this load: products that already had one are left unchanged. */
function loadResults(
  run: MemoryRun,
  place: PartId,
  results: readonly ItemResult[],
): Pick<MemoryPart, 'stored' | 'gone' | 'failed' | 'rows' | 'partial' | 'leftOut'> {
  const counts = { stored: 0, gone: 0, failed: 0, rows: 0, partial: 0 };
  const leftOut: LeftOut[] = [];
  const settled: MemoryItem[] = [];
  for (const result of results) {
    const item = run.items[result.n - 1];
    if (item?.id !== result.id || item.outcome !== null) continue;
    const { slot, epoch, seq } = place;
    item.outcome = result.outcome;
    item.slot = slot;
    item.epoch = epoch;
    item.seq = seq;
    if (result.outcome !== 'stored') item.detail = ledgerDetail(result);
    if (result.outcome === 'failed') item.reason = result.reason;
    if (result.outcome === 'stored') {
      item.rows = stageRow(run, result);
      if (result.leftOut) leftOut.push(result.leftOut);
      if (result.partial) item.leftOut = pagesLeftOut(result.leftOut ?? {});
      if (result.partial) counts.partial++;
    }
    counts[result.outcome]++;
    counts.rows += item.rows;
    settled.push(item);
  }
  closeReturned(run, settled);
  return { ...counts, leftOut: countLeftOut(leftOut) };
}

function stageRow(run: MemoryRun, { id, url, finalUrl, at, rows }: ItemResult & { outcome: 'stored' }): number {
  const landing = finalUrl === undefined ? null : landingOf(finalUrl, { id, url });
  if (landing !== null) run.landings.set(id, landing);
  run.staging?.set(id, { product_id: id, ...rows[0]?.row, url, crawled_at: at });
  return rows.length;
}
