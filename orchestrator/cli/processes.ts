/**
 * Commands of orchestrator in processes of their own, for the schedule and for the buttons of the page: their crash,
 * memory and output are not the caller's. They are in groups of their own and write to files (`.json` is stdout, `.log`
 * what they said), so a daemon that is killed, or a Ctrl-C in its terminal, does not take a run along.
 */
import { spawn } from 'node:child_process';
import { closeSync, openSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { hostname } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { EXIT, type ExitCode, hintOf } from '../../shared/domain/exit-codes.ts';
import { systemClock } from '../../shared/adapters/system-clock.ts';
import { isDeadHere, isSurelyAlive, processName } from '../core/lookup/process-name.ts';
import { makeStateFolder } from '../core/config/state-folder.ts';
import type { Environment } from '../core/config/load-config.ts';

export interface ProcessOptions {
  /** The program that this very process runs. */
  launcher: string;
  configPath: string;
  processEnvironment: Environment;
  dryRun: boolean;
}

export interface ProcessExit {
  /** Its exit code, or the signal that ended it. */
  code: ExitCode | string;
  /** Its error, if it printed one. */
  reason: string | null;
  hint: string;
}

export interface Child {
  /** `host:pid:start` */
  runner: string;
  /** Resolves when the process has ended. Never rejects. */
  ended: Promise<ProcessExit>;
  logFile: string;
  /** Its document, once it has ended. */
  document: string;
}

export type Processes = ReturnType<typeof createProcesses>;

/** Number of output files that are kept, newest first. */
const KEPT_FILES = 200;

export const outputFolder = (configPath: string): string =>
  join(dirname(resolve(configPath)), '.crawlfleet', 'schedule');

/** `name` is that of the schedule: by the time a process reads the configuration, that may say another one. */
export function createProcesses({ launcher, configPath, processEnvironment, dryRun }: ProcessOptions, name: string) {
  /** The exits of the processes that were started here; null while one runs. */
  const exits = new Map<string, ProcessExit | null>();
  /** A command of orchestrator; `of` names its output files. */
  const start = (of: string, ...args: string[]): Child => {
    const folder = outputFolder(configPath);
    makeStateFolder(folder);
    for (const old of readdirSync(folder).sort().slice(0, -KEPT_FILES)) rmSync(join(folder, old), { force: true });
    // Sorts by time, and is a file name everywhere.
    const stamp = new Date(systemClock.now()).toISOString().replaceAll(/[-:]|\.\d+/g, '');
    const logFile = join(folder, `${stamp}-${of}.log`);
    const document = join(folder, `${stamp}-${of}.json`);
    const files = [document, logFile].map((file) => openSync(file, 'a'));
    const child = spawn(process.execPath, [launcher, ...args, '--config', resolve(configPath), '--json'], {
      cwd: dirname(resolve(configPath)),
      env: { ...processEnvironment },
      detached: true,
      stdio: ['ignore', ...files],
    });
    for (const file of files) closeSync(file);
    const runner = processName(child.pid ?? 0);
    exits.set(runner, null);
    const ended = new Promise<ProcessExit>((resolve) => {
      const onEnd = (code: ExitCode | string): void => {
        const exit = readExit(code, document);
        exits.set(runner, exit);
        resolve(exit);
      };
      child.once('exit', (code, signal) => onEnd((code as ExitCode | null) ?? signal!));
      child.once('error', () => onEnd(EXIT.internal));
    });
    return { runner, ended, logFile, document };
  };
  return {
    start,
    /** The run of a due time; `startedAtMs` names this start of it. */
    run: (dueAtMs: number, startedAtMs: number): Child =>
      start('run', 'run', '--yes', '--due', `${dueAtMs}/${startedAtMs}/${name}`, ...(dryRun ? ['--dry-run'] : [])),
    resume: (runId: string): Child => start(`resume-${runId}`, 'resume', runId),
    /** A process that was started here is alive until its exit is known. */
    stateOf(of: string): 'alive' | 'dead' | 'elsewhere' {
      if (!of.startsWith(`${hostname()}:`)) return 'elsewhere';
      return exits.get(of) !== null && isDeadHere(of) ? 'dead' : 'alive';
    },
    exitOf: (of: string): ProcessExit | undefined => exits.get(of) ?? undefined,
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

/** The error of the document that a command prints with --json; a crash leaves none. */
function readExit(code: ExitCode | string, document: string): ProcessExit {
  let error: { message?: string; hint?: string | null } | undefined;
  try {
    ({ error } = JSON.parse(readFileSync(document, 'utf8')) as { error?: typeof error });
  } catch {
    // The exit code says enough.
  }
  const hint = error?.hint ?? (typeof code === 'string' ? '' : hintOf(code, null));
  return { code, reason: error?.message ?? null, hint };
}
