/** The memory of a process. */
import { readFileSync } from 'node:fs';

/** The process's peak memory in bytes; 0 when it is gone. */
export function highWaterMark(pid: number): number {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8');
    return Number(/^VmHWM:\s+(\d+) kB/m.exec(status)?.[1] ?? 0) * 1_024;
  } catch {
    return 0; // gone by now
  }
}
