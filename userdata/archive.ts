/**
 * The form in which the program travels: one `tar.gz` with `crawl-api.mjs` and, where machines bring no Node of their own,
 * `node`. Each file is a gzip member of its own, and members may stand one after another in a gzip file: so the runtime
 * is compressed once and then only copied, whatever becomes of the program.
 */
import { createGzip, gzipSync } from 'node:zlib';
import type { Gzip } from 'node:zlib';
import { Header } from 'tar';

export const PROGRAM_NAME = 'crawl-api.mjs';
export const RUNTIME_NAME = 'node';

/** Half of a percent from the smallest, in less than half of the time. */
const LEVEL = 6;
const BLOCK_BYTES = 512;

/** What stands before a file in the archive. Nothing in it depends on when or where it was made. */
export function entryHead(name: string, sizeBytes: number, mode: number): Buffer {
  const block = Buffer.alloc(BLOCK_BYTES);
  new Header({ path: name, mode, size: sizeBytes, type: 'File', uid: 0, gid: 0, mtime: new Date(0) }).encode(block);
  return block;
}

/** What stands after it: zeros up to the next block. */
export const entryTail = (sizeBytes: number): Buffer =>
  Buffer.alloc((BLOCK_BYTES - (sizeBytes % BLOCK_BYTES)) % BLOCK_BYTES);

/** The gzip member with the program. */
export function packProgram(program: Uint8Array): Buffer {
  const parts = [entryHead(PROGRAM_NAME, program.length, 0o644), program, entryTail(program.length)];
  return gzipSync(Buffer.concat(parts), { level: LEVEL });
}

/** The gzip member that ends the archive. */
export const archiveEnd = (): Buffer => gzipSync(Buffer.alloc(2 * BLOCK_BYTES), { level: LEVEL });

/** Compresses the member of a file that is too large to be held in memory; whoever writes to it adds head and tail. */
export const createMember = (): Gzip => createGzip({ level: LEVEL });

/** A whole archive of a program that needs no runtime. */
export const packArchive = (program: Uint8Array): Buffer => Buffer.concat([packProgram(program), archiveEnd()]);
