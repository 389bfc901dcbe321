/**
 * `results.history: changes` at a million products of which 3 % have changed: three nights into one table of MariaDB,
 * the third with a history. Publishing alone is compared.
 */
import type { Bench } from '../frame.ts';
import { benchRun } from './bench-run.ts';
import { openLoadingPlace } from './loading-place.ts';

const PRODUCTS = 1_000_000;
const SLOTS = 100;

export const bench: Bench = {
  title: 'Publishing with a history of changes',
  async run() {
    const place = await openLoadingPlace();
    const database = await place.openDatabase('bench_changes');
    try {
      const rows = [];
      for (const [night, name] of ['first night', 'second night', 'third night, with a history'].entries()) {
        const run = benchRun(PRODUCTS, SLOTS, `n${night}`);
        run.startedAtMs += night;
        if (night === 2) run.settings.results.history = 'changes';
        await database.crawl(run, { night });
        const { maxRssMb: _, ...figures } = await database.load(run);
        rows.push({ name, figures });
      }
      const [, second, third] = rows;
      const [counted] = (await database.db.knex('rows_1000000_history').count({ rows: '*' })) as unknown as [
        { rows: string },
      ];
      const changes = Number(counted.rows);
      if (changes !== Math.floor(PRODUCTS / 33)) throw new Error(`the history has ${changes} changes`);
      return {
        about: `${PRODUCTS} products into MariaDB on the same two cores, without syncing to disk; in each night 3 % of the prices are others. The history gets ${changes} rows in the publishing transaction.`,
        rows,
        ratios: [
          {
            name: 'publishing with a history / without',
            value: third!.figures.publishMs! / second!.figures.publishMs!,
            target: 'at most 1.5',
          },
        ],
      };
    } finally {
      await database.db.close();
      await place.close();
    }
  },
};
