/**
 * The processes of a schedule. Each run is one of its own: its crash, its memory and its output are not the daemon's. They write to files
 * and are in groups of their own, so a daemon that is killed, or a Ctrl-C in its terminal, does not take a run along.
 */
import { spawn } from 'node:child_process';
import { closeSync, openSync, readdirSync, rmSync } from 'node:fs';
import { hostname } from 'node:os';
import { dirname, join } from 'node:path';
import type { Clock } from '../../../shared/ports/clock.ts';
import type { Child, Processes } from '../../schedule/ports.ts';
import { isDeadHere, isSurelyAlive, processName } from '../../app/run/process-name.ts';
import { makeStateFolder } from '../../app/run/state-folder.ts';

export interface ProcessOptions {
  /** `node` and the program that this very process runs. */
  node: string;
  launcher: string;
  configFile: string;
  environment: Readonly<Record<string, string | undefined>>;
  dryRun: boolean;
  /** Of the schedule. */
  name: string;
  clock: Clock;
}

/** Output of so many processes is kept, newest first. */
const KEPT_FILES = 200;
const WATCH_MS = 1_000;

export function createProcesses(options: ProcessOptions): Processes {
  const start = (name: string, ...args: string[]): Child =>
    startChild(options, name, [...args, '--config', options.configFile, '--json']);
  return {
    run: (dueAtMs, fence) =>
      start(
        `${stampOf(dueAtMs)}-run`,
        'schedule',
        '--carry-out',
        String(dueAtMs),
        '--fence',
        String(fence),
        '--record',
        options.name,
        ...(options.dryRun ? ['--dry-run'] : []),
      ),
    resume: (runId) => start(`${stampOf(options.clock.now())}-resume-${runId}`, 'resume', runId),
    collectGarbage: () => start(`${stampOf(options.clock.now())}-gc`, 'gc'),
    find(runner) {
      if (!runner.startsWith(`${hostname()}:`)) return 'elsewhere';
      return isDeadHere(runner) ? 'dead' : watchChild(runner, options.clock);
    },
  };
}

/** Where the output of the processes is: `.json` is stdout, `.log` what they said. */
export function outputFolder(configFile: string): string {
  return join(dirname(configFile), '.crawlfleet', 'schedule');
}

function startChild({ node, launcher, configFile, environment }: ProcessOptions, name: string, args: string[]): Child {
  const folder = outputFolder(configFile);
  makeStateFolder(folder);
  for (const old of readdirSync(folder).sort().slice(0, -KEPT_FILES)) rmSync(join(folder, old), { force: true });
  const files = ['json', 'log'].map((kind) => openSync(join(folder, `${name}.${kind}`), 'a'));
  const child = spawn(node, [launcher, ...args], {
    cwd: dirname(configFile),
    env: { ...environment },
    detached: true,
    stdio: ['ignore', ...files],
  });
  for (const file of files) closeSync(file);
  const ended = new Promise<{ code: number | null; signal: string | null }>((resolve) => {
    child.once('exit', (code, signal) => resolve({ code, signal }));
    child.once('error', () => resolve({ code: 1, signal: null }));
  });
  return {
    runner: processName(child.pid ?? 0),
    ended,
    terminate: () => void child.kill('SIGTERM'),
    kill: () => void child.kill('SIGKILL'),
  };
}

/** A living process that is no child of ours: of a daemon that was killed. */
function watchChild(runner: string, clock: Clock): Child {
  const pid = Number(runner.split(':').at(-2));
  const signal = (name: NodeJS.Signals): void => {
    try {
      // Its number may have been given to another process meanwhile.
      if (isSurelyAlive(runner)) process.kill(pid, name);
    } catch {
      // It has just ended.
    }
  };
  const watch = async (): Promise<{ code: null; signal: null }> => {
    while (!isDeadHere(runner)) await clock.sleep(WATCH_MS);
    return { code: null, signal: null };
  };
  return { runner, ended: watch(), terminate: () => signal('SIGTERM'), kill: () => signal('SIGKILL') };
}

/** `20261121T020000Z`: sorts by time, and is a file name everywhere. */
function stampOf(ms: number): string {
  return new Date(ms).toISOString().replaceAll(/[-:]|\.\d+/g, '');
}
