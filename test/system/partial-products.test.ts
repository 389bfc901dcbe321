/** Reviews by page at a shop that forbids, loses and has too many of them: products that are stored in part. */
import { describe, expect, it } from 'vitest';
import type { RunReport } from '../../orchestrator/core/model/report.ts';
import { eachEngineByDay } from '../support/mariadb/database.ts';
import { productIds } from '../support/shop/product.ts';
import { expectedReviews, REVIEWS_MAPPING, REVIEWS_PER_PAGE, reviewPages } from '../support/shop/reviews.ts';
import { endOf } from './fleet.ts';
import { expectAllStored, expectSound } from './soundness.ts';
import { useStage } from './stage.ts';

const SEED = 9;
const IDS = productIds(24);
/** Maximum pages of a product: some have one more. */
const MAX = 3;

const pagesOf = (id: string): number => reviewPages(expectedReviews(SEED, id));
const several = IDS.filter((id) => pagesOf(id) > 1);
const FORBIDDEN = several.slice(0, 4);
const GONE = several.slice(4, 6);
const CUT = IDS.filter((id) => pagesOf(id) > MAX && !FORBIDDEN.includes(id) && !GONE.includes(id));
const PARTIAL = [...FORBIDDEN, ...GONE, ...CUT].sort((a, b) => a.localeCompare(b));

/** How many reviews of a product a night reads. */
function readOf(id: string, isOpen: boolean): number {
  const all = expectedReviews(SEED, id).length;
  const pages = isOpen || !(FORBIDDEN.includes(id) || GONE.includes(id)) ? MAX : 1;
  return Math.min(all, pages * REVIEWS_PER_PAGE);
}

eachEngineByDay('reviews by page', (engine) => {
  const { shop, fleet, open, crawl } = useStage({ seed: SEED, products: IDS.length });
  const ids = FORBIDDEN.map((id) => `Disallow: /reviews/${id}?page=`).join('\n');
  const forbid = async (): Promise<void> => {
    await shop.setRobots(`User-agent: *\n${ids}\n`);
    await shop.setRules(GONE.map((id) => ({ id, query: 'page=2', do: { type: 'status', status: 404 } })));
  };
  const allow = async (): Promise<void> => {
    await shop.setRobots(null);
    await shop.setRules([]);
  };
  const openFleet = (): Promise<void> =>
    open(
      IDS,
      {
        site: {
          product_url: shop.reviewsUrl,
          mapping: REVIEWS_MAPPING,
          pages_per_product: { mean: 2, max: MAX },
        },
        results: { history: 'changes' },
        run: { deadline: '90s' },
      },
      engine,
    );

  const leftOut = {
    robots: { products: FORBIDDEN.length, pages: FORBIDDEN.length, example: expect.stringContaining('?page=2') },
    gone: { products: GONE.length, pages: GONE.length, example: expect.stringContaining('?page=2') },
    limit: { products: CUT.length, pages: CUT.length, example: expect.stringContaining(`?page=${MAX + 1}`) },
  };
  const expectPartial = ({ furtherPages }: RunReport): void =>
    expect(furtherPages).toEqual({
      leftOut,
      partial: { products: PARTIAL.length, examples: PARTIAL.slice(0, 5) },
    });

  const rowsOf = async (): Promise<Map<string, string[]>> => {
    const rows = await fleet.query('select product_id, row_key, run_id from product_snapshots');
    return new Map(IDS.map((id) => [id, rows.filter((row) => row.product_id === id).map((row) => String(row.run_id))]));
  };

  it('the shop of this test has products of each kind', () => {
    expect([FORBIDDEN, GONE, CUT].map(({ length }) => length > 0)).toEqual([true, true, true]);
    expect(PARTIAL.length).toBeLessThan(IDS.length);
  });

  it(
    'keeps the older rows of partial products, and lets a whole night delete them',
    { tags: ['nightly'] },
    async () => {
      await openFleet();
      const first = expectAllStored(await fleet.dryRun(), IDS.length);
      expect(first.furtherPages).toMatchObject({ leftOut: { limit: { products: expect.any(Number) } } });
      // A review that its writer has deleted since, of each product.
      const old = IDS.map((id) => `('${id}', 'deleted', 'older', 'http://old.example/', '2026-01-01 00:00:00')`);
      await fleet.query(
        `insert into product_snapshots (product_id, row_key, run_id, url, crawled_at) values ${old.join(', ')}`,
      );
      await forbid();
      const second = expectAllStored(await fleet.dryRun(), IDS.length);
      expectPartial(second);
      const rows = await rowsOf();
      for (const id of IDS) {
        const [before, now] = [readOf(id, true), readOf(id, false)];
        const own = rows.get(id) ?? [];
        expect(
          own.filter((run) => run === second.run),
          id,
        ).toHaveLength(now);
        expect(
          own.filter((run) => run === first.run),
          id,
        ).toHaveLength(before - now);
        expect(own.includes('older'), id).toBe(PARTIAL.includes(id));
      }
      await expectSound(fleet, second, shop);
      const verified = await fleet.run('verify', first.run);
      expect(verified.exitCode, verified.stdout).toBe(0);

      await allow();
      const third = expectAllStored(await fleet.dryRun(), IDS.length);
      const after = await rowsOf();
      for (const id of [...FORBIDDEN, ...GONE].filter((one) => pagesOf(one) <= MAX))
        expect(after.get(id), id).toEqual(Array.from({ length: readOf(id, true) }, () => third.run));
    },
  );

  it('names them in report, verify, product and history', async () => {
    await openFleet();
    await forbid();
    const { run } = expectAllStored(await fleet.dryRun(), IDS.length);
    const report = await fleet.run('report', run);
    expect(report.stdout).toContain(`partial     ${PARTIAL.length} of the stored keep their older rows: ${PARTIAL[0]}`);
    expect(report.stdout).toMatch(/forbidden by robots\.txt, of 4 products, such as http/);
    const verified = await fleet.run('verify', run);
    expect(verified.stdout).toContain(`${PARTIAL.length} products are partial`);
    expect(verified.exitCode).toBe(0);
    const product = await fleet.run('product', FORBIDDEN[0]!);
    expect(product.stdout).toContain('partial: stored without 1 of its further pages');
    const noted = await fleet.query(
      `select product_id from product_snapshots_history where field is null and new_value = 'partial' order by product_id`,
    );
    expect(noted.map((row) => row.product_id)).toEqual(PARTIAL);
    const asked = (await shop.log()).map(({ path }) => path);
    expect(asked.filter((path) => FORBIDDEN.some((id) => path.startsWith(`/reviews/${id}?`)))).toEqual([]);
  });

  it.runIf(engine === 'sqlite')('loads the same counts from the bucket', { tags: ['nightly'] }, async () => {
    await openFleet();
    await forbid();
    const report = expectAllStored(await fleet.dryRun(), IDS.length);
    const tables = await fleet.query(`select name from sqlite_master where type = 'table' and name like 'crawlfleet%'`);
    for (const { name } of tables) await fleet.query(`drop table "${String(name)}"`);
    const loaded = await fleet.run('load', report.run, '--json');
    expect(loaded.exitCode, loaded.stderr).toBe(0);
    expect((JSON.parse(loaded.stdout) as RunReport).furtherPages).toEqual(report.furtherPages);
    expect((await fleet.run('verify', report.run)).exitCode).toBe(0);
  });

  describe('a main server that is killed', { tags: ['nightly'] }, () => {
    it('resumes with the same counts', async () => {
      await openFleet();
      await forbid();
      const run = await crawl(20);
      run.kill('SIGKILL');
      expect((await run.finished).signal).toBe('SIGKILL');
      const report = expectAllStored(await endOf(fleet.start('resume', '--json')), IDS.length);
      expectPartial(report);
      await expectSound(fleet, report, shop);
    });
  });
});
