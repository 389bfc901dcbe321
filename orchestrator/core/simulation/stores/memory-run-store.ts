/**
 * RunStore in memory: the contract of core/db/run-store.ts without SQL, as far as one main server after the other goes.
 */
import { AppError } from '../../../../shared/domain/errors.ts';
import type { ExitCode } from '../../../../shared/domain/exit-codes.ts';
import { cutChunks, isFirst, NOT_NEXT_MS } from '../../../../shared/domain/sharing.ts';
import { NO_URL } from '../../../../shared/domain/own-url.ts';
import { canMoveRun, isRunEnd, type RunPhase } from '../../../../shared/domain/states.ts';
import { chunkId } from '../../db/chunk-rows.ts';
import type { Balancer } from '../../cloud/load-balancer.ts';
import type { HostPace, OperatorPace } from '../../plan/host-pace.ts';
import type { RunReport } from '../../model/report.ts';
import type {
  LockRequest,
  LockHolder,
  IdList,
  RunToStore,
  RunEvent,
  RunRecord,
  RunRow,
  RunStore,
  StopRequest,
} from '../../model/stores.ts';
import { BoundMemory, type MemoryDatabase, type MemoryRun } from './memory-database.ts';

export type OneRunStore = Pick<RunStore, 'acquireLock' | 'create' | 'get' | 'setRequest' | 'setOperatorPace'>;

export class MemoryRunStore implements OneRunStore {
  readonly #db: MemoryDatabase;

  constructor(db: MemoryDatabase) {
    this.#db = db;
  }

  /** One run at a time, so its names make no difference. */
  acquireLock({
    owner,
    names,
    nowMs,
    leaseMs,
    steal = [],
  }: LockRequest): Promise<{ fence: number } | { heldBy: LockHolder }> {
    const db = this.#db;
    return db.call('runs.acquireLock', () => {
      const { holder, fence } = db.lease;
      const isStolen = steal.some((dead) => dead.owner === holder?.owner && dead.expiresAtMs === holder.expiresAtMs);
      if (holder !== null && holder.expiresAtMs > nowMs && !isStolen) return { heldBy: { ...holder } };
      db.lease = {
        fence: fence + 1,
        holder: { name: names[0] ?? '', owner, runId: null, expiresAtMs: nowMs + leaseMs },
      };
      return { fence: fence + 1 };
    });
  }

  create(run: RunToStore, productIds: IdList, fence: number, nowMs: number): Promise<void> {
    const db = this.#db;
    return db.write('runs.create', fence, () => {
      if (db.runs.has(run.id)) throw new AppError('internal', `the run ${run.id} is in the database already`);
      db.runs.set(run.id, newRun(run, productIds, nowMs));
    });
  }

  get(id: string): Promise<RunRecord | null> {
    return this.#db.call('runs.get', () => this.#db.runs.get(id)?.record ?? null);
  }

  setRequest(id: string, request: 'stop' | 'cancel'): Promise<boolean> {
    return this.#db.call('runs.setRequest', () => setRequest(this.#db.runs.get(id), request));
  }

  setOperatorPace(id: string, pace: OperatorPace): Promise<boolean> {
    return this.#db.call('runs.setOperatorPace', () => {
      const run = this.#db.runs.get(id);
      if (run === undefined || (pace.addresses !== null && isRunEnd(run.record.phase))) return false;
      run.record = { ...run.record, operatorPace: pace };
      return true;
    });
  }
}

/** RunRow in memory. */
export class MemoryRunRow extends BoundMemory implements RunRow {
  get(): Promise<RunRecord | null> {
    return this.read('runs.get', (run) => run.record);
  }

  async move(
    from: RunPhase,
    to: RunPhase,
    detail: { reason?: string; exitCode?: ExitCode; request?: StopRequest } = {},
  ): Promise<boolean> {
    if (!canMoveRun(from, to)) throw new AppError('internal', `a run cannot move from ${from} to ${to}`);
    return this.write('runs.move', (run) => {
      if (run.record.phase !== from || (to === 'held' && run.record.request === 'cancel')) return false;
      moveRun(run, to, this.now(), detail);
      return true;
    });
  }

  setBalancer(region: string, balancer: Balancer | null): Promise<void> {
    return this.write('runs.setBalancer', (run) => {
      const { [region]: _, ...others } = run.record.balancers;
      run.record = { ...run.record, balancers: balancer === null ? others : { ...others, [region]: balancer } };
    });
  }

  setEnd(exitCode: ExitCode, reason: string): Promise<void> {
    return this.#change('runs.setEnd', { exitCode, reason });
  }

  setReport(report: RunReport): Promise<void> {
    return this.#change('runs.setReport', { report });
  }

  setPaces(paces: readonly HostPace[]): Promise<void> {
    return this.#change('runs.setPaces', { paces });
  }

  setRequest(request: StopRequest): Promise<boolean> {
    return this.write('runs.setRequest', (run) => setRequest(run, request));
  }

  addEvent(event: RunEvent): Promise<void> {
    return this.read('runs.addEvent', (run) => void run.events.push(event));
  }

  events(limit: number, kind?: string): Promise<RunEvent[]> {
    return this.read('runs.events', ({ events }) =>
      (kind === undefined ? events : events.filter((e) => e.kind === kind)).slice(-limit).reverse(),
    );
  }

  #change(method: string, change: Partial<RunRecord>): Promise<void> {
    return this.write(method, (run) => {
      run.record = { ...run.record, ...change };
    });
  }
}

function setRequest(run: MemoryRun | undefined, request: StopRequest): boolean {
  if (!run || isRunEnd(run.record.phase) || !mayReplace(run.record.request, request)) return false;
  run.record = { ...run.record, request };
  return true;
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

function newRun(toStore: RunToStore, productIds: IdList, nowMs: number): MemoryRun {
  const { chunks = cutChunks(productIds.length, toStore.plan.chunkSize), urls, ...run } = toStore;
  return {
    record: {
      ...run,
      phase: 'planned',
      reason: null,
      exitCode: null,
      finishedAtMs: null,
      prunedAtMs: null,
      balancers: {},
      request: null,
      report: null,
    },
    items: Array.from(productIds, (id, i) => ({
      n: i + 1,
      id,
      ...(urls === undefined ? {} : { url: urls.get(id) ?? NO_URL }),
      outcome: null,
      reason: null,
      detail: null,
      slot: null,
      epoch: null,
      seq: null,
      rows: 0,
    })),
    chunks: chunks.map(({ index, first, last, hosts = null }) => ({
      id: chunkId({ idx: index, generation: 1 }),
      index,
      first,
      last,
      products: last - first + 1,
      generation: 1,
      state: 'waiting',
      grant: null,
      hosts,
      owner: null,
      dueAtMs: hosts === null || isFirst(hosts, index) ? null : NOT_NEXT_MS,
    })),
    instances: new Map(),
    ordered: null,
    incidents: [],
    parts: new Map(),
    openParts: new Map(),
    staging: new Map(),
    landings: new Map(),
    rows: new Map(),
    older: new Set(),
    events: [moveEvent(nowMs, null, 'planned', null)],
    firstWaiting: 0,
    waiting: chunks.length,
    granted: new Map(),
    grants: new Map(),
    grantsMade: 0,
    hosts: new Map(),
    rests: new Map(),
    counts: null,
    totals: { stored: 0, gone: 0, failed: 0, seen: 0, loaded: 0 },
  };
}
