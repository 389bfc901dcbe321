/**
 * A crawl with a real Chromium: pages that scripts build.
 *
 * @module-tag nightly
 */
import { describe, expect, inject, it } from 'vitest';
import { productIds } from '../support/shop/product.ts';
import { useStage } from './stage.ts';
import { expectTrueRows } from './stored-rows.ts';

const SEED = 13;
const INTERVAL_MS = 500;

describe('a crawl with a browser', () => {
  const { shop, fleet, open } = useStage({ seed: SEED, products: 100 });

  /** One instance: two cores can run only one browser. */
  const prepare = (ids: readonly string[], site: Record<string, unknown> = {}) =>
    open(ids, {
      site: { render: 'browser', interval: `${INTERVAL_MS}ms`, timeout: '5s', ...site },
      run: { deadline: '100s', min_instances: 1, max_instances: 1, max_failed: '100%' },
    });

  it('stores what scripts build, requests nothing it does not need, and leaves no process behind', async () => {
    expect(inject('chromiumPath')).not.toBe('');
    const ids = ['js-1', 'jsfetch-1', 'assets-1', 'neverloaded-1', '404-1', ...productIds(5)];
    await prepare(ids);
    const { report, stderr } = await fleet.dryRun();
    const stored = ids.filter((id) => id !== '404-1');
    expect(report, `${report.notes.join('\n')}\n${stderr}`).toMatchObject({
      products: { stored: stored.length, gone: 1, failed: 0 },
    });
    expect(report.rendered).toBeGreaterThanOrEqual(stored.length);
    await expectTrueRows(fleet, SEED, stored);
    const stats = await shop.stats();
    expect(stats.assets).toEqual({});
    expect(stats.minGapMs).toBeGreaterThanOrEqual(INTERVAL_MS);
    expect(Object.keys(stats.addresses)).toEqual([report.shards[0]?.address]);
    expect(fleet.leftovers()).toEqual([]);
  });

  it('auto: uses the browser only where the page without scripts lacks the fields', async () => {
    const plain = productIds(8);
    const ids = [...plain, 'js-1', 'js-2'];
    await prepare(ids, { render: 'auto' });
    const { report, stderr } = await fleet.dryRun();
    expect(report, `${report.notes.join('\n')}\n${stderr}`).toMatchObject({
      exitCode: 0,
      products: { stored: ids.length },
      rendered: 2,
    });
    await expectTrueRows(fleet, SEED, ids);
    expect((await shop.stats()).minGapMs).toBeGreaterThanOrEqual(INTERVAL_MS);
  });
});
