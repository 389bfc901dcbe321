/**
 * A run without a load balancer: the main server offers the products to the instances itself, also the next one after a
 * crash.
 *
 * @module-tag nightly
 */
import { expect, it } from 'vitest';
import { productIds } from '../support/shop/product.ts';
import { endOf } from './fleet.ts';
import { expectAllStored, expectSound } from './soundness.ts';
import { useStage } from './stage.ts';

const PRODUCTS = 90;
const INTERVAL_MS = 300;
const { shop, fleet, open, crawl } = useStage({ products: PRODUCTS });

it('is shared out evenly, and goes on after kill -9', async () => {
  await open(productIds(PRODUCTS), {
    site: { interval: `${INTERVAL_MS}ms` },
    aws: { load_balancer: 'none' },
    run: { deadline: '90s', min_instances: 3, max_instances: 3 },
  });
  const run = await crawl(20);
  run.kill('SIGKILL');
  await run.finished;
  expect(run.stderr()).toContain('offers the products to the instances itself');
  const report = expectAllStored(await endOf(fleet.start('resume', '--json')), PRODUCTS, { launched: 3, replaced: 0 });
  await expectSound(fleet, report, shop, INTERVAL_MS);
  expect(report.cost.actual).toBeLessThan(0.01);
});
