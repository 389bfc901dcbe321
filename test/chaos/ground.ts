/** What the tests of this folder share: a shop and a database for all of a file, a stage for each test. */
import { afterAll, afterEach, beforeAll, expect } from 'vitest';
import { waitFor } from '../support/processes.ts';
import { type Shop, startShop } from '../support/shop/start-shop.ts';
import { type DatabaseServer, startDatabaseServer } from '../support/mariadb/server.ts';
import { checkRound } from './checks.ts';
import type { MainServers } from './main-servers.ts';
import { openStage, type Stage, type StageOptions } from './stage.ts';

type OwnOptions = Omit<StageOptions, 'shop' | 'database' | 'instances'>;

export interface Ground {
  shop: Shop;
  database: DatabaseServer;
  /** Opens a stage for a run of three instances; it is closed after the test. */
  open(options: OwnOptions): Promise<Stage>;
}

/** Starts shop and database before the tests of the surrounding block, and ends them afterwards. */
export function useGround(seed: number, products: number, linked = false): Ground {
  let stage: Stage | null = null;
  const ground = {
    async open(options: OwnOptions) {
      const { shop, database } = ground;
      stage = await openStage({ ...options, shop, database, instances: 3 });
      return stage;
    },
  } as Ground;
  beforeAll(async () => {
    [ground.database, ground.shop] = await Promise.all([startDatabaseServer(), startShop({ seed, products, linked })]);
  });
  afterEach(async () => {
    await stage?.close(false);
    stage = null;
  });
  afterAll(async () => {
    await ground.shop.stop();
    await ground.database.stop();
  });
  return ground;
}

/** Waits until the run has its row and the shop this number of requests. */
export async function untilCrawling(stage: Stage, requests: number): Promise<void> {
  await waitFor(async () => (await stage.run()) !== null && (await stage.shop.stats()).requests >= requests, {
    what: 'the crawl to begin',
    timeoutMs: 60_000,
  });
}

/** Waits for the end of the run, which must be in time, on its first instances, and with every row. */
export async function expectFlawlessEnd(stage: Stage, servers: MainServers, shopSeed: number): Promise<void> {
  await servers.untilEnded();
  const nothing = { repeats: 0, replacements: 0, exits: [] };
  expect(await checkRound(stage, servers.ends, nothing, shopSeed), servers.output()).toEqual([]);
}
