/** The scripts of `exec --update`, run by a shell in a folder, with curl and systemctl replaced. */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { packArchive } from '../../../userdata/archive.ts';
import { ROLL_BACK_SCRIPT, updateScript } from '../../../userdata/update-bundle.ts';
import { type TempDir, tempDir } from '../../support/temp-dir.ts';

const ARCHIVE = packArchive(Buffer.from('new program'));
const SHA256 = createHash('sha256').update(ARCHIVE).digest('hex');
const KILL = 'kill --signal=SIGKILL crawlfleet.service';

let home: TempDir;
beforeEach(() => {
  home = tempDir();
  writeFileSync(home.file('crawl-api.mjs'), 'old program');
});
afterEach(() => home.remove());

/** What systemctl was called with, and how the script ended. */
function play(script: string, { archive = ARCHIVE, systemctl = 0 } = {}) {
  writeFileSync(home.file('served'), archive);
  const tools = `curl() { while [ "$1" != --output ]; do shift; done; cp "$CRAWLFLEET_HOME/served" "$2"; }
systemctl() { echo "$*"; return ${systemctl}; }
sync() { :; }
`;
  const env = { PATH: process.env.PATH, CRAWLFLEET_HOME: home.path };
  const { status, stdout, stderr } = spawnSync('sh', ['-c', tools + script], { env, encoding: 'utf8' });
  return { status, called: stdout.trim(), stderr: stderr.trim() };
}
const update = updateScript({ url: "https://b.example/x?a=1&b='c'", sha256: SHA256 });
const program = (): string => readFileSync(home.file('crawl-api.mjs'), 'utf8');

describe('the update of a machine', () => {
  it('replaces the program, keeps the old one, and kills the process for a restart', () => {
    expect(play(update)).toEqual({ status: 0, called: KILL, stderr: '' });
    expect(program()).toBe('new program');
    expect(readFileSync(home.file('previous/crawl-api.mjs'), 'utf8')).toBe('old program');
    expect(readdirSync(home.path).toSorted()).toEqual(['crawl-api.mjs', 'previous', 'served']);
  });

  it.each([
    ['has the wrong hash', packArchive(Buffer.from('another program')), 'the bundle has the wrong hash'],
    ['is cut', ARCHIVE.subarray(0, 40), 'the bundle has the wrong hash'],
  ])('changes nothing and kills nothing when the bundle %s', (_what, archive, says) => {
    expect(play(update, { archive })).toEqual({ status: 1, called: '', stderr: says });
    expect(program()).toBe('old program');
    expect(play(ROLL_BACK_SCRIPT)).toMatchObject({ status: 0, called: '' });
  });

  it('can be rolled back, also while the program is between two starts', () => {
    play(update);
    expect(play(ROLL_BACK_SCRIPT, { systemctl: 1 })).toMatchObject({ status: 0, called: KILL });
    expect(program()).toBe('old program');
  });

  it('is not rolled back to what an earlier update has replaced', () => {
    play(update);
    expect(play(update, { archive: Buffer.from('broken') }).status).toBe(1);
    expect(existsSync(home.file('previous'))).toBe(false);
    play(ROLL_BACK_SCRIPT);
    expect(program()).toBe('new program');
  });
});
