/**
 * F54 on real processes where a dry run uses a single disk: a run that cannot continue ends and names the cause.
 *
 * @module-tag nightly
 */
import { mkdirSync, renameSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type RunningCommand, waitFor } from '../support/processes.ts';
import { productIds } from '../support/shop/product.ts';
import { type Shop, startShop } from '../support/shop/start-shop.ts';
import { fillDisk, mountSmallDisk, type SmallDisk } from '../support/small-disk.ts';
import { type Fleet, type FleetOptions, makeFleet, readReport } from '../system/fleet.ts';

const IDS = productIds(200);

/** Fills the disk again whenever space is freed. Returns the function that makes room. */
function keepFull(path: string): () => void {
  let free = fillDisk(path);
  const timer = setInterval(() => (free = fillDisk(path)), 100);
  return () => {
    clearInterval(timer);
    free();
  };
}

describe('a run on a disk', () => {
  let shop: Shop;
  let fleet: Fleet;
  let disk: SmallDisk | null;

  beforeEach(async () => {
    shop = await startShop({ products: IDS.length });
    disk = null;
  });
  afterEach(async () => {
    await fleet.remove();
    disk?.unmount();
    await shop.stop();
  });

  async function openFleet(deadline: string, more: Partial<FleetOptions> = {}): Promise<void> {
    const config = { run: { deadline, grace: '60s', min_instances: 2 } };
    fleet = await makeFleet({ engine: 'sqlite', productUrl: shop.productUrl, ids: IDS, config, ...more });
  }

  /** Puts the state folder, and optionally the database, on a disk of this size. Null where this user may not mount. */
  async function onDisk(size: string, withDatabase: boolean): Promise<SmallDisk | null> {
    disk = mountSmallDisk(size);
    const place = disk?.path ?? '';
    const database = { url: `sqlite:${place}/fleet.db`, drop: () => Promise.resolve() };
    await openFleet('120s', withDatabase && disk ? { database } : {});
    if (disk === null) return null;
    mkdirSync(join(place, 'state'));
    symlinkSync(join(place, 'state'), join(fleet.dir, '.crawlfleet'));
    return disk;
  }

  async function crawling(): Promise<RunningCommand> {
    const run = fleet.start('run', '--dry-run', '--json');
    await waitFor(async () => (await shop.stats()).requests >= 10, { what: 'the crawl to begin', timeoutMs: 60_000 });
    return run;
  }

  const errorOf = (stdout: string) => (JSON.parse(stdout) as { error: { code: string; message: string } }).error;

  it('with no room for it is refused before anything is launched, as doctor reports', async (context) => {
    if ((await onDisk('8m', false)) === null) return context.skip('this user may not mount a small disk');
    const result = await fleet.run('run', '--dry-run', '--json');
    expect(result.exitCode).toBe(4);
    expect(errorOf(result.stdout)).toMatchObject({
      code: 'platform',
      message: expect.stringMatching(/\d MB free for .*; a run takes 50 MB/) as string,
    });
    expect(await fleet.query('select id from crawlfleet_runs')).toEqual([]);
    expect((await fleet.run('doctor', '--dry-run')).exitCode).toBe(4);
  });

  it('that fills up ends within its grace, names the cause, and resumes when there is room', async (context) => {
    const small = await onDisk('60m', true);
    if (small === null) return context.skip('this user may not mount a small disk');
    const run = await crawling();
    const free = keepFull(small.path);
    const { exitCode, stdout, stderr } = await run.finished.finally(free);
    const { code, message } = errorOf(stdout);
    expect({ exitCode, code }, stderr).toEqual({ exitCode: 4, code: 'platform' });
    // By its own words less than the grace of 60 s: the time to the end of the process is also the machine's.
    expect(message).toMatch(/could not be written for [\d.]+s.*(full|no space)/i);
    const resumed = await fleet.run('resume', '--json');
    expect(readReport(resumed), resumed.stderr).toMatchObject({ state: 'completed' });
    expect((await fleet.run('verify', '--json')).exitCode).toBe(0);
  });

  it('that is full stops at a second Ctrl-C', async (context) => {
    const small = await onDisk('60m', true);
    if (small === null) return context.skip('this user may not mount a small disk');
    const run = await crawling();
    const free = keepFull(small.path);
    run.kill('SIGINT');
    await waitFor(() => run.stderr().includes('Ctrl-C again leaves at once'), { what: 'the first Ctrl-C' });
    const askedMs = performance.now();
    run.kill('SIGINT');
    const result = await run.finished.finally(free);
    expect(result.exitCode, result.stderr).toBe(11);
    expect(performance.now() - askedMs).toBeLessThan(30_000);
  });

  it('that loses its state folder ends and names the cause', async () => {
    await openFleet('60s');
    const run = await crawling();
    renameSync(join(fleet.dir, '.crawlfleet'), join(fleet.dir, 'elsewhere'));
    const result = await run.finished;
    expect({ exitCode: result.exitCode, error: errorOf(result.stdout) }, result.stderr).toMatchObject({
      exitCode: 4,
      error: { code: 'platform', message: expect.stringMatching(/folder of the sandbox.*ENOENT/) as string },
    });
  });
});
