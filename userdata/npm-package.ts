/** Fetches one package with the user's npm, so that its registry, proxy and certificates apply. */
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { promisify } from 'node:util';
import { AppError } from '../shared/domain/errors.ts';

/** 50 MB over a slow line. */
const TIMEOUT_MS = 900_000;
const ASK_TIMEOUT_MS = 20_000;

export interface PackageRequest {
  name: string;
  version: string;
  /** The package's hash as in lock files: `sha512-<base64>`. */
  integrity: string;
  /** An empty folder. */
  folder: string;
  /** Program to run instead of `npm`. */
  npm?: string | undefined;
  /** Aborts the fetch. */
  signal?: AbortSignal | undefined;
}

/** The package's file, with that integrity. Throws `runtime-unavailable`, and `interrupted` on the signal. */
export async function fetchPackage(request: PackageRequest): Promise<string> {
  const { name, version, integrity, folder, npm = 'npm', signal } = request;
  const spec = `${name}@${version}`;
  const args = ['pack', spec, '--pack-destination', folder, '--ignore-scripts', '--loglevel=error'];
  try {
    await promisify(execFile)(npm, args, {
      timeout: TIMEOUT_MS,
      maxBuffer: 16_000_000,
      ...(signal === undefined ? {} : { signal }),
    });
  } catch (error) {
    if (signal?.aborted === true) throw new AppError('interrupted', `interrupted while npm fetched ${spec}`);
    throw unavailable(spec, explain(error, TIMEOUT_MS), error);
  }
  const found = (await readdir(folder)).find((file) => file.endsWith('.tgz'));
  if (found === undefined) throw unavailable(spec, 'npm pack succeeded but left no file');
  const file = join(folder, found);
  const actual = `sha512-${await hashFile(file, 'sha512', 'base64')}`;
  if (actual !== integrity)
    throw unavailable(spec, `the registry sent a package with the integrity ${actual} instead of ${integrity}`);
  return file;
}

/** Throws `runtime-unavailable` unless npm's registry answers and has exactly this package. */
export async function askRegistry(request: Omit<PackageRequest, 'folder' | 'signal'>): Promise<void> {
  const { name, version, integrity, npm = 'npm' } = request;
  const spec = `${name}@${version}`;
  const args = ['view', spec, 'dist.integrity', '--fetch-retries=0', '--loglevel=error'];
  let said: string;
  try {
    said = (await promisify(execFile)(npm, args, { timeout: ASK_TIMEOUT_MS })).stdout.trim();
  } catch (error) {
    throw unavailable(spec, explain(error, ASK_TIMEOUT_MS), error);
  }
  if (said !== integrity)
    throw unavailable(spec, `the registry lists the integrity ${said || '(none)'} instead of ${integrity}`);
}

export async function hashFile(
  file: string,
  algorithm: 'sha256' | 'sha512',
  encoding: 'hex' | 'base64',
): Promise<string> {
  const hash = createHash(algorithm);
  await pipeline(createReadStream(file, { highWaterMark: 1_048_576 }), hash);
  return hash.digest(encoding);
}

function explain(error: unknown, timeoutMs: number): string {
  const { code, killed, stderr, message } = error as Error & { code?: unknown; killed?: boolean; stderr?: string };
  if (code === 'ENOENT') return 'there is no npm on the PATH';
  if (killed === true) return `npm did not end within ${timeoutMs / 1_000} s`;
  const said = (stderr ?? '').trim().split('\n').slice(0, 5).join(' · ');
  return said === '' ? message : said;
}

const unavailable = (spec: string, why: string, cause?: unknown): AppError =>
  new AppError(
    'runtime-unavailable',
    `the Node runtime for the instances (npm package ${spec}) is not available: ${why}`,
    {
      hint: `Try "npm pack ${spec}" by hand; it uses the registry and proxy of your npm settings. Where this machine has no registry, fetch the file elsewhere and put it into .crawlfleet/cache beside the configuration.`,
      ...(cause === undefined ? {} : { cause }),
    },
  );
