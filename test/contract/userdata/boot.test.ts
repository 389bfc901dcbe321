/**
 * The user data executed: as cloud-init starts it, in a Debian root with a network of its own, where a small script
 * replaces systemd. Each machine ends in one of two ways: its program sends hello, or it logs why not and powers off.
 */
import { createHash } from 'node:crypto';
import { createWriteStream, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { packArchive } from '../../../userdata/archive.ts';
import { buildBundle } from '../../../userdata/bundle.ts';
import type { RuntimePlatform } from '../../../userdata/node-release.ts';
import { packRuntime } from '../../../userdata/node-runtime.ts';
import { type Boot, bootMachine, type BootPlan } from '../../support/boot-root/boot.ts';
import { NO_ROOT, debianRoot } from '../../support/boot-root/debian-root.ts';
import { type TempDir, tempDir } from '../../support/temp-dir.ts';

const place = await debianRoot();
if (place === null) console.warn(`LEFT OUT: ${NO_ROOT}`);

const ARM = ['daemon-reload', 'enable --now crawlfleet-power-off.timer'];
const POWER_OFF = 'poweroff --no-block';

// bootMachine has its own limit of two minutes, and reports what happened until then.
describe.skipIf(place === null)('a machine that boots with the user data', { timeout: 180_000 }, () => {
  let folder: TempDir;
  /** With a Node of its own, and without. */
  let whole: { file: string; sha256: string };
  let bare: { file: string; sha256: string };
  beforeAll(async () => {
    folder = tempDir('crawlfleet-boot-test-');
    const platform = `linux-${process.arch}` as RuntimePlatform;
    const runtime = await packRuntime(platform, { cacheDir: join(place!.cache, 'runtime') });
    const write = async (name: string, options: Parameters<typeof buildBundle>[0]) => {
      const bundle = await buildBundle(options);
      await pipeline(Readable.from(bundle.open()), createWriteStream(folder.file(name)));
      return { file: folder.file(name), sha256: bundle.sha256 };
    };
    whole = await write('whole.tar.gz', { runtime });
    bare = await write('bare.tar.gz', {});
  }, 1_000_000);
  afterAll(() => folder?.remove());

  const boot = (changes: Partial<BootPlan> = {}): Promise<Boot> =>
    bootMachine({ root: place!.root, archive: whole.file, sha256: whole.sha256, powerOffInMs: 900_000, ...changes });

  it('fetches, checks and starts the program as a separate user, with the Node that came with it', async () => {
    const machine = await boot();
    expect(machine.console).toContain('crawlfleet: run run-boot, slot 0, epoch 1\n');
    expect(machine.hello, machine.console).toMatchObject({
      instanceId: 'i-0123456789abcdef0',
      macOk: true,
      program: expect.stringMatching('^/opt/crawlfleet/node = .*/opt/crawlfleet/node$'),
      user: 'crawlfleet',
    });
    expect(machine.exitCode).toBe(0);
    // The program's own requests, under IMDSv2.
    expect(machine.asked[0]).toBe('PUT /latest/api/token');
    expect(machine.asked).toContain('GET /latest/user-data');
    expect(machine.systemctl).toEqual([...ARM, 'daemon-reload', 'enable --now crawlfleet.service']);
    // The archive is not left on the disk.
    expect(machine.installed).toEqual(['crawl-api.mjs', 'node']);
    console.log(`from power on to hello: ${machine.hello!.afterMs} ms`);
  });

  it("runs a bundle without Node with the image's Node", async () => {
    const machine = await boot({ archive: bare.file, sha256: bare.sha256, imageNode: process.execPath });
    expect(machine.hello, machine.console).toMatchObject({
      macOk: true,
      program: '/usr/local/bin/node = usr/local/bin/node',
      user: 'crawlfleet',
    });
  });

  it('leaves units that systemd accepts without a warning', async () => {
    const machine = await boot();
    expect(Object.keys(machine.units).sort()).toEqual([
      'crawlfleet-power-off.service',
      'crawlfleet-power-off.timer',
      'crawlfleet.service',
    ]);
    const timer = machine.units['crawlfleet-power-off.timer']!;
    const { OnCalendar, OnBootSec } = Object.fromEntries(timer.split('\n').map((line) => line.split('=')));
    const inMs = Date.parse(OnCalendar!.replace(' ', 'T').replace(' UTC', 'Z')) - Date.now();
    expect(inMs).toBeGreaterThan(700_000);
    expect(inMs).toBeLessThan(901_000);
    expect(OnBootSec).toBe('960s');
    expect(machine.verified).toEqual({ exitCode: 0, output: '' });
  });

  type Failure = [what: string, plan: () => Partial<BootPlan>, says: RegExp];
  const failures: Failure[] = [
    ['the bundle has another hash', () => ({ archive: bare.file }), /the bundle has the wrong hash/],
    [
      'the URL of the bundle has expired',
      () => ({ archive: null }),
      /the bundle cannot be fetched: HTTP 403 AccessDenied; powering off/,
    ],
    [
      'there is no Node anywhere',
      () => ({ archive: bare.file, sha256: bare.sha256 }),
      /neither the bundle nor this image has Node; it needs 22\.19 or newer/,
    ],
    [
      'a step fails unexpectedly',
      () => ({ prepare: 'printf "#!/bin/sh\\nexit 9\\n" > /usr/sbin/useradd' }),
      /boot failed: line \d+; powering off/,
    ],
  ];
  const furtherFailures: Failure[] = [
    ['its time is over already', () => ({ powerOffInMs: -1_000 }), /the run is over/],
    [
      "the image's Node is too old",
      () => ({
        archive: bare.file,
        sha256: bare.sha256,
        prepare: 'printf "#!/bin/sh\\necho v22.18.0\\n" > /usr/local/bin/node; chmod 755 /usr/local/bin/node',
      }),
      /this image has Node v22\.18\.0; it needs 22\.19 or newer/,
    ],
    [
      "the bundle's Node lacks a library of the system",
      () => ({ prepare: 'rm -f /lib/x86_64-linux-gnu/libstdc++.so.6 /usr/lib/*/libstdc++.so.6' }),
      /the bundle's Node does not start on this machine: .*libstdc/,
    ],
    ['the archive is invalid', () => rubbish(), /the bundle cannot be unpacked/],
    ['a program is missing that every image has', () => ({ prepare: 'rm /usr/bin/curl' }), /cannot be fetched: .*curl/],
  ];
  function rubbish(): Partial<BootPlan> {
    const content = packArchive(Buffer.from('x'.repeat(2_000))).subarray(0, 50);
    writeFileSync(folder.file('rubbish'), content);
    return { archive: folder.file('rubbish'), sha256: createHash('sha256').update(content).digest('hex') };
  }

  const expectFailure = async (...[, plan, says]: Failure): Promise<void> => {
    const machine = await boot(plan());
    expect(machine.console).toMatch(says);
    expect(machine.console.match(/boot failed/g)).toHaveLength(1);
    expect(machine.systemctl).toEqual([...ARM, POWER_OFF]);
    expect(machine.hello).toBeNull();
    expect(machine.exitCode).toBe(1);
  };
  it.each(failures)('logs why and powers off when %s; the timer was armed before', expectFailure);
  it.each(furtherFailures)(
    'logs why and powers off when %s; the timer was armed before, too',
    { tags: ['nightly'] },
    expectFailure,
  );

  it('powers off even when the timer cannot be armed', async () => {
    const machine = await boot({
      prepare:
        'sed -i \'2i case "$*" in *timer) echo "$*" >> /var/log/systemctl.log; exit 1 ;; esac\' /usr/bin/systemctl',
    });
    expect(machine.console).toMatch(/boot failed: line \d+; powering off/);
    expect(machine.systemctl).toEqual([...ARM, POWER_OFF]);
  });
});
