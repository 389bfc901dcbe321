/** The supervisor of a sandbox: when it takes the sandbox for dead, and when it leaves it alone. */
import { spawnSync } from 'node:child_process';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  type SandboxHandle,
  sandboxPid,
  startSandbox,
  stopSandbox,
  superviseSandbox,
} from '../../../../orchestrator/core/cloud-access/sandbox-process.ts';
import { waitFor } from '../../../support/processes.ts';
import { type TempDir, tempDir } from '../../../support/temp-dir.ts';

const OPTIONS = { bundles: [], endsAtMs: null };
const watcher = (said: string[]) => ({
  output: { line: (text = '') => void said.push(text) },
  lock: { giveUp: (error: Error) => void said.push(error.message) },
});
let folder: TempDir;
let sandbox: SandboxHandle;

beforeEach(async () => {
  folder = tempDir('crawlfleet-keep-');
  sandbox = await startSandbox({ ...OPTIONS, dataDir: folder.path, port: 0 });
});
afterEach(async () => {
  await stopSandbox(sandbox);
  folder.remove();
});

describe('the supervisor of a sandbox', () => {
  it('follows a replacement that another process started, and raises no alarm', async () => {
    // The run stores the process of a sandbox that has been replaced since.
    const { pid: gone } = spawnSync('true');
    const stored = { ...sandbox, pid: gone };
    const said: string[] = [];
    const unwatch = superviseSandbox(stored, OPTIONS, watcher(said));
    await waitFor(() => stored.pid === sandbox.pid, { what: 'the watch to look', timeoutMs: 20_000 });
    await unwatch();
    expect(said).toEqual([]);
    expect(await sandboxPid(sandbox)).toBe(sandbox.pid);
  });

  it('replaces a sandbox that has died', async () => {
    const said: string[] = [];
    process.kill(sandbox.pid, 'SIGKILL');
    const { pid } = sandbox;
    const unwatch = superviseSandbox(sandbox, OPTIONS, watcher(said));
    await waitFor(() => sandbox.pid !== pid, { what: 'another sandbox', timeoutMs: 20_000 });
    await unwatch();
    expect(said).toEqual(['! the sandbox has died, and its instances with it; another one takes its place']);
    expect(await sandboxPid(sandbox)).toBe(sandbox.pid);
  });
});
