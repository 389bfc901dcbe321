/**
 * The sandbox as a process. Prints one JSON line on stdout when ready; everything else goes to the log in its data
 * folder, startup errors to stderr. Ends on SIGTERM, SIGINT, its end time or the control route, never with its parent.
 */
import { randomBytes } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { resolve } from 'node:path';
import { AppError, describeError } from '../shared/domain/errors.ts';
import { printable } from '../shared/domain/terminal-text.ts';
import { systemRandom } from '../shared/adapters/random.ts';
import { systemClock } from '../shared/adapters/system-clock.ts';
import { type Sandbox, startSandbox } from './compose.ts';
import { EndTimer } from './end-timer.ts';
import { readFlags } from './flags.ts';

/** Time limit for closing. Instances get two seconds to end; a hanging close must not delay the rest of the machine. */
const CLOSE_LIMIT_MS = 15_000;

// The parent may be gone, and its pipes with it: writing to them must not end the sandbox.
process.stdout.on('error', () => {});
process.stderr.on('error', () => {});
process.on('SIGHUP', () => {});

let sandbox: Sandbox | null = null;
let ending = false;

async function end(why: string): Promise<void> {
  if (ending) return;
  ending = true;
  sandbox?.log('ending', { why });
  const limit = systemClock.sleep(CLOSE_LIMIT_MS).then(() => 'late' as const);
  const how = await Promise.race([sandbox?.close(), limit]);
  process.exit(how === 'late' ? 1 : 0);
}

/**
 * What an image would provide: the programs on the search path, and the browser that the user named. Besides, options
 * of the instances' Node (CRAWLFLEET_INSTANCE_NODE_OPTIONS), to measure in their processes.
 */
function imageEnvironment({ PATH, CRAWLFLEET_CHROMIUM, ...more }: NodeJS.ProcessEnv): Record<string, string> {
  const nodeOptions = more.CRAWLFLEET_INSTANCE_NODE_OPTIONS;
  return {
    PATH: PATH ?? '',
    ...(CRAWLFLEET_CHROMIUM ? { CRAWLFLEET_CHROMIUM } : {}),
    ...(nodeOptions ? { NODE_OPTIONS: nodeOptions } : {}),
  };
}

async function main(): Promise<void> {
  const flags = readFlags(process.argv.slice(2));
  const dataDir = resolve(flags.dataDir);
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  const controlToken = flags.controlToken ?? randomBytes(24).toString('hex');
  const timer = new EndTimer(systemClock, () => void end('its end time has come'));
  sandbox = await startSandbox({
    ...flags,
    dataDir,
    controlToken,
    environment: imageEnvironment(process.env),
    clock: systemClock,
    random: systemRandom,
    onShutdown: (why) => void end(why),
    timer,
  });
  if (flags.endsAtMs !== null) timer.set(flags.endsAtMs);
  const { endpoint, network } = sandbox;
  process.stdout.write(`${JSON.stringify({ endpoint, pid: process.pid, network, controlToken })}\n`);
}

for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => void end(signal));
// A fault in one call must not take down a whole fleet; the log has the error.
process.on('uncaughtException', (error) => {
  sandbox?.log('uncaught', { error: describeError(error), stack: error.stack });
});

await main().catch((error: unknown) => {
  const hint = error instanceof AppError && error.hint !== undefined ? `\n${error.hint}` : '';
  process.stderr.write(printable(`sandbox: ${describeError(error)}${hint}\n`));
  process.exit(error instanceof AppError ? error.exitCode : 1);
});
