/** The main servers of one run: the first, and each successor started with `resume`, until the run has ended. */
import { isRunEnd, type RunPhase } from '../../shared/domain/states.ts';
import { EXIT } from '../../shared/domain/exit-codes.ts';
import { type CommandResult, type RunningCommand, waitFor } from '../support/processes.ts';
import { freePort, QUIET_ADDRESS } from '../support/free-port.ts';
import type { Stage } from './stage.ts';

/** More starts than any of our faults needs: beyond this the run makes no progress. */
const MAX_STARTS = 12;
/** Longer than the database is ever frozen or cut off. */
const UNANSWERED_MS = 20_000;
/** From start until a main server continues a run: 12 s of this it checks whether the lock's holder is alive. */
const TAKE_OVER_MS = 60_000;

export interface ServerEnd {
  command: string;
  /** The fault injected into it: SIGKILL, SIGTERM, `frozen past its lease` …; null when it ended on its own. */
  hurtBy: string | null;
  exit: number | string | null;
  result: CommandResult;
}

interface Server {
  command: string;
  process: RunningCommand;
  hurtBy: string | null;
}

export class MainServers {
  readonly ends: ServerEnd[] = [];
  readonly #stage: Stage;
  #current: Server;
  /** The successor starts after this. */
  #pause: Promise<unknown> = Promise.resolve();
  #starts = 0;

  constructor(stage: Stage) {
    this.#stage = stage;
    this.#current = this.#start(stage.command, '--dry-run', '--json');
  }

  get pid(): number {
    return this.#current.process.pid;
  }

  /** The output of all main servers so far, for the log of a round. */
  output(): string {
    const texts = this.ends.map(
      ({ command, exit, hurtBy, result }) =>
        `=== ${command}: exit ${exit}${hurtBy ? ` (${hurtBy})` : ''}\n${result.stderr}\n${result.stdout}`,
    );
    const { command, process } = this.#current;
    return [...texts, `=== last: ${command}\n${process.stderr()}\n${process.stdout()}`].join('\n');
  }

  /** Sends a signal that ends it; the successor starts when `pause` is over. */
  end(signal: 'SIGKILL' | 'SIGTERM' | 'SIGINT', pause: Promise<unknown>): void {
    this.#current.hurtBy = signal;
    this.#pause = pause;
    this.#current.process.kill(signal);
  }

  freeze(): void {
    this.#current.process.kill('SIGSTOP');
  }

  thaw(): void {
    this.#current.process.kill('SIGCONT');
  }

  /** Freezes it, lets a successor take over as soon as that is permitted, and wakes it `thawAfterMs` later. */
  async freezePastLease(thawAfterMs: number): Promise<void> {
    const frozen = this.#current;
    frozen.hurtBy = 'frozen past its lease';
    frozen.process.kill('SIGSTOP');
    // It keeps its port: the successor listens elsewhere, as it would on another machine.
    this.#stage.moveCallbacks(`${QUIET_ADDRESS}:${await freePort(QUIET_ADDRESS)}`);
    try {
      this.#current = await waitFor(() => this.#tryTakeOver(), {
        what: 'another main server to take over',
        timeoutMs: 2 * TAKE_OVER_MS,
        everyMs: 1_000,
      });
      await new Promise((resolve) => setTimeout(resolve, thawAfterMs));
    } finally {
      frozen.process.kill('SIGCONT');
    }
    this.#note(frozen, await frozen.process.finished);
  }

  /** Resolves when the run has ended and no main server is left. Throws when it never does. */
  async untilEnded(): Promise<void> {
    for (;;) {
      const server = this.#current;
      const result = await server.process.finished;
      // Another one took over while this one was frozen, and has recorded its end.
      if (server !== this.#current) continue;
      this.#note(server, result);
      await this.#pause;
      if (await this.#isOver(result)) return;
      if (++this.#starts > MAX_STARTS) throw new Error(`the run has not ended after ${this.#starts} main servers`);
      this.#current = this.#start('resume', '--json');
    }
  }

  /** Ends whatever is left, for a round that has failed. */
  killAll(): void {
    this.#current.process.kill('SIGCONT', 'group');
    this.#current.process.kill('SIGKILL', 'group');
  }

  async #isOver(last: CommandResult): Promise<boolean> {
    // A frozen or disconnected database gives no answer; that does not mean that there is no run.
    const run = await waitFor(() => this.#stage.run(), { what: 'the run', timeoutMs: UNANSWERED_MS }).catch(() => null);
    if (run && isRunEnd(run.phase as RunPhase)) return true;
    // A run that was refused before it had a row cannot be resumed.
    if (!run) throw new Error(`there is no run to resume; the last main server printed:\n${last.stderr}`);
    return false;
  }

  async #tryTakeOver(): Promise<Server | null> {
    const server = this.#start('resume', '--json');
    const begun = waitFor(() => server.process.stderr().includes('goes on from'), {
      what: 'it to begin',
      timeoutMs: TAKE_OVER_MS,
    });
    const early = await Promise.race([server.process.finished, begun]).catch((error: unknown) => {
      // It may hold the lock, which would block every successor.
      server.process.kill('SIGKILL', 'group');
      throw error;
    });
    if (typeof early === 'boolean') return server;
    if (early.exitCode !== EXIT.locked) this.#note(server, early);
    return null;
  }

  #start(...args: string[]): Server {
    return { command: args.join(' '), process: this.#stage.start(...args), hurtBy: null };
  }

  #note({ command, hurtBy }: Server, result: CommandResult): void {
    this.ends.push({ command, hurtBy, exit: result.exitCode ?? result.signal, result });
  }
}
