/**
 * F12 on real processes: the wall clocks of main server and instances differ by twenty minutes.
 *
 * @module-tag nightly
 */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { Shop } from '../support/shop/start-shop.ts';
import { startShop } from '../support/shop/start-shop.ts';
import { checkRound, readReport } from './checks.ts';
import type { DatabaseServer } from '../support/mariadb/server.ts';
import { startDatabaseServer } from '../support/mariadb/server.ts';
import { MainServers } from './main-servers.ts';
import type { Stage } from './stage.ts';
import { openStage } from './stage.ts';

const SEED = 53;
const PRODUCTS = 45;
const SHIFT_MS = 20 * 60_000;
const SHIFTED_CLOCK = new URL('shifted-clock.mjs', import.meta.url).href;

describe('clocks that differ', () => {
  let database: DatabaseServer;
  let shop: Shop;
  let stage: Stage;

  beforeAll(async () => {
    [database, shop] = await Promise.all([startDatabaseServer(), startShop({ seed: SEED, products: PRODUCTS })]);
  });
  afterAll(async () => {
    await shop.stop();
    await database.stop();
  });
  afterEach(() => stage.close(false));

  // Only the main server's clock is shifted: only the difference matters, and an instance's clock is the sandbox's.
  it.each([
    // An instance's own timer uses its own clock: it is far from firing.
    { title: 'instances are 20 minutes behind the main server', shiftMs: SHIFT_MS, run: {} },
    // Their timers would power them off if the deadline and the grace were not longer than the difference.
    { title: 'instances are 20 minutes ahead of the main server', shiftMs: -SHIFT_MS, run: { deadline: '40m' } },
  ])('F12: $title: no early end, no lost product, and the report mentions it', async ({ shiftMs, run }) => {
    stage = await openStage({
      name: 'skewed',
      shop,
      database,
      products: PRODUCTS,
      instances: 3,
      config: { run: { deadline: '60s', grace: '20s', min_instances: 3, max_instances: 3, ...run } },
      environment: {
        NODE_OPTIONS: `--import=${SHIFTED_CLOCK}`,
        CRAWLFLEET_TEST_CLOCK_SHIFT_MS: String(shiftMs),
      },
    });
    const servers = new MainServers(stage);
    await servers.untilEnded();
    const nothing = { repeats: 0, replacements: 0, exits: [] };
    expect(await checkRound(stage, servers.ends, nothing, SEED), servers.output()).toEqual([]);
    const report = (await readReport(stage))!;
    expect(report.notes.join('\n')).toMatch(/the clock of i-[0-9a-f]+ is -?1[12]\d\d s off/);
  });
});
