/** The daemon's loop around `decide`: reads the record and acts until nothing is left. Any look may be the first. */
import { describeError } from '../../../shared/domain/errors.ts';
import { EXIT } from '../../../shared/domain/exit-codes.ts';
import { showLocal } from '../../../shared/domain/local-time.ts';
import type { Clock } from '../../../shared/ports/clock.ts';
import type { DueTimeStore } from './schedule-store.ts';
import { type Action, decide, iso, type Settings, type View } from './decide.ts';
import type { StuckRun } from '../../core/run-events.ts';
import type { RunResult } from '../../core/read/run-result.ts';
import { isDecided, type StoredDueTime } from './due-times.ts';
import type { Child, Processes } from '../../cli/processes.ts';

export interface SchedulerOptions extends Settings {
  store: DueTimeStore;
  runs: {
    busy(): Promise<View['busy']>;
    /** The newest unfinished run of this schedule's table that is not one of these. */
    left(started: readonly (string | null)[]): Promise<string | null>;
    /** How a run has ended, as in `View.ends`. */
    end(runId: string): Promise<RunResult | 'unfinished' | undefined>;
  };
  processes: Processes;
  clock: Clock;
  /** A line that begins with `!` is one that a person should see. */
  say: (text: string) => void;
  /** Notifies the targets of a decided due time, or of several missed ones, and marks the rows. */
  notify: (rows: readonly StoredDueTime[]) => Promise<void>;
  /** Notifies the targets of a run that does not end, or that cannot be resumed. */
  onStuck: (stuck: StuckRun) => void;
  /** Longest sleep between two looks; also how soon a clock that was set is seen. */
  pollMs?: number;
}

const STOP_MS = 100_000;
const NOTIFY_FOR_MS = 86_400_000;
/** The most looks in a row: more than any state of the record needs. */
const MAX_LOOKS = 50;

/**
 * The exit codes of runs with which nothing is to be done at once: all of its rows, or most, are there, or a person
 * ended it.
 */
const CONTENT: readonly (number | null)[] = [EXIT.complete, EXIT.interrupted, EXIT.failedProducts, EXIT.deadline];
/**
 * One round is a few short queries; each of them is tried for up to 45 s, too long for a monitor to believe that all is
 * well.
 */
const SLOW_MS = 10_000;

export class Scheduler {
  readonly #o: SchedulerOptions;
  #rows: readonly StoredDueTime[] = [];
  readonly #starts = new Map<string | number, { count: number; atMs: number; runner: string }>();
  readonly #asked = new Map<string, number>();
  readonly #notified = new Set<string>();
  #isFirst = true;
  #fault: string | null = null;
  /** Since when the record is read, in monotonic ms; null between two looks. */
  #lookingSinceMs: number | null = null;
  #wake = new AbortController();

  constructor(options: SchedulerOptions) {
    this.#o = options;
  }

  /** What `/healthz` of the daemon answers: whether the schedule runs, and whether its last run needs a look. */
  health() {
    const { clock, timetable, me } = this.#o;
    const rows = this.#rows;
    const problem = this.#problem();
    const next = timetable.next(clock.now());
    const starter = rows.findLast(({ state }) => state === 'started' || state === 'done')?.owner ?? me;
    const running = rows.findLast(({ state }) => state === 'started');
    const kind = this.#starts.has(running?.runId ?? '') ? 'resume' : 'slot';
    const last = rows.findLast(isDecided);
    const { exitCode = null, run = null } = last?.result ?? {};
    /** `standby`: another daemon has started the newest due time. */
    const role: 'leading' | 'standby' = starter === me ? 'leading' : 'standby';
    return {
      ok: problem === null,
      problem,
      role: this.#isFirst ? ('starting' as const) : role,
      next: next === null ? null : iso(next),
      running: running ? { kind, due: iso(running.dueAtMs), run: running.runId } : null,
      last: last ? { due: iso(last.dueAtMs), state: last.state, exitCode, run } : null,
    };
  }

  #problem(): string | null {
    if (this.#fault) return this.#fault;
    const nowMs = this.#o.clock.monotonic();
    const tookMs = nowMs - (this.#lookingSinceMs ?? nowMs);
    if (tookMs > SLOW_MS) return `the database does not answer, for ${Math.round(tookMs / 1_000)} s by now`;
    const result = this.#rows.findLast(({ state }) => state === 'done')?.result;
    if (!result || CONTENT.includes(result.exitCode)) return null;
    const why = result.reason ? `: ${result.reason}` : '';
    return `the last run ended with exit code ${result.exitCode ?? 'unknown'}${why}`;
  }

  /** Runs until the signal; then the processes of runs are asked to leave and waited for. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, timetable, say, pollMs = 15_000 } = this.#o;
    const next = timetable.next(clock.now());
    say(next === null ? 'no due time is ahead' : `next: ${showLocal(next, timetable.timezone)}`);
    while (!signal.aborted) {
      this.#wake = new AbortController();
      await this.#look(false);
      const dueInMs = (timetable.next(clock.now()) ?? Infinity) - clock.now();
      await clock.sleep(Math.min(pollMs, Math.max(1, dueInMs)), AbortSignal.any([signal, this.#wake.signal]));
    }
    await this.#leave();
  }

  async #look(isLeaving: boolean): Promise<void> {
    const { clock, say } = this.#o;
    this.#lookingSinceMs = clock.monotonic();
    try {
      for (let looks = 0; looks < MAX_LOOKS; looks++) {
        const actions = decide(await this.#view(isLeaving));
        if (actions.length === 0) break;
        for (const action of actions) await this.#act(action);
      }
      this.#notifyAll();
      this.#isFirst = false;
      this.#fault = null;
    } catch (error) {
      const fault = describeError(error);
      // What does not change is said once.
      if (fault !== this.#fault) say(`! the schedule cannot go on for now, and is tried again: ${fault}`);
      this.#fault = fault;
    } finally {
      this.#lookingSinceMs = null;
    }
  }

  async #view(isLeaving: boolean): Promise<View> {
    const { clock, runs, store, processes } = this.#o;
    const holder = await runs.busy();
    this.#rows = await store.read();
    const bound = this.#rows.flatMap(({ state, runId }) => (state === 'started' && runId !== null ? [runId] : []));
    const ends = new Map(await Promise.all(bound.map(async (runId) => [runId, await runs.end(runId)] as const)));
    const leftRunId = holder ? null : await runs.left(this.#rows.map((row) => row.runId));
    // A process that resumes takes the lock only after a moment.
    const resumer = this.#starts.get(leftRunId ?? '')?.runner;
    const resuming = resumer && processes.stateOf(resumer) === 'alive' ? { owner: resumer, runId: leftRunId } : null;
    return {
      ...this.#o,
      nowMs: clock.now(),
      monotonicMs: clock.monotonic(),
      rows: this.#rows,
      busy: holder ?? resuming,
      leftRunId,
      ends,
      starts: this.#starts,
      askedAtMs: this.#asked,
      wasAway: this.#fault !== null,
      isLeaving,
    };
  }

  async #act(action: Action): Promise<void> {
    const { store, processes, clock, say, onStuck } = this.#o;
    switch (action.do) {
      case 'write': {
        const { dueAtMs, seen, change } = action;
        const from = seen && { state: seen.state, owner: seen.owner, runner: seen.runner };
        // Another daemon was quicker.
        if (!(await store.write(dueAtMs, from, change))) return;
        if (change.state === 'started' && seen?.runId) this.#follow(processes.resume(seen.runId), seen.runId);
        else if (change.state === 'started') this.#follow(processes.run(dueAtMs, change.startedAtMs!), dueAtMs);
        break;
      }
      case 'forget':
        await store.forget(action.dueAtMs, action.state);
        break;
      case 'resume':
        this.#follow(processes.resume(action.runId), action.runId);
        break;
      case 'give-up':
        this.#starts.get(action.runId)!.count++;
        break;
      case 'stop':
        this.#asked.set(action.runner, action.signal === 'SIGTERM' ? clock.now() : Infinity);
        processes.signal(action.runner, action.signal);
    }
    if (action.say) say(action.say);
    if (action.stuck) onStuck(action.stuck);
  }

  #follow({ runner, ended }: Child, of: string | number): void {
    const count = (this.#starts.get(of)?.count ?? 0) + 1;
    this.#starts.set(of, { count, atMs: this.#o.clock.monotonic(), runner });
    void ended.then(() => this.#wake.abort());
  }

  /** Each decision once; a night of sleep is one message. What a restart cuts off is sent again for a day. */
  #notifyAll(): void {
    // By state too: a due time that was missed under a wrong clock may have a run after all.
    const keyOf = ({ dueAtMs, state }: StoredDueTime): string => `${dueAtMs} ${state}`;
    const pending = this.#rows.filter((row) => isDecided(row) && !row.told && row.idleMs < NOTIFY_FOR_MS);
    const fresh = pending.filter((row) => !this.#notified.has(keyOf(row)));
    for (const row of fresh) this.#notified.add(keyOf(row));
    const messages = Map.groupBy(fresh, (row) => (row.state === 'missed' ? 'missed' : keyOf(row)));
    for (const rows of messages.values()) void this.#o.notify(rows).catch(() => undefined);
  }

  /** SIGTERM lets a run leave: its instances crawl on, and the next start takes it up. */
  async #leave(): Promise<void> {
    const { clock, say, processes, me } = this.#o;
    const own = this.#rows.flatMap((row) => (row.state === 'started' && row.owner === me ? [row.runner ?? ''] : []));
    const runners = new Set([...own, ...[...this.#starts.values()].map(({ runner }) => runner)]);
    const alive = (): string[] => [...runners].filter((runner) => processes.stateOf(runner) === 'alive');
    const signalAll = (signal: 'SIGTERM' | 'SIGKILL'): void => {
      for (const runner of alive()) processes.signal(runner, signal);
    };
    if (alive().length > 0) say('waiting for the run to leave; the next start takes it up');
    signalAll('SIGTERM');
    const untilMs = clock.monotonic() + STOP_MS;
    while (alive().length > 0 && clock.monotonic() < untilMs) await clock.sleep(100);
    signalAll('SIGKILL');
    await this.#look(true);
  }
}
