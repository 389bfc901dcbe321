/**
 * The main server that `setup --main-server-on ec2` prints, executed in a Debian root: where Amazon Linux or a network
 * is needed, small scripts play it. The program is the real one: it prints its own unit, as its own user.
 */
import { chmodSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { gunzipSync, gzipSync } from 'node:zlib';
import Sqlite from 'better-sqlite3';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type MainServerSettings, mainServerUserData } from '../../../userdata/main-server.ts';
import { MAX_USER_DATA_BYTES } from '../../../userdata/user-data.ts';
import { NO_ROOT, debianRoot } from '../../support/boot-root/debian-root.ts';
import { runCommand } from '../../support/processes.ts';
import { type TempDir, tempDir } from '../../support/temp-dir.ts';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const STAGE = fileURLToPath(new URL('main-server-stage.sh', import.meta.url));
const SETTINGS: MainServerSettings = {
  region: 'ap-northeast-1',
  bucket: 'example-crawl',
  callbackPort: 8700,
  secret: 'crawlfleet-database',
};
const FLEET = `site: { product_url: "https://shop.example/{id}", mapping: mapping.yaml }
products: { query: "select id from products" }
database: { url: "DATABASE" }
run: { deadline: 4h }
`;

const place = await debianRoot();
if (place === null) console.warn(`LEFT OUT: ${NO_ROOT}`);

describe.skipIf(place === null)('the main server on EC2', { timeout: 120_000 }, () => {
  let folder: TempDir;
  beforeEach(() => {
    folder = tempDir('crawlfleet-main-');
    chmodSync(folder.path, 0o755);
    for (const name of ['bucket', 'bucket/main-server', 'bucket/backups']) mkdirSync(folder.file(name));
    chmodSync(folder.file('bucket/backups'), 0o777);
    put('bucket/main-server/crawlfleet-0.1.0.tgz', '');
    put('bucket/main-server/mapping.yaml', 'fields: { title: h1 }\n');
    put('secret', 'mysql://user:pass@db/shop\n');
  });
  afterEach(() => folder.remove());
  const put = (name: string, content: string | Buffer): void => writeFileSync(folder.file(name), content);

  /** Boots with the settings, and returns what `after` prints in the machine. */
  async function boot(settings: MainServerSettings, database: string, after: string): Promise<string> {
    put('bucket/main-server/fleet.yaml', FLEET.replace('DATABASE', database));
    put('user-data', mainServerUserData(settings));
    put('after', `set -euo pipefail\n${after}`);
    const args = [
      STAGE,
      folder.path,
      place!.root,
      ROOT,
      process.execPath,
      folder.file('user-data'),
      folder.file('after'),
    ];
    const { exitCode, stdout, stderr } = await runCommand(
      'unshare',
      ['-mpnf', '--mount-proc', '--kill-child', 'bash', ...args],
      { timeoutMs: 110_000 },
    );
    expect(exitCode, stderr).toBe(0);
    return stdout;
  }

  it.each([
    ['a URL', 'mysql://user:pass@db/shop', 'mysql://user:pass@db/shop'],
    [
      'what RDS keeps there',
      JSON.stringify({ username: 'u', password: `p@'"$ %`, host: 'db.example', port: 3307, dbname: 'shop' }),
      'mysql://u:p%40%27%22%24%20%25@db.example:3307/shop',
    ],
  ])('starts the schedule with the address of its database from Secrets Manager: %s', async (_, secret, url) => {
    put('secret', secret);
    const after = `cat /etc/crawlfleet/main.env; stat -c '%a' /etc/crawlfleet/main.env
echo ---; cat /calls; echo ---; cat /etc/systemd/system/crawlfleet-main.service.d/start.conf
cat /etc/systemd/system/crawlfleet-main.service; echo ---
systemd-analyze verify --man=no crawlfleet-main.service 2>&1`;
    // The address in fleet.yaml is only there because the key must be.
    const [environment, calls, unit, verified] = (await boot(SETTINGS, 'mysql://in-the-secret/x', after)).split(
      '---\n',
    );
    expect(environment!.trim().split('\n')).toEqual([
      'AWS_REGION=ap-northeast-1',
      'FLEET_SCHEDULE_NAME=main',
      'FLEET_SERVER_LISTEN=0.0.0.0:8700',
      'FLEET_SERVER_URL=http://10.0.0.5:8700',
      `FLEET_DATABASE_URL='${url}'`,
      '600',
    ]);
    expect(calls!.trim().split('\n')).toEqual([
      'dnf install -y nodejs24 nodejs24-npm',
      'systemctl daemon-reload',
      'systemctl enable --now crawlfleet-main.service',
    ]);
    expect(unit).toContain('ExecStartPre=+/etc/crawlfleet/start');
    expect(unit).toContain('User=crawlfleet\nWorkingDirectory=/srv/crawlfleet\n');
    expect(unit).toContain('EnvironmentFile=-/etc/crawlfleet/main.env\n');
    expect(unit).toMatch(
      /ExecStart=\/usr\/local\/bin\/node \S+crawlfleet schedule --config \/srv\/crawlfleet\/fleet.yaml/,
    );
    expect(verified).toBe('');
  });

  it('restores an SQLite file from its newest backup, and backs it up as its user', async () => {
    const database = new Sqlite(folder.file('old.db'));
    database.exec("create table products (id text); insert into products values ('P1')");
    database.close();
    put('bucket/backups/fleet-20260101T120000Z.db.gz', gzipSync('older'));
    put('bucket/backups/fleet-20260102T120000Z.db.gz', gzipSync(readFileSync(folder.file('old.db'))));
    const after = `stat -c '%U %a' /srv/crawlfleet/fleet.db; grep DATABASE /etc/crawlfleet/main.env
systemd-analyze verify --man=no crawlfleet-back-up.timer 2>&1
setpriv --reuid=crawlfleet --regid=crawlfleet --init-groups /opt/crawlfleet/back-up
cat /calls`;
    const stdout = await boot({ ...SETTINGS, secret: null }, 'sqlite:./any.db', after);
    expect(stdout).toMatch(/^crawlfleet 600\nFLEET_DATABASE_URL='sqlite:.\/fleet.db'\n/);
    expect(stdout).toContain('systemctl enable --now crawlfleet-back-up.timer');
    const backups = readdirSync(folder.file('bucket/backups')).toSorted();
    expect(backups).toHaveLength(3);
    put('new.db', gunzipSync(readFileSync(folder.file('bucket/backups', backups.at(-1)!))));
    const copy = new Sqlite(folder.file('new.db'));
    expect(copy.prepare('select id from products').all()).toEqual([{ id: 'P1' }]);
    copy.close();
  });
});

it('fits into the user data of EC2, and passes shellcheck', async ({ skip }) => {
  const probe = await runCommand('shellcheck', ['--version']).catch(() => null);
  if (probe === null) return skip('no shellcheck');
  using scripts = tempDir();
  for (const secret of [null, 'crawlfleet-database']) {
    const script = mainServerUserData({ ...SETTINGS, secret });
    expect(Buffer.byteLength(script)).toBeLessThan(MAX_USER_DATA_BYTES);
    writeFileSync(scripts.file('user-data.sh'), script);
    const { exitCode, stdout } = await runCommand('shellcheck', [scripts.file('user-data.sh')]);
    expect(exitCode, stdout).toBe(0);
  }
});
