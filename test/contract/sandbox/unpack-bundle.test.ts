/** What the sandbox's host extracts from an archive, and what it refuses: the archive comes over the network. */
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdirSync, readFileSync, readdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { isForThisMachine, unpackBundle } from '../../../sandbox/host/unpack-bundle.ts';
import { archiveEnd, entryHead, entryTail, packArchive, packProgram } from '../../../userdata/archive.ts';
import { tempDir } from '../../support/temp-dir.ts';

let folder: ReturnType<typeof tempDir>;
let out: string;
beforeEach(() => {
  folder = tempDir();
  out = folder.file('out');
  mkdirSync(out);
});
afterEach(() => folder[Symbol.dispose]());

const entry = (name: string, content: Buffer): Buffer =>
  gzipSync(Buffer.concat([entryHead(name, content.length, 0o755), content, entryTail(content.length)]));

/** The archive that GNU tar makes with these arguments, in the test's folder. */
function tarOf(...args: string[]): Buffer {
  return execFileSync('tar', ['-czf', '-', '-C', folder.path, ...args]);
}

describe('unpackBundle', () => {
  it('extracts the program, readable only by its owner', async () => {
    await unpackBundle(packArchive(Buffer.from('console.log(1)')), out);
    expect(readdirSync(out)).toEqual(['crawl-api.mjs']);
    expect(readFileSync(join(out, 'crawl-api.mjs'), 'utf8')).toBe('console.log(1)');
    expect(statSync(join(out, 'crawl-api.mjs')).mode & 0o777).toBe(0o600);
  });

  it('extracts an executable runtime, and replaces what an earlier boot left', async () => {
    writeFileSync(join(out, 'node'), 'old and longer than the new one');
    const archive = Buffer.concat([packProgram(Buffer.from('1')), entry('node', Buffer.from('new')), archiveEnd()]);
    await unpackBundle(archive, out);
    expect(readFileSync(join(out, 'node'), 'utf8')).toBe('new');
    expect(statSync(join(out, 'node')).mode & 0o777).toBe(0o700);
    await unpackBundle(packArchive(Buffer.from('2')), out);
    expect(readdirSync(out)).toEqual(['crawl-api.mjs']);
  });

  it('fails at once when a file cannot be written', async () => {
    const archive = packArchive(randomBytes(8_000_000));
    await expect(unpackBundle(archive, folder.file('absent'))).rejects.toMatchObject({ code: 'ENOENT' });
  });

  it('is ended by a signal', async () => {
    const archive = packArchive(randomBytes(8_000_000));
    const power = new AbortController();
    const unpacking = unpackBundle(archive, out, power.signal);
    power.abort();
    await expect(unpacking).rejects.toThrow('switched off');
    await expect(unpackBundle(archive, out, AbortSignal.abort())).rejects.toThrow('switched off');
  });

  it.each([
    ['a path that leads out', () => entry('../crawl-api.mjs', Buffer.from('x'))],
    ['an absolute path', () => entry('/tmp/crawl-api.mjs', Buffer.from('x'))],
    ['another name', () => entry('README', Buffer.from('x'))],
    ['the same name twice', () => entry('crawl-api.mjs', Buffer.from('x'))],
    [
      'a link',
      () => {
        symlinkSync('/etc/passwd', folder.file('node'));
        return tarOf('node');
      },
    ],
    [
      'a folder',
      () => {
        mkdirSync(folder.file('node'));
        return tarOf('node');
      },
    ],
  ])('refuses %s', async (_what, more) => {
    const archive = Buffer.concat([packProgram(Buffer.from('1')), more(), archiveEnd()]);
    await expect(unpackBundle(archive, out)).rejects.toThrow('the bundle may not contain');
    expect(readdirSync(folder.path).filter((name) => name === 'crawl-api.mjs')).toEqual([]);
  });

  it('refuses an entry whose header claims more than a disk should take', async () => {
    const archive = gzipSync(entryHead('crawl-api.mjs', 300_000_000, 0o644));
    await expect(unpackBundle(archive, out)).rejects.toThrow('300000000 bytes');
  });

  it.each([
    ['nothing in it', () => archiveEnd()],
    ['only a runtime', () => Buffer.concat([entry('node', Buffer.from('x')), archiveEnd()])],
    ['no gzip', () => Buffer.from('console.log(1)')],
    ['an end that is missing', () => packArchive(Buffer.from('x'.repeat(5_000))).subarray(0, 60)],
    ['rubbish in gzip', () => gzipSync(Buffer.alloc(4_096, 'rubbish'))],
  ])('refuses an archive with %s', async (_what, archive) => {
    await expect(unpackBundle(archive(), out)).rejects.toThrow();
  });
});

it('tells a program for this machine from one of another architecture, and from a script', async () => {
  expect(await isForThisMachine(process.execPath)).toBe(process.platform === 'linux');
  const foreign = readFileSync(process.execPath).subarray(0, 64);
  foreign.writeUInt16LE(process.arch === 'x64' ? 183 : 62, 18);
  writeFileSync(folder.file('foreign'), foreign);
  expect(await isForThisMachine(folder.file('foreign'))).toBe(false);
  writeFileSync(folder.file('script'), '#!/bin/sh\n');
  expect(await isForThisMachine(folder.file('script'))).toBe(false);
  expect(await isForThisMachine(folder.file('absent'))).toBe(false);
});
