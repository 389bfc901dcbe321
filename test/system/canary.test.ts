/**
 * `npm run canary` as a user with an account would start it, on endpoints that cost nothing.
 *
 * @module-tag nightly
 */
import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { bundleFor } from '../../orchestrator/core/cloud-access/launch-template.ts';
import { ensureBucket } from '../../orchestrator/core/cloud/bucket.ts';
import type { CanaryResult } from '../canary/play.ts';
import { findMotoServer, sayMotoIsMissing, startMotoServer } from '../support/endpoints/moto-server.ts';
import { findLeftovers, killLeftovers, type RunningCommand, startCommand, waitFor } from '../support/processes.ts';
import { startSandbox } from '../support/sandbox/start-sandbox.ts';
import { SHOP_MAPPING } from '../support/shop/product.ts';
import { startShop } from '../support/shop/start-shop.ts';
import { type TempDir, tempDir } from '../support/temp-dir.ts';
import { freePort, QUIET_ADDRESS } from '../support/free-port.ts';

const MAIN = fileURLToPath(new URL('../canary/main.ts', import.meta.url));

const KEYS = { accessKeyId: 'test', secretAccessKey: 'not-a-real-key' };

let folder: TempDir;
beforeEach(() => {
  folder = tempDir('crawlfleet-system-');
});
afterEach(() => {
  killLeftovers(folder.path);
  folder.remove();
});

// Its own folder is made below TMPDIR, so that the test finds whatever it starts.
const canary = (...args: string[]): RunningCommand =>
  startCommand(process.execPath, [MAIN, ...args], {
    env: {
      TMPDIR: folder.path,
      AWS_ACCESS_KEY_ID: KEYS.accessKeyId,
      AWS_SECRET_ACCESS_KEY: KEYS.secretAccessKey,
      AWS_EC2_METADATA_DISABLED: 'true',
    },
    timeoutMs: 170_000,
  });

async function expectProved(command: RunningCommand): Promise<void> {
  const { exitCode, stdout, stderr } = await command.finished;
  expect(exitCode, `${stdout}\n${stderr}`).toBe(0);
  const result = JSON.parse(stdout) as CanaryResult;
  expect(result.proofs.filter((p) => !p.holds)).toEqual([]);
  expect(result.proofs).toHaveLength(8);
  expect(result.cost!.actual).toBeLessThan(0.2);
  expect(findLeftovers(folder.path).filter(({ command }) => command.includes('crawlfleet-canary-'))).toEqual([]);
  expect(canaryFolders()).toEqual([]);
}

const canaryFolders = (): string[] => readdirSync(folder.path).filter((name) => name.startsWith('crawlfleet-canary-'));

it('proves a whole run on the sandbox, and leaves nothing behind', async () => {
  await expectProved(canary('--sandbox', '--json'));
});

it('proves a whole run on moto, with stand-ins for its mock services', async ({ skip }) => {
  const program = await findMotoServer();
  if (program === null) {
    sayMotoIsMissing('a canary on a third-party AWS emulator');
    return skip('no moto_server');
  }
  const moto = await startMotoServer(program);
  try {
    await expectProved(canary('--endpoint', moto.endpoint, '--json'));
  } finally {
    await moto.stop();
  }
});

it('proves a run with the checks, rights and time limits of AWS, with the sandbox in its place', async () => {
  const instanceType = process.arch === 'arm64' ? 't4g.nano' : 't3.nano';
  // As on AWS the bundle brings its own Node, and this sandbox runs that bundle, with the Node of this installation.
  const bundle = await bundleFor({
    render: 'http',
    onAws: true,
    instanceType,
    configFile: folder.file('fleet.yaml'),
    output: { line: () => undefined },
  });
  const sandbox = await startSandbox({ dataDir: folder.file('aws'), allowBundles: [bundle.sha256] });
  try {
    const place = { region: 'ap-northeast-1', endpoint: sandbox.endpoint, bucket: 'example-crawl' };
    await ensureBucket({ ...place, credentials: KEYS });
    const listen = `${QUIET_ADDRESS}:${await freePort(QUIET_ADDRESS)}`;
    const aws = {
      ...place,
      instance_profile: 'crawlfleet-instance',
      owner: 'main-1',
      instance_types: [instanceType],
      // This machine may be in EC2, and is not in the sandbox's VPC.
      balancer_scheme: 'internal',
    };
    writeFileSync(folder.file('fleet.yaml'), stringify({ aws, server: { listen, url: `http://${listen}` } }));
    const command = canary(
      '--config',
      folder.file('fleet.yaml'),
      '--as-aws',
      '--site-listen',
      `${QUIET_ADDRESS}:0`,
      '--yes',
      '--json',
    );
    await expectProved(command);
    expect(command.stderr()).toContain('ok       EC2 rights: allowed: ec2:DescribeInstances');
  } finally {
    await sandbox.stop();
  }
});

it('crawls the configured site with --ids, and fails when a product is missing', async () => {
  const shop = await startShop({ products: 19 });
  try {
    const site = { product_url: shop.productUrl, interval: '200ms', mapping: SHOP_MAPPING };
    writeFileSync(folder.file('fleet.yaml'), stringify({ site }));
    writeFileSync(
      folder.file('ids.txt'),
      Array.from({ length: 20 }, (_, i) => `P${String(i + 1).padStart(5, '0')}\n`).join(''),
    );
    const args = ['--config', folder.file('fleet.yaml'), '--ids', folder.file('ids.txt')];
    const { exitCode, stdout, stderr } = await canary('--sandbox', '--json', ...args).finished;
    expect(exitCode, stderr).toBe(1);
    const result = JSON.parse(stdout) as CanaryResult;
    expect(result.proofs).toHaveLength(6);
    expect(result.proofs.filter((p) => !p.holds)).toMatchObject([
      { detail: expect.stringContaining('19 of 20 stored, 1 gone') as string },
    ]);
  } finally {
    await shop.stop();
  }
});

it('on Ctrl-C ends the run, proves nothing, and leaves no process behind', async () => {
  const command = canary('--sandbox', '--json');
  await waitFor(() => command.stderr().includes('crawling '), { what: 'the canary to crawl', timeoutMs: 90_000 });
  command.kill('SIGINT');
  const { exitCode, stdout } = await command.finished;
  expect(exitCode).toBe(1);
  expect(JSON.parse(stdout)).toMatchObject({ failure: 'interrupted', proofs: [] });
  expect(findLeftovers(folder.path)).toEqual([]);
  // The folder is kept for inspection.
  const kept = canaryFolders();
  expect(kept).toHaveLength(1);
  expect(existsSync(folder.file(kept[0]!, 'canary.db'))).toBe(true);
});
