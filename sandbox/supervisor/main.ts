/**
 * Keeps instances from outliving their sandbox, even one killed with SIGKILL. A separate process holds the read end of
 * a pipe: when the sandbox ends, for any reason, the pipe closes, and the supervisor kills every process group with the
 * sandbox's instance folder in its environment. Finding processes by that mark, instead of receiving their pids, leaves
 * no moment in which a new process is unknown.
 *
 * Usage: main.ts FOLDER, with the pipe as stdin. Ends on its own.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { findMarked, markOf } from './marked-processes.ts';

/** A process between fork and exec does not show the mark yet: only several scans without a match are proof. */
const CLEAN_LOOKS = 4;
const LOOK_EVERY_MS = 50;
const MAX_LOOKS = 200;

function kill(pid: number): void {
  // The group first: it includes children that the program started with another environment.
  for (const target of [-pid, pid]) {
    try {
      process.kill(target, 'SIGKILL');
    } catch {
      // Gone, or not a group leader.
    }
  }
}

async function killAll(mark: string): Promise<void> {
  for (let clean = 0, looks = 0; clean < CLEAN_LOOKS && looks < MAX_LOOKS; looks++) {
    const found = findMarked(mark);
    clean = found.length === 0 ? clean + 1 : 0;
    found.forEach(kill);
    await delay(LOOK_EVERY_MS);
  }
}

const [folder] = process.argv.slice(2);
if (!folder) throw new Error('usage: supervisor/main.ts FOLDER');
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {});
process.stdin.resume();
process.stdin.on('error', () => {});
process.stdin.once('close', () => void killAll(markOf(folder)));
