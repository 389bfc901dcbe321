/** Runs commands in tests, waits for conditions, and finds leftover processes. */
import { spawn } from 'node:child_process';
import { readFileSync, readdirSync } from 'node:fs';

export interface CommandResult {
  /** null when a signal ended the command. */
  exitCode: number | null;
  signal: NodeJS.Signals | null;
  stdout: string;
  stderr: string;
  wallMs: number;
}

export interface CommandOptions {
  cwd?: string;
  /** Added to this process's environment; undefined removes a variable. */
  env?: Record<string, string | undefined>;
  /**
   * Default 50 s, less than a test may take; then the process group is killed and `finished` rejects with its output.
   */
  timeoutMs?: number;
  /** Written to stdin, which is then closed. */
  input?: string;
}

/** A running command. */
export interface RunningCommand {
  pid: number;
  /** The output so far. */
  stdout(): string;
  stderr(): string;
  /** Signals the command alone, or with `group` its whole process group, as a terminal does on Ctrl-C. */
  kill(signal: NodeJS.Signals, to?: 'group'): void;
  /** Resolves once the command has ended and every process that shares its output has closed it. */
  finished: Promise<CommandResult>;
}

/** Starts a command in its own process group. A test that does not await `finished` must kill the command in a hook. */
export function startCommand(file: string, args: readonly string[], options: CommandOptions = {}): RunningCommand {
  const startedMs = performance.now();
  const child = spawn(file, args, {
    cwd: options.cwd,
    env: { ...process.env, ...options.env },
    stdio: ['pipe', 'pipe', 'pipe'],
    detached: true,
  });
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
  // A command may end without reading its input.
  child.stdin.on('error', () => undefined).end(options.input ?? '');

  const kill = (signal: NodeJS.Signals, to?: 'group'): void => {
    if (child.pid !== undefined) killQuietly(to === 'group' ? -child.pid : child.pid, signal);
  };
  const finished = new Promise<CommandResult>((resolve, reject) => {
    const timeoutMs = options.timeoutMs ?? 50_000;
    const timer = setTimeout(() => {
      kill('SIGKILL', 'group');
      reject(new Error(`${file} ${args.join(' ')} did not end within ${timeoutMs} ms\n${stdout}\n${stderr}`));
    }, timeoutMs);
    child.on('error', (error) => {
      clearTimeout(timer);
      reject(error);
    });
    child.on('close', (exitCode, signal) => {
      clearTimeout(timer);
      resolve({ exitCode, signal, stdout, stderr, wallMs: performance.now() - startedMs });
    });
  });
  return { pid: child.pid ?? 0, stdout: () => stdout, stderr: () => stderr, kill, finished };
}

/** Runs a command to its end. Any exit code is a result; only a timeout or a missing program rejects. */
export function runCommand(
  file: string,
  args: readonly string[],
  options: CommandOptions = {},
): Promise<CommandResult> {
  return startCommand(file, args, options).finished;
}

function killQuietly(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // The process has already ended.
  }
}

export interface WaitOptions {
  /** For the timeout message: "the run to end". */
  what: string;
  /** Default 30 s. */
  timeoutMs?: number;
  /** Default 25 ms. */
  everyMs?: number;
}

/** Polls until the condition returns something other than false, null or undefined, and returns that. */
export async function waitFor<T>(
  condition: () => T | Promise<T>,
  options: WaitOptions,
): Promise<Exclude<T, false | null | undefined>> {
  const timeoutMs = options.timeoutMs ?? 30_000;
  const giveUpMs = performance.now() + timeoutMs;
  let last: unknown;
  do {
    try {
      const value = await condition();
      if (value !== false && value !== null && value !== undefined) {
        return value as Exclude<T, false | null | undefined>;
      }
      last = undefined;
    } catch (error) {
      last = error;
    }
    await new Promise((resolve) => setTimeout(resolve, options.everyMs ?? 25));
  } while (performance.now() < giveUpMs);
  throw new Error(`waited ${timeoutMs} ms for ${options.what}`, last === undefined ? {} : { cause: last });
}

export interface ProcessInfo {
  pid: number;
  command: string;
}

/** The environment variable for a marker by which findLeftovers finds a command and all its descendants. */
export const MARKER_VARIABLE = 'CRAWLFLEET_TEST_MARKER';

/**
 * Running processes, except this one, whose command line or environment contains the marker. A marker is a text that no
 * other test uses: the path of the test's own folder, or a random value in MARKER_VARIABLE.
 */
export function findLeftovers(marker: string): ProcessInfo[] {
  if (marker.length < 6) throw new Error(`the marker "${marker}" would find processes of others`);
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .flatMap((name) => {
      const command = readProc(name, 'cmdline').replaceAll('\0', ' ').trim();
      // Zombies have neither and count as gone.
      const found = command.includes(marker) || readProc(name, 'environ').includes(marker);
      return found ? [{ pid: Number(name), command }] : [];
    });
}

/** Kills what findLeftovers finds: for the hook that cleans up after a failed test. */
export function killLeftovers(marker: string): void {
  for (const { pid } of findLeftovers(marker)) killQuietly(pid, 'SIGKILL');
}

/** '' for a process that has ended or belongs to another user. */
function readProc(pid: string, file: string): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8');
  } catch {
    return '';
  }
}

/** Clock ticks per second: 100 on every Linux that Node supports. */
const TICK_MS = 10;

/** CPU time and largest resident set of a process so far; zeros when it has ended. */
export function readProcess(pid: number): { cpuMs: number; peakRssBytes: number } {
  const stat = readProc(String(pid), 'stat');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const ticks = Number(fields[11] ?? 0) + Number(fields[12] ?? 0);
  const peak = /VmHWM:\s+(\d+) kB/.exec(readProc(String(pid), 'status'));
  return { cpuMs: ticks * TICK_MS, peakRssBytes: Number(peak?.[1] ?? 0) * 1_024 };
}
