/** The record of a schedule in memory: several daemons may share one, as they share a database. */
import type { Clock } from '../../../shared/ports/clock.ts';
import type { Lead, Leader, RunResult, ScheduleStore, Slot, SlotChange, SlotState } from '../../schedule/slots.ts';

interface Row extends Slot {
  writtenAtMs: number;
}

export class MemoryScheduleStore implements ScheduleStore {
  readonly #clock: Clock;
  readonly #rows = new Map<number, Row>();
  #fence = 0;
  #leader: Leader | null = null;
  #spec = '';
  #sinceMs = 0;
  /** What every call throws from now on; null when the database answers. */
  fault: Error | null = null;
  /** True as long as calls wait for an answer. */
  hangs = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  async takeLead(owner: string, spec: string, leaseMs: number, steal?: Leader): Promise<Lead | { heldBy: Leader }> {
    await this.#answer();
    const holder = this.#leader;
    if (holder && holder.expiresAtMs > this.#clock.now() && steal?.owner !== holder.owner) return { heldBy: holder };
    this.#fence++;
    this.#leader = { owner, expiresAtMs: this.#clock.now() + leaseMs };
    if (this.#spec !== spec) this.#sinceMs = this.#clock.now();
    this.#spec = spec;
    return { fence: this.#fence, sinceMs: this.#sinceMs };
  }

  async keepLead(fence: number, leaseMs: number): Promise<boolean> {
    await this.#answer();
    if (fence !== this.#fence || this.#leader === null) return false;
    this.#leader.expiresAtMs = this.#clock.now() + leaseMs;
    return true;
  }

  async leaveLead(fence: number): Promise<void> {
    await this.#answer();
    if (fence === this.#fence) this.#leader = null;
  }

  async claim(dueAtMs: number, state: SlotState, reason: string | null, fence: number): Promise<boolean> {
    await this.#answer();
    if (fence !== this.#fence) return false;
    const there = this.#rows.get(dueAtMs);
    if (there && (there.state !== 'missed' || there.writtenAtMs <= this.#clock.now())) return false;
    const blank = { runner: null, runId: null, startedAtMs: null, endedAtMs: null, result: null, told: false };
    this.#rows.set(dueAtMs, { dueAtMs, state, reason, fence, ...blank, writtenAtMs: this.#clock.now() });
    return true;
  }

  async change(dueAtMs: number, from: SlotState, change: SlotChange, fence: number): Promise<boolean> {
    await this.#answer();
    const row = this.#rows.get(dueAtMs);
    if (fence !== this.#fence || row?.state !== from) return false;
    Object.assign(row, change, { fence, writtenAtMs: this.#clock.now() });
    return true;
  }

  async signIn(dueAtMs: number, fence: number, runner: string): Promise<boolean> {
    await this.#answer();
    const row = this.#rows.get(dueAtMs);
    if (row?.state !== 'started' || row.fence !== fence || row.runner !== null) return false;
    Object.assign(row, { runner, startedAtMs: this.#clock.now() });
    return true;
  }

  async bindRun(dueAtMs: number, runner: string, runId: string): Promise<boolean> {
    await this.#answer();
    const row = this.#rows.get(dueAtMs);
    if (row?.state !== 'started' || row.runner !== runner) return false;
    row.runId = runId;
    return true;
  }

  async markTold(dueAtMs: number, state: SlotState, fence: number): Promise<void> {
    await this.#answer();
    const row = this.#rows.get(dueAtMs);
    if (fence === this.#fence && row?.state === state) row.told = true;
  }

  async decidedUpTo(nowMs: number): Promise<number | null> {
    await this.#answer();
    const decided = (row: Row): boolean => row.dueAtMs <= nowMs && (row.state !== 'missed' || row.writtenAtMs <= nowMs);
    return this.#sorted().findLast(decided)?.dueAtMs ?? null;
  }

  async signOut(dueAtMs: number, runner: string, result: RunResult): Promise<boolean> {
    await this.#answer();
    const row = this.#rows.get(dueAtMs);
    if (row?.state !== 'started' || row.runner !== runner) return false;
    const nowMs = this.#clock.now();
    Object.assign(row, { state: 'done', result, runId: result.run, endedAtMs: nowMs, writtenAtMs: nowMs });
    return true;
  }

  async open(): Promise<Slot[]> {
    await this.#answer();
    return this.#sorted().filter((row) => row.state === 'queued' || row.state === 'started');
  }

  async untold(sinceMs: number): Promise<Slot[]> {
    await this.#answer();
    const ended = ['done', 'skipped', 'missed'];
    return this.#sorted().filter((row) => ended.includes(row.state) && !row.told && row.writtenAtMs >= sinceMs);
  }

  async list(limit: number, upToMs = Infinity): Promise<Slot[]> {
    await this.#answer();
    const upTo = this.#sorted().filter((row) => row.dueAtMs <= upToMs);
    return upTo.reverse().slice(0, limit);
  }

  async get(dueAtMs: number): Promise<Slot | null> {
    await this.#answer();
    const row = this.#rows.get(dueAtMs);
    return row ? { ...row } : null;
  }

  #sorted(): Row[] {
    return [...this.#rows.values()].sort((a, b) => a.dueAtMs - b.dueAtMs).map((row) => ({ ...row }));
  }

  async #answer(): Promise<void> {
    await Promise.resolve();
    while (this.hangs) await this.#clock.sleep(1_000);
    if (this.fault) throw this.fault;
  }
}
