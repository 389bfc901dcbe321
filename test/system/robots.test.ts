/**
 * F30 on real parts: robots.txt that forbids, is unavailable, or changes during the run.
 *
 * @module-tag nightly
 */
import { describe, expect, it } from 'vitest';
import { waitFor } from '../support/processes.ts';
import { productIds } from '../support/shop/product.ts';
import type { Robots } from '../support/shop/robots-file.ts';
import { endOf } from './fleet.ts';
import { expectSound } from './soundness.ts';
import { useStage } from './stage.ts';
import { expectTrueRows } from './stored-rows.ts';

const SEED = 5;
const IDS = productIds(30);
/** A heartbeat brings changes to the instances; one that misses all twelve of them is given up. */
const NEWS_MS = 6_000;

describe('robots.txt', () => {
  const { shop, fleet, open, crawl } = useStage({ seed: SEED, products: 300 });

  const prepare = (ids: readonly string[] = IDS, site: Record<string, unknown> = {}, deadline = '40s') =>
    open(ids, { site: { robots: 'respect', ...site }, run: { deadline } });

  /** Only the main server reads it, once for the fleet. */
  async function expectOneReader(): Promise<void> {
    const log = await shop.log();
    const readers = new Set(log.filter((entry) => entry.kind === 'robots').map((entry) => entry.address));
    const crawlers = new Set(log.filter((entry) => entry.kind === 'page').map((entry) => entry.address));
    expect(readers.size).toBe(1);
    expect([...readers].filter((address) => crawlers.has(address))).toEqual([]);
  }

  it('F30: what it disallows is never requested', async () => {
    await shop.setRobots({ text: 'User-agent: *\nDisallow: /item/P0001\nAllow: /item/P00010$\n' });
    await prepare();
    const { report, stderr } = await fleet.dryRun('--deadline', '40s');
    expect(report, `${report.notes.join('\n')}\n${stderr}`).toMatchObject({
      products: { stored: 21, failed: 9, reasons: { robots: 9 } },
    });
    const asked = Object.keys((await shop.stats()).paths);
    expect(asked.filter((path) => /\/item\/P0001[1-9]/.test(path))).toEqual([]);
    expect(asked).toContain('/item/P00010');
    await expectOneReader();
    await expectSound(fleet, report, shop);
  });

  it('F30: disallows everything before the start: refused before anything is launched', async () => {
    await shop.setRobots({ text: 'User-agent: *\nDisallow: /\n' });
    await prepare();
    const result = await fleet.run('run', '--dry-run', '--json');
    expect(result.exitCode).toBe(16);
    expect(result.stderr + result.stdout).toMatch(/robots\.txt/);
    expect((await shop.stats()).requests).toBe(0);
  });

  it.each<[string, Robots]>([
    ['answers 503', { status: 503 }],
    ['never answers', { hang: true }],
  ])('F30: no page is requested while it %s; the crawl begins when it is available', async (_, robots) => {
    await shop.setRobots(robots);
    await prepare(IDS, { timeout: '1s' }, '90s');
    const run = fleet.start('run', '--dry-run', '--json');
    await waitFor(async () => (await shop.stats()).robotsRequests >= 2, {
      what: 'robots.txt to be asked for again',
      timeoutMs: 60_000,
    });
    expect((await shop.stats()).requests).toBe(0);
    await shop.setRobots({ text: 'User-agent: *\nAllow: /\n' });
    const { report, stderr } = await endOf(run);
    expect(report, stderr).toMatchObject({ exitCode: 0, products: { stored: IDS.length } });
    await expectSound(fleet, report, shop);
  });

  it('F30: disallows everything in the middle of the run: no further request, the rest fails with the reason', async () => {
    await prepare(productIds(240), { interval: '300ms' }, '40s');
    const run = await crawl(12);
    await shop.setRobots({ text: 'User-agent: *\nDisallow: /item/\n' });
    const readsBefore = (await shop.stats()).robotsRequests;
    await waitFor(async () => (await shop.stats()).robotsRequests > readsBefore, {
      what: 'robots.txt to be read again',
      timeoutMs: 40_000,
    });
    const { report, stderr } = await endOf(run);
    expect(report.products.reasons.robots, stderr).toBeGreaterThan(0);
    expect(report.products.stored + (report.products.reasons.robots ?? 0)).toBe(240);
    const log = await shop.log();
    const readAgain = log.filter((entry) => entry.kind === 'robots')[readsBefore]!;
    const late = log.filter((entry) => entry.kind === 'page' && entry.atMs > readAgain.atMs + NEWS_MS);
    expect(late).toEqual([]);
    await expectTrueRows(fleet, SEED);
    await expectSound(fleet, report, shop, 300);
  });

  it('F30: Crawl-delay rises in the middle of the run: every address slows down', async () => {
    await prepare(productIds(300), {}, '40s');
    const run = await crawl(6);
    await shop.setRobots({ text: 'User-agent: *\nCrawl-delay: 1\n' });
    const readsBefore = (await shop.stats()).robotsRequests;
    const { report, stderr } = await endOf(run);
    const log = await shop.log();
    const readAgain = log.filter((entry) => entry.kind === 'robots')[readsBefore];
    expect(readAgain, stderr).toBeDefined();
    expect(report.politeness.robots?.crawlDelayMs).toBe(1_000);
    const lastMs = new Map<string, number>();
    for (const { kind, address, atMs } of log) {
      if (kind !== 'page' || atMs < readAgain!.atMs + NEWS_MS) continue;
      if (lastMs.has(address)) expect(atMs - lastMs.get(address)!).toBeGreaterThanOrEqual(1_000);
      lastMs.set(address, atMs);
    }
    expect(lastMs.size).toBeGreaterThan(0);
    await expectSound(fleet, report, shop);
  });
});
