/** The helpers that other tests use to run, wait for, find and end processes. */
import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import {
  MARKER_VARIABLE,
  findLeftovers,
  killLeftovers,
  runCommand,
  startCommand,
  waitFor,
} from '../../support/processes.ts';

const node = process.execPath;

describe('runCommand', () => {
  it('kills the whole group when the time is up, and reports what was printed', async () => {
    const marker = randomUUID();
    const script = `console.log("begun"); require("child_process").spawn(process.execPath, ["-e", "setInterval(() => {}, 1e3)"]); setInterval(() => {}, 1e3)`;
    const run = runCommand(node, ['-e', script], { timeoutMs: 700, env: { [MARKER_VARIABLE]: marker } });
    await expect(run).rejects.toThrow('begun');
    await waitFor(() => findLeftovers(marker).length === 0, { what: 'the group to be gone' });
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
