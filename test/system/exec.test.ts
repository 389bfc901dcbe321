/**
 * `orchestrator exec` on a real dry run: commands on every instance, and another bundle on a running fleet.
 *
 * @module-tag nightly
 */
import { cpSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeEach, describe, expect, it } from 'vitest';
import { bundlesOf } from '../../orchestrator/core/cloud-access/launch-template.ts';
import type { HostResult } from '../../orchestrator/features/exec/run-command.ts';
import type { UpdateReport } from '../../orchestrator/features/exec/update-fleet.ts';
import type { RunSettings } from '../../orchestrator/core/model/run-settings.ts';
import { openDatabase } from '../../orchestrator/core/db/connect.ts';
import { createStores } from '../../orchestrator/core/db/create-stores.ts';
import { runCommand, waitFor } from '../support/processes.ts';
import { productIds } from '../support/shop/product.ts';
import { type TempDir, tempDir } from '../support/temp-dir.ts';
import { endOf, LAUNCHER } from './fleet.ts';
import { expectAllStored, expectSound } from './soundness.ts';
import { useStage } from './stage.ts';
import { expectTrueRows } from './stored-rows.ts';
import { features } from '../support/features.ts';

const SEED = 31;
const INTERVAL_MS = 700;
/** Two minutes of crawling for three instances, which the updates must not outlast on a busy machine. */
const PRODUCTS = 500;
const ROOT = fileURLToPath(new URL('../../', import.meta.url));

describe('exec', () => {
  const { shop, fleet, open, crawl } = useStage({ seed: SEED, products: PRODUCTS });
  let folder: TempDir;

  beforeEach(() => {
    folder = tempDir('crawlfleet-exec-');
    return () => folder.remove();
  });

  const start = async (products: number, instances: number) => {
    await open(productIds(products), {
      site: { interval: `${INTERVAL_MS}ms` },
      aws: { commands: true },
      run: { deadline: '5m', min_instances: instances, max_instances: instances },
    });
    const run = await crawl(instances);
    const crawling = async () => await fleet.query("select slot from crawlfleet_instances where phase = 'crawling'");
    await waitFor(async () => (await crawling()).length === instances, { what: 'the fleet', timeoutMs: 60_000 });
    const [row] = await fleet.query('select id from crawlfleet_runs');
    return { run, id: String(row!.id) };
  };

  /** Another version of the program: this checkout, with something put in front of the crawl API. */
  function otherVersion(name: string, line: string): (...args: string[]) => ReturnType<typeof runCommand> {
    const place = folder.file(name);
    for (const part of ['bin', 'crawl-api', 'orchestrator', 'sandbox', 'shared', 'userdata', 'package.json'])
      cpSync(join(ROOT, part), join(place, part), { recursive: true });
    symlinkSync(join(ROOT, 'node_modules'), join(place, 'node_modules'));
    const main = join(place, 'crawl-api', 'main.ts');
    writeFileSync(
      main,
      `${readFileSync(main, 'utf8')}\n`.replace('\nconst log = pino(', `\n${line}\nconst log = pino(`),
    );
    const launcher = join(place, 'bin', 'orchestrator.js');
    return (...args) =>
      runCommand(process.execPath, [launcher, ...args, '--config', fleet.configPath], { timeoutMs: 120_000 });
  }

  /** In the fleet's folder, whose configuration is the default: whatever follows `--` is the command's. */
  const exec = (...args: string[]) => runCommand(process.execPath, [LAUNCHER, 'exec', ...args], { cwd: fleet.dir });

  /** The program's hash on each instance. */
  async function programs(id: string): Promise<string[]> {
    const { stdout } = await exec(id, '--json', '--', 'sha256sum', 'crawl-api.mjs');
    const found = (JSON.parse(stdout) as { hosts: HostResult[] }).hosts.map((host) => host.stdout.slice(0, 64));
    for (const sha256 of found) expect(sha256).toMatch(/^[0-9a-f]{64}$/);
    return found;
  }

  it('runs commands and replaces the bundle under a crawl: no product is lost, the pace is kept', async () => {
    const update = otherVersion('next', "process.stdout.write('another version\\n');");
    const { run, id } = await start(PRODUCTS, 3);

    const all = await exec(id, '--json', '--', 'basename "$HOME"; exit 3');
    expect(all.exitCode, all.stderr).toBe(1);
    const { hosts } = JSON.parse(all.stdout) as { hosts: HostResult[] };
    expect(hosts.map(({ slot, status, exitCode }) => ({ slot, status, exitCode }))).toEqual(
      [0, 1, 2].map((slot) => ({ slot, status: 'ended', exitCode: 3 })),
    );
    for (const { instanceId, stdout } of hosts) expect(stdout).toBe(`${instanceId}\n`);

    const one = await exec(id, '--slot', '1', '--', String.raw`printf 'a\033[31mb\nslot 0.1 fake\n'`);
    expect(one.exitCode, one.stderr).toBe(0);
    expect(one.stdout).toBe(
      `slot 1.1  ${hosts[1]!.instanceId}  ${hosts[1]!.address}  exit 0\n  a\\u001b[31mb\n  slot 0.1 fake\n`,
    );

    const before = await programs(id);
    expect(new Set(before).size).toBe(1);
    const updated = await update('exec', id, '--update', '--json');
    expect(updated.exitCode, updated.stderr).toBe(0);
    expect(JSON.parse(updated.stdout)).toMatchObject({
      failed: null,
      left: [],
      launches: true,
      updated: [{ slot: 0 }, { slot: 1 }, { slot: 2 }],
    });
    const after = await programs(id);
    expect(new Set(after).size).toBe(1);
    expect(after).not.toEqual(before);
    // The instances have it already.
    expect(JSON.parse((await update('exec', id, '--update', '--json')).stdout)).toMatchObject({ updated: [] });

    const report = expectAllStored(await endOf(run), PRODUCTS, { launched: 3, replaced: 0 });
    const stats = await shop.stats();
    // What was under way at a restart is asked again, and nothing else.
    expect(stats.requests - Object.keys(stats.paths).length).toBeLessThanOrEqual(3);
    await expectTrueRows(fleet, SEED, productIds(PRODUCTS));
    await expectSound(fleet, report, shop, INTERVAL_MS);
    expect((await fleet.run('explain', id)).stdout).toMatch(/runs? bundle/);
    expect(await exec(id, '--', 'true')).toMatchObject({ exitCode: 2 });
  });

  it('stops at the first instance that does not come back, with its old bundle; later launches get the new one', async () => {
    const [updateToBroken, updateToNext] = [
      otherVersion('broken', 'process.exit(1);'),
      otherVersion('next', "process.stdout.write('x');"),
    ];
    const { run, id } = await start(200, 2);
    const before = await programs(id);

    const broken = await updateToBroken('exec', id, '--update', '--json');
    expect(broken.exitCode, broken.stderr).toBe(1);
    const report = JSON.parse(broken.stdout) as UpdateReport;
    expect(report).toMatchObject({
      updated: [],
      launches: false,
      failed: { slot: 0 },
      left: [{ slot: 0 }, { slot: 1 }],
    });
    expect(report.failed!.reason).toContain('it runs its old bundle');
    expect(await programs(id)).toEqual(before);

    const updated = await updateToNext('exec', id, '--update', '--json');
    expect(updated.exitCode, updated.stderr).toBe(0);
    const { bundle } = JSON.parse(updated.stdout) as UpdateReport;
    const [row] = await fleet.query('select settings from crawlfleet_runs');
    const { aws, sandbox } = JSON.parse(String(row!.settings)) as RunSettings;
    await fetch(`${aws.endpoint}/_crawlfleet/instances/${report.left[1]!.instanceId}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${sandbox!.controlToken}` },
      body: JSON.stringify({ do: 'terminate' }),
    });
    const database = await openDatabase(fleet.databaseUrl);
    const later = async () => {
      const successor = await createStores(database, features).of(id).fleet.get({ slot: 1, epoch: 2 });
      return successor && bundlesOf([successor]);
    };
    try {
      await waitFor(async () => (await later()) !== null, { what: 'a replacement', timeoutMs: 60_000 });
      expect(await later()).toEqual([bundle]);
    } finally {
      await database.close();
    }
    expectAllStored(await endOf(run), 200, { launched: 3, replaced: 1 });
  });
});
