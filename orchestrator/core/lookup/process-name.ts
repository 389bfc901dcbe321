/** Names a main server so that another one on the same host can tell whether it is still alive. */
import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';

/** `host:pid:start`: the start time distinguishes a process from a later one with the same pid. */
export function ownName(): string {
  return processName(process.pid);
}

/** The same for another process of this host; the start is 0 if it is not visible. */
export function processName(pid: number): string {
  return `${hostname()}:${pid}:${Math.max(0, startOf(pid) ?? 0)}`;
}

/**
 * True only when the process is proven to have been on this host and ended: false when it lives, and when that cannot
 * be known here, as for a process of another host. Where `/proc` does not show the start time (macOS, another user's
 * process under `hidepid`), any process with the same pid counts as this one.
 */
export function isDeadHere(owner: string): boolean {
  const named = parse(owner);
  if (named === null) return false;
  const start = startOf(named.pid);
  return start === null ? !exists(named.pid) : start !== named.start;
}

/** True when this very process is alive here, not a later one with its pid: then it is safe to signal. */
export function isSurelyAlive(owner: string): boolean {
  const named = parse(owner);
  return named !== null && startOf(named.pid) === named.start;
}

/** The parts of a process name; null for a process of another host, and for a name of another form. */
function parse(owner: string): { pid: number; start: number } | null {
  const match = /^(.*):(\d+):(\d+)$/.exec(owner);
  return match?.[1] === hostname() ? { pid: Number(match[2]), start: Number(match[3]) } : null;
}

/**
 * When a process started, in clock ticks since boot (field 22 of /proc/pid/stat), -1 for a zombie; null when it is not
 * visible.
 */
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

const ONLY_ITS_EXIT_CODE = -1;

/** Whether the kernel knows the pid: a refused signal (EPERM) proves it too. */
function exists(pid: number): boolean {
  // A process that could not be started has no pid; the kernel would take 0 for our whole process group.
  if (pid === 0) return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ESRCH';
  }
}
