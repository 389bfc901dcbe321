/**
 * The processes of a schedule. Each run is one of its own: its crash, its memory and its output are not the daemon's. They
 * are in groups of their own and write to files (`.json` is stdout, `.log` what they said), so a daemon that is killed, or a
 * Ctrl-C in its terminal, does not take a run along.
 */
import { spawn } from 'node:child_process';
import { closeSync, openSync, readdirSync, rmSync } from 'node:fs';
import { hostname } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { systemClock } from '../../../shared/adapters/system-clock.ts';
import { isDeadHere, isSurelyAlive, processName } from '../../app/run/process-name.ts';
import { makeStateFolder } from '../../app/run/state-folder.ts';
import type { Environment } from '../../app/config/load-config.ts';

export interface ProcessOptions {
  /** The program that this very process runs. */
  launcher: string;
  configPath: string;
  processEnvironment: Environment;
  dryRun: boolean;
}

export interface Child {
  /** `host:pid:start` */
  runner: string;
  /** Its exit code, or the signal that ended it. Never rejects. */
  ended: Promise<number | string>;
  logFile: string;
}

export type Processes = ReturnType<typeof createProcesses>;

/** Output of so many processes is kept, newest first. */
const KEPT_FILES = 200;

export const outputFolder = (configPath: string): string =>
  join(dirname(resolve(configPath)), '.crawlfleet', 'schedule');

/** `name` is that of the schedule: by the time a process reads the configuration, that may say another one. */
export function createProcesses({ launcher, configPath, processEnvironment, dryRun }: ProcessOptions, name: string) {
  /** A command of orchestrator; `of` names its output files. */
  const start = (of: string, ...args: string[]): Child => {
    const folder = outputFolder(configPath);
    makeStateFolder(folder);
    for (const old of readdirSync(folder).sort().slice(0, -KEPT_FILES)) rmSync(join(folder, old), { force: true });
    // Sorts by time, and is a file name everywhere.
    const stamp = new Date(systemClock.now()).toISOString().replaceAll(/[-:]|\.\d+/g, '');
    const logFile = join(folder, `${stamp}-${of}.log`);
    const files = [join(folder, `${stamp}-${of}.json`), logFile].map((file) => openSync(file, 'a'));
    const child = spawn(process.execPath, [launcher, ...args, '--config', resolve(configPath), '--json'], {
      cwd: dirname(resolve(configPath)),
      env: { ...processEnvironment },
      detached: true,
      stdio: ['ignore', ...files],
    });
    for (const file of files) closeSync(file);
    const ended = new Promise<number | string>((onEnd) => {
      child.once('exit', (code, signal) => onEnd(code ?? signal!));
      child.once('error', () => onEnd(1));
    });
    return { runner: processName(child.pid ?? 0), ended, logFile };
  };
  return {
    start,
    /** Carries a due time out, once the process has signed in to the row of this owner. */
    carryOut(dueAtMs: number, owner: string): Child {
      const row = ['--carry-out', String(dueAtMs), '--owner', owner, '--record', name];
      return start('run', 'schedule', ...row, ...(dryRun ? ['--dry-run'] : []));
    },
    stateOf: (of: string): 'alive' | 'dead' | 'elsewhere' =>
      of.startsWith(`${hostname()}:`) ? (isDeadHere(of) ? 'dead' : 'alive') : 'elsewhere',
    /** SIGTERM asks a process to leave: what it has launched goes on, and can be resumed. */
    signal(of: string, signal: 'SIGTERM' | 'SIGKILL'): void {
      try {
        // Its number may have been given to another process meanwhile.
        if (isSurelyAlive(of)) process.kill(Number(of.split(':').at(-2)), signal);
      } catch {
        // It has just ended.
      }
    },
  };
}
