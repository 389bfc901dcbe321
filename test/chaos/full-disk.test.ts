/**
 * F54 on real processes: the main server's disk is full. Its log suffers, the run does not.
 *
 * @module-tag nightly
 */
import { symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { fillDisk, mountSmallDisk } from '../support/small-disk.ts';
import { expectFlawlessEnd, untilCrawling, useGround } from './ground.ts';
import { MainServers } from './main-servers.ts';

const SEED = 59;
const PRODUCTS = 60;

describe('a full disk on the main server', () => {
  const ground = useGround(SEED, PRODUCTS);

  it('F54: costs log lines and the copy of the report, not the run', async (context) => {
    const stage = await ground.open({ name: 'full', products: PRODUCTS });
    const disk = mountSmallDisk('64m');
    if (disk === null) return context.skip('this user may not mount a small disk');
    try {
      symlinkSync(disk.path, join(stage.dir, '.crawlfleet'));
      const servers = new MainServers(stage);
      await untilCrawling(stage, 5);
      fillDisk(disk.path);
      await expectFlawlessEnd(stage, servers, SEED);
      const { exit, result } = servers.ends.at(-1)!;
      expect({ exit, document: JSON.parse(result.stdout) as unknown }, result.stderr).toMatchObject({
        exit: 0,
        document: { state: 'completed', products: { stored: PRODUCTS } },
      });
      expect(result.stderr).toMatch(/no space left|disk/i);
    } finally {
      disk.unmount();
    }
  });
});
