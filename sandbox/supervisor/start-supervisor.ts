/** Starts the keeper (main.ts) and keeps one running for as long as the sandbox lives. */
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

/** A keeper that ends by itself more often than this has a reason that a further one would not change. */
const MAX_STARTS = 20;

export interface SupervisorProcess {
  /** Lets the keeper kill what is left, and waits for its end. */
  close(): Promise<void>;
}

/** @param folder under which all instance folders are */
export function startSupervisor(folder: string, onLost: (message: string) => void): SupervisorProcess {
  // Beside this file in both forms: .ts in a checkout, .js in the built package.
  const script = fileURLToPath(import.meta.url).replace(/start-keeper(\.\w+)$/, 'main$1');
  let closing = false;
  let starts = 0;
  let child: ChildProcess;
  const start = (): void => {
    starts += 1;
    // A session of its own, so that a Ctrl-C meant for the sandbox does not take the keeper away first.
    child = spawn(process.execPath, [script, folder], { detached: true, stdio: ['pipe', 'ignore', 'ignore'] });
    child.stdin?.on('error', () => {});
    child.on('error', (error) => onLost(error.message));
    child.on('exit', (code, signal) => {
      if (closing) return;
      onLost(`the keeper ended (${signal ?? code})`);
      if (starts < MAX_STARTS) start();
    });
  };
  start();
  return {
    async close() {
      closing = true;
      if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return;
      const exited = once(child, 'exit');
      child.stdin?.end();
      await exited;
    },
  };
}
