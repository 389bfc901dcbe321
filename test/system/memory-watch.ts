/** Watches the peak memory of the processes of a fleet while something runs. */
import { readFileSync } from 'node:fs';
import type { Fleet } from './fleet.ts';

export interface MemoryWatch {
  /** Peak memory of any process with this text in its command line, in bytes; 0 when there was none. */
  peakOf(text: string): number;
  stop(): void;
}

const LOOK_EVERY_MS = 100;

/** Reads the kernel's high-water marks, so that no peak between two readings is missed. */
export function watchMemory(fleet: Fleet): MemoryWatch {
  const peaks = new Map<number, { command: string; bytes: number }>();
  const timer = setInterval(() => {
    for (const { pid, command } of fleet.leftovers()) peaks.set(pid, { command, bytes: highWaterMark(pid) });
  }, LOOK_EVERY_MS);
  return {
    peakOf: (text) =>
      Math.max(0, ...[...peaks.values()].filter(({ command }) => command.includes(text)).map(({ bytes }) => bytes)),
    stop: () => clearInterval(timer),
  };
}

/** The process's peak memory in bytes; 0 when it is gone. */
export function highWaterMark(pid: number): number {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8');
    return Number(/^VmHWM:\s+(\d+) kB/m.exec(status)?.[1] ?? 0) * 1_024;
  } catch {
    return 0; // gone by now
  }
}
