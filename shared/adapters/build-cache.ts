/**
 * Keeps what a checkout builds from its sources in node_modules/.cache. A build takes a second on two cores, and from
 * one start to the next the sources are nearly always the same.
 */
import { mkdir, readFile, rename, stat, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

export interface Built {
  output: string;
  /** Every file that the output depends on, as absolute paths. */
  inputs: readonly string[];
}

/** An input that is no file: "slim:0" from a plugin, "(disabled):node_modules/…" where a package leaves one out. */
const IN_NO_FILE = /^[\w()]+:/;

/**
 * The files that an output of esbuild depends on.
 * @param root esbuild's working directory
 * @param script the file with its settings
 */
export function inputsOf(metafile: { inputs: object }, root: string, script: string): string[] {
  const sources = Object.keys(metafile.inputs).filter((input) => !IN_NO_FILE.test(input));
  return [
    ...sources.map((input) => path.join(root, input)),
    script,
    createRequire(script).resolve('esbuild/package.json'),
  ];
}

/** The contents of a cache file. */
interface Entry {
  /** Checkouts may share one node_modules. */
  checkout: string;
  output: string;
  /** Each file that went into the output, and its stamp then. */
  inputs: [file: string, stamp: string][];
}

const CHECKOUT = fileURLToPath(new URL('../../', import.meta.url));
/** The cache's folder; null in an installed package, whose folder may belong to another user. */
const FOLDER = import.meta.url.endsWith('.ts') ? path.join(CHECKOUT, 'node_modules/.cache/crawlfleet') : null;

/** A file system takes its times from a clock that ticks every 10 ms or less. */
export const CLOCK_LAG_MS = 20;

/**
 * The output of the build; built again once a file that went into it has changed.
 * @param name of the cache file, one for each build
 */
export async function cachedBuild(
  name: string,
  build: () => Promise<Built>,
  { folder = FOLDER, checkout = CHECKOUT }: { folder?: string | null; checkout?: string } = {},
): Promise<string> {
  if (folder === null) return (await build()).output;
  const file = path.join(folder, `${name}.json`);
  const kept = await read(file, checkout);
  if (kept !== null) return kept;
  const startedMs = Date.now();
  const built = await build();
  await write(file, { ...built, checkout }, startedMs);
  return built.output;
}

/** The output in the file; null when it is not there, damaged or out of date. */
async function read(file: string, reader: string): Promise<string | null> {
  try {
    const { checkout, inputs, output } = JSON.parse(await readFile(file, 'utf8')) as Entry;
    if (checkout !== reader) return null;
    const stamps = await Promise.all(inputs.map(async ([input]) => (await stampOf(input)).stamp));
    return inputs.every(([, stamp], index) => stamp === stamps[index]) ? output : null;
  } catch {
    return null;
  }
}

/** Writes nothing when a file has changed since the build began: it is unknown which version went into the output. */
async function write(
  file: string,
  { checkout, output, inputs }: Built & Pick<Entry, 'checkout'>,
  startedMs: number,
): Promise<void> {
  try {
    const stamps = await Promise.all(inputs.map(async (input) => ({ input, ...(await stampOf(input)) })));
    if (stamps.some(({ changedMs }) => changedMs >= startedMs - CLOCK_LAG_MS)) return;
    const entry: Entry = { checkout, output, inputs: stamps.map(({ input, stamp }) => [input, stamp]) };
    await mkdir(path.dirname(file), { recursive: true });
    // Other programs may read or write the file at this moment.
    const unfinished = `${file}.${process.pid}`;
    await writeFile(unfinished, JSON.stringify(entry));
    await rename(unfinished, file);
  } catch {
    // A folder that cannot be written to, or a full disk: the next start builds again.
  }
}

/** The time of the last change is ctime: npm gives every file that it installs the same mtime. */
async function stampOf(file: string): Promise<{ stamp: string; changedMs: number }> {
  const { ctimeMs, size } = await stat(file);
  return { stamp: `${ctimeMs} ${size}`, changedMs: ctimeMs };
}
