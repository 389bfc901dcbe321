/**
 * F21, F26 and F27 on real parts: an instance that is killed again and again, with a torn journal, or without room.
 *
 * @module-tag nightly
 */
import { readdirSync, statSync, symlinkSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { type RunningCommand, waitFor } from '../support/processes.ts';
import { productIds } from '../support/shop/product.ts';
import { fillDisk, mountSmallDisk } from '../support/small-disk.ts';
import { tempDir } from '../support/temp-dir.ts';
import { endOf } from './fleet.ts';
import { expectAllStored, expectSound } from './soundness.ts';
import { useStage } from './stage.ts';
import { expectTrueRows } from './stored-rows.ts';

const SEED = 17;
const IDS = productIds(50);

describe('a damaged instance', () => {
  const { shop, fleet, sandbox, startSandbox, open, crawl } = useStage({ seed: SEED, products: 100 });
  let folder: ReturnType<typeof tempDir>;

  beforeEach(() => {
    folder = tempDir('crawlfleet-durable-');
    return () => folder.remove();
  });

  /** One instance: it has every product, and sends every request. */
  async function start(requests: number): Promise<RunningCommand> {
    await startSandbox(folder.path);
    await open(IDS, { run: { deadline: '90s', min_instances: 1, max_instances: 1 } });
    return crawl(requests);
  }

  const instancePid = async (): Promise<number | null> => {
    const status = (await sandbox.control('GET', 'status')) as { instances: { pid: number | null }[] };
    return status.instances[0]?.pid ?? null;
  };
  const requests = async (): Promise<number> => (await shop.stats()).requests;

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
    const report = expectAllStored(await endOf(run), IDS.length, { launched: 1, replaced: 0 });
    const stats = await shop.stats();
    expect(stats.requests - Object.keys(stats.paths).length).toBeLessThanOrEqual(asksAgain);
    await expectTrueRows(fleet, SEED, IDS);
    await expectSound(fleet, report, shop);
  }

  it('F21: killed three times: nothing is lost, at most one product a time is requested again, the pace is kept', async () => {
    const run = await start(6);
    for (let kill = 0; kill < 3; kill++) await killAnd(() => undefined);
    await expectEnd(run, 3);
  });

  it('F27: a torn last record costs the product of that record at most', async () => {
    const run = await start(8);
    await killAnd((journal) => truncateSync(journal, statSync(journal).size - 7));
    await expectEnd(run, 2);
  });

  it('F26: a full disk stops intake and requests, and the crawl continues when there is room again', async (context) => {
    const disk = mountSmallDisk('24m');
    if (disk === null) return context.skip('this user may not mount a small disk');
    try {
      symlinkSync(disk.path, join(folder.path, 'instances'));
      const run = await start(6);
      const makeRoom = fillDisk(disk.path);
      await waitFor(async () => (await alarms()).some((text) => /disk|space/i.test(text)), {
        what: 'an alarm that the disk is full',
        timeoutMs: 30_000,
      });
      const whileFull = await requests();
      expect(whileFull).toBeLessThan(IDS.length);
      makeRoom();
      await waitFor(async () => (await requests()) > whileFull, { what: 'the crawl to go on', timeoutMs: 30_000 });
      await expectEnd(run, 2);
    } finally {
      await sandbox.stop();
      disk.unmount();
    }
  });

  async function alarms(): Promise<string[]> {
    const rows = await fleet.query('select * from crawlfleet_events');
    return rows.map((row) => JSON.stringify(row));
  }
});
