/**
 * What happens to a command that can no longer write its output: the reader of its pipe has exited (`| head`), its
 * terminal is gone, or the disk of the file is full. By default the command goes on without output, because it does
 * work; a command that only shows something ends. Without this, the first such line would end any command with an
 * internal error.
 */
import { appendFileSync, mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import type { Output } from '../core/caller.ts';
import { systemClock } from '../../shared/adapters/system-clock.ts';
import { EXIT } from '../../shared/domain/exit-codes.ts';
import { describeError } from '../../shared/domain/errors.ts';
import { printable } from '../../shared/domain/terminal-text.ts';

const STREAMS = { stdout: process.stdout, stderr: process.stderr };

const listeners = new Set<(text: string) => void>();
const lost = new Map<string, string>();
let onlyShows = false;

function onError(name: keyof typeof STREAMS, error: NodeJS.ErrnoException): void {
  // A reader that has seen enough is no error. A message that came with another exit code keeps that code.
  if (onlyShows) process.exit(error.code === 'EPIPE' ? (process.exitCode ?? EXIT.complete) : EXIT.internal);
  if (lost.has(name)) return;
  const text = `${name} cannot be written any more, the command goes on without it: ${describeError(error)}`;
  lost.set(name, text);
  for (const listener of listeners) listener(text);
}

/** Keeps a failure to write output from being an internal error. Call once, before anything is printed. */
export function outliveOutput(): void {
  for (const name of ['stdout', 'stderr'] as const) STREAMS[name].on('error', (error) => onError(name, error));
}

/** Lets a command that only shows something end with its output, with 0 if its reader has left. */
export function endWithOutput(): void {
  onlyShows = true;
}

/** Calls `listener` for each lost output, including those lost before. Returns a function that unsubscribes it. */
export function onLostOutput(listener: (text: string) => void): () => void {
  for (const text of lost.values()) listener(text);
  listeners.add(listener);
  return () => void listeners.delete(listener);
}

/** Writes lines with the time; once an output is lost, they go to `file` as well. */
export function timedLines({ line }: Pick<Output, 'line'>, file: string): (text: string) => void {
  let isLost = false;
  const say = (text: string): void => {
    const timed = `${new Date(systemClock.now()).toISOString()} ${printable(text)}`;
    line(timed);
    if (!isLost) return;
    try {
      mkdirSync(dirname(file), { recursive: true });
      appendFileSync(file, `${timed}\n`, { mode: 0o600 });
    } catch {
      // A service goes on without its log.
    }
  };
  onLostOutput((text) => {
    isLost = true;
    say(`! ${text}`);
  });
  return say;
}
