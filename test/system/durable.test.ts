/**
 * F21, F26 and F27 on real parts: an instance that is killed again and again, with a torn journal, or without room.
 *
 * @module-tag nightly
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { buildBundle } from '../../userdata/bundle.ts';
import { type RunningCommand, waitFor } from '../support/processes.ts';
import { startSandbox, type TestSandbox } from '../support/sandbox/start-sandbox.ts';
import { productIds } from '../support/shop/product.ts';
import { type Shop, startShop } from '../support/shop/start-shop.ts';
import { withoutSlowBoots } from '../support/slow-boots.ts';
import { tempDir } from '../support/temp-dir.ts';
import { type Fleet, makeFleet, readReport } from './fleet.ts';
import { expectSound } from './soundness.ts';
import { expectTrueRows } from './stored-rows.ts';

const SEED = 17;
const IDS = productIds(50);

const bundleHash = async (): Promise<string> => (await buildBundle()).sha256;

describe('a damaged instance', () => {
  let shop: Shop;
  let folder: ReturnType<typeof tempDir>;
  let sandbox: TestSandbox;
  let fleet: Fleet;

  beforeAll(async () => {
    shop = await startShop({ seed: SEED, products: 100 });
  });
  afterAll(() => shop.stop());
  beforeEach(async () => {
    await shop.reset();
    folder = tempDir('crawlfleet-durable-');
  });
  afterEach(async () => {
    await fleet.remove();
    await sandbox.stop();
    folder.remove();
  });

  /** One instance: it has every product, and sends every request. */
  async function prepare(maxFailed = '5%', site: Record<string, unknown> = {}): Promise<void> {
    sandbox = await startSandbox({ allowBundles: [await bundleHash()], dataDir: folder.path });
    fleet = await makeFleet({
      engine: 'sqlite',
      productUrl: shop.productUrl,
      ids: IDS,
      config: {
        site,
        aws: { endpoint: sandbox.endpoint },
        run: { deadline: '90s', min_instances: 1, max_instances: 1, max_failed: maxFailed },
      },
    });
  }

  const instancePid = async (): Promise<number | null> => {
    const status = (await sandbox.control('GET', 'status')) as { instances: { pid: number | null }[] };
    return status.instances[0]?.pid ?? null;
  };
  const requests = async (): Promise<number> => (await shop.stats()).requests;

  async function startAndReach(count: number): Promise<RunningCommand> {
    const run = fleet.start('run', '--dry-run', '--json');
    await waitFor(async () => (await requests()) >= count, { what: `${count} requests`, timeoutMs: 60_000 });
    return run;
  }

  /** Kills the instance, runs `then` on its files, and waits until it is back. */
  async function killAnd(then: (journal: string) => void): Promise<void> {
    const pid = (await instancePid())!;
    process.kill(pid, 'SIGSTOP');
    // Frozen first, so that the sandbox does not restart it before the files are modified.
    then(journalPath());
    process.kill(pid, 'SIGKILL');
    const before = await requests();
    await waitFor(async () => (await requests()) > before, { what: 'the crawl to go on', timeoutMs: 30_000 });
  }

  function journalPath(): string {
    const found = readdirSync(folder.path, { recursive: true, encoding: 'utf8' }).filter((path) =>
      path.endsWith('/journal'),
    );
    expect(found).toHaveLength(1);
    return join(folder.path, found[0]!);
  }

  async function expectEnd(run: RunningCommand, asksAgain: number): Promise<void> {
    const result = await run.finished;
    const report = readReport(result);
    expect(withoutSlowBoots(report), `${report.notes.join('\n')}\n${result.stderr}`).toMatchObject({
      exitCode: 0,
      instances: { launched: 1, replaced: 0 },
      products: { stored: IDS.length, failed: 0 },
    });
    const stats = await shop.stats();
    expect(stats.requests - Object.keys(stats.paths).length).toBeLessThanOrEqual(asksAgain);
    await expectTrueRows(fleet, SEED, IDS);
    await expectSound(fleet, report, shop);
  }

  it('F21: killed three times: nothing is lost, at most one product a time is requested again, the pace is kept', async () => {
    await prepare();
    const run = await startAndReach(6);
    for (let kill = 0; kill < 3; kill++) await killAnd(() => undefined);
    await expectEnd(run, 3);
  });

  it('F27: a torn last record costs the product of that record at most', async () => {
    await prepare();
    const run = await startAndReach(8);
    await killAnd((journal) => truncateSync(journal, statSync(journal).size - 7));
    await expectEnd(run, 2);
  });

  it('F26: a full disk stops intake and requests, and the crawl continues when there is room again', async (context) => {
    const instances = join(folder.path, 'instances');
    mkdirSync(instances);
    if (!mountSmallDisk(instances)) return context.skip('this user may not mount a small disk');
    try {
      await prepare();
      const run = await startAndReach(6);
      const filler = join(instances, 'filler');
      fillDisk(filler);
      await waitFor(async () => (await alarms()).some((text) => /disk|space/i.test(text)), {
        what: 'an alarm that the disk is full',
        timeoutMs: 30_000,
      });
      const whileFull = await requests();
      expect(whileFull).toBeLessThan(IDS.length);
      rmSync(filler);
      await waitFor(async () => (await requests()) > whileFull, { what: 'the crawl to go on', timeoutMs: 30_000 });
      await expectEnd(run, 2);
    } finally {
      await sandbox.stop();
      // Lazily: a process that has just ended may still hold it for a moment.
      execFileSync('umount', ['--lazy', instances]);
    }
  });

  async function alarms(): Promise<string[]> {
    const rows = await fleet.query('select * from crawlfleet_events');
    return rows.map((row) => JSON.stringify(row));
  }
});

/** A disk of 24 MB in that folder; false where that is not allowed. */
function mountSmallDisk(path: string): boolean {
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=24m', 'crawlfleet-test', path], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

/** Writes until nothing more fits. */
function fillDisk(path: string): void {
  writeFileSync(path, '');
  for (let bytes = 1 << 20; bytes >= 1; bytes >>= 1) {
    try {
      for (;;) writeFileSync(path, Buffer.alloc(bytes), { flag: 'a' });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
    }
  }
}
