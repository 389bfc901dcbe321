/** Starts the page server and returns its origin. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

export async function startPageServer(pages: number): Promise<{ origin: string; stop: () => Promise<void> }> {
  const entry = fileURLToPath(new URL('page-server.ts', import.meta.url));
  const child = spawn(process.execPath, [entry, String(pages)], { stdio: ['pipe', 'pipe', 'inherit'] });
  const exited = once(child, 'exit');
  const [line] = (await Promise.race([
    once(createInterface(child.stdout), 'line'),
    exited.then(() => Promise.reject(new Error('the page server ended before it was ready'))),
  ])) as [string];
  return {
    origin: line,
    async stop() {
      child.stdin.end();
      await exited;
    },
  };
}
