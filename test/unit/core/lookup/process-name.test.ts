/** A main server counts as dead only when that can be proved, with a readable `/proc` and without one. */
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import { hostname } from 'node:os';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { isDeadHere, isSurelyAlive, ownName, processName } from '../../../../orchestrator/core/lookup/process-name.ts';
import { replaceBuiltin } from '../../../support/builtin.ts';

const proc = { isReadable: true, stat: null as string | null };
const { readFileSync } = fs;

beforeEach(() => {
  const read = (path: string, encoding: BufferEncoding): string => {
    if (path.startsWith('/proc/') && proc.stat !== null) return proc.stat;
    // As on macOS, and for processes of other users under `hidepid`.
    if (path.startsWith('/proc/') && !proc.isReadable)
      throw Object.assign(new Error('ENOENT: no such file or directory'), { code: 'ENOENT' });
    return readFileSync(path, encoding);
  };
  replaceBuiltin(fs, 'readFileSync', read as typeof readFileSync);
});

afterEach(() => {
  [proc.isReadable, proc.stat] = [true, null];
  vi.restoreAllMocks();
});

/** A process that has been reaped: its PID stays unused for the duration of a test. */
const ended = (): number => spawnSync(process.execPath, ['-e', '']).pid;
const named = (pid: number, start: number | string = 1): string => `${hostname()}:${pid}:${start}`;

describe.each([
  ['with /proc', true],
  ['without a readable /proc', false],
])('%s', (_, isReadable) => {
  it('treats a running process as alive, and one that has ended as dead', () => {
    proc.isReadable = isReadable;
    expect(isDeadHere(ownName())).toBe(false);
    expect(isDeadHere(processName(process.ppid))).toBe(false);
    expect(isDeadHere(named(ended()))).toBe(true);
  });

  it('treats a process of another user, which it may not signal, as alive', () => {
    proc.isReadable = false;
    vi.spyOn(process, 'kill').mockImplementation(() => {
      throw Object.assign(new Error('kill EPERM'), { code: 'EPERM' });
    });
    expect(isDeadHere(named(1))).toBe(false);
  });

  it('makes no statement about other hosts or foreign names', () => {
    proc.isReadable = isReadable;
    expect(isDeadHere(`elsewhere-${hostname()}:1:1`)).toBe(false);
    expect(isDeadHere('somebody')).toBe(false);
  });

  it('treats a process that could not be started as dead', () => {
    proc.isReadable = isReadable;
    expect(isDeadHere(processName(0))).toBe(true);
  });
});

describe('a running process with this PID', () => {
  it('is a different one when its start time differs, and dead when it is a zombie', () => {
    expect(isDeadHere(named(process.pid, 1))).toBe(true);
    proc.stat = `${process.pid} (a (b) c) Z ${'0 '.repeat(18)}77 0`;
    expect(isDeadHere(named(process.pid, 77))).toBe(true);
    // A process that ended before it was named.
    expect(isDeadHere(processName(process.pid))).toBe(true);
    proc.stat = proc.stat.replace(') Z ', ') S ');
    expect(isDeadHere(named(process.pid, 77))).toBe(false);
  });

  it('is certainly the named one only where its start time is readable', () => {
    expect(isSurelyAlive(ownName())).toBe(true);
    expect(isSurelyAlive(named(process.pid, 1))).toBe(false);
    proc.isReadable = false;
    expect(isSurelyAlive(ownName())).toBe(false);
  });
});
