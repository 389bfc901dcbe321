/**
 * Headers, cookies and language of the user, by real processes: what shops get, and that a secret among them is nowhere
 * else.
 *
 * @module-tag nightly
 */
import { writeFileSync } from 'node:fs';
import { afterEach, describe, expect, it } from 'vitest';
import { domainOf } from '../../shared/domain/domains.ts';
import { filesWith, hasText, processesWith } from '../support/find-text.ts';
import { freePort } from '../support/free-port.ts';
import { waitFor } from '../support/processes.ts';
import { startRecordingLink } from '../support/recording-link.ts';
import { localized, SHOP_LANGUAGES } from '../support/shop/behaviours/preferences.ts';
import { expectedProduct, productIds, rowOf, SHOP_MAPPING } from '../support/shop/product.ts';
import { type Shop, startShop } from '../support/shop/start-shop.ts';
import { tempDir } from '../support/temp-dir.ts';
import { type Config, endOf, type Fleet, makeFleet } from './fleet.ts';
import { expectAllStored, expectSound } from './soundness.ts';

const SEED = 17;

let opened: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of opened.toReversed()) await close();
  opened = [];
});

async function openShop(products: number, address = '127.0.0.1'): Promise<Shop> {
  const shop = await startShop({ products, seed: SEED, address });
  opened.push(() => shop.stop());
  return shop;
}

async function openFleet(shop: Shop, ids: readonly string[], config: Config, environment = {}): Promise<Fleet> {
  const { productUrl } = shop;
  const fleet = await makeFleet({ engine: 'sqlite', productUrl, ids, config, environment: () => environment });
  opened.push(() => fleet.remove());
  return fleet;
}

const LOCALIZED = [{ prefix: '', do: { type: 'localized' as const } }];

describe('a shop in six languages, each at a host of its own', () => {
  it.each([
    [
      'header',
      (language: string) => ({ language: `${language}-XX, ${language};q=0.8`, headers: { 'X-Currency': 'EUR' } }),
    ],
    ['cookie', (language: string) => ({ cookies: { language, currency: 'EUR' } })],
  ])('is read in each language and in euros, by %s', async (_how, sent) => {
    const ids = productIds(36);
    const shops = await Promise.all(SHOP_LANGUAGES.map((_, i) => openShop(ids.length, `127.0.${20 + i}.1`)));
    for (const shop of shops) await shop.setRules(LOCALIZED);
    const domains = shops.map(({ productUrl: url }, i) => ({ url, ...sent(SHOP_LANGUAGES[i]!) }));
    const site = { product_url: domains, interval: '300ms' };
    const fleet = await openFleet(shops[0]!, ids, { site, run: { min_instances: 2, deadline: '60s' } });
    const end = await fleet.dryRun();
    expectAllStored(end, ids.length);
    // What is sent at a domain makes it no other one: there is nothing to try again.
    expect((await fleet.run('retry', '--json')).exitCode).toBe(0);

    const product_url = domains.map(({ url }) => ({ url, weight: 1 }));
    const rows = await fleet.query('select * from product_snapshots');
    for (const row of rows) {
      const id = String(row.product_id);
      const shown = localized(expectedProduct(SEED, id), SHOP_LANGUAGES[domainOf(product_url, id)], 'EUR');
      const { title, price } = rowOf(shown);
      expect([row.title, row.price], id).toEqual([title, price]);
    }
    for (const [i, shop] of shops.entries()) {
      const arrivals = await shop.log();
      const usual = ['accept-language', 'x-currency', 'cookie'];
      expect(arrivals.filter(({ kind }) => kind === 'page').length).toBeGreaterThan(0);
      for (const { kind, headers } of arrivals) {
        if (kind === 'robots') expect(usual.filter((name) => name in headers)).toEqual([]);
        else expect(JSON.stringify(usual.map((name) => headers[name]))).toContain(SHOP_LANGUAGES[i]);
      }
    }
  });
});

describe('a secret of the user', () => {
  const KEY = 'marked-key-7f3a9c51e2';
  const FIRST = 'marked-session-first-41d8';
  const SECOND = 'marked-session-second-93b7';
  const ids = productIds(70);

  it('is in no callback, user data, journal, state folder, part, log, database or environment', async () => {
    const elsewhere = tempDir('crawlfleet-secret-');
    opened.push(() => elsewhere.remove());
    const file = elsewhere.file('session');
    writeFileSync(file, `${FIRST}\n`);
    const shop = await openShop(ids.length);
    await shop.setRules([
      { id: ids[2]!, do: { type: 'repeats', header: 'authorization', refuses: true } },
      { id: ids[3]!, do: { type: 'repeats', header: 'authorization' } },
      { id: ids[40]!, do: { type: 'repeats', header: 'authorization', refuses: true } },
    ]);
    const port = await freePort();
    const link = await startRecordingLink(port);
    opened.push(() => link.close());
    const fleet = await openFleet(
      shop,
      ids,
      {
        site: {
          interval: '400ms',
          headers: { Authorization: 'Bearer ${SHOP_KEY}' },
          cookies: { session: `\${file:${file}}` },
        },
        run: { deadline: '90s', min_instances: 2, max_instances: 2, max_failed: '50%' },
        server: { listen: `127.0.0.1:${port}`, url: `http://127.0.0.1:${link.port}` },
      },
      { SHOP_KEY: KEY },
    );
    const texts = [KEY, FIRST, SECOND];
    const run = fleet.start('run', '--dry-run', '--json');
    const pages = async (): Promise<number> => (await shop.stats()).requests;
    await waitFor(async () => (await pages()) >= 12, { what: '12 requests', timeoutMs: 60_000 });

    // The main server itself has what its user gave it; nothing that it has started does.
    const started = fleet.leftovers().filter(({ command }) => !command.includes('bin/orchestrator'));
    expect(started.some(({ command }) => command.includes('sandbox/main'))).toBe(true);
    const instances = started.filter(({ command }) => command.includes('crawl-api'));
    expect(instances.length).toBe(2);
    expect(
      processesWith(
        started.map(({ pid }) => pid),
        texts,
      ),
    ).toEqual([]);
    expect(filesWith(fleet.dir, texts)).toEqual([]);

    // A killed program of an instance gets them again, and a changed one comes with the next heartbeat.
    process.kill(instances[0]!.pid, 'SIGKILL');
    writeFileSync(file, `${SECOND}\n`);
    const { exitCode, report, stderr } = await endOf(run);
    expect(exitCode, stderr).toBe(0);
    expect(report.products, stderr).toMatchObject({ stored: ids.length - 2, failed: 2 });

    const arrivals = (await shop.log()).filter(({ kind }) => kind === 'page');
    for (const { headers } of arrivals) expect(headers.authorization).toBe(`Bearer ${KEY}`);
    const cookies = arrivals.map(({ headers }) => /session=([^;]+)/.exec(headers.cookie as string)?.[1]);
    expect([cookies[0], cookies.at(-1)]).toEqual([FIRST, SECOND]);
    // By each address: the first ones, and from some request on the second ones.
    for (const own of Map.groupBy(arrivals, ({ address }) => address).values()) {
      const seen = own.map(({ headers }) => /session=([^;]+)/.exec(headers.cookie as string)?.[1]);
      expect(seen).toEqual(seen.toSorted((a, b) => a!.localeCompare(b!)));
    }

    const recorded = link.recorded();
    expect(recorded.length).toBeGreaterThan(10_000);
    expect(recorded.includes('/v1/instances/hello')).toBe(true);
    for (const text of texts) expect(hasText(recorded, text)).toBe(false);
    const left = filesWith(fleet.dir, texts);
    expect(left).toEqual([]);
    expect(filesWith(fleet.dir, [ids[5]!]).length).toBeGreaterThan(2);
    for (const text of texts) expect(`${stderr}${JSON.stringify(report)}`).not.toContain(text);
    // The addresses that repeat it are in the parts.
    expect(filesWith(fleet.dir, ['?key=Bearer%20***']).length).toBeGreaterThan(0);
    await expectSound(fleet, report, shop, 400);
  });

  it('is in no file and no other process of a crawl with a browser', async () => {
    const some = ids.slice(0, 8);
    const shop = await openShop(ids.length);
    await shop.setRules([{ prefix: '', do: { type: 'fetch-built' } }]);
    const fleet = await openFleet(
      shop,
      some,
      {
        site: {
          render: 'browser',
          interval: '1s',
          timeout: '10s',
          headers: { 'X-Key': '${SHOP_KEY}' },
          cookies: { session: '${SHOP_KEY}' },
        },
        run: { deadline: '100s', min_instances: 1, max_instances: 1 },
      },
      { SHOP_KEY: KEY },
    );
    const run = fleet.start('run', '--dry-run', '--json');
    await waitFor(async () => (await shop.stats()).requests >= 4, { what: '4 requests', timeoutMs: 90_000 });
    const started = fleet.leftovers().filter(({ command }) => !command.includes('bin/orchestrator'));
    expect(started.some(({ command }) => command.includes('--user-data-dir='))).toBe(true);
    const pids = started.map(({ pid }) => pid);
    expect([processesWith(pids, [KEY]), filesWith(fleet.dir, [KEY])]).toEqual([[], []]);
    expectAllStored(await endOf(run), some.length);
    expect(filesWith(fleet.dir, [KEY])).toEqual([]);
    const arrivals = (await shop.log()).filter(({ kind }) => kind === 'page' || kind === 'data');
    expect(arrivals.filter(({ kind }) => kind === 'data').length).toBe(some.length);
    for (const { headers } of arrivals) expect([headers['x-key'], headers.cookie]).toEqual([KEY, `session=${KEY}`]);
  });

  it('reaches instances after the main server was killed, and none goes to a further host', async () => {
    const shop = await openShop(ids.length);
    const further = await openShop(ids.length, '127.0.9.1');
    const some = ids.slice(0, 40);
    const to = { find: 'P', with: `${further.url}/item/P` };
    const link = { css: 'article.product', attr: 'data-id', regex: '^P.*', replace: to };
    const fleet = await openFleet(
      shop,
      some,
      {
        site: {
          interval: '300ms',
          language: 'fr',
          headers: { 'X-Key': '${SHOP_KEY}' },
          cookies: { session: '${SHOP_KEY}' },
          mapping: { ...SHOP_MAPPING, url_parsers: [link] },
          follow: { hosts: [further.url] },
        },
        run: { deadline: '120s', min_instances: 2, max_instances: 2 },
      },
      { SHOP_KEY: KEY },
    );
    const run = fleet.start('run', '--dry-run', '--json');
    await waitFor(async () => (await shop.stats()).requests >= 6, { what: '6 requests', timeoutMs: 60_000 });
    run.kill('SIGKILL');
    await run.finished;
    for (const { pid, command } of fleet.leftovers()) if (command.includes('crawl-api')) process.kill(pid, 'SIGKILL');
    expectAllStored(await endOf(fleet.start('resume', '--json')), some.length);
    for (const { kind, headers } of await shop.log()) {
      const sent = kind === 'page' ? [KEY, 'fr', `session=${KEY}`] : [undefined, undefined, undefined];
      expect([headers['x-key'], headers['accept-language'], headers.cookie]).toEqual(sent);
    }
    const elsewhere = (await further.log()).filter(({ kind }) => kind === 'page');
    expect(elsewhere.length).toBeGreaterThanOrEqual(some.length);
    for (const { headers } of elsewhere)
      for (const name of ['x-key', 'accept-language', 'cookie']) expect(headers[name]).toBeUndefined();
  });
});
