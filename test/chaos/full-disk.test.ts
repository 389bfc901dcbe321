/**
 * F54 on real processes: the main server's disk is full. Its log suffers, the run does not.
 *
 * @module-tag nightly
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { waitFor } from '../support/processes.ts';
import type { Shop } from '../support/shop/start-shop.ts';
import { startShop } from '../support/shop/start-shop.ts';
import { checkRound } from './checks.ts';
import type { DatabaseServer } from '../support/mariadb/server.ts';
import { startDatabaseServer } from '../support/mariadb/server.ts';
import { MainServers } from './main-servers.ts';
import type { Stage } from './stage.ts';
import { openStage } from './stage.ts';

const SEED = 59;
const PRODUCTS = 60;

describe('a full disk on the main server', () => {
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

  it('F54: costs log lines and the copy of the report, not the run', async (context) => {
    stage = await openStage({ name: 'full', shop, database, products: PRODUCTS, instances: 3 });
    const state = join(stage.dir, '.crawlfleet');
    mkdirSync(state);
    if (!mountSmallDisk(state)) return context.skip('this user may not mount a small disk');
    try {
      const servers = new MainServers(stage);
      await waitFor(async () => (await stage.run()) !== null && (await shop.stats()).requests >= 5, {
        what: 'the crawl to begin',
        timeoutMs: 60_000,
      });
      fillDisk(join(state, 'filler'));
      await servers.untilEnded();
      const nothing = { repeats: 0, replacements: 0, exits: [] };
      expect(await checkRound(stage, servers.ends, nothing, SEED), servers.output()).toEqual([]);
      const { exit, result } = servers.ends.at(-1)!;
      expect({ exit, document: JSON.parse(result.stdout) as unknown }, result.stderr).toMatchObject({
        exit: 0,
        document: { state: 'completed', products: { stored: PRODUCTS } },
      });
      expect(result.stderr).toMatch(/no space left|disk/i);
    } finally {
      execFileSync('umount', ['--lazy', state]);
    }
  });
});

/** False where this user may not mount one. */
function mountSmallDisk(path: string): boolean {
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=64m', 'crawlfleet-test', path], { stdio: 'ignore' });
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
