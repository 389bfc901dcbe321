/** The record of a schedule in memory: several daemons may share one, as they share a database. */
import type { DueTimeStore } from '../../../../orchestrator/features/schedule/schedule-store.ts';
import type { DueTime, StoredDueTime } from '../../../../orchestrator/features/schedule/due-times.ts';
import type { Clock } from '../../../../shared/ports/clock.ts';

const BLANK = {
  reason: null,
  owner: null,
  runner: null,
  runId: null,
  deadlineAtMs: null,
  startedAtMs: null,
  endedAtMs: null,
  result: null,
};

export class MemoryRecord implements DueTimeStore {
  readonly #clock: Pick<Clock, 'now' | 'sleep'>;
  readonly #rows = new Map<number, DueTime & { writtenAtMs: number }>();
  /** What every call throws from now on; null when the database answers. */
  fault: Error | null = null;
  /** True as long as calls wait for an answer. */
  hangs = false;

  constructor(clock: Pick<Clock, 'now' | 'sleep'>) {
    this.#clock = clock;
  }

  async read(): Promise<StoredDueTime[]> {
    await this.#answer();
    const rows = [...this.#rows.values()].sort((a, b) => a.dueAtMs - b.dueAtMs);
    return rows.map(({ writtenAtMs, ...row }) => ({ ...row, idleMs: this.#clock.now() - writtenAtMs }));
  }

  async write(dueAtMs: number, from: Partial<DueTime> | null, change: Partial<DueTime>): Promise<boolean> {
    await this.#answer();
    const row = this.#rows.get(dueAtMs);
    const isAsSaid = from ? row && Object.entries(from).every(([key, value]) => row[key as 'runId'] === value) : !row;
    if (!isAsSaid) return false;
    const result = change.result ? { runId: change.result.run } : {};
    const blank = { ...BLANK, dueAtMs, state: 'next', told: false } as const;
    this.#rows.set(dueAtMs, { ...blank, ...row, ...change, ...result, writtenAtMs: this.#clock.now() });
    return true;
  }

  async forget(dueAtMs: number, state: DueTime['state']): Promise<void> {
    await this.#answer();
    if (this.#rows.get(dueAtMs)?.state === state) this.#rows.delete(dueAtMs);
  }

  async #answer(): Promise<void> {
    await Promise.resolve();
    while (this.hangs) await this.#clock.sleep(1_000);
    if (this.fault) throw this.fault;
  }
}
