/**
 * The daemon's loop, level-triggered like that of a run: it looks at record, clock and processes, and does what is due. Of
 * several daemons of one schedule one leads, by a lease with a fence; the others stand by. Ticks are short and may be repeated: a due
 * time is decided by the one conditional write that puts it into the record.
 */
import { describeError } from '../../shared/domain/errors.ts';
import type { Clock } from '../../shared/ports/clock.ts';
import type { Work } from './at-work.ts';
import { sortDueTimes } from './due.ts';
import type { Health } from './health.ts';
import { HealthState } from './health.ts';
import type { Processes, Runs } from './ports.ts';
import type { Lead, Leader, ScheduleStore, Slot } from './slots.ts';
import type { Timetable } from './timetable.ts';
import { showLocal } from './timetable.ts';
import { Workload } from './workload.ts';

export interface SchedulerOptions {
  store: ScheduleStore;
  runs: Runs;
  processes: Processes;
  clock: Clock;
  timetable: Timetable;
  ifRunning: 'skip' | 'queue';
  /** A missed due time is made up for when it is no older; 0 never does. */
  catchUpMs: number;
  /** gc at the start. */
  collectGarbage: boolean;
  /** This daemon, as `host:pid:start`. */
  owner: string;
  /** True when a process of this host is known to have ended. */
  isDead: (owner: string) => boolean;
  say: (text: string) => void;
  alarm: (text: string) => void;
  /** Due times that have been decided and not been told outside. */
  tell: (slots: Slot[], fence: number) => void;
  onStuck: (work: Work) => void;
  /** Longest sleep between two looks; also how soon a clock that was set is seen. */
  pollMs?: number;
}

const POLL_MS = 15_000;
const LEASE_MS = 60_000;
/** Between two looks at runs that nobody has told us of. */
const LOOK_MS = 60_000;
/** More missed due times than this are not written one by one. */
const MAX_MISSED = 100;
const TELL_FOR_MS = 86_400_000;
const STOP_MS = 100_000;
const SMALL_STEP_MS = 60_000;

export class Scheduler {
  readonly #o: SchedulerOptions;
  readonly #workload: Workload;
  readonly #health: HealthState;
  /** Due times up to here are decided. */
  #lookedMs = 0;
  #lookedAtRunsMs = -Infinity;
  #wake: AbortController | null = null;
  /** Something has happened since the last sleep; in the midst of a tick too. */
  #woken = false;
  #fence: number | null = null;
  #said = '';
  /** The last round has failed: what became due meanwhile could not be started by anybody. */
  #wasAway = false;

  constructor(options: SchedulerOptions) {
    this.#o = options;
    this.#health = new HealthState(options.clock);
    this.#workload = new Workload({ ...options, onEnd: () => this.#poke() });
  }

  /** What `/healthz` tells. */
  health(): Health {
    return this.#health.read(this.#o.timetable, this.#workload.work);
  }

  /** Until the signal; then what is in hand is told to leave and waited for. */
  async run(signal: AbortSignal): Promise<void> {
    signal.addEventListener('abort', () => this.#poke(), { once: true });
    let first = true;
    while (!signal.aborted) {
      const lead = await this.#takeLead(signal);
      if (lead === null) break;
      await this.#lead(lead, first, signal);
      first = false;
    }
    await this.#leave();
  }

  async #takeLead(signal: AbortSignal): Promise<Lead | null> {
    const { store, timetable, owner, isDead, say } = this.#o;
    const spec = `${timetable.cron} ${timetable.timezone}`;
    let steal: Leader | undefined;
    while (!signal.aborted) {
      try {
        this.#health.looks();
        const answer = await store.takeLead(owner, spec, LEASE_MS, steal);
        if ('fence' in answer) return answer;
        this.#health.standBy();
        const { heldBy } = answer;
        const isNew = steal === undefined;
        steal = isDead(heldBy.owner) ? heldBy : undefined;
        if (steal && isNew) continue;
        this.#once(`${heldBy.owner} leads this schedule; this daemon stands by`, say);
      } catch (error) {
        this.#fault(error);
      }
      await this.#sleep(this.#o.pollMs ?? POLL_MS);
    }
    return null;
  }

  async #lead(lead: Lead, first: boolean, signal: AbortSignal): Promise<void> {
    const { store, clock, say, timetable } = this.#o;
    this.#fence = lead.fence;
    this.#lookedAtRunsMs = -Infinity;
    let since: number | null = null;
    while (!signal.aborted) {
      try {
        this.#health.looks();
        if (!(await store.keepLead(lead.fence, LEASE_MS))) {
          say('another daemon leads this schedule now');
          this.#fence = null;
          return;
        }
        if (since === null) {
          await this.#workload.dropOld(await store.open(), lead.fence);
          // Rows of the future were written under a wrong clock; each due time is claimed once anyhow.
          const nowMs = clock.now();
          since = Math.min(nowMs, Math.max(lead.sinceMs, (await store.decidedUpTo(nowMs)) ?? 0));
          this.#lookedMs = since;
          if (first && this.#o.collectGarbage) this.#workload.collectGarbage();
          const next = timetable.next(clock.now());
          say(next === null ? 'no due time is ahead' : `next: ${showLocal(next, timetable.timezone)}`);
        }
        await this.#tick(lead.fence);
        this.#health.good();
        this.#wasAway = false;
        this.#said = '';
      } catch (error) {
        this.#fault(error);
      }
      await this.#sleep(this.#untilNext());
    }
  }

  async #tick(fence: number): Promise<void> {
    const { store, clock, timetable, tell } = this.#o;
    const nowMs = clock.now();
    if (nowMs < this.#lookedMs) {
      if (this.#lookedMs - nowMs > SMALL_STEP_MS) this.#o.say('the clock of this machine has been set back');
      this.#lookedMs = nowMs;
    }
    const ended = await this.#workload.collect(fence);
    await this.#workload.watch();
    const times = timetable.between(this.#lookedMs, nowMs, MAX_MISSED);
    const open = await store.open();
    if (ended || times.length > 0 || open.length > 0 || clock.monotonic() - this.#lookedAtRunsMs >= LOOK_MS) {
      await this.#workload.recover(open, fence);
      this.#lookedAtRunsMs = clock.monotonic();
    }
    if (times.length > 0) await this.#settle(times, nowMs, fence);
    this.#lookedMs = nowMs;
    if (!this.#workload.work) await this.#startQueued(fence);
    const untold = await store.untold(nowMs - TELL_FOR_MS);
    if (untold.length > 0) tell(untold, fence);
    this.#health.saw(await store.list(20, nowMs));
  }

  async #settle(times: readonly number[], nowMs: number, fence: number): Promise<void> {
    const { store, catchUpMs, alarm, say, timetable } = this.#o;
    const { due, lateMs, missed } = sortDueTimes(times, nowMs, catchUpMs);
    const show = (ms: number): string => showLocal(ms, timetable.timezone);
    const lost: number[] = [];
    const why = this.#wasAway ? AWAY : MISSED;
    for (const ms of missed) if (await store.claim(ms, 'missed', why, fence)) lost.push(ms);
    if (lost.length > 0) alarm(`missed ${lost.length} due times, the last one ${show(lost.at(-1)!)}: ${why}`);
    if (due === null) return;
    const obstacle = this.#workload.obstacle();
    if (obstacle === null) {
      const late = lateMs > 0 ? `${Math.round(lateMs / 60_000)} min late` : null;
      if (!(await store.claim(due, 'started', late, fence))) return;
      say(`${show(due)} is due${late ? `, ${late}` : ''}: its run is started`);
      this.#workload.start(due, fence);
      return;
    }
    const waiting = (await store.open()).some((slot) => slot.state === 'queued');
    const waits = (this.#o.ifRunning === 'queue' || obstacle.passing) && !waiting;
    const reason = waiting ? 'another due time waits already' : obstacle.reason;
    if (await store.claim(due, waits ? 'queued' : 'skipped', reason, fence))
      say(`${show(due)} is due and ${waits ? 'waits' : 'is skipped'}: ${reason}`);
  }

  async #startQueued(fence: number): Promise<void> {
    if (this.#workload.obstacle()) return;
    const queued = (await this.#o.store.open()).find((slot) => slot.state === 'queued');
    if (!queued) return;
    const fresh = { state: 'started', runner: null, runId: null, startedAtMs: null } as const;
    if (!(await this.#o.store.change(queued.dueAtMs, 'queued', fresh, fence))) return;
    this.#o.say(`${showLocal(queued.dueAtMs, this.#o.timetable.timezone)} has waited: its run is started`);
    this.#workload.start(queued.dueAtMs, fence);
  }

  /** SIGTERM lets a run leave: its instances crawl on, and the next start takes it up. */
  async #leave(): Promise<void> {
    const { clock, say, store } = this.#o;
    const { work } = this.#workload;
    if (work && work.exit === null) {
      say('waiting for the run to leave; the next start takes it up');
      work.child.terminate();
      const left = new AbortController();
      await Promise.race([work.child.ended, clock.sleep(STOP_MS, left.signal)]);
      // Else the program would stay for the rest of that time.
      left.abort();
      if (work.exit === null) work.child.kill();
    }
    if (this.#fence === null) return;
    try {
      await this.#workload.collect(this.#fence);
      await store.leaveLead(this.#fence);
    } catch (error) {
      this.#fault(error);
    }
  }

  #untilNext(): number {
    const next = this.#o.timetable.next(this.#o.clock.now());
    const poll = this.#o.pollMs ?? POLL_MS;
    return next === null ? poll : Math.min(poll, Math.max(1, next - this.#o.clock.now()));
  }

  async #sleep(ms: number): Promise<void> {
    this.#wake = new AbortController();
    if (!this.#woken) await this.#o.clock.sleep(ms, this.#wake.signal);
    this.#woken = false;
    this.#wake = null;
  }

  #poke(): void {
    this.#woken = true;
    this.#wake?.abort();
  }

  #fault(error: unknown): void {
    const text = describeError(error);
    this.#wasAway = true;
    this.#health.bad(text);
    this.#once(`the schedule cannot go on for now, and is tried again: ${text}`, this.#o.alarm);
  }

  /** What does not change is said once. */
  #once(text: string, say: (text: string) => void): void {
    if (text === this.#said) return;
    this.#said = text;
    say(text);
  }
}

const MISSED = 'nobody was there to start its run, or the machine slept';
const AWAY = 'the database did not answer when it was due';
