/**
 * Provides Node as a gzip member of an archive, in a cache folder. The binary must have the pinned hash, so it may come
 * from any source: this machine, the cache or npm.
 */
import { createHash, type Hash, randomBytes } from 'node:crypto';
import { createReadStream, createWriteStream, existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, rename, rm, stat } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { PassThrough, type Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { AppError, describeError } from '../shared/domain/errors.ts';
import { RUNTIME_NAME, createMember, entryHead, entryTail } from './archive.ts';
import { NODE_RELEASES, NODE_VERSION, type NodeRelease, type RuntimePlatform } from './node-release.ts';
import { fetchPackage, hashFile } from './npm-package.ts';
import { Parser } from 'tar';

/** Node for one platform, compressed: a tar entry as a separate gzip member. */
export interface PackedRuntime {
  platform: RuntimePlatform;
  version: string;
  file: string;
  sizeBytes: number;
  /** The size of the binary itself. */
  binaryBytes: number;
}

export interface RuntimeSources {
  /** The cache's folder, kept between runs; about 50 MB per platform. */
  cacheDir: string;
  /** Called before a slow operation. */
  onProgress?: (text: string) => void;
  /** Files that may be the binary; left out: the running Node, and the installed packages. */
  candidates?: readonly string[];
  /** Default: the pinned one. */
  release?: NodeRelease;
  /** Program to run instead of `npm`. */
  npm?: string;
  /** Aborts a fetch, with `interrupted`. */
  signal?: AbortSignal;
}

/**
 * Packs a Node from the cache, else from this machine, else from npm. Throws `runtime-unavailable` when it is not
 * available, and `platform` when the cache folder cannot be written, as on a full disk.
 */
export async function packRuntime(platform: RuntimePlatform, sources: RuntimeSources): Promise<PackedRuntime> {
  try {
    return await packInto(platform, sources);
  } catch (error) {
    throw isDiskFault(error) ? cannotKeep(sources.cacheDir, error) : error;
  }
}

/** Whether Node is available locally or must be fetched. Checks sizes only, and changes nothing. */
export async function hasRuntime(
  platform: RuntimePlatform,
  { cacheDir, release = NODE_RELEASES[platform], candidates }: RuntimeSources,
): Promise<boolean> {
  const name = `${release.packageName}-${NODE_VERSION}`;
  const kept = await readdir(cacheDir).catch((): string[] => []);
  if (kept.some((file) => file === `${name}.tgz` || (file.startsWith(`${name}-`) && MEMBER.test(file)))) return true;
  for (const candidate of candidates ?? localCandidates(platform, release)) {
    const info = await stat(candidate).catch(() => null);
    if (info?.isFile() === true && info.size === release.binary.sizeBytes) return true;
  }
  return false;
}

const MEMBER = /-([0-9a-f]{64})\.gz$/;
const DISK_FAULTS = new Set(['ENOSPC', 'EDQUOT', 'EROFS', 'EACCES', 'EPERM', 'EIO', 'ENOTDIR', 'EEXIST']);

const isDiskFault = (error: unknown): boolean =>
  !(error instanceof AppError) && DISK_FAULTS.has((error as NodeJS.ErrnoException).code ?? '');

const cannotKeep = (cacheDir: string, cause: unknown): AppError =>
  new AppError('platform', `the Node for the instances cannot be kept in ${cacheDir}: ${describeError(cause)}`, {
    hint: 'Packing it takes 100 MB there, keeping it 50 MB: free disk space, or give the user of this command write permission there.',
    cause,
  });

async function packInto(platform: RuntimePlatform, sources: RuntimeSources): Promise<PackedRuntime> {
  const { cacheDir, release = NODE_RELEASES[platform] } = sources;
  await mkdir(cacheDir, { recursive: true });
  const name = `${release.packageName}-${NODE_VERSION}`;
  await sweep(cacheDir, release.packageName);
  const file = (await findMember(cacheDir, name)) ?? (await makeMember(name, platform, release, sources));
  const binaryBytes = release.binary.sizeBytes;
  return { platform, version: NODE_VERSION, file, sizeBytes: (await stat(file)).size, binaryBytes };
}

/** Removes other Node versions, and unfinished files that no process can still be working on. */
async function sweep(cacheDir: string, packageName: string): Promise<void> {
  const abandonedMs = Date.now() - ABANDONED_MS;
  for (const found of await readdir(cacheDir)) {
    const file = join(cacheDir, found);
    const isHalfDone = /^(npm-|unfinished-)/.test(found);
    const isOfOther =
      found.startsWith(`${packageName}-`) && !found.startsWith(`${packageName}-${NODE_VERSION}`) && MEMBER.test(found);
    if (!isHalfDone && !isOfOther) continue;
    const info = await stat(file).catch(() => null);
    if (info !== null && info.mtimeMs < abandonedMs) await rm(file, { recursive: true, force: true });
  }
}

/** Long after any fetch has given up. */
const ABANDONED_MS = 3_600_000;

/** The file name contains its hash: a truncated or altered file is rebuilt. */
async function findMember(cacheDir: string, name: string): Promise<string | null> {
  for (const found of await readdir(cacheDir)) {
    const sha256 = found.startsWith(`${name}-`) ? MEMBER.exec(found)?.[1] : undefined;
    if (sha256 === undefined) continue;
    const file = join(cacheDir, found);
    if ((await hashFile(file, 'sha256', 'hex')) === sha256) return file;
    await rm(file, { force: true });
  }
  return null;
}

async function makeMember(
  name: string,
  platform: RuntimePlatform,
  release: NodeRelease,
  sources: RuntimeSources,
): Promise<string> {
  const { cacheDir, candidates = localCandidates(platform, release), onProgress = () => {} } = sources;
  for (const candidate of candidates) {
    // The size first: most candidates are another version, and hashing takes a moment.
    const info = await stat(candidate).catch(() => null);
    if (info?.isFile() !== true || info.size !== release.binary.sizeBytes) continue;
    const member = await compress(createReadStream(candidate, { highWaterMark: 1_048_576 }), name, release, cacheDir);
    if (member !== null) return member;
  }
  const folder = await mkdtemp(join(cacheDir, 'npm-'));
  try {
    const placed = join(cacheDir, `${name}.tgz`);
    let file = placed;
    if (!existsSync(placed)) {
      onProgress(`Fetching Node ${NODE_VERSION} for ${platform} with npm (50 MB, once) …`);
      const { packageName, integrity } = release;
      const { npm, signal } = sources;
      file = await fetchPackage({ name: packageName, version: NODE_VERSION, integrity, folder, npm, signal });
    }
    const binary = openPackageFile(file, 'package/bin/node', release.binary.sizeBytes);
    const member = await compress(binary, name, release, cacheDir);
    if (member !== null) return member;
    throw new AppError(
      'runtime-unavailable',
      `bin/node in ${file} is not that of Node ${NODE_VERSION} for ${platform}`,
      {
        hint: `Remove ${file}, or replace it by the package ${release.packageName}@${NODE_VERSION} of the npm registry.`,
      },
    );
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Compresses the binary into the cache and gives the file; null when it is not the pinned binary. */
async function compress(
  binary: Readable,
  name: string,
  { binary: pinned }: NodeRelease,
  cacheDir: string,
): Promise<string | null> {
  const unfinished = join(cacheDir, `unfinished-${randomBytes(6).toString('hex')}`);
  const [plain, packed] = [createHash('sha256'), createHash('sha256')];
  /** The binary with its tar header and padding; hashes only the binary. */
  const framed = async function* (chunks: AsyncIterable<Buffer>): AsyncIterable<Buffer> {
    yield entryHead(RUNTIME_NAME, pinned.sizeBytes, 0o755);
    yield* hashed(chunks, plain);
    yield entryTail(pinned.sizeBytes);
  };
  const member = (chunks: AsyncIterable<Buffer>): AsyncIterable<Buffer> => hashed(chunks, packed);
  try {
    await pipeline(binary, framed, createMember(), member, createWriteStream(unfinished));
    if (plain.digest('hex') !== pinned.sha256) return null;
    const file = join(cacheDir, `${name}-${packed.digest('hex')}.gz`);
    await rename(unfinished, file);
    return file;
  } finally {
    await rm(unfinished, { force: true });
  }
}

async function* hashed(chunks: AsyncIterable<Buffer>, hash: Hash): AsyncIterable<Buffer> {
  for await (const chunk of chunks) {
    hash.update(chunk);
    yield chunk;
  }
}

/** Where the same binary may already be: the running Node, and the packages that the project may be installed with. */
function localCandidates(platform: RuntimePlatform, { packageName }: NodeRelease): string[] {
  const running = `${process.platform}-${process.arch}` === platform ? [process.execPath] : [];
  return [
    ...running,
    ...installed(packageName, 'bin/node'),
    ...(running.length > 0 ? installed('node', 'bin/node') : []),
  ];
}

function installed(packageName: string, file: string): string[] {
  try {
    return [join(dirname(createRequire(import.meta.url).resolve(`${packageName}/package.json`)), file)];
  } catch {
    return [];
  }
}

/** The file as a stream; fails with `runtime-unavailable` if the package is damaged or lacks that file. */
function openPackageFile(archive: string, name: string, sizeBytes: number): Readable {
  const content = new PassThrough({ highWaterMark: 1_048_576 });
  let found = false;
  const damaged = (why: string, cause?: unknown): void =>
    void content.destroy(
      new AppError('runtime-unavailable', `${archive} is not the expected npm package: ${why}`, {
        hint: `Remove ${archive}.`,
        ...(cause === undefined ? {} : { cause }),
      }),
    );
  const parser = new Parser({
    strict: true,
    onReadEntry(entry) {
      if (entry.path !== name || entry.size !== sizeBytes || entry.type !== 'File' || found) {
        entry.resume();
        return;
      }
      found = true;
      entry.pipe(content);
    },
  });
  parser.on('end', () => {
    if (!found) damaged(`it has no ${name} of ${sizeBytes} bytes`);
  });
  parser.on('error', (error: unknown) => damaged('it cannot be read', error));
  const source = createReadStream(archive);
  source.on('error', (error: unknown) => damaged('it cannot be read', error));
  source.pipe(parser);
  return content;
}
