/**
 * Keeps instances from outliving their sandbox, even one killed with SIGKILL. A separate process holds the read end of
 * a pipe: when the sandbox ends, for any reason, the pipe closes, and the supervisor kills every process group with the
 * sandbox's instance folder in its environment. Finding processes by that mark, instead of receiving their pids, leaves
 * no moment in which a new process is unknown.
 *
 * Usage: main.ts FOLDER, with the pipe as stdin. Ends on its own.
 */
import { readFileSync, readdirSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';

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

/** Pids of the processes whose environment has the mark. Linux only. */
function findMarked(mark: string): number[] {
  const isMarked = (pid: number): boolean => {
    try {
      return `\0${readFileSync(`/proc/${pid}/environ`, 'latin1')}`.includes(`\0${mark}`);
    } catch {
      return false;
    }
  };
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => pid !== process.pid && isMarked(pid));
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
// The beginning of the environment entry that every program of an instance under this folder has.
const mark = Buffer.from(`STATE_DIRECTORY=${folder}/`).toString('latin1');
process.stdin.once('close', () => void killAll(mark));
