/** The sandbox as a process that outlives this one: starts, asks, replaces and ends it. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { systemClock } from '../../../shared/adapters/system-clock.ts';
import { AppError, describeError } from '../../../shared/domain/errors.ts';
import type { Output } from '../caller.ts';
import { type RunLock, unwritable } from '../lookup/run-lock.ts';
import { makeStateFolder } from '../config/state-folder.ts';

export interface SandboxHandle {
  endpoint: string;
  pid: number;
  controlToken: string;
  dataDir: string;
}

export interface SandboxOptions {
  dataDir: string;
  port: number;
  /** SHA-256 of the only bundles it may run. */
  bundles: string[];
  /** When it ends itself, whatever happens to us; null to stay until it is ended. */
  endsAtMs: number | null;
  region?: string;
  /** The endpoint and run whose mock instances it boots; omitted: the sandbox is a complete endpoint. */
  standInFor?: { endpoint: string; runId: string };
  /** Its environment; omitted: that of this process. */
  environment?: Readonly<Record<string, string>>;
  /** The token of the sandbox it replaces; omitted: a new one. */
  controlToken?: string;
}

export type SandboxSettings = Omit<SandboxOptions, 'dataDir' | 'port' | 'controlToken'>;

const START_TIMEOUT_MS = 20_000;
const LOOK_EVERY_MS = 1_000;
const TRY_AGAIN_MS = 5_000;
/** How long its folder may be missing or unwritable: without it there is no room for objects or machines. */
const GIVE_UP_MS = 30_000;
/** The size of the test file: more than fits into the rest of an allocated block. */
const TEST_BYTES = 8_192;

/** The sandbox's entry beside this file: TypeScript in the checkout, JavaScript in the package. */
function sandboxEntry(): string {
  const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js';
  return fileURLToPath(new URL(`../../../sandbox/main.${extension}`, import.meta.url));
}

export function sandboxArguments(options: SandboxOptions): string[] {
  return [
    sandboxEntry(),
    '--data',
    options.dataDir,
    '--port',
    String(options.port),
    ...options.bundles.flatMap((sha256) => ['--allow-bundle', sha256]),
    ...(options.region === undefined ? [] : ['--region', options.region]),
    ...(options.standInFor === undefined
      ? []
      : ['--stand-in-for', options.standInFor.endpoint, '--run', options.standInFor.runId]),
    ...(options.controlToken === undefined ? [] : ['--control-token', options.controlToken]),
    ...(options.endsAtMs === null ? [] : ['--ends-at', new Date(options.endsAtMs).toISOString()]),
  ];
}

/** Resolves when it is ready. Throws `sandbox-failed` with the end of its log, or `folder-unwritable`. */
export async function startSandbox(options: SandboxOptions): Promise<SandboxHandle> {
  makeStateFolder(options.dataDir);
  const logFile = join(options.dataDir, 'sandbox.log');
  const log = openSync(logFile, 'a');
  // In its own session: a Ctrl-C in the terminal is meant for us, and we end the sandbox when the fleet is gone.
  const child = spawn(process.execPath, sandboxArguments(options), {
    detached: true,
    stdio: ['ignore', 'pipe', log],
    ...(options.environment === undefined ? {} : { env: options.environment }),
  });
  try {
    const line = await readFirstLine(child.stdout!, once(child, 'exit'));
    const { endpoint, pid, controlToken } = JSON.parse(line) as SandboxHandle;
    child.stdout!.destroy();
    child.unref();
    return { endpoint, pid, controlToken, dataDir: options.dataDir };
  } catch (error) {
    child.kill('SIGKILL');
    const tail = existsSync(logFile) ? readFileSync(logFile, 'utf8').trim().split('\n').slice(-5).join('\n') : '';
    const text = `the sandbox did not start: ${describeError(error)}${tail ? `\n${tail}` : ''}`;
    throw new AppError('sandbox-failed', text, { hint: `Its log is ${logFile}`, cause: error });
  }
}

/**
 * Starts a sandbox with the same folder, port and control token, so that everything configured for the old one finds
 * it.
 */
export function replaceSandbox(old: SandboxHandle, options: SandboxSettings): Promise<SandboxHandle> {
  const { dataDir, controlToken, endpoint } = old;
  return startSandbox({ ...options, dataDir, port: Number(new URL(endpoint).port), controlToken });
}

async function readFirstLine(stream: NodeJS.ReadableStream, exited: Promise<unknown>): Promise<string> {
  let text = '';
  const line = new Promise<string>((resolve) => {
    stream.on('data', (chunk: Buffer) => {
      text += chunk.toString('utf8');
      if (text.includes('\n')) resolve(text.slice(0, text.indexOf('\n')));
    });
  });
  const failWith = (text: string) => () => Promise.reject(new Error(text));
  const timeout = once(AbortSignal.timeout(START_TIMEOUT_MS), 'abort');
  return Promise.race([
    line,
    exited.then(failWith('it ended at once')),
    timeout.then(failWith(`it was not ready within ${START_TIMEOUT_MS / 1_000} s`)),
  ]);
}

/** The pid of the sandbox that answers there with this token; null when none does. */
export async function sandboxPid(sandbox: Reached): Promise<number | null> {
  try {
    const reply = await control(sandbox, 'GET', 'status');
    return reply.ok ? ((await reply.json()) as { pid: number }).pid : null;
  } catch {
    return null;
  }
}

/** Ends the sandbox, if it is there, and everything it runs. Resolves when its process has ended. */
export async function stopSandbox(sandbox: Reached & { pid: number }): Promise<void> {
  const reply = await control(sandbox, 'POST', 'shutdown').catch(() => null);
  if (!reply?.ok) return;
  const giveUp = performance.now() + 10_000;
  while (isAlive(sandbox.pid) && performance.now() < giveUp) await new Promise((resolve) => setTimeout(resolve, 25));
}

/** Lets the instances of the sandbox run this bundle. Throws `sandbox-failed` when it does not answer. */
export async function allowBundle(sandbox: Reached, sha256: string): Promise<void> {
  const reply = await control(sandbox, 'POST', 'bundles', { sha256 }).catch(() => null);
  if (!reply?.ok) throw new AppError('sandbox-failed', `the sandbox at ${sandbox.endpoint} does not answer`);
}

type Reached = Pick<SandboxHandle, 'endpoint' | 'controlToken'>;

function control(sandbox: Reached, method: 'GET' | 'POST', route: string, body?: object): Promise<Response> {
  return fetch(`${sandbox.endpoint}/_crawlfleet/${route}`, {
    method,
    headers: { authorization: `Bearer ${sandbox.controlToken}` },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    signal: AbortSignal.timeout(5_000),
  });
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

/**
 * Replaces the process of a run's sandbox when it dies, and updates `handle.pid`. Buckets survive; the control loop
 * makes instances and load balancer again. A folder that cannot be written for half a minute ends the watch and the
 * work under the lock. Returns a function that ends the watch.
 */
export function superviseSandbox(
  handle: SandboxHandle,
  options: SandboxSettings,
  { output, lock }: { output: Pick<Output, 'line'>; lock: Pick<RunLock, 'giveUp'> },
): () => Promise<void> {
  const say = (text: string): void => output.line(`! ${text}`);
  const stop = new AbortController();
  /** Since when nothing can be written; null while it works. */
  let unwrittenMs: number | null = null;
  const watch = async (): Promise<void> => {
    while (!stop.signal.aborted) {
      await systemClock.sleep(LOOK_EVERY_MS, stop.signal);
      if (stop.signal.aborted) return;
      const fault = findWriteFault(handle.dataDir);
      const nowMs = systemClock.monotonic();
      unwrittenMs = fault === null ? null : (unwrittenMs ?? nowMs);
      if (unwrittenMs !== null && nowMs - unwrittenMs > GIVE_UP_MS)
        return lock.giveUp(unwritable(`the folder of the sandbox, ${handle.dataDir},`, fault, nowMs - unwrittenMs));
      if (isAlive(handle.pid)) continue;
      // Another process may have replaced it already.
      const pid = await sandboxPid(handle);
      if (pid !== null) {
        handle.pid = pid;
        continue;
      }
      say('the sandbox has died, and its instances with it; another one takes its place');
      try {
        handle.pid = (await replaceSandbox(handle, options)).pid;
      } catch (error) {
        say(`the sandbox cannot be started again: ${describeError(error)}`);
        await systemClock.sleep(TRY_AGAIN_MS, stop.signal);
      }
    }
  };
  const watching = watch();
  return async () => {
    stop.abort();
    await watching;
  };
}

/** Why nothing can be written into the folder now; null when writing works. */
function findWriteFault(folder: string): unknown {
  const file = join(folder, '.probe');
  try {
    writeFileSync(file, Buffer.alloc(TEST_BYTES, 1));
    return null;
  } catch (error) {
    return error;
  } finally {
    rmSync(file, { force: true });
  }
}
