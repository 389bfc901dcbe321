/**
 * The package as users install it: packed, installed in an empty folder, and run by each Node that it names; by npx and
 * globally, by a user who is not root, in a path with blanks.
 *
 * @module-tag nightly
 */
import { chmodSync, chownSync, copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { delimiter } from 'node:path';
import Sqlite from 'better-sqlite3';
import { stringify } from 'yaml';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { EXIT } from '../../shared/domain/exit-codes.ts';
import type { RunReport } from '../../orchestrator/core/model/report.ts';
import { findLeftovers, startCommand, waitFor } from '../support/processes.ts';
import { productIds, SHOP_MAPPING } from '../support/shop/product.ts';
import { type Shop, startShop } from '../support/shop/start-shop.ts';
import { type TempDir, tempDir } from '../support/temp-dir.ts';
import { makeFleet } from './fleet.ts';

const ROOT = new URL('../../', import.meta.url);
const { engines, version } = JSON.parse(readFileSync(new URL('package.json', ROOT), 'utf8')) as {
  engines: { node: string };
  version: string;
};
const IDS = productIds(20);

let shop: Shop;
let folder: TempDir;

beforeAll(async () => {
  folder = tempDir('crawlfleet package ');
  shop = await startShop({ products: IDS.length });
  await run('npm', ['pack', '--pack-destination', folder.path], ROOT.pathname);
  await run('npm', ['install', '--no-audit', '--no-fund', `./crawlfleet-${version}.tgz`]);
}, 180_000);
afterAll(async () => {
  await shop.stop();
  folder.remove();
});

async function run(
  file: string,
  args: readonly string[],
  cwd = folder.path,
  env: NodeJS.ProcessEnv = {},
): Promise<string> {
  const { exitCode, stdout, stderr } = await startCommand(file, args, { cwd, env, timeoutMs: 150_000 }).finished;
  if (exitCode !== 0) throw new Error(`${file} ${args.join(' ')} ended with ${exitCode}\n${stdout}\n${stderr}`);
  return stdout;
}

/** The oldest Node that the package allows, from the registry. */
async function oldestNode(): Promise<string> {
  const oldest = `${engines.node.replace('>=', '')}.0`;
  const name = `node-linux-${process.arch}`;
  await run('npm', ['pack', `${name}@${oldest}`]);
  await run('tar', ['-xzf', `${name}-${oldest}.tgz`]);
  return folder.file('package/bin/node');
}

describe('the package', () => {
  it.each([
    ['the oldest Node it allows', oldestNode],
    ['the Node it is developed with', () => Promise.resolve(process.execPath)],
  ])('crawls, publishes and proves a run under %s', async (_, findNode) => {
    const launcher = folder.file('node_modules/crawlfleet/bin/orchestrator.js');
    const program = [await findNode(), launcher] as const;
    const fleet = await makeFleet({ engine: 'sqlite', productUrl: shop.productUrl, ids: IDS, program });
    try {
      const { exitCode, report, stderr } = await fleet.dryRun();
      expect(exitCode, stderr).toBe(EXIT.complete);
      expect(report.products).toMatchObject({ planned: IDS.length, stored: IDS.length });
      expect((await fleet.run('verify')).exitCode).toBe(EXIT.complete);
      const serve = fleet.start('serve', '--listen', '127.0.0.1:0');
      const url = await waitFor(() => /page: (\S+)/.exec(serve.stdout())?.[1], { what: 'the page to be served' });
      expect(await (await fetch(`${url}main.js`)).text()).toContain('crawlfleet');
      serve.kill('SIGTERM');
      expect((await serve.finished).exitCode).toBe(EXIT.complete);
      expect(fleet.leftovers()).toEqual([]);
    } finally {
      await fleet.remove();
    }
  });
});

it('finds the files of deploy/ that setup fills in, and has them for its users', async () => {
  const launcher = folder.file('node_modules/crawlfleet/bin/orchestrator.js');
  const flags = ['--region', 'eu-west-1', '--bucket', 'example-crawl', '--owner', 'main-1', '--main-server-on', 'ec2'];
  const text = await run(process.execPath, [launcher, 'setup', ...flags]);
  for (const type of ['aws_s3_bucket', 'aws_security_group', 'aws_iam_policy', 'aws_instance'])
    expect(text).toContain(`resource "${type}" `);
  for (const file of ['policies/controller.json', 'terraform/bucket.tf'])
    expect(readFileSync(folder.file(`node_modules/crawlfleet/deploy/${file}`), 'utf8')).not.toBe('');
});

/** A user without rights, and without an entry in /etc/passwd; null where this one is not root either. */
const USER = process.getuid?.() === 0 ? 47_110 : null;

describe('a user who is not root', { timeout: 170_000 }, () => {
  let home: string;
  beforeAll(() => {
    home = folder.file('a home');
    // Its folders are open to their maker alone, and this checkout may be.
    chmodSync(folder.path, 0o755);
    for (const name of ['a home', 'a home/a shop', 'node/bin']) mkdirSync(folder.file(name), { recursive: true });
    copyFileSync(process.execPath, folder.file('node/bin/node'));
    if (USER !== null) for (const path of [home, folder.file('a home/a shop')]) chownSync(path, USER, USER);
  });

  const asUser = (file: string, ...args: string[]): Promise<string> => {
    const [program, ...rest] =
      USER === null
        ? [file, ...args]
        : ['setpriv', `--reuid=${USER}`, `--regid=${USER}`, '--clear-groups', '--', file, ...args];
    const PATH = [folder.file('node/bin'), folder.file('a home/global/bin'), process.env.PATH].join(delimiter);
    // Only npm gets a home folder: a container started with another user ID has none either.
    const HOME = file.startsWith('np') ? home : undefined;
    const env = { PATH, HOME, npm_config_cache: folder.file('a home/.npm'), npm_config_prefix: undefined };
    return run(program, rest, folder.file('a home/a shop'), env);
  };

  it('runs it by npx in an empty folder, under both names', async () => {
    const packed = `--package=${folder.file(`crawlfleet-${version}.tgz`)}`;
    for (const name of ['crawlfleet', 'orchestrator'])
      expect(await asUser('npx', '--yes', packed, '--', name, '--version')).toBe(`${version}\n`);
  });

  it('installs it globally, and crawls with it', async () => {
    await asUser(
      'npm',
      'install',
      '-g',
      '--no-audit',
      '--no-fund',
      `--prefix=${folder.file('a home/global')}`,
      folder.file(`crawlfleet-${version}.tgz`),
    );
    expect(await asUser('orchestrator', '--version')).toBe(`${version}\n`);
    writeFileSync(
      folder.file('a home/a shop/fleet.yaml'),
      stringify({
        site: { product_url: shop.productUrl, interval: '200ms', user_agent: 'test/1.0', mapping: SHOP_MAPPING },
        products: { query: 'select id from products' },
        database: { url: 'sqlite:./fleet.db' },
        run: { deadline: '60s', min_instances: 2 },
      }),
    );
    const database = new Sqlite(folder.file('a home/a shop/fleet.db'));
    database.exec('create table products (id text)');
    for (const id of IDS) database.prepare('insert into products values (?)').run(id);
    database.close();
    if (USER !== null) chownSync(folder.file('a home/a shop/fleet.db'), USER, USER);
    const report = JSON.parse(await asUser('crawlfleet', 'run', '--dry-run', '--json')) as RunReport;
    expect(report.products).toMatchObject({ planned: IDS.length, stored: IDS.length });
    await asUser('crawlfleet', 'verify');
    expect(findLeftovers(home)).toEqual([]);
  });
});
