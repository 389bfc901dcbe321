/**
 * F30 on real parts: robots.txt that forbids everything, or changes during the run.
 *
 * @module-tag nightly
 */
import { describe, expect, it } from 'vitest';
import { waitFor } from '../support/processes.ts';
import { productIds } from '../support/shop/product.ts';
import { endOf } from './fleet.ts';
import { expectSound } from './soundness.ts';
import { useStage } from './stage.ts';
import { expectTrueRows } from './stored-rows.ts';

const SEED = 5;
/** A heartbeat brings changes to the instances; one that misses all twelve of them is given up. */
const NEWS_MS = 6_000;

describe('robots.txt', () => {
  const { shop, fleet, open, crawl } = useStage({ seed: SEED, products: 300 });

  const prepare = (ids: readonly string[], site: Record<string, unknown> = {}) =>
    open(ids, { site: { robots: 'respect', ...site }, run: { deadline: '40s' } });

  it('F30: disallows everything before the start: refused before anything is launched', async () => {
    await shop.setRobots('User-agent: *\nDisallow: /\n');
    await prepare(productIds(30));
    const result = await fleet.run('run', '--dry-run', '--json');
    expect(result.exitCode).toBe(16);
    expect(result.stderr + result.stdout).toMatch(/robots\.txt/);
    expect((await shop.stats()).requests).toBe(0);
  });

  it('F30: disallows everything in the middle of the run: no further request, the rest fails with the reason', async () => {
    await prepare(productIds(240), { interval: '300ms' });
    const run = await crawl(12);
    await shop.setRobots('User-agent: *\nDisallow: /item/\n');
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
    // Only the main server reads it, once for the fleet.
    const addressesOf = (kind: string) =>
      new Set(log.filter((entry) => entry.kind === kind).map(({ address }) => address));
    expect(addressesOf('robots').size).toBe(1);
    expect(addressesOf('page')).not.toContain([...addressesOf('robots')][0]);
    await expectSound(fleet, report, shop, 300);
  });

  it('F30: Crawl-delay rises in the middle of the run: every address slows down', async () => {
    await prepare(productIds(300));
    const run = await crawl(6);
    await shop.setRobots('User-agent: *\nCrawl-delay: 1\n');
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

  it('Crawl-delay rises so that the run is late: the shop gets no more for it, tonight and from the next plan', async () => {
    const deadline = { run: { deadline: '60s' } };
    await open(productIds(240), { site: { robots: 'respect', interval: '500ms' }, ...deadline });
    const run = await crawl(6);
    await shop.setRobots('User-agent: *\nCrawl-delay: 2\n');
    const readsBefore = (await shop.stats()).robotsRequests;
    const { report, exitCode, stderr } = await endOf(run);
    const log = await shop.log();
    const readAgain = log.filter((entry) => entry.kind === 'robots')[readsBefore]!;
    const pages = log.filter((entry) => entry.kind === 'page');
    const addresses = (from: number, to: number) =>
      new Set(pages.flatMap(({ atMs, address }) => (atMs >= from && atMs < to ? [address] : []))).size;
    const atWork = addresses(readAgain.atMs - 5_000, readAgain.atMs);
    expect(atWork).toBeGreaterThan(1);
    // In any ten seconds: what those at work make of a request every 2 s, from all addresses together.
    const late = pages.filter(({ atMs }) => atMs >= readAgain.atMs + NEWS_MS).map(({ atMs }) => atMs);
    expect(late.length).toBeGreaterThan(0);
    for (const from of late)
      expect(late.filter((ms) => ms >= from && ms < from + 10_000).length).toBeLessThanOrEqual(5 * atWork);
    expect(addresses(0, Infinity)).toBe(atWork);
    expect(exitCode, stderr).toBe(15);
    expect(report.reason).toMatch(
      /products not crawled, .*because the site asked for a slower pace: robots\.txt of 127\.0\.0\.1:\d+ raised its Crawl-delay from 500ms to 2s/,
    );
    await expectSound(fleet, report, shop);
    const plan = await fleet.run('plan', '--dry-run', '--json');
    expect(plan.exitCode).toBe(16);
    expect(JSON.parse(plan.stdout)).toMatchObject({
      intervalMs: 2_000,
      faults: [expect.stringContaining('has asked for less')],
      warnings: expect.arrayContaining([expect.stringMatching(/at most .*\/s.*earliest end is/)]),
    });
  });
});
