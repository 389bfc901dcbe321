/**
 * Emulates systemd for the program on an instance, as its unit says (userdata/user-data.ts): starts it, restarts it one
 * second after a failure, without limit, and does not restart it after a success.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Clock } from '../../shared/ports/clock.ts';
import type { MachineEvent } from '../ec2/machine.ts';

const RESTART_MS = 1_000;
/** Delay from SIGTERM to SIGKILL. */
const STOP_MS = 2_000;

export interface ServiceOptions {
  clock: Clock;
  command: string;
  args: readonly string[];
  folder: string;
  environment: Record<string, string>;
  onOutput: (chunk: Buffer) => void;
  onEvent: (line: string) => void;
}

export class Service {
  readonly #options: ServiceOptions;
  readonly #stopping = new AbortController();
  #child: ChildProcess | null = null;

  constructor(options: ServiceOptions) {
    this.#options = options;
  }

  /** The program's process; null while it is not running. */
  get pid(): number | null {
    return this.#child?.pid ?? null;
  }

  /** Runs the program until it succeeds (`done`) or is stopped (`stopped`). */
  async run(): Promise<'done' | 'stopped'> {
    const { clock, onEvent } = this.#options;
    for (;;) {
      if (this.#stopping.signal.aborted) return 'stopped';
      const how = await this.#runOnce();
      if (this.#stopping.signal.aborted) return 'stopped';
      if (how === 'code 0') {
        onEvent('crawl-api.service: the program ended on its own with code 0.');
        return 'done';
      }
      onEvent(`crawl-api.service: the program ended with ${how}.`);
      await clock.sleep(RESTART_MS, this.#stopping.signal);
    }
  }

  /** Signals the program and its children; after a crash it is not restarted. False when it is not running. */
  inject(event: MachineEvent): boolean {
    if (!this.#child?.pid) return false;
    if (event === 'crash') this.#stopping.abort();
    signalGroup(this.#child.pid, SIGNAL_OF[event]);
    return true;
  }

  /** Sends SIGTERM, and after two seconds SIGKILL, to the whole process group; resolves when it is gone. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    const child = this.#child;
    if (!child?.pid) return;
    const closed = once(child, 'close');
    signalGroup(child.pid, 'SIGTERM');
    const waiting = new AbortController();
    const grace = this.#options.clock.sleep(STOP_MS, waiting.signal);
    await Promise.race([closed, grace]);
    waiting.abort();
    // Also when the program itself ended in time: its children may still run and hold its pipes.
    signalGroup(child.pid, 'SIGKILL');
    if (this.#child === child) await closed;
  }

  async #runOnce(): Promise<string> {
    const { command, args, folder, environment, onOutput } = this.#options;
    const child = spawn(command, args, {
      cwd: folder,
      env: environment,
      // Its own process group: one signal reaches all its children, and a Ctrl-C at a terminal reaches none of them.
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.#child = child;
    child.stdout.on('data', onOutput);
    child.stderr.on('data', onOutput);
    return new Promise((resolve) => {
      child.once('error', (error) => {
        this.#child = null;
        resolve(`error ${error.message}`);
      });
      // A grandchild that holds the pipes must not block the restart of the service.
      child.once('exit', () => child.pid !== undefined && signalGroup(child.pid, 'SIGKILL'));
      child.once('close', (code, signal) => {
        this.#child = null;
        resolve(signal === null ? `code ${code}` : `signal ${signal}`);
      });
    });
  }
}

const SIGNAL_OF = { freeze: 'SIGSTOP', thaw: 'SIGCONT', kill: 'SIGKILL', crash: 'SIGKILL' } as const;

/** Signals every process of the group; a group that is gone is no fault. */
export function signalGroup(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(-pid, signal);
  } catch {
    // The whole group is already gone.
  }
}
