/** Nights of one catalogue into one table of MariaDB, each loaded and published by a program of its own. */
import type { RunSettings } from '../../orchestrator/core/model/run-settings.ts';
import type { Database } from '../../orchestrator/core/db/connect.ts';
import { benchRun, type Pages } from './bench-run.ts';
import { type Before, openLoadingPlace } from './loading-place.ts';

const SLOTS = 100;

export interface NightCase {
  name: string;
  results?: Partial<RunSettings['results']>;
  pages?: Pages;
  before?: Before;
}

/** @param check looks at the tables after the last night */
export async function measureNights(
  products: number,
  nights: readonly NightCase[],
  check: (db: Database) => Promise<void>,
): Promise<{ name: string; figures: Record<string, number> }[]> {
  const place = await openLoadingPlace();
  const database = await place.openDatabase('bench_nights');
  try {
    const rows = [];
    for (const [night, { name, results, pages, before }] of nights.entries()) {
      const run = benchRun(products, SLOTS, `n${night}`);
      run.startedAtMs += night;
      Object.assign(run.settings.results, results);
      const first = await database.crawl(run, { night, ...pages }, before);
      const { maxRssMb: _, ...figures } = await database.load(run);
      rows.push({ name, figures: { ...first, ...figures } });
    }
    await check(database.db);
    return rows;
  } finally {
    await database.db.close();
    await place.close();
  }
}
