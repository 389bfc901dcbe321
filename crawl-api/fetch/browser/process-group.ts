/** The processes of one browser, through /proc: they are killed together and their memory is counted together. */
import { readdirSync, readFileSync } from 'node:fs';
import type { Clock } from '../../../shared/ports/clock.ts';

const POLL_MS = 20;

/** The child of this process that was started with `argument`; null when there is none. */
export function findChild(argument: string): number | null {
  for (const pid of readChildren(process.pid)) {
    if (readText(`/proc/${pid}/cmdline`)?.split('\0').includes(argument)) return pid;
  }
  return null;
}

function readChildren(pid: number): number[] {
  const threads = listNumbers(`/proc/${pid}/task`);
  return threads.flatMap((thread) =>
    (readText(`/proc/${pid}/task/${thread}/children`) ?? '').split(' ').filter(Boolean).map(Number),
  );
}

/** Live members, without zombies. */
export function listGroup(group: number): number[] {
  return listNumbers('/proc').filter((pid) => {
    const fields = statFields(pid);
    return fields !== null && Number(fields[2]) === group && fields[0] !== 'Z';
  });
}

/**
 * Private memory of the group in bytes. Files mapped by several processes are left out; they would count many times.
 */
export function groupMemory(group: number): number {
  let kilobytes = 0;
  for (const pid of listGroup(group)) {
    const status = readText(`/proc/${pid}/status`) ?? '';
    for (const name of ['RssAnon', 'RssShmem']) {
      const at = status.indexOf(`${name}:`);
      if (at >= 0) kilobytes += Number.parseInt(status.slice(at + name.length + 1), 10);
    }
  }
  return kilobytes * 1024;
}

/** Kills the group. Resolves to true when no member is left, to false when some are left after `timeoutMs`. */
export async function killGroup(group: number, clock: Clock, timeoutMs: number): Promise<boolean> {
  const deadline = clock.monotonic() + timeoutMs;
  for (;;) {
    // Repeated, because a member may just have forked.
    signalGroup(group);
    if (listGroup(group).length === 0) return true;
    if (clock.monotonic() >= deadline) return false;
    await clock.sleep(POLL_MS);
  }
}

function signalGroup(group: number): void {
  try {
    process.kill(-group, 'SIGKILL');
  } catch {
    // The group is empty.
  }
}

/** State, parent and group come first; the name before them may contain spaces and brackets. */
function statFields(pid: number): string[] | null {
  const text = readText(`/proc/${pid}/stat`);
  return text === null ? null : text.slice(text.lastIndexOf(')') + 2).split(' ');
}

function listNumbers(folder: string): number[] {
  try {
    return readdirSync(folder)
      .filter((name) => /^\d+$/.test(name))
      .map(Number);
  } catch {
    return [];
  }
}

/** A file of /proc; null when the process has just exited. */
function readText(file: string): string | null {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return null;
  }
}
