/** Who is woken by real runs: while one works, when it ends, when it never begins, and the dead man's switch. */
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Notice } from '../../orchestrator/notify/notice.ts';
import { productIds } from '../support/shop/product.ts';
import { type Shop, startShop } from '../support/shop/start-shop.ts';
import { type Fleet, makeFleet } from './fleet.ts';

describe('notify', () => {
  let server: Server;
  let base: string;
  let got: { path: string; body: string }[];
  let shop: Shop;
  let fleet: Fleet;

  beforeEach(async () => {
    got = [];
    server = createServer((request, response) => {
      let body = '';
      request.setEncoding('utf8').on('data', (text: string) => (body += text));
      request.on('end', () => {
        got.push({ path: request.url!, body });
        response.end();
      });
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    shop = await startShop({ products: 90 });
  });
  afterEach(async () => {
    await fleet.remove();
    await shop.stop();
    server.closeAllConnections();
    server.close();
  });

  const prepare = async (config: Record<string, unknown> = {}, ids = productIds(90)): Promise<void> => {
    fleet = await makeFleet({ engine: 'sqlite', productUrl: shop.productUrl, ids, config });
  };
  const at = (path: string): string[] => got.filter((one) => one.path === path).map(({ body }) => body);
  const notices = (path: string): Notice[] => at(path).map((body) => JSON.parse(body) as Notice);

  it('tells of a ban at once and of the end, each target what it has asked for', async () => {
    const file = 'notice.json';
    const command = [process.execPath, '-e', `require('fs').writeFileSync('${file}', require('fs').readFileSync(0))`];
    await prepare({
      notify: [
        { webhook: `${base}/all` },
        { slack: `${base}/slack`, on: ['banned'] },
        { webhook: `${base}/never`, on: ['missed', 'held'] },
        { command, on: ['ended'] },
      ],
      ping: `${base}/ping`,
    });
    await shop.setBanPolicies([
      {
        when: { request: 6 },
        coolDownMs: null,
        atMost: 1,
        answer: { type: 'status', status: 429, retryAfter: 'soon, please' },
      },
    ]);
    const { report } = await fleet.dryRun('--deadline', '60s');
    expect(report.bans).toHaveLength(1);
    const [alarm, end, ...more] = notices('/all');
    expect(more).toEqual([]);
    expect(alarm).toMatchObject({ event: 'alarm', kinds: ['banned'], run: report.run, good: false });
    expect(alarm!.text).toMatch(
      /the site bans 1 of \d addresses \(status-429\)\. Look at it with: orchestrator explain/,
    );
    expect(end).toMatchObject({ event: 'ended', run: report.run, exitCode: report.exitCode });
    expect(at('/slack')).toEqual([JSON.stringify({ text: alarm!.text })]);
    expect(at('/never')).toEqual([]);
    expect(JSON.parse(readFileSync(join(fleet.dir, file), 'utf8'))).toEqual(end);
    expect(got.filter(({ path }) => path.startsWith('/ping')).map(({ path }) => path)).toEqual([
      '/ping/start',
      report.exitCode === 0 ? '/ping' : '/ping/fail',
    ]);
  });

  it('tells of a run that never began: a dead site, a list that has shrunk', async () => {
    await prepare({ notify: [{ webhook: `${base}/all` }], ping: `${base}/ping`, products: { min_rows: 1_000 } });
    expect((await fleet.run('run', '--dry-run')).exitCode).toBe(13);
    await shop.stop();
    expect((await fleet.run('run', '--dry-run', '--limit', '3')).exitCode).toBe(17);
    const [fewer, down] = notices('/all');
    expect(fewer).toMatchObject({ run: null, exitCode: 13, kinds: ['ended', 'failed', 'fewer'] });
    expect(down).toMatchObject({ run: null, exitCode: 17, kinds: ['ended', 'failed', 'site-down'] });
    expect(down!.hint).not.toBe('');
    expect(at('/ping/fail')).toHaveLength(2);
    shop = await startShop({ products: 1 });
  });
});
