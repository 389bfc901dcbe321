/**
 * Eight rounds of `npm run chaos`: each kills, freezes or cuts off another part of a run on real processes.
 *
 * @module-tag nightly
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Shop } from '../support/shop/start-shop.ts';
import { startShop } from '../support/shop/start-shop.ts';
import type { DatabaseServer } from '../support/mariadb/server.ts';
import { startDatabaseServer } from '../support/mariadb/server.ts';
import { playRound } from './round.ts';
import { drawScenario } from './scenario.ts';

const SHOP_SEED = 41;
const SEEDS = [1, 2, 3, 4, 5, 6, 7, 8];

describe('chaos', () => {
  let database: DatabaseServer;
  let shop: Shop;

  beforeAll(async () => {
    [database, shop] = await Promise.all([startDatabaseServer(), startShop({ seed: SHOP_SEED, products: 100 })]);
  });
  afterAll(async () => {
    await shop.stop();
    await database.stop();
  });

  it.each(
    SEEDS.map((seed) => ({
      seed,
      what: drawScenario(seed)
        .steps.map(({ fault }) => fault.text)
        .join(', then '),
    })),
  )('F41, F46: the run ends and is proved after: $what', async ({ seed }) => {
    const { faults, story, folder } = await playRound({ shop, shopSeed: SHOP_SEED, database }, drawScenario(seed));
    const again = `npm run chaos -- --seed ${seed} --rounds 1; logs: ${folder}`;
    expect(faults, `${story.join('\n')}\n${again}`).toEqual([]);
  });
});
