/** `--to` and `--out`: what a command writes for its user, into a file or on stdout. */
import { constants, fstatSync, statSync } from 'node:fs';
import { type FileHandle, chmod, lstat, open, realpath, rename, rm, stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { isatty } from 'node:tty';
import { AppError, describeError } from '../../shared/domain/errors.ts';
import { streamData } from './terminal.ts';

/** The file that is meant; undefined for stdout: without `to`, for `-`, and for a path such as /dev/stdout. */
export function fileOf(to: string | undefined): string | undefined {
  return to === undefined || to === '-' || isStdout(resolve(to)) ? undefined : resolve(to);
}

function isStdout(path: string): boolean {
  try {
    const [named, stdout] = [statSync(path), fstatSync(1)];
    return named.ino === stdout.ino && named.dev === stdout.dev;
  } catch {
    return false;
  }
}

/** Writes into the file, as `writeFile` does, or to stdout without one. Pieces end with a line. */
export async function writeLines(
  file: string | undefined,
  lines: AsyncIterable<string> | Iterable<string>,
): Promise<void> {
  if (file === undefined) return streamData(process.stdout, lines, process.stdout.isTTY);
  await writeFile(file, (open) => streamData(open.createWriteStream(), lines, isatty(open.fd)));
}

/** Writes what is no text, exactly, where `writeLines` writes. */
export async function writeBytes(file: string | undefined, bytes: AsyncIterable<Uint8Array>): Promise<void> {
  if (file === undefined) return pipeline(bytes, process.stdout, { end: false });
  await writeFile(file, (open) => pipeline(bytes, open.createWriteStream()));
}

/**
 * A plain file, also behind a link, is replaced once `write` has resolved, and keeps its mode; else it stays as it was.
 * Anything else (a device, a pipe) is written through. Throws `usage` when there can be no file.
 */
export async function writeFile<T>(path: string, write: (file: FileHandle) => Promise<T>): Promise<T> {
  // A link whose file does not exist yet is followed, too.
  const place = await realpath(path).catch(() => path);
  const found = await stat(place).catch(() => null);
  const isPlain = found?.isFile() ?? !(await isLink(path));
  const unfinished = `${place}.new`;
  try {
    if (!isPlain) return await writeThrough(path, found === null ? 'w' : constants.O_WRONLY | constants.O_TRUNC, write);
    const result = await writeThrough(unfinished, 'w', write);
    if (found !== null) await chmod(unfinished, found.mode);
    await rename(unfinished, place);
    return result;
  } catch (error) {
    if (isPlain) await rm(unfinished, { force: true }).catch(() => undefined);
    // A lost connection to MySQL also has a system call, but is fatal.
    if (!(error instanceof Error) || !('syscall' in error) || 'fatal' in error) throw error;
    throw new AppError('usage', `cannot write ${path}: ${describeError(error)}`, {
      cause: error,
      hint: 'Name a file where you may write and where there is room.',
    });
  }
}

async function writeThrough<T>(path: string, flags: string | number, write: (file: FileHandle) => Promise<T>) {
  await using file = await open(path, flags);
  return await write(file);
}

const isLink = (path: string): Promise<boolean> =>
  lstat(path).then(
    (own) => own.isSymbolicLink(),
    () => false,
  );
