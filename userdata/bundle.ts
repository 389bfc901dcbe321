/** The bundle that an instance fetches: the archive with the crawl API and, for machines without one, its Node. */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { PROGRAM_NAME, RUNTIME_NAME, archiveEnd, packProgram } from './archive.ts';
import type { PackedRuntime } from './node-runtime.ts';
import { buildProgram } from './program.ts';

/** The same inputs give the same bytes. Holds only the program in memory: the runtime stays in its file. */
export interface Bundle {
  /** The SHA-256 of the bytes, in hex: the object's name, and the hash that the instance checks. */
  sha256: string;
  sizeBytes: number;
  /** Its unpacked contents. */
  contents: { name: string; sizeBytes: number }[];
  /** The bytes; may be read more than once. */
  open(): AsyncIterable<Uint8Array>;
}

export interface BundleOptions {
  /** Includes the browser driver, several times the size of the rest; not the browser. Default false. */
  browser?: boolean;
  /** The Node that goes into the bundle; null or left out where the machine has its own. */
  runtime?: PackedRuntime | null;
}

const CHUNK_BYTES = 1_048_576;

export async function buildBundle({ browser = false, runtime = null }: BundleOptions = {}): Promise<Bundle> {
  const program = await buildProgram({ browser });
  const first = packProgram(program.bytes);
  const last = archiveEnd();
  const open = async function* (): AsyncIterable<Uint8Array> {
    yield first;
    if (runtime) yield* createReadStream(runtime.file, { highWaterMark: CHUNK_BYTES }) as AsyncIterable<Buffer>;
    yield last;
  };
  const hash = createHash('sha256');
  let sizeBytes = 0;
  for await (const chunk of open()) {
    hash.update(chunk);
    sizeBytes += chunk.length;
  }
  const contents = [
    { name: PROGRAM_NAME, sizeBytes: program.bytes.length },
    ...(runtime ? [{ name: RUNTIME_NAME, sizeBytes: runtime.binaryBytes }] : []),
  ];
  return { sha256: hash.digest('hex'), sizeBytes, contents, open };
}
