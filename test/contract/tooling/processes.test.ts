/** The helpers that other tests use to run, wait for, find and end processes. */
import { randomUUID } from 'node:crypto';
import { existsSync, writeFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import {
  MARKER_VARIABLE,
  findLeftovers,
  killLeftovers,
  runCommand,
  startCommand,
  waitFor,
} from '../../support/processes.ts';
import { tempDir } from '../../support/temp-dir.ts';

const node = process.execPath;

describe('runCommand', () => {
  it('returns exit code and both outputs', async () => {
    const result = await runCommand(node, ['-e', 'console.log("out"); console.error("err"); process.exit(3)']);
    expect(result).toMatchObject({ exitCode: 3, signal: null, stdout: 'out\n', stderr: 'err\n' });
  });

  it('passes input and environment', async () => {
    const script = 'process.stdin.on("data", (d) => console.log(d + process.env.X + process.env.HOME))';
    const result = await runCommand(node, ['-e', script], { input: 'in ', env: { X: 'x ', HOME: undefined } });
    expect(result.stdout).toBe('in x undefined\n');
  });

  it('kills the whole group when the time is up, and reports what was printed', async () => {
    const marker = randomUUID();
    const script = `console.log("begun"); require("child_process").spawn(process.execPath, ["-e", "setInterval(() => {}, 1e3)"]); setInterval(() => {}, 1e3)`;
    const run = runCommand(node, ['-e', script], { timeoutMs: 700, env: { [MARKER_VARIABLE]: marker } });
    await expect(run).rejects.toThrow('begun');
    await waitFor(() => findLeftovers(marker).length === 0, { what: 'the group to be gone' });
  });

  it('rejects when there is no such program', async () => {
    await expect(runCommand('/nonexistent/program', [])).rejects.toThrow('ENOENT');
  });
});

describe('findLeftovers', () => {
  it('finds a descendant by its environment, and killLeftovers ends it', async () => {
    const marker = randomUUID();
    const script = 'setInterval(() => {}, 1e3); console.log("up")';
    const command = startCommand(node, ['-e', script], { env: { [MARKER_VARIABLE]: marker } });
    await waitFor(() => command.stdout() === 'up\n', { what: 'the command to be up' });
    expect(findLeftovers(marker).map((found) => found.pid)).toEqual([command.pid]);
    killLeftovers(marker);
    expect((await command.finished).signal).toBe('SIGKILL');
    expect(findLeftovers(marker)).toEqual([]);
  });

  it('refuses a marker that other processes may share', () => {
    expect(() => findLeftovers('node')).toThrow('node');
  });
});

describe('waitFor', () => {
  it('returns the final value of the condition', async () => {
    let calls = 0;
    expect(await waitFor(() => (++calls < 3 ? null : `call ${calls}`), { what: 'it', everyMs: 1 })).toBe('call 3');
  });

  it('gives up with the name of the condition and the reason', async () => {
    const wait = waitFor(() => Promise.reject(new Error('not yet')), { what: 'the moon', timeoutMs: 30, everyMs: 5 });
    await expect(wait).rejects.toMatchObject({ message: 'waited 30 ms for the moon', cause: new Error('not yet') });
  });
});

describe('tempDir', () => {
  it('exists until its scope ends', () => {
    let path: string;
    {
      using folder = tempDir();
      path = folder.path;
      writeFileSync(folder.file('a'), 'x');
      expect(existsSync(folder.file('a'))).toBe(true);
    }
    expect(existsSync(path)).toBe(false);
  });
});
