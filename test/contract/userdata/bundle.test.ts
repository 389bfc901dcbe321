import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { basename, join } from 'node:path';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { AppError } from '../../../shared/domain/errors.ts';
import { buildBundle, type Bundle } from '../../../userdata/bundle.ts';
import { NODE_VERSION, type NodeRelease } from '../../../userdata/node-release.ts';
import { hasRuntime, packRuntime } from '../../../userdata/node-runtime.ts';
import { askRegistry } from '../../../userdata/npm-package.ts';
import { tempDir } from '../../support/temp-dir.ts';
import { expectFault } from '../../support/expect-fault.ts';

/** Stands for Node, of a length that does not end with a block of the archive. */
const BINARY = Buffer.from('#!/bin/sh\necho "the runtime"\n'.padEnd(100_001, '\n'));

async function bytesOf(bundle: Bundle): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of bundle.open()) chunks.push(chunk);
  return Buffer.concat(chunks);
}

/** An npm package as the registry would send it, and the release that describes it. */
function makePackage(folder: string, content: Buffer = BINARY): { file: string; release: NodeRelease } {
  mkdirSync(join(folder, 'package', 'bin'), { recursive: true });
  writeFileSync(join(folder, 'package', 'bin', 'node'), content, { mode: 0o755 });
  writeFileSync(join(folder, 'package', 'LICENSE'), 'MIT');
  const file = join(folder, `node-test-${NODE_VERSION}.tgz`);
  execFileSync('tar', ['-czf', file, '-C', folder, 'package']);
  const integrity = `sha512-${createHash('sha512').update(readFileSync(file)).digest('base64')}`;
  const sha256 = createHash('sha256').update(BINARY).digest('hex');
  return { file, release: { packageName: 'node-test', integrity, binary: { sha256, sizeBytes: BINARY.length } } };
}

/** A fake npm: copies the file where `npm pack` would put it, or runs the given lines. */
function makeNpm(folder: string, ...lines: string[]): string {
  const file = join(folder, 'npm');
  writeFileSync(file, ['#!/bin/sh', `echo "$@" >> ${join(folder, 'npm.log')}`, ...lines, ''].join('\n'));
  chmodSync(file, 0o755);
  return file;
}

describe('the bundle', () => {
  it('is named by the hash of its bytes, which are the same every time', async () => {
    const [one, two] = [await buildBundle(), await buildBundle()];
    const bytes = await bytesOf(one);
    expect(one.sha256).toBe(createHash('sha256').update(bytes).digest('hex'));
    expect(one.sizeBytes).toBe(bytes.length);
    expect(await bytesOf(two)).toEqual(bytes);
  });

  it('contains only the program without a runtime, with nothing of this machine in it', async () => {
    using folder = tempDir();
    const bundle = await buildBundle();
    writeFileSync(folder.file('b.tar.gz'), await bytesOf(bundle));
    const list = execFileSync('tar', ['--numeric-owner', '-tvzf', folder.file('b.tar.gz')], {
      encoding: 'utf8',
      env: { ...process.env, TZ: 'UTC' },
    });
    const [{ sizeBytes } = { sizeBytes: -1 }] = bundle.contents;
    expect(list).toBe(`-rw-r--r-- 0/0 ${String(sizeBytes).padStart(15)} 1970-01-01 00:00 crawl-api.mjs\n`);
  });
});

describe('a bundle with its own Node', () => {
  let folder: ReturnType<typeof tempDir>;
  let cacheDir: string;
  beforeEach(() => {
    folder = tempDir();
    cacheDir = folder.file('cache');
    return () => folder[Symbol.dispose]();
  });

  it('is unpacked by tar into two files, and node is executable', async () => {
    const { file, release } = makePackage(folder.path);
    const npm = makeNpm(folder.path, `cp ${file} "$4"`);
    const runtime = await packRuntime('linux-x64', { cacheDir, release, npm, candidates: [] });
    const bundle = await buildBundle({ runtime });
    const bytes = await bytesOf(bundle);
    expect(createHash('sha256').update(bytes).digest('hex')).toBe(bundle.sha256);
    writeFileSync(folder.file('b.tar.gz'), bytes);
    mkdirSync(folder.file('out'));
    execFileSync('tar', ['-xzf', folder.file('b.tar.gz'), '-C', folder.file('out')]);
    expect(readdirSync(folder.file('out'))).toEqual(['crawl-api.mjs', 'node']);
    expect(execFileSync(join(folder.file('out'), 'node'), { encoding: 'utf8' })).toContain('the runtime');
    expect(bundle.contents.map((c) => c.name)).toEqual(['crawl-api.mjs', 'node']);
  });

  it('is fetched with npm once, and then comes from the cache', async () => {
    const { file, release } = makePackage(folder.path);
    const npm = makeNpm(folder.path, `cp ${file} "$4"`);
    const said: string[] = [];
    const sources = { cacheDir, release, npm, candidates: [], onProgress: (text: string) => void said.push(text) };
    const first = await packRuntime('linux-x64', sources);
    const second = await packRuntime('linux-x64', sources);
    expect(second).toEqual(first);
    const calls = readFileSync(folder.file('npm.log'), 'utf8').trim().split('\n');
    expect(calls).toHaveLength(1);
    expect(calls[0]).toMatch(`pack node-test@${NODE_VERSION} --pack-destination`);
    expect(said).toHaveLength(1);
    // Nothing else stays: neither the package nor an unfinished file.
    expect(readdirSync(cacheDir)).toEqual([basename(first.file)]);
  });

  it('is made again when the cached file was cut off', async () => {
    const { file, release } = makePackage(folder.path);
    const npm = makeNpm(folder.path, `cp ${file} "$4"`);
    const sources = { cacheDir, release, npm, candidates: [] };
    const first = await packRuntime('linux-x64', sources);
    truncateSync(first.file, 40);
    const second = await packRuntime('linux-x64', sources);
    expect(second).toEqual(first);
    expect((await buildBundle({ runtime: second })).sizeBytes).toBeGreaterThan(first.sizeBytes);
  });

  it('uses the identical binary if this machine has it, without a download', async () => {
    const { release } = makePackage(folder.path);
    const candidates = [
      folder.file('absent'),
      join(folder.path, 'package', 'LICENSE'),
      join(folder.path, 'package/bin/node'),
    ];
    const runtime = await packRuntime('linux-x64', { cacheDir, release, npm: '/nowhere/npm', candidates });
    expect(runtime.binaryBytes).toBe(BINARY.length);
  });

  it('accepts a package that was put into the cache by hand, for machines without a registry', async () => {
    const { file, release } = makePackage(folder.path);
    mkdirSync(cacheDir);
    copyFileSync(file, join(cacheDir, basename(file)));
    const runtime = await packRuntime('linux-x64', { cacheDir, release, npm: '/nowhere/npm', candidates: [] });
    expect(runtime.sizeBytes).toBeGreaterThan(0);
  });

  const failures: [what: string, lines: string[] | null, says: string][] = [
    ['there is no npm', null, 'there is no npm on the PATH'],
    ['the registry cannot be reached', ['echo "npm error network ECONNREFUSED" >&2', 'exit 1'], 'ECONNREFUSED'],
    ['npm leaves nothing', [], 'left no file'],
    ['the registry sends another file', ['echo rubbish > "$4/x.tgz"'], 'with the integrity sha512-'],
  ];
  it.each(failures)('reports when %s, and leaves nothing behind', async (_what, lines, says) => {
    const { release } = makePackage(folder.path);
    const npm = lines === null ? '/nowhere/npm' : makeNpm(folder.path, ...lines);
    const making = packRuntime('linux-x64', { cacheDir, release, npm, candidates: [] });
    const error = await making.then(
      () => null,
      (e: unknown) => e,
    );
    expect(error).toBeInstanceOf(AppError);
    expect((error as AppError).code).toBe('runtime-unavailable');
    expect((error as AppError).message).toContain(says);
    expect((error as AppError).hint).toContain(`npm pack node-test@${NODE_VERSION}`);
    expect(readdirSync(cacheDir)).toEqual([]);
  });

  it.each([
    ['another binary', (): Buffer => Buffer.from(BINARY).fill('x', 50_000), 'is not that of Node'],
    ['a binary of another size', (): Buffer => Buffer.from('short'), 'has no package/bin/node of'],
  ])('refuses a package with %s', async (_what, content, says) => {
    const { file, release } = makePackage(folder.path, content());
    mkdirSync(cacheDir);
    copyFileSync(file, join(cacheDir, basename(file)));
    const making = packRuntime('linux-x64', { cacheDir, release, npm: '/nowhere/npm', candidates: [] });
    await expect(making).rejects.toThrow(says);
    await expect(making).rejects.toMatchObject({ code: 'runtime-unavailable' });
    expect(existsSync(join(cacheDir, basename(file)))).toBe(true);
    expect(readdirSync(cacheDir)).toHaveLength(1);
  });

  it('is ended by a signal while npm is at work, and leaves nothing behind', async () => {
    const { release } = makePackage(folder.path);
    const leave = new AbortController();
    const npm = makeNpm(folder.path, `touch ${folder.file('begun')}`, 'exec sleep 60');
    const making = packRuntime('linux-x64', { cacheDir, release, npm, candidates: [], signal: leave.signal });
    await vi.waitFor(() => expect(existsSync(folder.file('begun'))).toBe(true), { timeout: 5_000 });
    leave.abort();
    await expect(making).rejects.toMatchObject({ code: 'interrupted' });
    expect(readdirSync(cacheDir)).toEqual([]);
  });

  it('removes what killed commands and older versions have left, but not what may be in use', async () => {
    const { file, release } = makePackage(folder.path);
    mkdirSync(join(cacheDir, 'npm-old'), { recursive: true });
    mkdirSync(join(cacheDir, 'npm-now'));
    const older = `node-test-20.0.0-${'a'.repeat(64)}.gz`;
    for (const name of ['unfinished-old', 'unfinished-now', older, 'else.txt']) writeFileSync(join(cacheDir, name), '');
    for (const name of ['npm-old', 'unfinished-old', older, 'else.txt']) utimesSync(join(cacheDir, name), 1_000, 1_000);
    const npm = makeNpm(folder.path, `cp ${file} "$4"`);
    const made = await packRuntime('linux-x64', { cacheDir, release, npm, candidates: [] });
    expect(readdirSync(cacheDir).sort()).toEqual(['else.txt', 'npm-now', 'unfinished-now', basename(made.file)].sort());
  });

  it('names the folder where it cannot be kept', async () => {
    const { release } = makePackage(folder.path);
    writeFileSync(cacheDir, 'a file where the folder is to be');
    await expectFault(packRuntime('linux-x64', { cacheDir, release, candidates: [] }), 'platform', cacheDir);
  });

  it('reports beforehand whether anything must be fetched', async () => {
    const { file, release } = makePackage(folder.path);
    const sources = { cacheDir, release, candidates: [] };
    expect(await hasRuntime('linux-x64', sources)).toBe(false);
    const candidates = [join(folder.path, 'package/bin/node')];
    expect(await hasRuntime('linux-x64', { ...sources, candidates })).toBe(true);
    mkdirSync(cacheDir);
    copyFileSync(file, join(cacheDir, basename(file)));
    expect(await hasRuntime('linux-x64', sources)).toBe(true);
  });

  it.each([
    ['has the very package', ['echo sha512-right'], null],
    ['has another one', ['echo sha512-other'], 'lists the integrity sha512-other'],
    ['does not have it', ['echo "npm error 404 Not Found" >&2', 'exit 1'], '404 Not Found'],
    ['cannot be queried without npm', null, 'there is no npm on the PATH'],
  ])('can be checked beforehand: the registry %s', async (_what, lines, says) => {
    const npm = lines === null ? '/nowhere/npm' : makeNpm(folder.path, ...lines);
    const asked = askRegistry({ name: 'node-test', version: NODE_VERSION, integrity: 'sha512-right', npm });
    if (says === null) await expect(asked).resolves.toBeUndefined();
    else await expectFault(asked, 'runtime-unavailable', says);
  });

  it('refuses a package that is no archive', async () => {
    const { release } = makePackage(folder.path);
    mkdirSync(cacheDir);
    writeFileSync(join(cacheDir, `node-test-${NODE_VERSION}.tgz`), 'rubbish');
    const making = packRuntime('linux-x64', { cacheDir, release, npm: '/nowhere/npm', candidates: [] });
    await expect(making).rejects.toMatchObject({
      code: 'runtime-unavailable',
      hint: expect.stringContaining('Remove'),
    });
  });
});
