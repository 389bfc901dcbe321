/**
 * `results.history: changes` at a million products of which 3 % have changed: three nights into one table of MariaDB,
 * the third with a history. Publishing alone is compared.
 */
import type { Bench } from '../frame.ts';
import { measureNights } from './nights.ts';

const PRODUCTS = 1_000_000;

export const bench: Bench = {
  title: 'Publishing with a history of changes',
  async run() {
    let changes = 0;
    const nights = [
      { name: 'first night' },
      { name: 'second night' },
      { name: 'third night, with a history', results: { history: 'changes' } as const },
    ];
    const rows = await measureNights(PRODUCTS, nights, async (db) => {
      const [counted] = (await db.knex('rows_1000000_history').count({ rows: '*' })) as unknown as [{ rows: string }];
      changes = Number(counted.rows);
      if (changes !== Math.floor(PRODUCTS / 33)) throw new Error(`the history has ${changes} changes`);
    });
    const [, second, third] = rows;
    return {
      about: `${PRODUCTS} products into MariaDB on the same two cores, without syncing to disk; each night 3 % of the prices change. The history gets ${changes} rows in the publishing transaction.`,
      rows,
      ratios: [
        {
          name: 'publishing with a history / without',
          value: third!.figures.publishMs! / second!.figures.publishMs!,
          target: 'at most 1.5',
        },
      ],
    };
  },
};
