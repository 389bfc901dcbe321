/** Runs the real command line with this terminal's output, and ends it when the demo is stopped. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { constants } from 'node:os';
import { fileURLToPath } from 'node:url';
import type { StopRequest } from './stop-signals.ts';

const LAUNCHER = fileURLToPath(new URL('../../bin/orchestrator.js', import.meta.url));

/** Resolves with the exit code of the command, in the shell's form (128 + n) when a signal ended it. */
export async function runOrchestrator(args: readonly string[], stop: StopRequest): Promise<number> {
  if (stop.signal.aborted) return 128 + constants.signals.SIGINT;
  const child = spawn(process.execPath, [LAUNCHER, ...args], {
    stdio: ['ignore', 'inherit', 'inherit'],
    // Its own process group: it receives Ctrl-C once, from here, and never again from the terminal, which would make it
    // abandon its instances.
    detached: true,
  });
  stop.signal.addEventListener('abort', () => child.kill('SIGINT'), { once: true });
  const [code, signal] = (await once(child, 'exit')) as [number | null, NodeJS.Signals | null];
  return code ?? 128 + constants.signals[signal!];
}
