/**
 * Unpacks an instance's bundle: the program and, if present, its Node. It may contain nothing else, and writes only to
 * its folder.
 */
import { createWriteStream, type WriteStream } from 'node:fs';
import { open, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip } from 'node:zlib';
import { Parser } from 'tar';

export const PROGRAM = 'crawl-api.mjs';
export const RUNTIME = 'node';
/** Maximum file size. Node is 127 MB; this only keeps a wrong archive from filling the disk. */
const MAX_BYTES = 256_000_000;
const MODES: Record<string, number> = { [PROGRAM]: 0o600, [RUNTIME]: 0o700 };

/**
 * Writes the files to the folder. Throws when it is aborted, when a file cannot be written, and when the archive is
 * damaged, lacks the program, or contains anything but plain files of these two names.
 */
export async function unpackBundle(archive: Uint8Array, folder: string, signal?: AbortSignal): Promise<void> {
  const { promise: broken, reject: fail } = Promise.withResolvers<never>();
  broken.catch(() => undefined);
  const written = new Map<string, Promise<void>>();
  const files: WriteStream[] = [];
  let fault: Error | null = null;
  const parser = new Parser({
    strict: true,
    onReadEntry(entry) {
      const mode = MODES[entry.path];
      if (fault || mode === undefined || entry.type !== 'File' || written.has(entry.path) || entry.size > MAX_BYTES) {
        fault ??= new Error(
          `the bundle may not contain ${entry.type} ${JSON.stringify(entry.path)} (${entry.size} bytes)`,
        );
        entry.resume();
        return;
      }
      const file = createWriteStream(join(folder, entry.path), { mode, flush: false });
      files.push(file);
      const done = pipeline(entry as unknown as NodeJS.ReadableStream, file);
      // The parser would wait forever for a file that accepts no more data.
      done.catch(fail);
      written.set(entry.path, done);
    },
  });
  // Remove old files first: a file of an aborted boot must not be taken for one of this archive.
  await Promise.all(Object.keys(MODES).map((name) => rm(join(folder, name), { force: true })));
  const parsed = new Promise<void>((resolve, reject) => {
    parser.on('end', resolve);
    parser.on('error', reject);
  });
  parsed.catch(() => undefined);
  const limit = 2 * MAX_BYTES;
  const parse = async (plain: AsyncIterable<Buffer>): Promise<void> => {
    let sizeBytes = 0;
    for await (const chunk of plain) {
      sizeBytes += chunk.length;
      if (sizeBytes > limit) throw new Error(`the bundle is larger than ${limit} bytes unpacked`);
      const hasRoom = parser.write(chunk);
      if (fault) throw fault;
      if (!hasRoom) await Promise.race([new Promise((resolve) => parser.once('drain', resolve)), broken]);
    }
    parser.end();
  };
  const onAbort = (): void => fail(new Error('the machine was switched off'));
  signal?.addEventListener('abort', onAbort);
  try {
    if (signal?.aborted === true) onAbort();
    const parsing = pipeline(Readable.from([archive]), createGunzip(), parse);
    parsing.catch(() => undefined);
    await Promise.race([parsing.then(() => parsed), broken]);
    await Promise.race([Promise.all(written.values()), broken]);
  } catch (error) {
    for (const file of files) file.destroy();
    throw error;
  } finally {
    signal?.removeEventListener('abort', onAbort);
  }
  if (fault) throw fault;
  if (!written.has(PROGRAM)) throw new Error(`the bundle has no ${PROGRAM}`);
}

/** e_machine of the ELF header. */
const MACHINES: Record<string, number> = { x64: 62, arm64: 183 };

/** True for a Linux program that this machine can run. A bundle may contain the Node for the other architecture. */
export async function isForThisMachine(file: string): Promise<boolean> {
  if (process.platform !== 'linux') return false;
  const handle = await open(file).catch(() => null);
  if (handle === null) return false;
  try {
    const head = Buffer.alloc(20);
    await handle.read(head, 0, head.length, 0);
    return head.toString('latin1', 0, 4) === '\x7fELF' && head.readUInt16LE(18) === MACHINES[process.arch];
  } finally {
    await handle.close();
  }
}
