/**
 * What becomes of a command whose output cannot be written any more: the reader of its pipe has ended (`| head`), its terminal is gone, or
 * the disk of the file is full. By default it goes on without output, because it works on something; a command that only shows
 * something ends. Without this, the first such line would end any command as a fault of the program.
 */
import { EXIT } from '../../shared/domain/exit-codes.ts';
import { describeError } from '../../shared/domain/errors.ts';

const STREAMS = { stdout: process.stdout, stderr: process.stderr };

const listeners = new Set<(text: string) => void>();
const lost = new Map<string, string>();
let onlyShows = false;

function onError(name: keyof typeof STREAMS, error: NodeJS.ErrnoException): void {
  // A reader that has seen enough is no fault. A message that came with another exit code keeps that.
  if (onlyShows) process.exit(error.code === 'EPIPE' ? (process.exitCode ?? EXIT.complete) : EXIT.internal);
  if (lost.has(name)) return;
  const text = `${name} cannot be written any more, the command goes on without it: ${describeError(error)}`;
  lost.set(name, text);
  for (const listener of listeners) listener(text);
}

/** From here on no command ends as a fault of the program because of its output. To be called once, before anything is printed. */
export function outliveOutput(): void {
  for (const name of ['stdout', 'stderr'] as const) STREAMS[name].on('error', (error) => onError(name, error));
}

/** For a command that does nothing but show something: it ends when nothing can be shown, with exit code 0 where its reader has left. */
export function endWithOutput(): void {
  onlyShows = true;
}

/** Hears what was lost, also what had been lost before. Returns a function that ends that. */
export function onLostOutput(listener: (text: string) => void): () => void {
  for (const text of lost.values()) listener(text);
  listeners.add(listener);
  return () => void listeners.delete(listener);
}
