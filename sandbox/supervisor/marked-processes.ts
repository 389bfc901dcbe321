/** Finds the processes of a sandbox's instances by their environment. Linux only. */
import { readFileSync, readdirSync } from 'node:fs';

/** Pids of processes whose environment has the mark. */
export function findMarked(mark: string, proc = '/proc'): number[] {
  return readdirSync(proc)
    .filter((name) => /^\d+$/.test(name))
    .filter((name) => {
      try {
        return `\0${readFileSync(`${proc}/${name}/environ`, 'latin1')}`.includes(`\0${mark}`);
      } catch {
        return false;
      }
    })
    .map(Number)
    .filter((pid) => pid !== process.pid);
}

/** The prefix of the environment entry that every program of an instance under this folder has. */
export function markOf(folder: string): string {
  return Buffer.from(`STATE_DIRECTORY=${folder}/`).toString('latin1');
}
