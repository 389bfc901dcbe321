/**
 * Pages as they are in the wild, read without a browser.
 *
 * @module-tag nightly
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { CHARSET_SHORT_NAMES } from '../support/shop/charsets.ts';
import { JSON_MAPPING, SHOP_MAPPING, XML_MAPPING, productIds } from '../support/shop/product.ts';
import { REVIEWS_MAPPING, expectedReviews } from '../support/shop/reviews.ts';
import { expectAllStored, expectSound } from './soundness.ts';
import { useStage } from './stage.ts';
import { expectTrueRows } from './stored-rows.ts';

const SEED = 9;

describe('pages', () => {
  const { shop, fleet, open } = useStage({ seed: SEED, products: 60 });
  const prepare = (ids: readonly string[], site = {}) => open(ids, { site, run: { deadline: '60s' } });

  it('are read in every charset, however it is declared', async () => {
    const short = Object.keys(CHARSET_SHORT_NAMES).filter((name) => !name.startsWith('utf'));
    const ids = [
      ...short.flatMap((name) => [`${name}-1`, `${name}meta-1`, `${name}clash-1`]),
      ...'sjisnone eucjpnone jisnone sjiswrong eucjpwrong sjiswrongmeta'.split(' ').map((prefix) => `${prefix}-1`),
      ...'utf16lebom utf16bebom utf16le utf16be utf8bom utf8none utf8'.split(' ').map((prefix) => `${prefix}-1`),
    ];
    await prepare(ids);
    expectAllStored(await fleet.dryRun(), ids.length);
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
    const report = expectAllStored(await fleet.dryRun(), ids.length);
    await expectTrueRows(fleet, SEED, ids);
    await expectSound(fleet, report, shop);
  });

  it('are read by 1,000 mappings, which reach the instances without any secret of the run', async () => {
    const ids = productIds(12);
    const mappings = Array.from({ length: 1_000 }, (_, i) => {
      return { name: `section ${i}`, url_patterns: [`/item/${ids[i - 988] ?? `none-${i}`}$`], ...SHOP_MAPPING };
    });
    await prepare(ids, { mapping: { mappings } });
    expectAllStored(await fleet.dryRun(), ids.length);
    await expectTrueRows(fleet, SEED, ids);
    const sandbox = join(fleet.dir, '.crawlfleet', 'sandbox');
    const names = readdirSync(sandbox, { recursive: true, encoding: 'utf8' });
    // As each instance has kept the object.
    const objects = names.filter((name) => name.endsWith('/crawl-settings.json.gz'));
    expect(objects.length).toBeGreaterThanOrEqual(3);
    const text = objects.map((name) => gunzipSync(readFileSync(join(sandbox, name))).toString()).join('\n');
    expect(text).toContain('section 999');
    const [run] = await fleet.query('select private_key, settings from crawlfleet_runs');
    const { controlToken } = (JSON.parse(String(run!.settings)) as { sandbox: { controlToken: string } }).sandbox;
    const tokens = (await fleet.query('select token from crawlfleet_launches')).map(({ token }) => token);
    expect(tokens.length).toBeGreaterThan(0);
    for (const secret of [run!.private_key, controlToken, fleet.databaseUrl, ...tokens])
      expect(text).not.toContain(String(secret));
  });

  it('give a row for each record, page after page', async () => {
    const ids = productIds(12);
    await prepare(ids, { product_url: shop.reviewsUrl, mapping: REVIEWS_MAPPING, pages_per_product: 2.5 });
    const report = expectAllStored(await fleet.dryRun(), ids.length);
    const rows = await fleet.query('select product_id, row_key, "user", stars, text, date from product_snapshots');
    const expected = ids.flatMap((id) =>
      expectedReviews(SEED, id).map((review) => ({ product_id: id, row_key: review.user, ...review })),
    );
    const byKey = (a: Record<string, unknown>, b: Record<string, unknown>): number =>
      `${String(a.product_id)} ${String(a.row_key)}` < `${String(b.product_id)} ${String(b.row_key)}` ? -1 : 1;
    expect(rows.sort(byKey)).toEqual(expected.sort(byKey));
    await expectSound(fleet, report, shop);
  });
});
