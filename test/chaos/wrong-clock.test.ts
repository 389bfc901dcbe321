/**
 * F12 on real processes: the wall clocks of main server and instances differ by twenty minutes.
 *
 * @module-tag nightly
 */
import { writeFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { EXIT } from '../../shared/domain/exit-codes.ts';
import { tempDir } from '../support/temp-dir.ts';
import { checkProof, readReport } from './checks.ts';
import { expectFlawlessEnd, untilCrawling, useGround } from './ground.ts';
import { MainServers } from './main-servers.ts';

const SEED = 53;
const PRODUCTS = 45;
const SHIFT_MS = 20 * 60_000;
const SHIFTED_CLOCK = new URL('shifted-clock.mjs', import.meta.url).href;

describe('clocks that differ', () => {
  const ground = useGround(SEED, PRODUCTS);

  // Only the main server's clock is shifted: only the difference matters, and an instance's clock is the sandbox's.
  it.each([
    // An instance's own timer uses its own clock: it is far from firing.
    { title: 'instances are 20 minutes behind the main server', shiftMs: SHIFT_MS, run: {} },
    // Their timers would power them off if the deadline and the grace were not longer than the difference.
    { title: 'instances are 20 minutes ahead of the main server', shiftMs: -SHIFT_MS, run: { deadline: '40m' } },
  ])('F12: $title: no early end, no lost product, and the report mentions it', async ({ shiftMs, run }) => {
    const stage = await ground.open({
      name: 'skewed',
      products: PRODUCTS,
      run: { deadline: '60s', ...run },
      environment: {
        NODE_OPTIONS: `--import=${SHIFTED_CLOCK}`,
        CRAWLFLEET_TEST_CLOCK_SHIFT_MS: String(shiftMs),
      },
    });
    const servers = new MainServers(stage);
    await expectFlawlessEnd(stage, servers, SEED);
    const report = (await readReport(stage))!;
    expect(report.notes.join('\n')).toMatch(/the clock of i-[0-9a-f]+ is -?1[12]\d\d s off/);
    expect(servers.output()).toMatch(/note the clock of this machine is (20m|19m)/);
  });

  it('F12: the clock of the main server is set past the deadline and the grace in mid-run: it ends in order', async () => {
    const folder = tempDir('crawlfleet-clock-');
    const file = folder.file('shift');
    const stage = await ground.open({
      name: 'clock_set',
      products: PRODUCTS,
      run: { deadline: '60s' },
      environment: { NODE_OPTIONS: `--import=${SHIFTED_CLOCK}`, CRAWLFLEET_TEST_CLOCK_FILE: file },
    });
    const servers = new MainServers(stage);
    await untilCrawling(stage, 10);
    writeFileSync(file, String(SHIFT_MS));
    await servers.untilEnded();
    folder.remove();
    const report = (await readReport(stage))!;
    expect(report, servers.output()).toMatchObject({
      exitCode: EXIT.deadline,
      instances: { launched: 3, terminated: 3 },
    });
    expect(report.products.stored).toBeGreaterThanOrEqual(10);
    expect(await checkProof(stage)).toEqual([]);
    expect((await stage.instances()).map(({ state }) => state)).toEqual(['terminated', 'terminated', 'terminated']);
  });
});
