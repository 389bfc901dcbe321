/** Which main servers count as dead: those of which it can be proved, where `/proc` tells it and where it does not. */
import { spawnSync } from 'node:child_process';
import type * as Fs from 'node:fs';
import { hostname } from 'node:os';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { isDeadHere, isSurelyAlive, ownName, processName } from '../../../orchestrator/cli/process-name.ts';

const proc = vi.hoisted(() => ({ isReadable: true, stat: null as string | null }));
vi.mock('node:fs', async (original) => {
  const fs = await original<typeof Fs>();
  const readFileSync = (path: string, encoding: BufferEncoding): string => {
    if (path.startsWith('/proc/') && proc.stat !== null) return proc.stat;
    // As on macOS, and as `hidepid` shows the processes of others.
    if (path.startsWith('/proc/') && !proc.isReadable)
      throw Object.assign(new Error('ENOENT: no such file or directory'), { code: 'ENOENT' });
    return fs.readFileSync(path, encoding);
  };
  return { ...fs, readFileSync };
});

afterEach(() => {
  [proc.isReadable, proc.stat] = [true, null];
  vi.restoreAllMocks();
});

/** A process that has ended and been waited for: its number is nobody's for the time of a test. */
const ended = (): number => spawnSync(process.execPath, ['-e', '']).pid;
const named = (pid: number, start: number | string = 1): string => `${hostname()}:${pid}:${start}`;

describe.each([
  ['with /proc', true],
  ['without a readable /proc', false],
])('%s', (_, isReadable) => {
  it('takes a process that lives for alive, and one that has ended for dead', () => {
    proc.isReadable = isReadable;
    expect(isDeadHere(ownName())).toBe(false);
    expect(isDeadHere(processName(process.ppid))).toBe(false);
    expect(isDeadHere(named(ended()))).toBe(true);
  });

  it('takes one of another user, which no signal may be sent to, for alive', () => {
    proc.isReadable = false;
    vi.spyOn(process, 'kill').mockImplementation(() => {
      throw Object.assign(new Error('kill EPERM'), { code: 'EPERM' });
    });
    expect(isDeadHere(named(1))).toBe(false);
  });

  it('knows nothing of other hosts, nor of names that are not ours', () => {
    proc.isReadable = isReadable;
    expect(isDeadHere(`elsewhere-${hostname()}:1:1`)).toBe(false);
    expect(isDeadHere('somebody')).toBe(false);
  });

  it('takes a process that could not even be started for dead', () => {
    proc.isReadable = isReadable;
    expect(isDeadHere(processName(0))).toBe(true);
  });
});

describe('a process that lives under this number', () => {
  it('is another one when it began at another time, and dead when only its exit code is left', () => {
    expect(isDeadHere(named(process.pid, 1))).toBe(true);
    proc.stat = `${process.pid} (a (b) c) Z ${'0 '.repeat(18)}77 0`;
    expect(isDeadHere(named(process.pid, 77))).toBe(true);
    // One that ended before it was named.
    expect(isDeadHere(processName(process.pid))).toBe(true);
    proc.stat = proc.stat.replace(') Z ', ') S ');
    expect(isDeadHere(named(process.pid, 77))).toBe(false);
  });

  it('is surely the one that is meant only where its beginning can be seen', () => {
    expect(isSurelyAlive(ownName())).toBe(true);
    expect(isSurelyAlive(named(process.pid, 1))).toBe(false);
    proc.isReadable = false;
    expect(isSurelyAlive(ownName())).toBe(false);
  });
});
