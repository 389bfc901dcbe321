/** Daemons on a virtual clock, with a record in memory, and processes and runs that do what a test says. */
import type { Child, ProcessExit, Processes } from '../../../../orchestrator/cli/processes.ts';
import { Scheduler, type SchedulerOptions } from '../../../../orchestrator/features/schedule/scheduler.ts';
import { NO_RESULT, type RunResult } from '../../../../orchestrator/core/read/run-result.ts';
import type { StoredDueTime } from '../../../../orchestrator/features/schedule/due-times.ts';
import { createTimetable } from '../../../../orchestrator/core/config/timetable.ts';
import type { ExitCode } from '../../../../shared/domain/exit-codes.ts';
import type { Clock } from '../../../../shared/ports/clock.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';
import { MemoryRecord } from './memory-record.ts';

export const MINUTE = 60_000;
export const HOUR = 60 * MINUTE;

/** How a run of the stage goes; times count from its start. */
export interface Course {
  /** Default 1 h; a run that hangs never ends by itself. */
  lastsMs?: number | 'hangs';
  exitCode?: ExitCode;
  /** Between its start and storing its run. */
  preparesMs?: number;
  /** Ends before a run is stored: with this code and an error, or, `crashed`, without a word. */
  refused?: ExitCode | 'crashed';
  /** Does not leave when it is asked to: only a kill ends it. */
  deaf?: boolean;
}

interface FakeRun {
  id: string;
  startedAtMs: number;
  deadlineAtMs: number;
  /** It fills the table of the schedule. */
  ours: boolean;
  /** Null until it has ended. */
  result: RunResult | null;
  endsAtMs: number;
  course: Course;
}

export interface StageOptions {
  /** Default noon of 2026-11-20. */
  start?: string;
  cron?: string;
  timezone?: string;
  ifRunning?: 'skip' | 'queue';
  catchUpMs?: number;
  deadlineMs?: number;
}

interface FakeProcess extends Child {
  living: boolean;
  exit?: ProcessExit;
  end(code: ExitCode | string, reason?: string): void;
}

/** A database, and machines that daemons come to and go from; runs and record stay. */
export class Stage {
  readonly clock: VirtualClock;
  /** What is added to the time of day that daemons and runs see: a clock that is set. */
  skewMs = 0;
  readonly wall: Clock;
  readonly store: MemoryRecord;
  readonly runs: FakeRun[] = [];
  readonly lines: string[] = [];
  readonly alarms: string[] = [];
  readonly told: string[] = [];
  readonly resumed: string[] = [];
  /** The next runs, in order; then runs of an hour. */
  courses: Course[] = [];
  /** Resuming fails so often. */
  resumeFails = 0;
  /** Another main server works on a run. */
  foreign: { owner: string; runId: string | null } | null = null;
  readonly #o: StageOptions;
  readonly #processes = new Map<string, FakeProcess>();
  /** Daemons that live; one that is frozen does, too. */
  readonly #daemons = new Map<string, 'lives' | 'frozen'>();
  readonly #stops = new Map<string, () => Promise<void>>();
  #made = 0;

  constructor(options: StageOptions = {}) {
    this.#o = options;
    this.clock = new VirtualClock(Date.parse(options.start ?? '2026-11-20T12:00:00Z'));
    const { clock } = this;
    this.wall = {
      now: () => clock.now() + this.skewMs,
      monotonic: () => clock.monotonic(),
      sleep: clock.sleep.bind(clock),
    };
    this.store = new MemoryRecord(this.wall);
  }

  /** Starts a daemon. `stop` is SIGTERM, `kill` leaves everything as it is, `freeze` is SIGSTOP. */
  daemon(more: Partial<SchedulerOptions> = {}) {
    const me = `here:${++this.#made}:1`;
    this.#daemons.set(me, 'lives');
    const abort = new AbortController();
    // Nothing of a killed or frozen process reaches the world.
    const alive = <T extends object>(target: T): T =>
      new Proxy(target, {
        get: (object, key) => {
          const value: unknown = Reflect.get(object, key, object);
          if (typeof value !== 'function') return value;
          return (...args: unknown[]) =>
            this.#daemons.get(me) === 'lives' ? Reflect.apply(value, object, args) : new Promise(() => undefined);
        },
      });
    const scheduler = new Scheduler({
      me,
      timetable: createTimetable(this.#o.cron ?? '0 2 * * *', this.#o.timezone ?? 'UTC'),
      ifRunning: this.#o.ifRunning ?? 'skip',
      catchUpMs: this.#o.catchUpMs ?? HOUR,
      graceMs: 10 * MINUTE,
      store: alive(this.store),
      runs: alive({
        busy: () => Promise.resolve(this.foreign),
        left: (started: readonly (string | null)[]) =>
          Promise.resolve(this.runs.find((run) => run.ours && !run.result && !started.includes(run.id))?.id ?? null),
        end: (runId: string) => {
          const run = this.runs.find(({ id }) => id === runId);
          return Promise.resolve(run && (run.result ?? 'unfinished'));
        },
      }),
      processes: this.#processPort(),
      clock: this.wall,
      say: (text) => void (text.startsWith('! ') ? this.alarms : this.lines).push(text),
      notify: (rows) => this.#notify(rows),
      onStuck: () => this.told.push('stuck'),
      // Longer than in life: most of the time of these tests is looking.
      pollMs: MINUTE,
      ...more,
    });
    const over = scheduler.run(abort.signal);
    const stop = async (): Promise<void> => {
      abort.abort();
      await this.clock.advance(5 * MINUTE);
      this.#daemons.delete(me);
      await over;
    };
    this.#stops.set(me, stop);
    return {
      scheduler,
      me,
      stop,
      kill: () => this.#daemons.delete(me),
      freeze: () => this.#daemons.set(me, 'frozen'),
    };
  }

  /** Stops every daemon that lives. */
  async [Symbol.asyncDispose](): Promise<void> {
    for (const [me, stop] of this.#stops) if (this.#daemons.get(me) === 'lives') await stop();
  }

  async at(iso: string): Promise<void> {
    await this.clock.advance(Date.parse(iso) - this.clock.now());
  }

  /** Kills the processes of runs, as a reboot does. */
  killProcesses(): void {
    for (const process of this.#processes.values()) process.end('SIGKILL');
  }

  /** Each due time that has come and what became of it: `11-21T02:00 done 0`. */
  async record(): Promise<string[]> {
    const rows = (await this.store.read()).filter((row) => row.state !== 'next');
    return rows.map((r) => {
      const exitCode = r.result?.exitCode ?? '';
      return `${new Date(r.dueAtMs).toISOString().slice(5, 16)} ${r.state} ${exitCode}`.trim();
    });
  }

  async row(iso: string): Promise<StoredDueTime | undefined> {
    return (await this.store.read()).find((row) => row.dueAtMs === Date.parse(iso));
  }

  /** How many processes of runs live now. */
  atWork(): number {
    return [...this.#processes.values()].filter((p) => p.living).length;
  }

  /** A run that no due time has started. */
  addRun(more: Partial<FakeRun> = {}): FakeRun {
    const now = this.wall.now();
    const times = { startedAtMs: now, deadlineAtMs: now + (this.#o.deadlineMs ?? 4 * HOUR) };
    const id = `run-${this.runs.length + 1}`;
    const run = { id, ...times, ours: true, result: null, course: {}, endsAtMs: this.clock.now() + HOUR, ...more };
    this.runs.push(run);
    return run;
  }

  async #notify(rows: readonly StoredDueTime[]): Promise<void> {
    for (const { dueAtMs, state } of rows)
      if (await this.store.write(dueAtMs, { state, told: false }, { told: true })) this.told.push(state);
  }

  #processPort(): Processes {
    return {
      start: () => this.#spawn(() => Promise.resolve()),
      run: (dueAtMs, startedAtMs) => this.#spawn((process) => this.#run(process, dueAtMs, startedAtMs)),
      resume: (runId) => this.#spawn((process) => this.#resume(process, runId)),
      stateOf: (name) => {
        if (!name.startsWith('here:')) return 'elsewhere';
        return this.#daemons.has(name) || this.#processes.get(name)?.living ? 'alive' : 'dead';
      },
      exitOf: (name) => this.#processes.get(name)?.exit,
      signal: (name, signal) => {
        if (signal === 'SIGKILL') this.#processes.get(name)?.end(signal);
        else if (!this.runs.at(-1)?.course.deaf) this.#processes.get(name)?.end(11);
      },
    };
  }

  #spawn(body: (process: FakeProcess) => Promise<unknown>): FakeProcess {
    const { promise, resolve } = Promise.withResolvers<ProcessExit>();
    const process: FakeProcess = {
      runner: `here:${1_000 + ++this.#made}:1`,
      ended: promise,
      logFile: '',
      document: '',
      living: true,
      end: (code, reason) => {
        process.living = false;
        resolve((process.exit = { code, reason: reason ?? null, hint: '' }));
      },
    };
    this.#processes.set(process.runner, process);
    void body(process);
    return process;
  }

  /** As `orchestrator run` does for a due time. */
  async #run(process: FakeProcess, dueAtMs: number, startedAtMs: number): Promise<void> {
    const { runner } = process;
    await this.clock.sleep(1_000);
    if (!process.living) return;
    const course = this.courses.shift() ?? {};
    if (course.refused === 'crashed') return process.end(4);
    await this.clock.sleep(course.preparesMs ?? 0);
    if (!process.living) return;
    if (course.refused) return process.end(course.refused, 'infeasible');
    // As the run lock does.
    if (this.runs.some((run) => !run.result && run.deadlineAtMs > this.wall.now()))
      return process.end(20, 'an earlier run is not over');
    const { lastsMs = HOUR } = course;
    const run = this.addRun({ course, endsAtMs: lastsMs === 'hangs' ? Infinity : this.clock.now() + lastsMs });
    const bound = { runner, runId: run.id, deadlineAtMs: run.deadlineAtMs };
    if (!(await this.store.write(dueAtMs, { state: 'started', startedAtMs }, bound))) {
      this.runs.splice(this.runs.indexOf(run), 1);
      return process.end(20, 'given to another process');
    }
    await this.#crawl(process, run);
  }

  async #resume(process: FakeProcess, runId: string): Promise<void> {
    const run = this.runs.find((r) => r.id === runId)!;
    if (run.result) return process.end(0);
    this.resumed.push(runId);
    if (this.resumeFails-- > 0) return process.end(1);
    // A run that was stuck does not hang again.
    if (run.endsAtMs === Infinity) run.endsAtMs = 0;
    await this.#crawl(process, run);
  }

  async #crawl(process: FakeProcess, run: FakeRun): Promise<void> {
    if (run.endsAtMs > this.clock.now()) await this.clock.sleep(Math.min(900 * HOUR, run.endsAtMs - this.clock.now()));
    if (!process.living) return;
    run.result = { ...NO_RESULT, run: run.id, state: 'completed', exitCode: run.course.exitCode ?? 0 };
    this.told.push('ended');
    process.end(run.result.exitCode!);
  }
}
