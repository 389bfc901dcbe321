/**
 * Runs one shell script on an instance, as the SSM agent does: with a time limit, and with the beginning of its output.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import type { Clock } from '../../shared/ports/clock.ts';
import type { ShellEnd, ShellRun } from '../ec2/machine.ts';
import { signalGroup } from './service.ts';

/** The exit codes of the shell, as SSM shows them; -1 when there is none. */
const NO_CODE = -1;
/** SSM keeps this much of the output, in characters. */
const KEPT_CHARS = { stdout: 24_000, stderr: 8_000 };

export interface ShellOptions {
  script: string;
  folder: string;
  environment: Record<string, string>;
  timeoutMs: number;
  clock: Clock;
}

export function startShell({ script, folder, environment, timeoutMs, clock }: ShellOptions): ShellRun {
  // Its own process group: a stop reaches everything that the script has started.
  const child = spawn('/bin/sh', ['-c', script], {
    cwd: folder,
    env: environment,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let how: ShellEnd['how'] = 'ended';
  const stop = (why: ShellEnd['how']): void => {
    if (how !== 'ended' || child.exitCode !== null || child.pid === undefined) return;
    how = why;
    signalGroup(child.pid, 'SIGKILL');
  };
  const limit = new AbortController();
  void clock.sleep(timeoutMs, limit.signal).then(() => !limit.signal.aborted && stop('timed-out'));
  const stdout = collect(child, 'stdout');
  const stderr = collect(child, 'stderr');
  const done = new Promise<ShellEnd>((resolve) => {
    const end = (exitCode: number): void => {
      limit.abort();
      // What it has left in the background would hold the pipes forever.
      if (child.pid !== undefined) signalGroup(child.pid, 'SIGKILL');
      resolve({ how, exitCode, stdout: stdout(), stderr: stderr() });
    };
    child.once('error', () => end(NO_CODE));
    child.once('exit', () => child.pid !== undefined && signalGroup(child.pid, 'SIGKILL'));
    child.once('close', (code) => end(code ?? NO_CODE));
  });
  return { done, cancel: () => stop('cancelled') };
}

function collect(child: ChildProcess, name: 'stdout' | 'stderr'): () => string {
  let text = '';
  const stream = child[name]!.setEncoding('utf8');
  stream.on('data', (chunk: string) => {
    if (text.length < KEPT_CHARS[name]) text += chunk;
  });
  return () => text.slice(0, KEPT_CHARS[name]);
}
