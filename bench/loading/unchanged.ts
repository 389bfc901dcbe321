/**
 * `site.conditional` where 97 % of the pages are unchanged: nights into one table of MariaDB, the first two without,
 * the third with the validators of all pages, the fourth with 304 for those that are unchanged.
 */
import type { WorkReader } from '../../orchestrator/core/model/stores.ts';
import type { Bench } from '../frame.ts';
import { measureNights } from './nights.ts';

const PRODUCTS = 200_000;
const OFFERED = 12_800;

/** Offers of 50 products each, as the main server reads them. */
async function readOffers(work: WorkReader): Promise<Record<string, number>> {
  const seen = new Set<string>();
  const startedMs = performance.now();
  let conditional = 0;
  while (seen.size * 50 < OFFERED)
    for (const { id, products } of await work.waiting(64, seen)) {
      seen.add(id);
      conditional += products.filter(({ validators }) => validators !== undefined).length;
    }
  return { offersMs: performance.now() - startedMs, conditional };
}

export const bench: Bench = {
  title: 'Nights of pages that are unchanged',
  async run() {
    const conditional = { results: { conditional: 'f' }, before: readOffers };
    const nights = [
      { name: 'first night, without conditions' },
      { name: 'second night, without conditions', before: readOffers },
      { name: 'third night, with validators', ...conditional, pages: { validators: true } },
      { name: 'fourth night, 97 % are unchanged', ...conditional, pages: { validators: true, unchanged: true } },
    ];
    const rows = await measureNights(PRODUCTS, nights, async (db) => {
      const [sums] = (await db.knex('crawlfleet_parts').sum({ unchanged: 'unchanged' })) as unknown as [
        { unchanged: string },
      ];
      const expected = PRODUCTS - Math.floor(PRODUCTS / 33);
      if (Number(sums.unchanged) !== expected) throw new Error(`${sums.unchanged} products are unchanged`);
    });
    const [, plain, withValidators, unchanged] = rows.map(({ figures }) => figures);
    const whole = (figures = {} as Record<string, number>): number => figures.loadMs! + figures.publishMs!;
    return {
      about: `${PRODUCTS} products into MariaDB on the same two cores, without syncing to disk. offersMs is the time for reading ${OFFERED} products to offer.`,
      rows,
      ratios: [
        { name: 'publishing, with validators / without', value: withValidators!.publishMs! / plain!.publishMs! },
        { name: 'loading and publishing, with validators / without', value: whole(withValidators) / whole(plain) },
        { name: 'loading and publishing, unchanged / without conditions', value: whole(unchanged) / whole(plain) },
      ],
    };
  },
};
