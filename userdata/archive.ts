/**
 * The format of the bundle: one `tar.gz` with `crawl-api.mjs` and, for machines without Node, `node`. Each file is a
 * separate gzip member, and a gzip file may consist of several members. So the runtime is compressed once and only
 * copied afterwards, even when the program changes.
 */
import { createGzip, type Gzip, gzipSync } from 'node:zlib';
import { Header } from 'tar';

export const PROGRAM_NAME = 'crawl-api.mjs';
export const RUNTIME_NAME = 'node';

/** Half a percent larger than the smallest, in less than half the time. */
const LEVEL = 6;
const BLOCK_BYTES = 512;

/** The tar header of a file. Independent of time and place of creation. */
export function entryHead(name: string, sizeBytes: number, mode: number): Buffer {
  const block = Buffer.alloc(BLOCK_BYTES);
  new Header({ path: name, mode, size: sizeBytes, type: 'File', uid: 0, gid: 0, mtime: new Date(0) }).encode(block);
  return block;
}

/** The padding after a file: zeros up to the next block. */
export const entryTail = (sizeBytes: number): Buffer =>
  Buffer.alloc((BLOCK_BYTES - (sizeBytes % BLOCK_BYTES)) % BLOCK_BYTES);

/** The gzip member with the program. */
export function packProgram(program: Uint8Array): Buffer {
  const parts = [entryHead(PROGRAM_NAME, program.length, 0o644), program, entryTail(program.length)];
  return gzipSync(Buffer.concat(parts), { level: LEVEL });
}

/** The gzip member that ends the archive. */
export const archiveEnd = (): Buffer => gzipSync(Buffer.alloc(2 * BLOCK_BYTES), { level: LEVEL });

/** Compresses the member of a file that is too large for memory; the caller writes header and padding too. */
export const createMember = (): Gzip => createGzip({ level: LEVEL });

/** A complete archive of a program that needs no runtime. */
export const packArchive = (program: Uint8Array): Buffer => Buffer.concat([packProgram(program), archiveEnd()]);
