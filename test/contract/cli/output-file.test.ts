/**
 * Where `--to` and `--out` write: plain files whole or not at all, and through everything else. Nodes of the test's
 * own.
 */
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { readFile } from 'node:fs/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { fileOf, writeLines } from '../../../orchestrator/cli/output-file.ts';
import { tempDir } from '../../support/temp-dir.ts';

describe('a file that a user names', () => {
  let folder: ReturnType<typeof tempDir>;
  beforeEach(() => (folder = tempDir('crawlfleet-output-')));
  afterEach(() => folder.remove());

  const contentOf = (name: string): string => readFileSync(folder.file(name), 'utf8');
  const failing = function* (): Generator<string> {
    yield 'half\n';
    throw new Error('the database has gone');
  };

  it('is replaced whole, and keeps its mode; it stays when there is an error', async () => {
    const file = folder.file('rows.csv');
    await writeLines(file, ['old\n']);
    chmodSync(file, 0o644);
    await expect(writeLines(file, failing())).rejects.toThrow('the database has gone');
    expect(contentOf('rows.csv')).toBe('old\n');
    expect(existsSync(`${file}.new`)).toBe(false);
    await writeLines(file, ['a\n', 'b\n']);
    expect(contentOf('rows.csv')).toBe('a\nb\n');
    expect(statSync(file).mode & 0o777).toBe(0o644);
  });

  it('is found behind a link, which stays a link; so is one that does not exist yet', async () => {
    mkdirSync(folder.file('shared'));
    symlinkSync('shared/rows.csv', folder.file('link.csv'));
    await writeLines(folder.file('link.csv'), ['first\n']);
    await expect(writeLines(folder.file('link.csv'), failing())).rejects.toThrow('the database has gone');
    expect(contentOf('shared/rows.csv')).toBe('first\n');
    await writeLines(folder.file('link.csv'), ['2\n']);
    expect(contentOf('shared/rows.csv')).toBe('2\n');
    expect(lstatSync(folder.file('link.csv')).isSymbolicLink()).toBe(true);
  });

  it('may be a pipe, also behind a link: its reader gets what is written', async () => {
    execFileSync('mkfifo', [folder.file('pipe')]);
    symlinkSync('pipe', folder.file('link'));
    for (const name of ['pipe', 'link']) {
      const [text] = await Promise.all([
        readFile(folder.file('pipe'), 'utf8'),
        writeLines(folder.file(name), ['a\n', 'b\n']),
      ]);
      expect(text).toBe('a\nb\n');
    }
    expect(lstatSync(folder.file('pipe')).isFIFO()).toBe(true);
    expect(lstatSync(folder.file('link')).isSymbolicLink()).toBe(true);
  });

  it.skipIf(process.getuid?.() !== 0)('may be a device, which stays one', async () => {
    execFileSync('mknod', [folder.file('null'), 'c', '1', '3']);
    execFileSync('mknod', [folder.file('full'), 'c', '1', '7']);
    await writeLines(folder.file('null'), ['a\n']);
    const refusal = { code: 'usage', message: expect.stringMatching(/cannot write .*full: ENOSPC/) };
    await expect(writeLines(folder.file('full'), ['a\n'])).rejects.toMatchObject(refusal);
    for (const name of ['null', 'full']) expect(lstatSync(folder.file(name)).isCharacterDevice()).toBe(true);
  });

  it('is named when it cannot be written', async () => {
    writeFileSync(folder.file('plain'), '');
    for (const name of ['none/rows.csv', 'plain/rows.csv', '.'])
      await expect(writeLines(folder.file(name), ['a\n']), name).rejects.toMatchObject({
        code: 'usage',
        message: expect.stringContaining(`cannot write ${folder.file(name)}: E`),
      });
  });

  it('is stdout as `-` and by its path', () => {
    expect([fileOf(undefined), fileOf('-'), fileOf('/dev/stdout'), fileOf('/proc/self/fd/1')]).toEqual(Array(4));
    expect(fileOf(folder.file('-'))).toBe(folder.file('-'));
  });
});
