/**
 * Loading a whole run into MariaDB: from the parts in the bucket to published rows and their proof, compared with LOAD
 * DATA.
 */
import { stagingName } from '../../orchestrator/core/db/staging.ts';
import type { Bench, BenchRow } from '../frame.ts';
import { benchRun } from './bench-run.ts';
import { insertParts, loadData } from './load-data.ts';
import { type LoadingPlace, openLoadingPlace } from './loading-place.ts';

const SIZES = [
  { products: 30_000, slots: 22, limitMs: 3_000 },
  { products: 1_000_000, slots: 100, limitMs: 75_000 },
];
/** One product in this many has failed its first attempt: 3 %. */
const RETRIED_EVERY = 33;
const MEMORY_BYTES = 300e6;

export const bench: Bench = {
  title: 'Loading into MariaDB: from the parts to published rows and their proof',
  async run() {
    const place = await openLoadingPlace();
    try {
      const rows: BenchRow[] = [];
      const ratios = [];
      for (const { products, slots, limitMs } of SIZES) {
        const figures = await measure(place, { products, slots });
        rows.push({ name: `${products} products`, figures });
        const name = products.toLocaleString('en');
        ratios.push(
          { name: `${name}: whole / ${limitMs / 1_000} s`, value: figures.totalMs! / limitMs, target: 'below 1' },
          {
            name: `${name}: inserts of parts / LOAD DATA, rows per second`,
            value: figures.loadDataMs! / figures.insertMs!,
            target: 'at least 0.45',
          },
          { name: `${name}: RSS / 300 MB`, value: (figures.maxRssMb! * 1e6) / MEMORY_BYTES, target: 'below 1' },
        );
        if (products < 1_000_000) continue;
        const retried = await measure(place, { products, slots, retriedEvery: RETRIED_EVERY });
        rows.push({ name: `${products} products, 3 % of them tried twice`, figures: retried });
        // Between two without: the server's files grow during the first.
        const again = await measure(place, { products, slots, of: 'again' });
        const loading = ({ loadMs, publishMs }: Record<string, number>): number => loadMs! + publishMs!;
        ratios.push({
          name: `${name}: loading and publishing with failed attempts / without`,
          value: (2 * loading(retried)) / (loading(figures) + loading(again)),
          target: 'at most 1.1',
        });
      }
      return {
        about:
          'One process loads the results of a fleet from S3 (the sandbox, over HTTP): manifests checked, parts fetched and checked by hash, rows and ledger in one ' +
          'transaction a part, one upsert into the result table, then `verify` over ledger, bucket and rows. MariaDB on the same two cores, without syncing to disk. ' +
          'LOAD DATA LOCAL has the same rows in one statement, sorted; `insertMs` is the inserts of our parts alone, into a table of the same shape.',
        rows,
        ratios,
      };
    } finally {
      await place.close();
    }
  },
};

interface Case {
  products: number;
  slots: number;
  retriedEvery?: number;
  /** Distinguishes two runs of the same size. */
  of?: string;
}

async function measure(
  place: LoadingPlace,
  { products, slots, retriedEvery = Infinity, of = '' }: Case,
): Promise<Record<string, number>> {
  const database = await place.openDatabase(`bench_${products}_${retriedEvery}${of}`);
  try {
    const run = benchRun(products, slots, `${retriedEvery}${of}`);
    await database.crawl(run, { retriedEvery });
    const shape = stagingName(run.id);
    const loadDataMs = await loadData(database.url, shape, products);
    const insertMs = await insertParts(database.db, shape, products);
    const { maxRssMb, ...times } = await database.load(run);
    return { ...times, loadDataMs, insertMs, maxRssMb: maxRssMb! };
  } finally {
    await database.db.close();
  }
}
