/**
 * Unpacks an instance's bundle: the program and, if present, its Node. It may contain nothing else, and writes only to
 * its folder.
 */
import { once } from 'node:events';
import { chmod, open, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip } from 'node:zlib';
import { Unpack } from 'tar';

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
  // Old files go first: a file of an aborted boot must not be taken for one of this archive.
  await Promise.all(Object.keys(MODES).map((name) => rm(join(folder, name), { force: true })));
  const found = new Set<string>();
  const unpack = new Unpack({
    cwd: folder,
    strict: true,
    filter(path, entry) {
      const isFile = 'type' in entry && entry.type === 'File';
      if (!isFile || !Object.hasOwn(MODES, path) || found.has(path) || entry.size > MAX_BYTES) {
        const type = 'type' in entry ? entry.type : 'entry';
        throw new Error(`the bundle may not contain ${type} ${JSON.stringify(path)} (${entry.size} bytes)`);
      }
      found.add(path);
      return true;
    },
  });
  const written = once(unpack, 'close');
  const write = async (plain: AsyncIterable<Buffer>): Promise<void> => {
    let sizeBytes = 0;
    for await (const chunk of plain) {
      sizeBytes += chunk.length;
      if (sizeBytes > 2 * MAX_BYTES) throw new Error(`the bundle is larger than ${2 * MAX_BYTES} bytes unpacked`);
      if (!unpack.write(chunk)) await once(unpack, 'drain', { signal });
    }
    unpack.end();
  };
  try {
    await Promise.all([pipeline(Readable.from([archive]), createGunzip(), write, { signal }), written]);
  } catch (error) {
    // Closes the file that it is writing.
    unpack.on('error', () => undefined).end();
    throw signal?.aborted ? new Error('the machine was switched off', { cause: error }) : error;
  }
  if (!found.has(PROGRAM)) throw new Error(`the bundle has no ${PROGRAM}`);
  for (const name of found) await chmod(join(folder, name), MODES[name]!);
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
