/** F31, F32 and F33 without a browser: pages as they are in the wild, and pages built to attack. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { CanaryServer } from '../support/shop/canary.ts';
import { startCanary } from '../support/shop/canary.ts';
import { CHARSET_SHORT_NAMES } from '../support/shop/charsets.ts';
import { JSON_MAPPING, SHOP_MAPPING, XML_MAPPING, productIds } from '../support/shop/product.ts';
import { REVIEWS_MAPPING, expectedReviews } from '../support/shop/reviews.ts';
import type { Shop } from '../support/shop/start-shop.ts';
import { startShop } from '../support/shop/start-shop.ts';
import type { Fleet } from './fleet.ts';
import { makeFleet } from './fleet.ts';
import { watchMemory } from './memory-watch.ts';
import { expectSound } from './soundness.ts';
import { expectTrueRows, storedRows } from './stored-rows.ts';

const SEED = 9;
const GOOD = productIds(12);
const MEGABYTE = 1_000_000;
/** Of one instance without a browser, whatever the pages do. */
const MEMORY_CEILING = 220 * MEGABYTE;

/** The good ones evenly among the others, beginning with one. */
function spread(ids: readonly string[]): string[] {
  const good = ids.filter((id) => GOOD.includes(id));
  const others = ids.filter((id) => !GOOD.includes(id));
  const mixed = others.flatMap((id, i) => [...good.slice(at(i, good, others), at(i + 1, good, others)), id]);
  return others.length === 0 ? good : mixed;
}

const at = (i: number, good: readonly string[], others: readonly string[]): number =>
  Math.ceil((i * good.length) / others.length);

describe('pages', () => {
  let shop: Shop;
  let canary: CanaryServer;
  let fleet: Fleet;

  beforeAll(async () => {
    shop = await startShop({ seed: SEED, products: 60 });
    canary = await startCanary('127.0.0.77');
    await shop.setCanary(canary.url);
  });
  afterAll(async () => {
    await shop.stop();
    await canary.stop();
  });
  beforeEach(() => shop.reset());
  afterEach(() => fleet.remove());

  /** Good and bad products mixed: an instance that sees only refusals rightly takes its address for banned. */
  async function prepare(ids: readonly string[], site: Record<string, unknown> = {}) {
    fleet = await makeFleet({
      engine: 'sqlite',
      productUrl: shop.productUrl,
      ids: spread(ids),
      config: { site, run: { deadline: '60s', max_failed: '100%' } },
    });
  }

  /** Failure reason of each failed product, by ID. */
  async function failures(): Promise<Record<string, string>> {
    const rows = await fleet.query(
      "select product_id, reason from crawlfleet_items where outcome = 'failed' order by product_id",
    );
    return Object.fromEntries(rows.map((row) => [String(row.product_id), String(row.reason)]));
  }

  it('are read in every charset, however it is declared', async () => {
    const short = Object.keys(CHARSET_SHORT_NAMES).filter((name) => !name.startsWith('utf'));
    const ids = [
      ...short.flatMap((name) => [`${name}-1`, `${name}meta-1`, `${name}clash-1`]),
      ...'sjisnone eucjpnone jisnone sjiswrong eucjpwrong sjiswrongmeta'.split(' ').map((prefix) => `${prefix}-1`),
      ...'utf16lebom utf16bebom utf16le utf16be utf8bom utf8none utf8'.split(' ').map((prefix) => `${prefix}-1`),
    ];
    await prepare(ids);
    const { report, stderr } = await fleet.dryRun();
    expect(report, `${report.notes.join('\n')}\n${stderr}`).toMatchObject({
      exitCode: 0,
      products: { stored: ids.length },
    });
    await expectTrueRows(fleet, SEED, ids);
  });

  it('are read compressed, in parts, after redirects, as JSON and as XML', async () => {
    const ids = 'gzip deflate br zstd chain5 slow 203 plain untyped json xml parts nodes redos'
      .split(' ')
      .map((prefix) => `${prefix}-1`);
    await prepare(ids, {
      mapping: {
        mappings: [
          { name: 'json', url_patterns: ['/item/json-'], ...JSON_MAPPING },
          { name: 'xml', url_patterns: ['/item/xml-'], ...XML_MAPPING },
          { name: 'html', url_parsers: ['a[rel=next]'], ...SHOP_MAPPING },
        ],
      },
    });
    const { report, stderr } = await fleet.dryRun();
    expect(await failures()).toEqual({});
    expect(report, `${report.notes.join('\n')}\n${stderr}`).toMatchObject({
      exitCode: 0,
      products: { stored: ids.length },
    });
    await expectTrueRows(fleet, SEED, ids);
    await expectSound(fleet, report, shop);
  });

  it('give a row for each record, page after page', async () => {
    const ids = GOOD;
    await prepare(ids, { product_url: shop.reviewsUrl, mapping: REVIEWS_MAPPING, pages_per_product: 2.5 });
    const { report, stderr } = await fleet.dryRun();
    expect(report, `${report.notes.join('\n')}\n${stderr}`).toMatchObject({
      exitCode: 0,
      products: { stored: ids.length },
    });
    const rows = await fleet.query('select product_id, row_key, "user", stars, text, date from product_snapshots');
    const expected = ids.flatMap((id) =>
      expectedReviews(SEED, id).map((review) => ({ product_id: id, row_key: review.user, ...review })),
    );
    const byKey = (a: Record<string, unknown>, b: Record<string, unknown>): number =>
      `${String(a.product_id)} ${String(a.row_key)}` < `${String(b.product_id)} ${String(b.row_key)}` ? -1 : 1;
    expect(rows.sort(byKey)).toEqual(expected.sort(byKey));
    await expectSound(fleet, report, shop);
  });

  it(
    'F33: bombs, floods and pages without an end fail with a reason, in bounded memory',
    { tags: ['nightly'] },
    async () => {
      const bad = {
        'bomb-1': 'too-large',
        'endless-1': 'too-large',
        'huge-1': 'too-large',
        'huge50-1': 'too-large',
        'nested-1': 'too-large',
        'loris-1': 'timeout',
        'stall-1': 'timeout',
        'hang-1': 'timeout',
        'cutgzip-1': 'network',
        'realpdf-1': 'content-type',
        'hiddenpdf-1': 'content-type',
        'video-1': 'content-type',
        '500-1': 'http-status',
      };
      const weapons = ['nodes-1', 'redos-1'];
      const ids = [...GOOD, ...weapons, ...Object.keys(bad)];
      const evil = { regex: '((a+)+)!|(?:( +)+x)|(?:(\\d,)+)+y' };
      await prepare(ids, { timeout: '2s', mapping: { fields: { ...SHOP_MAPPING.fields, evil } } });
      const watch = watchMemory(fleet);
      const { report, stderr } = await fleet.dryRun();
      watch.stop();
      expect(await failures(), stderr).toEqual(bad);
      expect(report).toMatchObject({ products: { stored: GOOD.length + weapons.length }, bans: [], onTime: true });
      await expectTrueRows(fleet, SEED, [...GOOD, ...weapons]);
      const peak = watch.peakOf('instance');
      expect(peak).toBeGreaterThan(0);
      expect(peak).toBeLessThan(MEMORY_CEILING);
      await expectSound(fleet, report, shop);
    },
  );

  it('F32: redirects to other sites are not followed: no request reaches the canary', async () => {
    const bad = ['offsite-1', 'imds-1', 'tofile-1', 'todata-1', 'loop-1', 'chain6-1'];
    await prepare([...GOOD, ...bad]);
    const { stderr } = await fleet.dryRun();
    const reasons = Object.fromEntries(bad.map((id) => [id, 'redirect']));
    expect(await failures(), stderr).toEqual(reasons);
    expect(canary.visits()).toEqual([]);
    await expectTrueRows(fleet, SEED, GOOD);
  });

  it(
    'F32: pages full of lures are read as they are: no request reaches the canary',
    { tags: ['nightly'] },
    async () => {
      const ids = ['lure-1', 'lure-2', ...GOOD];
      await prepare(ids);
      const { report, stderr } = await fleet.dryRun();
      expect(report, `${report.notes.join('\n')}\n${stderr}`).toMatchObject({
        exitCode: 0,
        products: { stored: ids.length },
      });
      expect(canary.visits()).toEqual([]);
      expect((await shop.stats()).assets).toEqual({});
    },
  );

  it('F31: a name that does not exist fails as network, without a retry', { tags: ['nightly'] }, async () => {
    await prepare(GOOD.slice(0, 3), { product_url: 'http://no-such-shop.invalid/item/{id}', robots: 'ignore' });
    await fleet.dryRun();
    expect(new Set(Object.values(await failures()))).toEqual(new Set(['network']));
    expect(await storedRows(fleet)).toEqual([]);
  });

  it(
    'F31: a name that leads to a private address is not visited, unless it is allowed',
    { tags: ['nightly'] },
    async () => {
      const byName = shop.productUrl.replace('127.0.0.1', 'localhost');
      await prepare(GOOD.slice(0, 3), { product_url: byName, robots: 'ignore' });
      await fleet.dryRun();
      expect(Object.values(await failures())).toEqual(['network', 'network', 'network']);
      expect((await shop.stats()).requests).toBe(0);
      await fleet.remove();
      await prepare(GOOD.slice(0, 3), { product_url: byName, robots: 'ignore', allow_private: true });
      const { report, stderr } = await fleet.dryRun();
      expect(report, `${report.notes.join('\n')}\n${stderr}`).toMatchObject({ exitCode: 0, products: { stored: 3 } });
    },
  );
});
