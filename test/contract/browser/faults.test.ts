/** A browser that hangs, crashes or grows is killed and replaced, and leaves nothing behind. */
import { spawn } from 'node:child_process';
import { mkdirSync, readFileSync, readdirSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { listGroup } from '../../../crawl-api/fetch/browser/process-group.ts';
import { tempDir } from '../../support/temp-dir.ts';
import {
  chromiumPath,
  expectNoZombies,
  neverAborted,
  NO_HOOKS,
  openStage,
  type Page,
  Site,
  type Stage,
  type StageOptions,
  titleOf,
} from './stage.ts';

let site: Site;
let stage: Stage | null = null;

beforeAll(async () => {
  site = await Site.start('127.0.7.11');
  site.pages.set('/p/good', '<h1>good</h1>');
});
afterAll(() => site.stop());
afterEach(async () => {
  await stage?.close();
  stage = null;
});

async function open(options: StageOptions = {}): Promise<(path: string) => ReturnType<Stage['source']['fetch']>> {
  const opened = (stage = await openStage(site, options));
  return (path) => opened.source.fetch(site.url + path, NO_HOOKS, neverAborted());
}

/** Processes whose command line contains the text, zombies included. */
function processesWith(text: string): string[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(text);
      } catch {
        return false;
      }
    });
}

describe('F23: a browser that gets stuck', () => {
  /** One product on such a page, and a good one after it. */
  async function expectTimeout(page: Page): Promise<void> {
    // The limit also covers the good page that follows, in a browser that was just started.
    const get = await open({ timeoutMs: 6_000 });
    site.pages.set('/p/bad', page);
    site.pages.set('/never.js', () => {});
    const startMs = performance.now();
    expect(await get('/p/bad')).toMatchObject({ kind: 'failed', reason: 'timeout' });
    expect(performance.now() - startMs).toBeLessThan(14_000);
    expect(titleOf(await get('/p/good'))).toBe('good');
    await expectNoZombies();
  }

  it('times out on a script that never ends and continues with the next product', () =>
    expectTimeout('<h1>x</h1><script>for (;;) {}</script>'));

  it.each<[string, Page]>([
    ['a reply that never begins', () => {}],
    ['a page that never ends', (_, response) => void response.write('<h1>x</h1>'.padEnd(2_000))],
    ['a script that never arrives', '<script src="/never.js"></script><h1>x</h1>'],
    ['a flood of dialogs', '<script>for (;;) alert(1)</script>'],
    ['a flood of windows', '<script>for (;;) open("/p/good?" + Math.random())</script>'],
  ])('times out on %s and continues with the next product', { tags: ['nightly'] }, (_, page) => expectTimeout(page));

  it.each([
    ['when its fields are there', 'setTimeout(() => { for (;;); }, 20)'],
    [
      'when it is left',
      "for (const e of ['beforeunload', 'pagehide', 'unload']) addEventListener(e, () => { for (;;); })",
    ],
  ])('continues after a page that loops endlessly %s', { tags: ['nightly'] }, async (_, script) => {
    const get = await open({ timeoutMs: 6_000 });
    site.pages.set('/p/bad', `<h1>x</h1><script>${script}</script>`);
    await get('/p/bad');
    expect(titleOf(await get('/p/good'))).toBe('good');
    await expectNoZombies();
  });

  const expectNetwork = async (argument: string): Promise<void> => {
    const get = await open();
    const [profile] = stage!.profiles();
    site.pages.set('/p/killed', () => {
      for (const pid of browserProcesses(profile!, argument)) process.kill(pid, 'SIGKILL');
    });
    expect(await get('/p/killed')).toMatchObject({ kind: 'failed', reason: 'network' });
    expect(titleOf(await get('/p/good'))).toBe('good');
    expect(stage!.problems).toHaveLength(1);
    await expectNoZombies();
  };

  it('fails with network when the browser is killed, and continues', () => expectNetwork('--remote-debugging-pipe'));

  it('fails with network when the renderer is killed, and continues', { tags: ['nightly'] }, () =>
    expectNetwork('--type=renderer'),
  );

  it('continues when the browser ended between two products', { tags: ['nightly'] }, async () => {
    const get = await open();
    expect(titleOf(await get('/p/good'))).toBe('good');
    const [profile] = stage!.profiles();
    for (const pid of browserProcesses(profile!, '--remote-debugging-pipe')) process.kill(pid, 'SIGKILL');
    await vi.waitFor(() => expect(processesWith(profile!)).toEqual([]), { timeout: 15_000 });
    expect(titleOf(await get('/p/good'))).toBe('good');
  });

  async function expectNotLed(target: string): Promise<void> {
    const get = await open();
    site.pages.set('/p/crash', `<script>location = ${JSON.stringify(target)}</script>`);
    const result = await get('/p/crash');
    expect(titleOf(result)).not.toEqual(expect.stringMatching(/root|data/));
    expect(titleOf(await get('/p/good'))).toBe('good');
    expect(stage!.source.counts.restarts).toBe(0);
  }

  it('a page cannot make the browser open a file', () => expectNotLed('file:///etc/passwd'));

  it.each(['about:crash', 'chrome://crash', 'data:text/html,%3Ch1%3Edata%3C/h1%3E'])(
    'a page cannot make the browser open %s',
    { tags: ['nightly'] },
    expectNotLed,
  );
});

describe('F24: a browser that grows', () => {
  it('is replaced after its page limit, and leaves neither process nor profile', { tags: ['nightly'] }, async () => {
    const get = await open({ recycle: { pages: 2 } });
    const profiles = new Set<string>();
    for (let i = 0; i < 5; i++) {
      expect(titleOf(await get('/p/good'))).toBe('good');
      for (const name of stage!.profiles()) profiles.add(name);
    }
    expect(stage!.source.counts).toMatchObject({ pages: 5, restarts: 2 });
    expect(stage!.profiles()).toHaveLength(1);
    await stage!.source.close();
    expect(stage!.profiles()).toEqual([]);
    for (const profile of profiles) expect(processesWith(profile)).toEqual([]);
    await expectNoZombies();
  });

  it('is killed when one page takes too much memory', { tags: ['nightly'] }, async () => {
    const get = await open({ recycle: { memoryBytes: 400 * 1024 * 1024 } });
    site.pages.set(
      '/p/greedy',
      '<script>const all = []; setInterval(() => all.push(new Uint8Array(2e7).fill(1)), 20)</script>',
    );
    expect(await get('/p/greedy')).toMatchObject({ kind: 'failed', reason: 'too-large' });
    expect(titleOf(await get('/p/good'))).toBe('good');
  });

  it('gives up a page that exceeds the size limit', async () => {
    const get = await open({ maxPageBytes: 10_000 });
    site.pages.set('/p/long', `<h1>long</h1>${'x'.repeat(20_000)}`);
    expect(await get('/p/long')).toMatchObject({ kind: 'failed', reason: 'too-large' });
  });
});

describe('the end of the program', () => {
  it('ends the browser, too, however the program dies', async () => {
    using folder = tempDir();
    const child = spawn(
      process.execPath,
      [fileURLToPath(new URL('mortal-owner.ts', import.meta.url)), chromiumPath(), folder.path, `${site.url}/p/good`],
      { stdio: ['ignore', 'pipe', 'inherit'] },
    );
    try {
      for await (const line of createInterface(child.stdout)) if (line === 'ready') break;
      const leader = browserLeader(folder.path);
      expect(listGroup(leader).length).toBeGreaterThan(2);
      child.kill('SIGKILL');
      await vi.waitFor(() => expect(listGroup(leader)).toEqual([]), { timeout: 15_000 });
    } finally {
      child.kill('SIGKILL');
    }
  });

  it('removes the profiles that a killed program left', async () => {
    using folder = tempDir();
    mkdirSync(folder.file('chromium-left', 'Default'), { recursive: true });
    stage = await openStage(site, { profileDirectory: folder.path });
    expect(readdirSync(folder.path)).not.toContain('chromium-left');
  });
});

it('explains what to do when there is no browser', async () => {
  await expect(openStage(site, { executablePath: '/nowhere/chromium' })).rejects.toMatchObject({
    code: 'platform',
    message: expect.stringContaining('/nowhere/chromium did not start'),
    hint: expect.stringContaining('apt-get install'),
  });
});

/** Processes of the group whose browser uses the profile. */
function browserProcesses(profile: string, argument: string): number[] {
  return listGroup(browserLeader(profile)).filter((pid) =>
    readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(argument),
  );
}

/** The browser's own process: its children do not all name the profile. */
function browserLeader(profile: string): number {
  const [leader] = processesWith(profile).filter((pid) =>
    readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('pipe'),
  );
  return Number(leader);
}
