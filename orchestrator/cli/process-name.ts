/** Names a main server so that another one on the same host can tell whether it still lives. */
import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';

/** `host:pid:start`: the start time tells a process from a later one with the same pid. */
export function ownName(): string {
  return processName(process.pid);
}

/** The same of another process of this host; the start is 0 where it is not shown. */
export function processName(pid: number): string {
  return `${hostname()}:${pid}:${Math.max(0, startOf(pid) ?? 0)}`;
}

/**
 * True when the process was on this host and has ended. Only on proof: false when it lives, and when nobody here can know, as of a process of
 * another host. Where `/proc` does not show it (macOS, another user's under `hidepid`) any process with its number counts for it.
 */
export function isDeadHere(owner: string): boolean {
  const named = parse(owner);
  if (named === null) return false;
  const start = startOf(named.pid);
  return start === null ? !exists(named.pid) : start !== named.start;
}

/** True when it is this very process that lives here, and no later one with its number: then it may get a signal. */
export function isSurelyAlive(owner: string): boolean {
  const named = parse(owner);
  return named !== null && startOf(named.pid) === named.start;
}

/** Null for a process of another host, and for what is no name of ours. */
function parse(owner: string): { pid: number; start: number } | null {
  const match = /^(.*):(\d+):(\d+)$/.exec(owner);
  return match?.[1] === hostname() ? { pid: Number(match[2]), start: Number(match[3]) } : null;
}

/** Start time of a process in clock ticks since boot (field 22 of /proc/pid/stat), -1 when only its exit code is left; null when it is not shown. */
function startOf(pid: number): number | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The second field is the program's name in brackets, which may contain spaces.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return fields[0] === 'Z' ? ONLY_ITS_EXIT_CODE : Number(fields[19]);
  } catch {
    return null;
  }
}

/** No process began then. */
const ONLY_ITS_EXIT_CODE = -1;

/** Whether the kernel knows the number: that the signal is refused (EPERM) says so as well. */
function exists(pid: number): boolean {
  // A process that could not be started has none; the kernel would take 0 for all of our own group.
  if (pid === 0) return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ESRCH';
  }
}
