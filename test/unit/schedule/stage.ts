/** Daemons on a virtual clock, with a record in memory and processes and runs that do what a test says. */
import { VirtualClock } from '../../support/virtual-clock.ts';
import type { Clock } from '../../../shared/ports/clock.ts';
import { MemoryScheduleStore } from '../../../orchestrator/db/memory/memory-schedule-store.ts';
import type { Child, Processes, Runs, RunView } from '../../../orchestrator/schedule/ports.ts';
import { Scheduler } from '../../../orchestrator/schedule/scheduler.ts';
import type { RunResult, Slot } from '../../../orchestrator/schedule/slots.ts';
import { createTimetable } from '../../../orchestrator/schedule/timetable.ts';

export const MINUTE = 60_000;
export const HOUR = 60 * MINUTE;

/** How a run of the stage goes; times count from its start. */
export interface Course {
  /** Default 1 h; a run that hangs never ends by itself. */
  lastsMs?: number | 'hangs';
  exitCode?: RunResult['exitCode'];
  /** Between signing in and storing its run. */
  preparesMs?: number;
  /** Ends before a run is stored. */
  refused?: boolean;
  /** Does not leave when it is asked to: only a kill ends it. */
  deaf?: boolean;
}

interface FakeRun extends RunView {
  endsAtMs: number;
  course: Course;
}

interface FakeProcess extends Child {
  end(code: number | null, signal: string | null): void;
  living: boolean;
}

export interface StageOptions {
  start: string;
  cron?: string;
  timezone?: string;
  ifRunning?: 'skip' | 'queue';
  catchUpMs?: number;
  deadlineMs?: number;
  pollMs?: number;
}

/** One machine with a database: daemons come and go, runs and record stay. */
export class Stage {
  readonly clock: VirtualClock;
  /** What is added to the time of day that daemons and runs see: a clock that is set. */
  skewMs = 0;
  readonly wall: Clock;
  readonly store: MemoryScheduleStore;
  readonly runs: FakeRun[] = [];
  readonly lines: string[] = [];
  readonly alarms: string[] = [];
  readonly told: string[] = [];
  readonly resumed: string[] = [];
  /** The next runs, in order; then runs of an hour. */
  courses: Course[] = [];
  /** Resuming fails so often. */
  resumeFails = 0;
  /** Somebody else works on a run. */
  foreign: { owner: string; runId: string | null } | null = null;
  readonly #o: StageOptions;
  readonly #processes = new Map<string, FakeProcess>();
  readonly #daemons = new Set<string>();
  #made = 0;

  constructor(options: StageOptions) {
    this.#o = options;
    this.clock = new VirtualClock(Date.parse(options.start));
    this.wall = {
      now: () => this.clock.now() + this.skewMs,
      monotonic: () => this.clock.monotonic(),
      sleep: (ms, signal) => this.clock.sleep(ms, signal),
    };
    this.store = new MemoryScheduleStore(this.wall);
  }

  /** Starts a daemon; `stop` is SIGTERM, `kill` leaves everything as it is. */
  daemon(): { scheduler: Scheduler; owner: string; stop(): Promise<void>; kill(): void } {
    const owner = `here:${++this.#made}:1`;
    this.#daemons.add(owner);
    const abort = new AbortController();
    let dead = false;
    // What a killed process does no more: nothing of it reaches the world.
    const alive = <T extends object>(target: T): T =>
      new Proxy(target, {
        get: (object, key) => {
          const value: unknown = Reflect.get(object, key, object);
          if (typeof value !== 'function') return value;
          return (...args: unknown[]) => (dead ? new Promise(() => undefined) : Reflect.apply(value, object, args));
        },
      });
    const scheduler = new Scheduler({
      store: alive(this.store),
      runs: alive(this.#runsPort()),
      processes: alive(this.#processPort()),
      clock: this.wall,
      timetable: createTimetable(this.#o.cron ?? '0 2 * * *', this.#o.timezone ?? 'UTC'),
      ifRunning: this.#o.ifRunning ?? 'skip',
      catchUpMs: this.#o.catchUpMs ?? HOUR,
      collectGarbage: false,
      owner,
      isDead: (name) => name.startsWith('here:') && !this.#daemons.has(name),
      say: (text) => this.lines.push(text),
      alarm: (text) => this.alarms.push(text),
      tell: (slots, fence) => this.#tell(slots, fence),
      onStuck: () => this.told.push('stuck'),
      // Longer than in life: most of the time of these tests is looking.
      pollMs: this.#o.pollMs ?? MINUTE,
    });
    const over = scheduler.run(abort.signal);
    return {
      scheduler,
      owner,
      stop: async () => {
        abort.abort();
        await this.clock.advance(5 * MINUTE);
        this.#daemons.delete(owner);
        await over;
      },
      kill: () => {
        dead = true;
        this.#daemons.delete(owner);
      },
    };
  }

  /** Kills the processes of runs, as a reboot does. */
  killProcesses(): void {
    for (const process of this.#processes.values()) process.end(null, 'SIGKILL');
  }

  /** The machine sleeps: time goes on outside, nothing happens here, and timers do not count it. */
  sleep(ms: number): void {
    this.skewMs += ms;
  }

  /** Each due time and what became of it: `02:00 done 0`. */
  async record(): Promise<string[]> {
    const slots = await this.store.list(1_000);
    return slots
      .reverse()
      .map((s) => [new Date(s.dueAtMs).toISOString().slice(5, 16), s.state, s.result?.exitCode ?? ''].join(' ').trim());
  }

  /** How many processes of runs live now. */
  atWork(): number {
    return [...this.#processes.values()].filter((p) => p.living).length;
  }

  #tell(slots: readonly Slot[], fence: number): void {
    for (const { dueAtMs, state } of slots) {
      this.told.push(state);
      void this.store.markTold(dueAtMs, state, fence);
    }
  }

  #runsPort(): Runs {
    return {
      look: async () => {
        const unfinished = this.runs.filter((run) => !run.ended).reverse();
        return Promise.resolve({ busy: this.foreign, unfinished });
      },
      get: (id) => Promise.resolve(this.runs.find((run) => run.id === id) ?? null),
    };
  }

  #processPort(): Processes {
    return {
      run: (dueAtMs, fence) => this.#spawn((process) => this.#carryOut(process, dueAtMs, fence)),
      resume: (runId) =>
        this.#spawn((process) => {
          this.resumed.push(runId);
          if (this.resumeFails-- > 0) return process.end(1, null);
          return this.#crawl(
            process,
            this.runs.find((run) => run.id === runId)!,
          );
        }),
      collectGarbage: () => this.#spawn((process) => process.end(0, null)),
      find: (runner) => {
        const process = this.#processes.get(runner);
        return process?.living ? process : 'dead';
      },
    };
  }

  #spawn(body: (process: FakeProcess) => unknown): FakeProcess {
    const runner = `here:${1_000 + ++this.#made}:1`;
    let end!: (exit: { code: number | null; signal: string | null }) => void;
    const ended = new Promise<{ code: number | null; signal: string | null }>((resolve) => (end = resolve));
    const process: FakeProcess = {
      runner,
      ended,
      living: true,
      end: (code, signal) => {
        process.living = false;
        end({ code, signal });
      },
      terminate: () => {
        if (!this.runs.at(-1)?.course.deaf) process.end(11, null);
      },
      kill: () => process.end(null, 'SIGKILL'),
    };
    this.#processes.set(runner, process);
    void body(process);
    return process;
  }

  async #carryOut(process: FakeProcess, dueAtMs: number, fence: number): Promise<void> {
    await this.clock.sleep(1_000);
    if (!process.living) return;
    if (!(await this.store.signIn(dueAtMs, fence, process.runner))) return process.end(20, null);
    const course = this.courses.shift() ?? {};
    if (course.preparesMs) await this.clock.sleep(course.preparesMs);
    if (!process.living) return;
    const nothing = { run: null, state: null, onTime: null, products: null, cost: null, hint: '' };
    if (course.refused) {
      await this.store.signOut(dueAtMs, process.runner, { ...nothing, exitCode: 16, reason: 'infeasible' });
      return process.end(16, null);
    }
    const { lastsMs = HOUR, exitCode = 0 } = course;
    const now = this.wall.now();
    const run: FakeRun = {
      id: `run-${this.runs.length + 1}`,
      startedAtMs: now,
      deadlineAtMs: now + (this.#o.deadlineMs ?? 4 * HOUR),
      graceMs: 10 * MINUTE,
      ours: true,
      ended: false,
      course,
      endsAtMs: lastsMs === 'hangs' ? Infinity : this.clock.now() + lastsMs,
      result: { ...nothing, run: `run-${this.runs.length + 1}`, state: 'completed', exitCode, reason: null },
    };
    if (!(await this.store.bindRun(dueAtMs, process.runner, run.id))) return process.end(20, null);
    this.runs.push(run);
    if (await this.#crawl(process, run)) await this.store.signOut(dueAtMs, process.runner, run.result);
  }

  async #crawl(process: FakeProcess, run: FakeRun): Promise<boolean> {
    // A resumed run that was stuck does not hang again.
    const untilMs = process.runner !== '' && run.endsAtMs === Infinity && this.resumed.length > 0 ? 0 : run.endsAtMs;
    if (untilMs > this.clock.now()) await this.clock.sleep(Math.min(30 * 24 * HOUR, untilMs - this.clock.now()));
    if (!process.living) return false;
    run.ended = true;
    process.end(run.result.exitCode, null);
    return true;
  }
}
