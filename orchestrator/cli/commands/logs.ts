/** `orchestrator logs`: the log of a run in words, from the state folder alone: it works without the database. */
import { closeSync, existsSync, fstatSync, openSync, readdirSync, readSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { systemClock } from '../../../shared/adapters/system-clock.ts';
import { AppError } from '../../../shared/domain/errors.ts';
import { EXIT, type ExitCode } from '../../../shared/domain/exit-codes.ts';
import { loadConfig } from '../../core/config/load-config.ts';
import { watchInterrupts } from '../interrupts.ts';
import { olderLogOf } from '../../core/run/log-file.ts';
import { isWanted, type LogEntry, type LogFilter, parseLogLine, renderEntry } from '../log-lines.ts';
import type { Output } from '../output.ts';
import { stateDirOf } from '../../core/config/state-dir.ts';
import type { StatusOptions } from './status.ts';

export type LogsOptions = StatusOptions & LogFilter & { follow?: boolean };

const LOOK_EVERY_MS = 500;

export async function logsCommand(options: LogsOptions, output: Output): Promise<ExitCode> {
  if (options.follow && output.json)
    throw new AppError('usage', '--json is one document, and --follow never ends', { hint: 'Leave one of them out.' });
  const config = loadConfig(options);
  const { runId, file } = findLog(config.file, options.runId);
  const entries: LogEntry[] = [];
  let shown = 0;
  const reader = new LineReader(file);
  const take = (): void =>
    reader.read((line) => {
      const entry = parseLogLine(line);
      if (entry === null || !isWanted(entry, options)) return;
      shown++;
      if (output.json) entries.push(entry);
      else output.line(renderEntry(entry));
    });
  take();
  output.document({ run: runId, file, entries });
  if (!options.follow) {
    if (shown === 0) output.line(`No line of ${file} is for this level and slot.`);
    return EXIT.complete;
  }
  using interrupts = watchInterrupts();
  while (!interrupts.leave.aborted) {
    await systemClock.sleep(LOOK_EVERY_MS, interrupts.leave);
    take();
  }
  return EXIT.complete;
}

/** The log of the named run, or of the newest with a log here: run ids begin with their time. */
function findLog(configFile: string, wanted: string | undefined): { runId: string; file: string } {
  const runs = dirname(stateDirOf(configFile).run('x'));
  const known = existsSync(runs) ? readdirSync(runs).filter((id) => existsSync(join(runs, id, 'log.ndjson'))) : [];
  const runId = wanted ?? known.sort().at(-1);
  if (runId === undefined)
    throw new AppError('run-unknown', `no run has left a log in ${runs}`, { hint: 'Start one with: orchestrator run' });
  if (!known.includes(runId))
    throw new AppError('run-unknown', `run ${runId} has left no log in ${runs}`, {
      hint: 'Logs are kept beside the configuration, on the machine the run was started or resumed on.',
    });
  return { runId, file: join(runs, runId, 'log.ndjson') };
}

/** A page of a log that is shown at once. */
const TAIL_BYTES = 100_000;
const TAIL_LINES = 200;

/** The last lines of a run's log in words, newest last; null when this machine has none. */
export function tailOfLog(configFile: string, runId: string): string[] | null {
  const file = join(stateDirOf(configFile).run(runId), 'log.ndjson');
  const size = statSync(file, { throwIfNoEntry: false })?.size;
  if (size === undefined) return null;
  const descriptor = openSync(file, 'r');
  try {
    const buffer = Buffer.alloc(Math.min(size, TAIL_BYTES));
    const bytes = readSync(descriptor, buffer, 0, buffer.length, size - buffer.length);
    // A line that begins before the tail is torn, and no entry.
    return buffer
      .toString('utf8', 0, bytes)
      .split('\n')
      .flatMap((line) => parseLogLine(line) ?? [])
      .slice(-TAIL_LINES)
      .map(renderEntry);
  } finally {
    closeSync(descriptor);
  }
}

/** Emits whole lines; after a rotation it reads the rotated log to its end first. */
class LineReader {
  readonly #file: string;
  /** Behind the last whole line. */
  #at = 0;
  #inode: number | null = null;

  constructor(file: string) {
    this.#file = file;
  }

  read(onLine: (line: string) => void): void {
    const older = statSync(olderLogOf(this.#file), { throwIfNoEntry: false });
    const now = statSync(this.#file, { throwIfNoEntry: false });
    const isMoved = this.#inode !== null && this.#inode === older?.ino;
    if (isMoved || (this.#inode === null && older !== undefined)) this.#readFile(olderLogOf(this.#file), onLine);
    // Another file, or shorter than before: it was replaced.
    if (now === undefined || now.ino !== this.#inode || now.size < this.#at) this.#at = 0;
    if (now === undefined) return;
    this.#inode = now.ino;
    this.#readFile(this.#file, onLine);
  }

  #readFile(file: string, onLine: (line: string) => void): void {
    const descriptor = openSync(file, 'r');
    try {
      const fresh = Buffer.alloc(Math.max(0, fstatSync(descriptor).size - this.#at));
      const bytes = readSync(descriptor, fresh, 0, fresh.length, this.#at);
      const end = fresh.subarray(0, bytes).lastIndexOf('\n') + 1;
      this.#at += end;
      for (const line of fresh.toString('utf8', 0, end).split('\n')) onLine(line);
    } finally {
      closeSync(descriptor);
    }
  }
}
