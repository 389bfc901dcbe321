/** A sandbox for one test, as the real process, on any free port and in a temporary folder. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

export interface SandboxInstance {
  id: string;
  state: string;
  address: string;
  /** Of its program; null while that does not run. */
  pid: number | null;
  folder: string;
}

export interface TestSandbox {
  endpoint: string;
  controlToken: string;
  dataDir: string;
  /** `127.37.0.0/16` */
  network: string;
  pid: number;
  region: string;
  /** Calls a control route: `control('GET', 'status')`. Rejects on any status that is not 2xx. */
  control(method: string, route: string, body?: unknown): Promise<unknown>;
  /** Every instance, including those that calls cannot see. */
  instances(): Promise<SandboxInstance[]>;
  /** Sends SIGTERM; returns the exit code. Removes the data folder unless the caller gave one. */
  stop(): Promise<number | null>;
  /** Sends SIGKILL, as the OOM killer would. The data folder stays. */
  kill(): Promise<void>;
}

export interface TestSandboxOptions {
  /** SHA-256 of the bundles the sandbox may run. */
  allowBundles?: string[];
  region?: string;
  /** Default: a temporary folder that `stop` removes. */
  dataDir?: string;
  port?: number;
  /** Put before the program, such as that of a namespace. */
  prefix?: readonly [file: string, ...args: string[]];
}

const MAIN = fileURLToPath(new URL('../../../sandbox/main.ts', import.meta.url));
const READY_LIMIT_MS = 20_000;

/** Rejects with the sandbox's stderr when it does not become ready. */
export async function startSandbox(options: TestSandboxOptions = {}): Promise<TestSandbox> {
  const dataDir = options.dataDir ?? (await mkdtemp(join(tmpdir(), 'crawlfleet-sandbox-')));
  const region = options.region ?? 'ap-northeast-1';
  const bundles = (options.allowBundles ?? []).flatMap((hash) => ['--allow-bundle', hash]);
  const [file = '', ...before] = [...(options.prefix ?? []), process.execPath, MAIN];
  const child = spawn(
    file,
    [...before, '--data', dataDir, '--region', region, '--port', String(options.port ?? 0), ...bundles],
    { stdio: ['ignore', 'pipe', 'pipe'] },
  );
  const exited = once(child, 'exit') as Promise<[number | null]>;
  let errors = '';
  child.stderr.on('data', (chunk: Buffer) => (errors += chunk.toString()));
  const limit = setTimeout(() => child.kill('SIGKILL'), READY_LIMIT_MS);
  const line = await Promise.race([
    once(createInterface(child.stdout), 'line').then(([text]) => String(text)),
    exited.then(([code]) => Promise.reject(new Error(`the sandbox did not start (exit ${code}): ${errors}`))),
  ]).finally(() => clearTimeout(limit));
  const ready = JSON.parse(line) as { endpoint: string; pid: number; network: string; controlToken: string };

  const end = async (signal: NodeJS.Signals): Promise<number | null> => {
    if (child.exitCode === null && child.signalCode === null) child.kill(signal);
    const [code] = await exited;
    return code;
  };
  const control = async (method: string, route: string, body?: unknown): Promise<unknown> => {
    const response = await fetch(`${ready.endpoint}/_crawlfleet/${route}`, {
      method,
      headers: { authorization: `Bearer ${ready.controlToken}` },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${route}: ${response.status} ${text}`);
    return JSON.parse(text);
  };
  return {
    ...ready,
    dataDir,
    region,
    control,
    instances: async () => ((await control('GET', 'status')) as { instances: SandboxInstance[] }).instances,
    async stop() {
      const code = await end('SIGTERM');
      if (options.dataDir === undefined) await rm(dataDir, { recursive: true, force: true });
      return code;
    },
    async kill() {
      await end('SIGKILL');
    },
  };
}
