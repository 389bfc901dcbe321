/**
 * An operator who slows, pauses and resets a run from another terminal: the shop's own ledger shows the pace.
 *
 * @module-tag nightly
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { productIds } from '../support/shop/product.ts';
import { endOf } from './fleet.ts';
import { expectSound } from './soundness.ts';
import { useStage } from './stage.ts';

/** The main server reads the run's row, and every instance sends a heartbeat. */
const NEWS_MS = 4_000;

describe('orchestrator pace', () => {
  const { shop, fleet, open, crawl } = useStage({ products: 300 });

  it('F60: slows every address and the sum of all, pauses them, and goes back to the configured pace', async () => {
    await open(productIds(300), { site: { robots: 'respect', interval: '300ms' }, run: { deadline: '120s' } });
    const run = await crawl(12);
    /** When it is asked for, and from when on the shop must see it. */
    const pace = async (...flags: string[]): Promise<{ askedMs: number; fromMs: number }> => {
      const askedMs = Date.now();
      const asked = await fleet.run('pace', ...flags, '--json');
      expect(asked.exitCode, asked.stderr).toBe(0);
      expect(JSON.parse(asked.stdout)).toMatchObject({ mainServer: expect.stringContaining(':') });
      return { askedMs, fromMs: Date.now() + NEWS_MS };
    };
    const slower = await pace('--interval', '1500ms');
    await sleep(NEWS_MS + 8_000);
    const paused = await pace('--pause', '90s');
    await sleep(NEWS_MS + 4_000);
    const refused = await fleet.run('pace', '--interval', '200ms');
    expect([refused.exitCode, refused.stderr]).toEqual([4, expect.stringContaining('interval of 300ms')]);
    const status = await fleet.run('status', JSON.parse((await fleet.run('status', '--json')).stdout).runs[0].run);
    expect(status.stdout).toContain('Its operator asks for: no request until');
    const reset = await pace('--reset');
    const { report, exitCode, stderr } = await endOf(run);
    const pages = (await shop.log()).filter(({ kind }) => kind === 'page');
    const between = (fromMs: number, toMs: number) => pages.filter(({ wallMs }) => wallMs >= fromMs && wallMs < toMs);
    const slow = between(slower.fromMs, paused.askedMs);
    const addresses = Map.groupBy(slow, ({ address }) => address);
    expect(addresses.size).toBeGreaterThan(1);
    for (const own of addresses.values())
      for (const [i, { atMs }] of own.slice(1).entries()) expect(atMs - own[i]!.atMs).toBeGreaterThanOrEqual(1_500);
    expect(between(paused.fromMs, reset.askedMs)).toEqual([]);
    // At 300 ms an address sends about 13 requests in 4 s, at 1.5 s three.
    expect(between(reset.fromMs, reset.fromMs + 4_000).length).toBeGreaterThan(5 * addresses.size);
    expect(new Set(pages.map(({ address }) => address)).size).toBe(addresses.size);
    expect([exitCode, report.products.stored], stderr).toEqual([0, 300]);
    expect(report.notes.join('\n')).toMatch(/the operator asks for another pace: 1s|1.5s between two requests/);
    await expectSound(fleet, report, shop);
  });
});
