/**
 * `orchestrator probe` over HTTP: a shop with the rules of ancestor A's, in seconds instead of minutes.
 *
 * @module-tag nightly
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { Findings } from '../../orchestrator/features/probe/findings.ts';
import { type CommandResult, waitFor } from '../support/processes.ts';
import type { BanPolicy } from '../support/shop/bans.ts';
import { productIds } from '../support/shop/product.ts';
import { useStage } from './stage.ts';

const BAN_MS = 40_000;
/** 200 ms: banned after 60 requests; 500 ms: never. A request that is late on a busy machine does not count. */
const SHOP_OF_A: BanPolicy = {
  when: { request: 60, underMs: 400 },
  forMs: BAN_MS,
  answer: { type: 'status', status: 403 },
};

describe('probe', () => {
  const { shop, fleet, open } = useStage({ seed: 33, products: 400 });
  /** A short wait for the end of a ban makes a short deadline, and so frequent heartbeats. */
  const start = (...args: string[]) =>
    fleet.start('probe', '--dry-run', '--i-have-permission', '--json', '--max-ban', '70s', ...args);
  const read = ({ stdout, stderr }: CommandResult): Findings & { exitCode: number } => {
    if (!stdout.startsWith('{')) throw new Error(`no document:\n${stdout}\n${stderr}`);
    return JSON.parse(stdout) as Findings & { exitCode: number };
  };
  const sent = async (): Promise<number> => (await shop.stats()).requests;
  const openShop = () => open(productIds(150), { site: { interval: '1s', ban: { cool_down: '1m' } } });

  it('finds interval and length of a ban within a tenth, keeps the budget, and writes the settings', async () => {
    await openShop();
    writeFileSync(fleet.configPath, `# our shop\n${readFileSync(fleet.configPath, 'utf8')}`);
    await shop.setBanPolicies([SHOP_OF_A]);
    const limits = ['--requests', '70', '--budget', '300', '--retry-every', '1s'];
    const result = await start('--intervals', '500ms,200ms,100ms', ...limits, '--write').finished;
    const { series, end, interval, coolDown, requests, exitCode } = read(result);
    expect(end, result.stderr).toBe('banned');
    expect([result.exitCode, exitCode]).toEqual([0, 0]);
    expect(series.map((s) => s.intervalMs)).toEqual([500, 200, 200]);
    expect(new Set(series.map((s) => s.address)).size).toBe(3);
    expect(series[0]).toMatchObject({ ban: null, requests: 70 });
    for (const { ban } of series.slice(1)) {
      expect(ban!.rule).toBe('status-403');
      expect(ban!.afterRequests).toBeGreaterThanOrEqual(54);
      expect(ban!.afterRequests).toBeLessThanOrEqual(66);
    }
    expect(interval).toMatchObject({ ms: 500, requests: 70, isBounded: true });
    expect(coolDown!.minMs).toBeLessThanOrEqual(BAN_MS);
    expect(coolDown!.maxMs).toBeGreaterThanOrEqual(BAN_MS);
    expect(Math.abs((coolDown!.minMs + coolDown!.maxMs) / 2 - BAN_MS)).toBeLessThanOrEqual(BAN_MS / 10);
    expect(await sent()).toBe(requests);
    expect(requests).toBeLessThanOrEqual(300);
    const { addresses } = await shop.stats();
    for (const { address, intervalMs } of series)
      expect(addresses[address!]!.minGapMs).toBeGreaterThanOrEqual(intervalMs);
    const text = readFileSync(fleet.configPath, 'utf8');
    expect(text).toMatch(/^# our shop\n/);
    expect(text).toContain('interval: 500ms\n');
    expect(text).toContain(`cool_down: ${coolDown!.ms / 1_000}s\n`);
    expect(fleet.leftovers()).toEqual([]);
  });

  it('obeys a Crawl-delay, and counts redirects as requests of the budget', async () => {
    await openShop();
    await shop.setRobots('User-agent: *\nCrawl-delay: 0.3\n');
    await shop.addProducts(['chain5-1', 'chain5-2']);
    await fleet.query('delete from products');
    await fleet.addProducts(['chain5-1', 'chain5-2']);
    const result = await start('--intervals', '200ms,100ms', '--requests', '8', '--budget', '9').finished;
    const { series, end, requests } = read(result);
    expect(end, result.stderr).toBe('finished');
    expect(series).toMatchObject([{ intervalMs: 300, ban: null }]);
    expect(await sent()).toBe(requests);
    expect(requests).toBeGreaterThanOrEqual(8);
    expect(requests).toBeLessThanOrEqual(9);
    expect((await shop.stats()).minGapMs).toBeGreaterThanOrEqual(300);
    expect(fleet.leftovers()).toEqual([]);
  });

  it('ends at Ctrl-C with what is known', async () => {
    await openShop();
    const probe = start('--intervals', '300ms,200ms', '--requests', '60');
    await waitFor(async () => (await sent()) > 62, { what: 'the second series', timeoutMs: 90_000 });
    probe.kill('SIGINT', 'group');
    const result = await probe.finished;
    const { series, end, interval } = read(result);
    expect(end, result.stderr).toBe('interrupted');
    expect(result.exitCode).toBe(11);
    expect(series[0]).toMatchObject({ intervalMs: 300, requests: 60, ban: null, isComplete: true });
    expect(series[1]).toMatchObject({ intervalMs: 200, ban: null, isComplete: false });
    expect(series[1]!.requests).toBeLessThan(60);
    expect(interval).toMatchObject({ ms: 300 });
    expect(fleet.leftovers()).toEqual([]);
  });

  it('leaves a run that `cancel` ends when it is killed; the next probe begins anew', async () => {
    await openShop();
    const probe = start('--intervals', '300ms', '--requests', '60');
    await waitFor(async () => (await sent()) > 10, { what: 'the first series', timeoutMs: 90_000 });
    probe.kill('SIGKILL');
    await probe.finished;
    const again = () => start('--intervals', '300ms', '--requests', '8').finished;
    const refused = await again();
    expect(refused.exitCode, refused.stderr).toBe(20);
    const [run] = await fleet.query('select id from crawlfleet_runs');
    expect(refused.stderr).toContain(`orchestrator cancel ${String(run!.id)}`);
    const canceled = await fleet.run('cancel', String(run!.id), '--yes');
    expect(canceled.exitCode, canceled.stderr).toBe(0);
    await shop.reset();
    const result = await again();
    expect(result.exitCode, result.stderr).toBe(0);
    expect(read(result)).toMatchObject({ series: [{ intervalMs: 300, requests: 8, ban: null, isComplete: true }] });
    expect(await sent()).toBe(8);
    expect(fleet.leftovers()).toEqual([]);
  });
});
