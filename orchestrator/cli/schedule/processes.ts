/**
 * The processes of a schedule. Each run is one of its own: its crash, its memory and its output are not the daemon's. They
 * write to files and are in groups of their own, so a daemon that is killed, or a Ctrl-C in its terminal, does not take a
 * run along.
 */
import { spawn } from 'node:child_process';
import { closeSync, openSync, readdirSync, rmSync } from 'node:fs';
import { hostname } from 'node:os';
import { dirname, join } from 'node:path';
import { systemClock } from '../../../shared/adapters/system-clock.ts';
import { isDeadHere, isSurelyAlive, processName } from '../../app/run/process-name.ts';
import { makeStateFolder } from '../../app/run/state-folder.ts';

export interface Child {
  /** `host:pid:start` */
  runner: string;
  /** Its exit code, or the signal that ended it. Never rejects. */
  ended: Promise<number | string>;
}

export interface Processes {
  /** Starts a command of orchestrator; `of` names its output files. */
  start(of: string, ...args: string[]): Child;
  /** Carries a due time out, once the process has signed in to the row of this owner. */
  carryOut(dueAtMs: number, owner: string): Child;
  /** Of a process name; `elsewhere`: it is of another host. */
  stateOf: (name: string) => 'alive' | 'dead' | 'elsewhere';
  /** SIGTERM asks a process to leave: what it has launched goes on, and can be resumed. */
  signal(name: string, signal: 'SIGTERM' | 'SIGKILL'): void;
}

export interface ProcessOptions {
  /** The program that this very process runs. */
  launcher: string;
  configFile: string;
  processEnvironment: Readonly<Record<string, string | undefined>>;
  dryRun: boolean;
}

/** Output of so many processes is kept, newest first. */
const KEPT_FILES = 200;

/** `name` is that of the schedule: by the time a process reads the configuration, that may say another one. */
export function createProcesses(options: ProcessOptions, name: string): Processes {
  const { launcher, configFile, processEnvironment, dryRun } = options;
  const start: Processes['start'] = (of, ...args) => {
    const folder = outputFolder(configFile);
    makeStateFolder(folder);
    for (const old of readdirSync(folder).sort().slice(0, -KEPT_FILES)) rmSync(join(folder, old), { force: true });
    const files = ['json', 'log'].map((kind) =>
      openSync(join(folder, `${stampOf(systemClock.now())}-${of}.${kind}`), 'a'),
    );
    const child = spawn(process.execPath, [launcher, ...args, '--config', configFile, '--json'], {
      cwd: dirname(configFile),
      env: { ...processEnvironment },
      detached: true,
      stdio: ['ignore', ...files],
    });
    for (const file of files) closeSync(file);
    const ended = new Promise<number | string>((resolve) => {
      child.once('exit', (code, signal) => resolve(code ?? signal!));
      child.once('error', () => resolve(1));
    });
    return { runner: processName(child.pid ?? 0), ended };
  };
  return {
    start,
    carryOut: (dueAtMs, owner) => {
      const row = ['--carry-out', String(dueAtMs), '--owner', owner, '--record', name];
      return start('run', 'schedule', ...row, ...(dryRun ? ['--dry-run'] : []));
    },
    stateOf: (of) => (of.startsWith(`${hostname()}:`) ? (isDeadHere(of) ? 'dead' : 'alive') : 'elsewhere'),
    signal: (of, signal) => {
      try {
        // Its number may have been given to another process meanwhile.
        if (isSurelyAlive(of)) process.kill(Number(of.split(':').at(-2)), signal);
      } catch {
        // It has just ended.
      }
    },
  };
}

/** Where the output of the processes is: `.json` is stdout, `.log` what they said. */
export const outputFolder = (configFile: string): string => join(dirname(configFile), '.crawlfleet', 'schedule');

/** `20261121T020000Z`: sorts by time, and is a file name everywhere. */
const stampOf = (ms: number): string => new Date(ms).toISOString().replaceAll(/[-:]|\.\d+/g, '');
