/**
 * CPU time of this process and its descendants, so that a browser is counted with its crawler. Plain JavaScript,
 * because the peers' programs use it too.
 */
import { readFileSync, readdirSync } from 'node:fs';

const TICK_MS = 10;

/** Milliseconds so far, including ended children. A program that left this tree is not counted. */
export function treeCpuMs() {
  const processes = new Map();
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    try {
      const stat = readFileSync(`/proc/${name}/stat`, 'utf8');
      const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
      // User and system time of the process and its ended children.
      const ticks = fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0);
      processes.set(Number(name), { parent: Number(fields[1]), ticks });
    } catch {
      // It has just ended.
    }
  }
  const isOurs = (pid) => {
    for (let at = pid; at > 1; at = processes.get(at)?.parent ?? 0) if (at === process.pid) return true;
    return false;
  };
  let ticks = 0;
  for (const [pid, entry] of processes) if (isOurs(pid)) ticks += entry.ticks;
  return ticks * TICK_MS;
}
