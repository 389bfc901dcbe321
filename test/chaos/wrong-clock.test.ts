/**
 * F12 on real processes: the wall clocks of main server and instances differ by twenty minutes.
 *
 * @module-tag nightly
 */
import { describe, expect, it } from 'vitest';
import { readReport } from './checks.ts';
import { expectFlawlessEnd, useGround } from './ground.ts';
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
    await expectFlawlessEnd(stage, new MainServers(stage), SEED);
    const report = (await readReport(stage))!;
    expect(report.notes.join('\n')).toMatch(/the clock of i-[0-9a-f]+ is -?1[12]\d\d s off/);
  });
});
