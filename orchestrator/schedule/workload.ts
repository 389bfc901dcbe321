/**
 * One thing at a time: the process that carries a due time out, or takes an unfinished run up. Finds both again after a crash of
 * the daemon, and tries a run that does not let itself be resumed less and less often.
 */
import type { Clock } from '../../shared/ports/clock.ts';
import type { ExitCode } from '../../shared/domain/exit-codes.ts';
import { EXIT } from '../../shared/domain/exit-codes.ts';
import { Work } from './at-work.ts';
import { ON_TIME_MS } from './due.ts';
import type { Processes, Runs, RunView } from './ports.ts';
import type { RunResult, ScheduleStore, Slot } from './slots.ts';

export interface WorkloadOptions {
  store: ScheduleStore;
  runs: Runs;
  processes: Processes;
  clock: Clock;
  catchUpMs: number;
  /** A line for people. */
  say: (text: string) => void;
  /** A line that a person should see. */
  alarm: (text: string) => void;
  onStuck: (work: Work) => void;
  /** A process has ended. */
  onEnd: () => void;
}

/** Why a due time cannot be started now. */
export interface Obstacle {
  reason: string;
  /** It is about to go away, and no reason to skip: the end of an earlier run, or gc. */
  passing: boolean;
}

const FIRST_RETRY_MS = 10_000;
const MAX_RETRY_MS = 300_000;
const MAX_TRIES = 8;
/** A process that is ended again and again before it stores a run will be so the next time too. */
const MAX_STARTS = 3;

export class Workload {
  readonly #o: WorkloadOptions;
  #work: Work | null = null;
  #busy: { owner: string; runId: string | null } | null = null;
  #unfinished: readonly RunView[] = [];
  /** How often a due time's process was started by this daemon. */
  readonly #starts = new Map<number, number>();
  /** Failed attempts to resume a run, and when the next one may be. */
  readonly #tries = new Map<string, { count: number; nextMs: number }>();

  constructor(options: WorkloadOptions) {
    this.#o = options;
  }

  get work(): Work | null {
    return this.#work;
  }

  /** What keeps a due time from being started; null when nothing does. */
  obstacle(): Obstacle | null {
    const work = this.#work;
    const nowMs = this.#o.clock.now();
    if (work?.kind === 'gc') return { reason: 'gc is at work', passing: true };
    if (work?.kind === 'resume')
      return { reason: `run ${work.run?.id ?? ''} is being resumed`, passing: (work.run?.deadlineAtMs ?? 0) < nowMs };
    if (work) return { reason: `the run of ${new Date(work.dueAtMs!).toISOString()} is at work`, passing: false };
    if (this.#busy)
      return { reason: `${this.#busy.owner} works on ${this.#busy.runId ?? 'a new run'}`, passing: false };
    // One whose deadline is past is ended by the next run itself; one that is given up must not block the schedule.
    const left = this.#unfinished.find((run) => run.deadlineAtMs >= nowMs && !this.#isGivenUp(run.id));
    if (left === undefined) return null;
    const whose = left.ours ? '' : ' of another schedule';
    return { reason: `run ${left.id}${whose} is unfinished and its deadline is ahead`, passing: false };
  }

  collectGarbage(): void {
    this.#take('gc', null, this.#o.processes.collectGarbage());
  }

  /** Carries out a due time that is `started` in the record under this fence. */
  start(dueAtMs: number, fence: number): void {
    this.#starts.set(dueAtMs, (this.#starts.get(dueAtMs) ?? 0) + 1);
    this.#take('slot', dueAtMs, this.#o.processes.run(dueAtMs, fence));
  }

  /** By a daemon that has just taken the lead: what has waited for an earlier one is not started days later. */
  async dropOld(open: readonly Slot[], fence: number): Promise<void> {
    for (const { state, dueAtMs } of open) {
      if (state !== 'queued' || this.#isYoung(dueAtMs)) continue;
      const tooOld = 'it has waited, its daemon is gone, and it is too old by now';
      if (await this.#o.store.change(dueAtMs, 'queued', { state: 'missed', reason: tooOld }, fence))
        this.#o.alarm(`missed ${new Date(dueAtMs).toISOString()}: ${tooOld}`);
    }
  }

  /** Looks at who works on what. With nothing in hand takes up what an earlier daemon has left, then what a run has. */
  async recover(open: readonly Slot[], fence: number): Promise<void> {
    if (this.#work) return;
    const { busy, unfinished } = await this.#o.runs.look();
    this.#busy = busy;
    this.#unfinished = unfinished;
    for (const slot of open) {
      if (slot.state === 'started') await this.#takeUp(slot, fence);
      if (this.#work) return;
    }
    const own = unfinished.find((run) => run.ours && !this.#isGivenUp(run.id));
    if (!busy && own) await this.#resume(own, null, fence);
  }

  /** Writes down how the process in hand has ended, if it has. True when it had. */
  async collect(fence: number): Promise<boolean> {
    const work = this.#work;
    if (work === null || work.exit === null) return false;
    if (work.kind === 'gc') this.#o.say(`gc has ended with exit code ${work.exit.code ?? work.exit.signal}`);
    else if (work.kind === 'resume') await this.#afterResume(work, fence);
    else await this.#afterRun(work, fence);
    this.#work = null;
    return true;
  }

  /** A run that goes on long after its end is asked to leave, then ended; it is taken up again like any other. */
  async watch(): Promise<void> {
    const work = this.#work;
    if (work === null) return;
    if (work.kind === 'slot' && work.run === null) {
      const slot = await this.#o.store.get(work.dueAtMs!);
      const run = slot && (await this.#runOf(slot));
      if (run) work.follow(run);
    }
    const order = work.whatToDo();
    if (order === 'leave') {
      this.#o.alarm(`${nameOf(work)} is long past its deadline and does not end: it is told to leave`);
      this.#o.onStuck(work);
      work.child.terminate();
    } else if (order === 'kill') {
      this.#o.alarm(`${nameOf(work)} has not left within a minute: its process is ended`);
      work.child.kill();
    }
  }

  #take(kind: Work['kind'], dueAtMs: number | null, child: Work['child']): Work {
    this.#work = new Work({ kind, dueAtMs, child }, this.#o.clock, this.#o.onEnd);
    return this.#work;
  }

  /** A due time that an earlier daemon, or an earlier process of ours, has begun. */
  async #takeUp(slot: Slot, fence: number): Promise<void> {
    const { processes, say } = this.#o;
    const { dueAtMs, runner } = slot;
    // Whoever wrote it is gone, and with the new fence a late process of his cannot sign in any more.
    if (runner === null) return this.#giveBack(slot, 'its process never began', fence);
    const found = processes.find(runner);
    if (found !== 'dead' && found !== 'elsewhere') {
      say(`${new Date(dueAtMs).toISOString()}: its run is still at work (${runner}); it is watched again`);
      this.#take('slot', dueAtMs, found);
      return;
    }
    // The lock of a living process of another machine says more than its name.
    if (this.#busy) return;
    const run = await this.#runOf(slot);
    if (run?.ended) await this.#close(slot, run.result, fence);
    else if (run) await this.#resume(run, dueAtMs, fence);
    else await this.#giveBack(slot, 'its process died before a run began', fence);
  }

  /** A due time that has no run yet waits for the next process; one that is too old by now is missed. */
  async #giveBack({ dueAtMs }: Slot, cause: string, fence: number): Promise<void> {
    const { store, alarm } = this.#o;
    const again = { state: 'queued', runner: null, runId: null, startedAtMs: null, reason: cause } as const;
    if (this.#isYoung(dueAtMs)) await store.change(dueAtMs, 'started', again, fence);
    else if (await store.change(dueAtMs, 'started', { state: 'missed', reason: cause }, fence))
      alarm(`missed ${new Date(dueAtMs).toISOString()}: ${cause}, and it is too old by now`);
  }

  #isYoung(dueAtMs: number): boolean {
    const { clock, catchUpMs } = this.#o;
    return clock.now() - dueAtMs <= Math.max(ON_TIME_MS, catchUpMs);
  }

  /** The run that the due time's own process has stored; it names it before it does. */
  async #runOf({ runId }: Slot): Promise<RunView | null> {
    return runId === null ? null : this.#o.runs.get(runId);
  }

  async #resume(run: RunView, dueAtMs: number | null, fence: number): Promise<void> {
    const { store, processes, clock, say } = this.#o;
    const tries = this.#tries.get(run.id);
    if (this.#isGivenUp(run.id) || (tries && clock.monotonic() < tries.nextMs)) return;
    say(`run ${run.id} is unfinished: it is taken up`);
    const work = this.#take('resume', dueAtMs, processes.resume(run.id));
    work.follow(run);
    if (dueAtMs !== null)
      await store.change(dueAtMs, 'started', { state: 'started', runner: work.child.runner }, fence);
  }

  async #afterResume(work: Work, fence: number): Promise<void> {
    const { store, runs, clock, alarm, say } = this.#o;
    const { id } = work.run!;
    const run = await runs.get(id);
    const slot = work.dueAtMs === null ? null : await store.get(work.dueAtMs);
    if (run?.ended) {
      this.#tries.delete(id);
      if (slot) await this.#close(slot, run.result, fence);
      else say(`run ${id} has ended: ${run.result.state}, exit code ${run.result.exitCode}`);
      return;
    }
    const count = (this.#tries.get(id)?.count ?? 0) + 1;
    const waitMs = Math.min(MAX_RETRY_MS, FIRST_RETRY_MS * 2 ** (count - 1));
    this.#tries.set(id, { count, nextMs: clock.monotonic() + waitMs });
    if (count < MAX_TRIES) return say(`run ${id} could not be resumed; it is tried again in ${waitMs / 1_000} s`);
    alarm(`run ${id} could not be resumed ${MAX_TRIES} times; the schedule goes on without it`);
    if (slot && run) await this.#close(slot, { ...run.result, exitCode: EXIT.internal, reason: 'unfinished' }, fence);
  }

  async #afterRun(work: Work, fence: number): Promise<void> {
    const { store, say } = this.#o;
    const slot = await store.get(work.dueAtMs!);
    if (slot === null) return;
    if (slot.state === 'done') return say(describeEnd(slot));
    const run = await this.#runOf(slot);
    // Left or killed on the way: recover() takes it up.
    if (run && !run.ended) return;
    const { code, signal } = work.exit!;
    // Ended from outside, by us as we leave or by somebody else: this is no end of a night.
    const wasEnded = signal !== null || code === null || code === EXIT.interrupted;
    if (run === null && wasEnded && (this.#starts.get(slot.dueAtMs) ?? 0) < MAX_STARTS)
      return this.#giveBack(slot, 'its process was ended before a run began', fence);
    const reason = signal ? `ended by ${signal} before a run began` : `ended with ${code} before a run began`;
    const nothing = { run: null, state: null, onTime: null, products: null, cost: null, hint: LOOK };
    await this.#close(slot, run?.result ?? { ...nothing, exitCode: code as ExitCode | null, reason }, fence);
  }

  async #close(slot: Slot, result: RunResult, fence: number): Promise<void> {
    const change = { state: 'done', result, endedAtMs: this.#o.clock.now(), reason: result.reason } as const;
    if (await this.#o.store.change(slot.dueAtMs, 'started', change, fence))
      this.#o.say(describeEnd({ ...slot, ...change }));
  }

  #isGivenUp(runId: string): boolean {
    return (this.#tries.get(runId)?.count ?? 0) >= MAX_TRIES;
  }
}

const LOOK = 'Look at .crawlfleet/schedule beside the configuration.';

function nameOf(work: Work): string {
  if (work.run) return `run ${work.run.id}`;
  return work.dueAtMs === null ? work.kind : `the run of ${new Date(work.dueAtMs).toISOString()}`;
}

function describeEnd({ dueAtMs, result }: Slot): string {
  const run = result?.run ? `run ${result.run}` : 'no run';
  const why = result?.reason ? ` (${result.reason})` : '';
  return `${new Date(dueAtMs).toISOString()}: ${run}, exit code ${result?.exitCode ?? 'unknown'}${why}`;
}
