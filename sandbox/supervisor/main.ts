/**
 * Keeps instances from outliving their sandbox, even one that was killed with SIGKILL. It is a process of its own that
 * holds the read end of a pipe: when the sandbox goes, however it goes, the pipe ends, and the keeper kills every
 * process group that has the sandbox's instance folder in its environment. Looking processes up by that mark, instead of
 * being told their pids, leaves no moment in which a process that was just started is unknown.
 *
 * Usage: main.ts FOLDER, with the pipe as stdin. Ends by itself.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { findMarked, markOf } from './marked-processes.ts';

/** A process between fork and exec does not show the mark yet: only several looks without a find are proof. */
const CLEAN_LOOKS = 4;
const LOOK_EVERY_MS = 50;
const MAX_LOOKS = 200;

function kill(pid: number): void {
  // The group first: it takes along what the program started with an environment of its own.
  for (const target of [-pid, pid]) {
    try {
      process.kill(target, 'SIGKILL');
    } catch {
      // Gone, or not the leader of a group.
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
if (!folder) throw new Error('usage: keeper/main.ts FOLDER');
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {});
process.stdin.resume();
process.stdin.on('error', () => {});
process.stdin.once('close', () => void killAll(markOf(folder)));
