/**
 * An operator who slows, pauses and resets a run from another terminal: the shop's own ledger shows the pace.
 *
 * @module-tag nightly
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { waitFor } from '../support/processes.ts';
import { gapsOf } from '../support/shop/arrivals.ts';
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
    const addresses = new Set(slow.map(({ address }) => address));
    expect(addresses.size).toBeGreaterThan(1);
    expect(Math.min(...gapsOf(slow))).toBeGreaterThanOrEqual(1_500);
    expect(between(paused.fromMs, reset.askedMs)).toEqual([]);
    // At 300 ms an address sends about 13 requests in 4 s, at 1.5 s three.
    expect(between(reset.fromMs, reset.fromMs + 4_000).length).toBeGreaterThan(5 * addresses.size);
    expect(new Set(pages.map(({ address }) => address)).size).toBe(addresses.size);
    expect([exitCode, report.products.stored], stderr).toEqual([0, 300]);
    expect(report.notes.join('\n')).toMatch(/the operator asks for another pace: 1s|1.5s between two requests/);
    await expectSound(fleet, report, shop);
  });

  it('F60: holds after the main server was killed, and what is asked for in between after `resume`', async () => {
    await open(productIds(80), {
      site: { robots: 'respect', interval: '300ms' },
      run: { deadline: '150s', min_instances: 2 },
    });
    const killed = await crawl(12);
    expect((await fleet.run('pace', '--interval', '1s')).exitCode).toBe(0);
    const fromMs = Date.now() + NEWS_MS;
    await sleep(NEWS_MS + 2_000);
    killed.kill('SIGKILL');
    await killed.finished;
    const alone = await fleet.run('pace', '--interval', '2s');
    expect([alone.exitCode, alone.stdout]).toEqual([0, expect.stringContaining('No main server is at work')]);
    const resumed = fleet.start('resume', '--json');
    const told = `select 1 from crawlfleet_events where detail like '%another pace: 2s%'`;
    await waitFor(async () => (await fleet.query(told)).length > 0, { what: 'the next main server to read it' });
    const resumedMs = Date.now() + NEWS_MS;
    const { report, exitCode, stderr } = await endOf(resumed);
    const pages = (await shop.log()).filter(({ kind }) => kind === 'page');
    const since = (ms: number): number[] => gapsOf(pages.filter(({ wallMs }) => wallMs >= ms));
    expect(Math.min(...since(fromMs))).toBeGreaterThanOrEqual(1_000);
    expect(since(resumedMs).length).toBeGreaterThan(4);
    expect(Math.min(...since(resumedMs))).toBeGreaterThanOrEqual(2_000);
    expect([exitCode, report.products.stored, new Set(pages.map(({ address }) => address)).size], stderr).toEqual([
      0, 80, 2,
    ]);
    await expectSound(fleet, report, shop);
  });
});
