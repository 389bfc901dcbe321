/** The daemon's loop around `decide`: reads the record and acts until nothing is left. Any look may be the first. */
import { backoffMs } from '../../../shared/domain/backoff.ts';
import { describeError } from '../../../shared/domain/errors.ts';
import { EXIT, type ExitCode } from '../../../shared/domain/exit-codes.ts';
import { showLocal } from '../../../shared/domain/local-time.ts';
import type { Clock } from '../../../shared/ports/clock.ts';
import type { DueTimeStore } from '../../db/schedule-store.ts';
import { type Action, decide, describeGivenUp, iso, type View, withoutEnd } from '../../schedule/decide.ts';
import type { StuckRun } from '../../notify/notice.ts';
import { isDecided, type StoredDueTime } from '../../schedule/due-times.ts';
import type { Child, Processes } from './processes.ts';

export interface SchedulerOptions extends Pick<View, 'me' | 'timetable' | 'ifRunning' | 'catchUpMs' | 'graceMs'> {
  store: DueTimeStore;
  runs: {
    busy(): Promise<View['busy']>;
    /** The newest unfinished run of this schedule's table that is not one of these. */
    left(started: readonly (string | null)[]): Promise<string | null>;
  };
  processes: Processes;
  clock: Clock;
  /** gc at the start. */
  collectGarbage: boolean;
  /** A line that begins with `!` is one that a person should see. */
  say: (text: string) => void;
  /** Tells the webhooks of a decided due time, or of several missed ones, and marks the rows. */
  tell: (rows: readonly StoredDueTime[]) => Promise<void>;
  /** Tells the webhooks of a run that does not end, or that cannot be resumed. */
  onStuck: (stuck: StuckRun) => void;
  /** Longest sleep between two looks; also how soon a clock that was set is seen. */
  pollMs?: number;
}

const STOP_MS = 100_000;
/** Between two looks at runs that no due time has started. */
const LEFT_MS = 60_000;
const TELL_FOR_MS = 86_400_000;
const START_PAUSE = { firstMs: 10_000, maxMs: 300_000 };
/** More in a row than any state of the record needs. */
const MAX_LOOKS = 50;

/** Of a run that ended so there is nothing to be done at once: all of its rows, or most, are there, or a person ended it. */
const CONTENT: readonly (number | null)[] = [EXIT.complete, EXIT.interrupted, EXIT.failedProducts, EXIT.deadline];
/** One round is a few short queries; each of them is tried for up to 45 s, too long for a monitor to believe that all is well. */
const SLOW_MS = 10_000;

/** What `/healthz` of the daemon tells: whether the schedule runs, and whether its last run needs a look. */
export type Health = ReturnType<Scheduler['health']>;

export class Scheduler {
  readonly #o: SchedulerOptions;
  #rows: readonly StoredDueTime[] = [];
  #left: { runId: string | null; atMs: number } = { runId: null, atMs: -Infinity };
  /** By run, or by due time in milliseconds. */
  readonly #starts = new Map<string | number, { count: number; atMs: number; runner: string }>();
  readonly #asked = new Map<string, number>();
  readonly #telling = new Set<string>();
  /** `beganMs` is by the monotonic clock, and null between two rounds. */
  #round: { beganMs: number | null; fault: string | null; isFirst: boolean } = {
    beganMs: null,
    fault: null,
    isFirst: true,
  };
  #wake = new AbortController();

  constructor(options: SchedulerOptions) {
    this.#o = options;
  }

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
      role: this.#round.isFirst ? ('starting' as const) : role,
      next: next === null ? null : iso(next),
      running: running ? { kind, due: iso(running.dueAtMs), run: running.runId } : null,
      last: last ? { due: iso(last.dueAtMs), state: last.state, exitCode, run } : null,
    };
  }

  #problem(): string | null {
    const { fault, beganMs } = this.#round;
    if (fault) return fault;
    const tookMs = beganMs === null ? 0 : this.#o.clock.monotonic() - beganMs;
    if (tookMs > SLOW_MS) return `the database does not answer, for ${Math.round(tookMs / 1_000)} s by now`;
    const result = this.#rows.findLast(({ state }) => state === 'done')?.result;
    if (!result || CONTENT.includes(result.exitCode)) return null;
    const why = result.reason ? `: ${result.reason}` : '';
    return `the last run ended with exit code ${result.exitCode ?? 'unknown'}${why}`;
  }

  /** Until the signal; then the processes of runs are asked to leave and waited for. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, timetable, processes, say, pollMs = 15_000 } = this.#o;
    const next = timetable.next(clock.now());
    say(next === null ? 'no due time is ahead' : `next: ${showLocal(next, timetable.timezone)}`);
    if (this.#o.collectGarbage)
      void processes.start('gc', 'gc').ended.then((code) => say(`gc has ended with exit code ${code}`));
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
    this.#round.beganMs = clock.monotonic();
    try {
      for (let looks = 0; looks < MAX_LOOKS; looks++) {
        const actions = decide(await this.#view(isLeaving));
        if (actions.length === 0) break;
        for (const action of actions) await this.#act(action);
      }
      this.#tellAll();
      this.#round = { beganMs: null, fault: null, isFirst: false };
    } catch (error) {
      const fault = describeError(error);
      // What does not change is said once.
      if (fault !== this.#round.fault) say(`! the schedule cannot go on for now, and is tried again: ${fault}`);
      this.#round = { ...this.#round, beganMs: null, fault };
    }
  }

  async #view(isLeaving: boolean): Promise<View> {
    const { clock, runs, store, processes, say } = this.#o;
    const started = new Set(this.#rows.filter((row) => row.state === 'started').map((row) => row.dueAtMs));
    this.#rows = await store.read();
    for (const row of this.#rows) if (row.state === 'done' && started.has(row.dueAtMs)) say(describeEnd(row));
    const [nowMs, monotonicMs] = [clock.now(), clock.monotonic()];
    const holder = await runs.busy();
    // One that has just ended is not to be resumed.
    if (monotonicMs - this.#left.atMs >= LEFT_MS || (this.#left.runId !== null && !holder))
      this.#left = { runId: await runs.left(this.#rows.map((row) => row.runId)), atMs: monotonicMs };
    const { stateOf } = processes;
    const leftRunId = this.#left.runId;
    // A process that resumes takes the lock only after a moment.
    const resumer = this.#starts.get(leftRunId ?? '')?.runner;
    const resuming = resumer && stateOf(resumer) === 'alive' ? { owner: resumer, runId: leftRunId } : null;
    const starts: View['starts'] = (of) => {
      const { count, atMs } = this.#starts.get(of) ?? { count: 0, atMs: -Infinity };
      return { count, rested: monotonicMs - atMs >= backoffMs(count - 1, START_PAUSE) };
    };
    const seen = { nowMs, rows: this.#rows, busy: holder ?? resuming, leftRunId, stateOf, starts };
    return { ...this.#o, ...seen, askedAtMs: this.#asked, wasAway: this.#round.fault !== null, isLeaving };
  }

  async #act(action: Action): Promise<void> {
    const { store, processes, say, me } = this.#o;
    switch (action.do) {
      case 'forget':
        return store.forget(action.dueAtMs, action.state);
      case 'stop':
        return this.#stop(action);
      case 'resume':
        say(`run ${action.runId} is unfinished: it is taken up`);
        return this.#take(processes.start(`resume-${action.runId}`, 'resume', action.runId), null, action.runId);
      case 'give-up':
        return this.#giveUp(action.runId);
      case 'write': {
        const { dueAtMs, seen, change } = action;
        const from = seen && { state: seen.state, owner: seen.owner, runner: seen.runner };
        if (!(await store.write(dueAtMs, from, change))) return;
        if (action.say) say(action.say);
        if (change.state !== 'started') return;
        const child = processes.carryOut(dueAtMs, me);
        this.#take(child, dueAtMs, seen?.runId ?? null);
        await store.write(dueAtMs, { state: 'started', owner: me, runner: null }, { runner: child.runner });
      }
    }
  }

  #take({ runner, ended }: Child, dueAtMs: number | null, runId: string | null): void {
    const { clock, store, me } = this.#o;
    const of = runId ?? dueAtMs!;
    this.#starts.set(of, { count: (this.#starts.get(of)?.count ?? 0) + 1, atMs: clock.monotonic(), runner });
    const onEnd = async (code: number | string): Promise<void> => {
      // It could not write that down itself, as with a fault in the configuration.
      if (runId !== null || typeof code !== 'number' || code === EXIT.interrupted) return;
      const change = withoutEnd(null, code as ExitCode, clock.now());
      await store.write(dueAtMs!, { state: 'started', owner: me, runner, runId }, change);
    };
    void ended
      .then(onEnd)
      .catch(() => undefined)
      .finally(() => {
        this.#left.atMs = -Infinity;
        this.#wake.abort();
      });
  }

  #giveUp(runId: string): void {
    const { count, ...start } = this.#starts.get(runId)!;
    this.#starts.set(runId, { ...start, count: count + 1 });
    const sentence = describeGivenUp(runId, count);
    this.#o.say(`! ${sentence}`);
    const hint = `See why with: orchestrator logs ${runId}; then orchestrator resume ${runId}`;
    this.#o.onStuck({ runId, dueAtMs: null, sentence, hint });
  }

  #stop({ row: { runId, dueAtMs }, runner, signal, name }: Extract<Action, { do: 'stop' }>): void {
    const { say, onStuck, processes, clock } = this.#o;
    this.#asked.set(runner, signal === 'SIGTERM' ? clock.now() : Infinity);
    if (signal === 'SIGTERM') {
      say(`! ${name} is long past its deadline and does not end: it is told to leave`);
      const sentence = `${name} is long past its deadline and does not end`;
      onStuck({ runId, dueAtMs, sentence, hint: 'It is taken up again by itself; look at it with: orchestrator logs' });
    } else say(`! ${name} has not left within a minute: its process is ended`);
    processes.signal(runner, signal);
  }

  /** Each decision once; a night of sleep is one message. What a restart cuts off is told again for a day. */
  #tellAll(): void {
    // By state too: a due time that was missed under a wrong clock may have a run after all.
    const keyOf = ({ dueAtMs, state }: StoredDueTime): string => `${dueAtMs} ${state}`;
    const untold = this.#rows.filter((row) => isDecided(row) && !row.told && row.idleMs < TELL_FOR_MS);
    const fresh = untold.filter((row) => !this.#telling.has(keyOf(row)));
    for (const row of fresh) this.#telling.add(keyOf(row));
    const messages = Map.groupBy(fresh, (row) => (row.state === 'missed' ? 'missed' : keyOf(row)));
    for (const rows of messages.values()) void this.#o.tell(rows).catch(() => undefined);
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

function describeEnd({ dueAtMs, result }: StoredDueTime): string {
  const why = result?.reason ? ` (${result.reason})` : '';
  const run = result?.run ? `run ${result.run}` : 'no run';
  return `${iso(dueAtMs)}: ${run}, exit code ${result?.exitCode ?? 'unknown'}${why}`;
}
