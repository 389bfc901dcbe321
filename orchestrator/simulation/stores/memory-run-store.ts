/** RunStore in memory: the contract of db/run-store.ts without SQL. */
import { AppError } from '../../../shared/domain/errors.ts';
import type { ExitCode } from '../../../shared/domain/exit-codes.ts';
import { cutChunks } from '../../../shared/domain/sharing.ts';
import type { RunPhase } from '../../../shared/domain/states.ts';
import { canMoveRun, isRunEnd } from '../../../shared/domain/states.ts';
import type { Balancer } from '../../cloud/load-balancer.ts';
import type { ListedRun } from '../../control/model/report.ts';
import type { RunReport } from '../../control/model/report.ts';
import type { LockHolder, NewRun, RunEvent, RunRecord, StopRequest, RunStore } from '../../control/model/stores.ts';
import { PUBLISHED } from '../../db/newer-runs.ts';
import type { MemoryRun, MemoryDatabase } from './memory-database.ts';
import { NO_TOTALS } from './memory-database.ts';

export class MemoryRunStore implements RunStore {
  readonly #db: MemoryDatabase;

  constructor(db: MemoryDatabase) {
    this.#db = db;
  }

  acquireLock(
    owner: string,
    nowMs: number,
    leaseMs: number,
    steal?: LockHolder,
  ): Promise<{ fence: number } | { heldBy: LockHolder }> {
    const db = this.#db;
    return db.call('runs.acquireLock', () => {
      const { holder, fence } = db.lease;
      const isStolen = holder !== null && steal?.owner === holder.owner && steal.expiresAtMs === holder.expiresAtMs;
      if (holder !== null && holder.expiresAtMs > nowMs && !isStolen) return { heldBy: { ...holder } };
      db.lease = { fence: fence + 1, holder: { owner, runId: null, expiresAtMs: nowMs + leaseMs } };
      return { fence: fence + 1 };
    });
  }

  renewLock(fence: number, nowMs: number, leaseMs: number, runId: string | null): Promise<boolean> {
    const db = this.#db;
    return db.call('runs.renewLock', () => {
      const { holder } = db.lease;
      if (db.lease.fence !== fence || holder === null) return false;
      db.lease = { fence, holder: { ...holder, runId, expiresAtMs: nowMs + leaseMs } };
      return true;
    });
  }

  releaseLock(fence: number): Promise<void> {
    const db = this.#db;
    return db.call('runs.releaseLock', () => {
      if (db.lease.fence === fence) db.lease = { fence: fence + 1, holder: null };
    });
  }

  create(run: NewRun, productIds: readonly string[], fence: number, nowMs: number): Promise<void> {
    const db = this.#db;
    return db.write('runs.create', fence, () => {
      if (db.runs.has(run.id)) throw new AppError('internal', `the run ${run.id} is in the database already`);
      db.runs.set(run.id, newRun(run, productIds, nowMs));
    });
  }

  get(id: string): Promise<RunRecord | null> {
    return this.#db.call('runs.get', () => this.#db.runs.get(id)?.record ?? null);
  }

  list(limit: number): Promise<RunRecord[]> {
    return this.#db.call('runs.list', () => this.#newestFirst().slice(0, limit));
  }

  listedRuns(listKey: string, limit: number): Promise<ListedRun[]> {
    return this.#db.call('runs.listedRuns', () =>
      this.#newestFirst()
        .filter(
          ({ settings, phase, request }) =>
            settings.list?.key === listKey && PUBLISHED.includes(phase) && request !== 'cancel',
        )
        .slice(0, limit)
        .map(({ planned, settings }) => ({ products: planned, accepted: settings.list?.accepted === true })),
    );
  }

  async move(
    id: string,
    from: RunPhase,
    to: RunPhase,
    fence: number,
    nowMs: number,
    detail: { reason?: string; exitCode?: ExitCode; request?: StopRequest } = {},
  ): Promise<boolean> {
    if (!canMoveRun(from, to)) throw new AppError('internal', `a run cannot move from ${from} to ${to}`);
    return this.#db.write('runs.move', fence, () => {
      const run = this.#db.runs.get(id);
      if (run?.record.phase !== from || (to === 'held' && run.record.request === 'cancel')) return false;
      moveRun(run, to, nowMs, detail);
      return true;
    });
  }

  setBalancer(id: string, balancer: Balancer | null, fence: number): Promise<void> {
    return this.#change('runs.setBalancer', id, { balancer }, fence);
  }

  setReport(id: string, report: RunReport, fence: number): Promise<void> {
    return this.#change('runs.setReport', id, { report }, fence);
  }

  setRequest(id: string, request: StopRequest, fence?: number): Promise<boolean> {
    const set = (): boolean => {
      const run = this.#db.runs.get(id);
      if (!run || isRunEnd(run.record.phase) || !mayReplace(run.record.request, request)) return false;
      run.record = { ...run.record, request };
      return true;
    };
    return fence === undefined ? this.#db.call('runs.setRequest', set) : this.#db.write('runs.setRequest', fence, set);
  }

  addEvent(id: string, event: RunEvent): Promise<void> {
    return this.#db.call('runs.addEvent', () => void this.#db.run(id).events.push(event));
  }

  events(id: string, limit: number, kind?: string): Promise<RunEvent[]> {
    return this.#db.call('runs.events', () => {
      const events = this.#db.runs.get(id)?.events ?? [];
      return (kind === undefined ? events : events.filter((e) => e.kind === kind)).slice(-limit).reverse();
    });
  }

  #newestFirst(): RunRecord[] {
    return [...this.#db.runs.values()]
      .map((run) => run.record)
      .sort((a, b) => b.startedAtMs - a.startedAtMs || (a.id < b.id ? 1 : -1));
  }

  #change(method: string, id: string, change: Partial<RunRecord>, fence: number): Promise<void> {
    return this.#db.write(method, fence, () => {
      const run = this.#db.runs.get(id);
      if (run) run.record = { ...run.record, ...change };
    });
  }
}

/** The first stop request stays, whatever its origin; only `cancel` replaces it. */
function mayReplace(known: StopRequest | null, wish: StopRequest): boolean {
  return known === null || known === wish || wish === 'cancel';
}

/** Moves the run, with its event; the caller has checked that the move is allowed. */
export function moveRun(
  run: MemoryRun,
  to: RunPhase,
  nowMs: number,
  detail: { reason?: string | null; exitCode?: ExitCode; request?: StopRequest },
): void {
  const from = run.record.phase;
  run.record = {
    ...run.record,
    phase: to,
    ...(detail.reason === undefined ? {} : { reason: detail.reason }),
    ...(detail.exitCode === undefined ? {} : { exitCode: detail.exitCode }),
    ...(detail.request === undefined ? {} : { request: detail.request }),
    ...(isRunEnd(to) && from !== 'held' ? { finishedAtMs: nowMs } : {}),
  };
  run.events.push(moveEvent(nowMs, from, to, detail.reason ?? null));
}

function moveEvent(atMs: number, from: RunPhase | null, to: RunPhase, detail: string | null): RunEvent {
  return { atMs, kind: 'run', slot: null, epoch: null, from, to, detail };
}

function newRun(run: NewRun, productIds: readonly string[], nowMs: number): MemoryRun {
  return {
    record: {
      ...run,
      phase: 'planned',
      reason: null,
      exitCode: null,
      finishedAtMs: null,
      balancer: null,
      request: null,
      report: null,
    },
    items: productIds.map((id, i) => ({
      n: i + 1,
      id,
      outcome: null,
      reason: null,
      detail: null,
      slot: null,
      epoch: null,
      seq: null,
      rows: 0,
    })),
    chunks: cutChunks(productIds.length, run.plan.chunkSize).map(({ index, first, last }) => ({
      index,
      first,
      last,
      products: last - first + 1,
      generation: 1,
      state: 'waiting',
      slot: null,
      epoch: null,
      grantedAtMs: null,
    })),
    instances: new Map(),
    ordered: null,
    incidents: [],
    parts: new Map(),
    openParts: new Map(),
    staging: new Map(),
    events: [moveEvent(nowMs, null, 'planned', null)],
    firstWaiting: 0,
    counts: null,
    totals: NO_TOTALS,
  };
}
