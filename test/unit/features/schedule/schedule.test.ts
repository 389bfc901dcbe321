/** What `orchestrator schedule` prints (unit file, crontab, due times), and which configurations it refuses. */
import { features, readConfig } from '../../../support/features.ts';
import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { scheduleCommand } from '../../../../orchestrator/features/schedule/command.ts';
import type { Output } from '../../../../orchestrator/cli/output.ts';
import { crontabLines, systemdUnit, unitName } from '../../../../orchestrator/features/schedule/print.ts';
import { findProgram } from '../../../support/find-program.ts';
import { type TempDir, tempDir } from '../../../support/temp-dir.ts';

let folder: TempDir;
let lines: string[];
let documents: unknown[];
const output: Output = {
  json: true,
  line: (text = '') => void lines.push(text),
  document: (value) => void documents.push(value),
};

beforeEach(() => {
  folder = tempDir('crawlfleet-schedule-');
  [lines, documents] = [[], []];
});
afterEach(() => folder.remove());

function configure(schedule: string): string {
  const file = folder.file('fleet.yaml');
  writeFileSync(
    file,
    `site: { product_url: "http://127.0.0.1:1/{id}", mapping: { fields: { title: h1 } } }
products: { query: "select id from products" }
database: { url: "sqlite:./data/fleet.db" }
schedule: { ${schedule} }
`,
  );
  return file;
}

const options = (configPath: string) => ({
  configPath,
  environment: {},
  features,
  processEnvironment: {},
  launcher: '/opt/crawlfleet/bin/orchestrator.js',
  dryRun: false,
  next: null,
  printSystemd: false,
  printCrontab: false,
});

describe('the schedule section', () => {
  it('defaults to a nightly run in UTC', () => {
    expect(readConfig(configure(''), {}).values.schedule).toEqual({
      cron: '0 2 * * *',
      timezone: 'UTC',
      if_running: 'skip',
      catch_up: 3_600_000,
      name: null,
    });
  });

  it.each([
    ['cron: "0 26 * * *"', 'line 4: schedule.cron: must be a cron expression'],
    ['cron: "0 2 30 2 *"', 'line 4: schedule.cron: is never due'],
    ['timezone: Asia/Tokio', 'line 4: schedule.timezone: must be a time zone such as Asia/Tokyo'],
    ['webhok: "http://h"', 'line 4: schedule.webhok: unknown key'],
    ['if_running: both', 'line 4: schedule.if_running'],
    ['catch_up: soon', 'line 4: schedule.catch_up: must be a duration'],
    ['cron: "* * *"', 'line 4: schedule.cron: must be a cron expression'],
    ['cron: daily', 'line 4: schedule.cron: must be a cron expression'],
  ])('with %s is refused', (text, fault) => {
    expect(() => readConfig(configure(text), {})).toThrow(fault);
  });

  it('can switch off catching up on missed runs, also through the environment', () => {
    const { schedule } = readConfig(configure('catch_up: 0s'), { FLEET_SCHEDULE_CRON: '@hourly' }).values;
    expect(schedule).toMatchObject({ catch_up: 0, cron: '@hourly' });
  });
});

it.each(['*/5 * * * * *', '@daily', '0 2 L * *', '0 0 29 2 *', '2020-12-24T00:00:00'])(
  'schedule.cron may be %s',
  (cron) => {
    expect(readConfig(configure(`cron: "${cron}"`), {}).values.schedule.cron).toBe(cron);
  },
);

describe('schedule --next', () => {
  it('prints due times and does nothing else', async () => {
    const configPath = configure('timezone: Asia/Tokyo');
    expect(await scheduleCommand({ ...options(configPath), next: 3 }, output)).toBe(0);
    const [document] = documents as { next: string[] }[];
    expect(document!.next).toHaveLength(3);
    for (const time of document!.next) expect(time).toMatch(/T17:00:00\.000Z$/);
    expect(lines[0]).toContain('02:00:00 Asia/Tokyo');
  });

  it('excludes the other two modes', async () => {
    const both = { ...options(configure('')), next: 1, printCrontab: true };
    await expect(scheduleCommand(both, output)).rejects.toMatchObject({ code: 'usage' });
  });
});

describe('npm, with which some runs fetch the Node of their instances', () => {
  /** The output for a user who has npm in these folders. */
  async function pathLine(kind: 'printCrontab' | 'printSystemd', path: string): Promise<string> {
    const printing = { ...options(configure('')), processEnvironment: { PATH: path }, [kind]: true };
    expect(await scheduleCommand(printing, output)).toBe(0);
    const [printed] = documents.splice(0) as { crontab?: string; unit?: string }[];
    return (printed!.crontab ?? printed!.unit)!;
  }
  function npmIn(name: string, mode = 0o755): string {
    mkdirSync(folder.file(name), { recursive: true });
    writeFileSync(folder.file(name, 'npm'), '#!/bin/sh\n');
    chmodSync(folder.file(name, 'npm'), mode);
    return folder.file(name);
  }

  it.each(['printCrontab', 'printSystemd'] as const)('is also found without a shell: %s', async (kind) => {
    const first = npmIn('nvm');
    const path = [folder.file('nowhere'), 'relative', '', npmIn('no-program', 0o644), first, npmIn('other')].join(':');
    const printed = await pathLine(kind, path);
    const usual = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';
    expect(printed).toMatch(new RegExp(`^(Environment=)?PATH=${first}:${dirname(process.execPath)}:${usual}$`, 'm'));
    expect(printed).not.toMatch(/^# No npm/m);
  });

  it.each(['printCrontab', 'printSystemd'] as const)('is reported when it is missing: %s', async (kind) => {
    const printed = await pathLine(kind, folder.file('nowhere'));
    expect(printed).toMatch(/^# No npm is on your PATH/m);
    expect(printed).toMatch(new RegExp(`^(Environment=)?PATH=${dirname(process.execPath)}:/usr/local/sbin:`, 'm'));
  });
});

const PLACE = {
  node: '/opt/node 24/bin/node',
  launcher: '/opt/crawlfleet/bin/orchestrator.js',
  configFile: "/srv/100% shop's/$HOME/fleet.yaml",
  workingDirectory: "/srv/100% shop's/$HOME",
  dryRun: false,
  userPath: undefined,
};

const analyze = await findProgram('systemd-analyze');

describe('schedule --print-systemd', () => {
  it('uses absolute paths and escapes what systemd would interpret', () => {
    const unit = systemdUnit({ ...PLACE, dryRun: true }, 'my shop', 'crawl', [PLACE.workingDirectory]);
    expect(unit).toContain(
      `ExecStart="/opt/node 24/bin/node" /opt/crawlfleet/bin/orchestrator.js schedule --config "/srv/100%% shop's/$$HOME/fleet.yaml" --dry-run\n`,
    );
    expect(unit).toContain(`WorkingDirectory=/srv/100%% shop's/$HOME\n`);
    expect(unit).toContain(`ReadWritePaths="/srv/100%% shop's/$HOME"\n`);
    expect(unitName('my_shop')).toBe('crawlfleet-my_shop.service');
    expect(unit).toContain('KillMode=process\n');
    // A program that a run starts must be found and have a place for its files: /opt and the home folder are read-only.
    expect(unit).toContain(`Environment="PATH=/opt/node 24/bin:/usr/local/sbin:`);
    expect(unit).toContain(`Environment="npm_config_cache=/srv/100%% shop's/$HOME/.crawlfleet/npm"\n`);
  });

  it('has a different file name for each schedule', () => {
    const units = ['my shop', 'my-shop', 'my/shop', '商品', '価格'].map((name) => unitName(name));
    expect(new Set(units).size).toBe(units.length);
    for (const name of units) expect(name).toMatch(/^crawlfleet-[A-Za-z0-9_-]+\.service$/);
    const envs = ['商品', '価格'].map((name) => {
      const unit = systemdUnit(PLACE, name, 'crawl', ['/srv']);
      return /EnvironmentFile=-(\S+)/.exec(unit)?.[1];
    });
    expect(envs[0]).not.toBe(envs[1]);
  });

  it.skipIf(analyze === null)('passes systemd-analyze', async () => {
    const configPath = configure('');
    expect(await scheduleCommand({ ...options(configPath), printSystemd: true }, output)).toBe(0);
    const [{ unit }] = documents as [{ unit: string }];
    mkdirSync(folder.file('units'));
    const file = folder.file('units', 'crawlfleet-test.service');
    // systemd-analyze checks that the files named in a unit exist.
    writeFileSync(file, unit.replace('/opt/crawlfleet/bin/orchestrator.js', process.execPath));
    const checked = spawnSync(analyze!, ['verify', '--man=no', '--recursive-errors=no', file], { encoding: 'utf8' });
    expect(checked.stderr.split('\n').filter((line) => line.includes('crawlfleet-test'))).toEqual([]);
    expect(checked.status).toBe(0);
    expect(unit).toContain(`ReadWritePaths=${folder.path} ${folder.file('data')}\n`);
    expect(unit).toContain('Restart=always');
  });
});

describe('schedule --print-crontab', () => {
  const crontab = (cron: string): string => crontabLines(PLACE, cron, 'Asia/Tokyo');

  it('prints two lines that cron and the shell interpret as intended', () => {
    const printed = crontab('0 2 * * *')
      .split('\n')
      .filter((line) => line !== '' && !line.startsWith('#'));
    expect(printed.slice(0, 2)).toEqual([
      'CRON_TZ=Asia/Tokyo',
      expect.stringMatching(/^PATH=\/opt\/node 24\/bin:\/usr\/local\/sbin:/),
    ]);
    expect(printed).toHaveLength(4);
    // cron turns \% into % and passes the rest to the shell.
    const command = printed[2]!.slice('0 2 * * * '.length).replaceAll('\\%', '%');
    expect(printed[2]!.replaceAll('\\%', '')).not.toContain('%');
    const shown = command.replace(/^cd (.*?) && mkdir -p \.crawlfleet && /, '').replace(/ >>.*$/, '');
    const said = spawnSync('sh', ['-c', `set -- ${shown}; printf '%s\\n' "$@"`], { encoding: 'utf8' });
    const { node, launcher, configFile } = PLACE;
    expect(said.stdout.trim().split('\n')).toEqual([node, launcher, 'run', '--yes', '--json', '--config', configFile]);
    expect(printed[3]).toMatch(/^@reboot .* resume --json /);
  });

  it.each(['0 2 * * MON-FRI', '@daily', '*/15 1-5 * JAN,JUL *'])('accepts %s', (cron) => {
    expect(crontab(cron)).toContain(`\n${cron} cd `);
  });

  it.each(['*/5 * * * * *', '0 2 L * *', '0 2 15W * *', '0 2 l * *', '0 2 * * 5l', '0 2 * * MON#2'])(
    'refuses %s, which cron does not support',
    (cron) => {
      expect(() => crontab(cron)).toThrow('cron does not understand schedule.cron');
    },
  );
});
