/** Starts the supervisor (main.ts) and keeps one running while the sandbox lives. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

/** Maximum starts: if it ends more often on its own, another start would not help. */
const MAX_STARTS = 20;

export interface SupervisorProcess {
  /** Lets the supervisor kill the remaining processes, and waits for it to end. */
  close(): Promise<void>;
}

/** @param folder the parent of all instance folders */
export function startSupervisor(folder: string, onLost: (message: string) => void): SupervisorProcess {
  // Beside this file in both forms: .ts in a checkout, .js in the built package.
  const script = fileURLToPath(import.meta.url).replace(/start-supervisor(\.\w+)$/, 'main$1');
  let closing = false;
  let starts = 0;
  let child: ChildProcess;
  const start = (): void => {
    starts += 1;
    // Its own session, so that a Ctrl-C for the sandbox does not end the supervisor first.
    child = spawn(process.execPath, [script, folder], { detached: true, stdio: ['pipe', 'ignore', 'ignore'] });
    child.stdin?.on('error', () => {});
    child.on('error', (error) => onLost(error.message));
    child.on('exit', (code, signal) => {
      if (closing) return;
      onLost(`the supervisor ended (${signal ?? code})`);
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
