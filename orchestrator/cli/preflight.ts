/** Opens and checks everything a plan or a run stands on, cheapest first, before anything is launched. */
import { createProductSource } from '../db/product-source.ts';
import type { Database } from '../db/connect.ts';
import { openDatabase } from '../db/connect.ts';
import { migrate } from '../db/migrate.ts';
import { checkResultTable } from '../db/result-table.ts';
import { checkRights } from '../db/rights.ts';
import { createStores } from '../db/create-stores.ts';
import type { Plan } from '../plan/plan.ts';
import type { Config } from './config/load-config.ts';
import type { ProductList, Target } from './prepare.ts';
import { deadlineOf, makePlan, readProducts } from './prepare.ts';
import type { Stores } from './run-session.ts';

export interface Preflight {
  database: Database;
  stores: Stores;
  readProducts(): Promise<ProductList>;
  plan(products: ProductList): Plan;
}

/** With `migrate` our own tables are made; without it nothing in the database is changed. */
export async function preflight(config: Config, target: Target, options: { migrate: boolean }): Promise<Preflight> {
  deadlineOf(config);
  const database = await openDatabase(config.values.database.url);
  try {
    if (options.migrate) {
      await checkRights(database);
      await migrate(database);
    }
    return {
      database,
      stores: createStores(database),
      async readProducts() {
        const products = await readProducts(
          createProductSource(config.values.database.url, config.values.products.query),
        );
        await checkResultTable(database, config.values.results.table, config.mapping, products.ids);
        return products;
      },
      plan: (products) => makePlan(config, target, products),
    };
  } catch (error) {
    await database.close();
    throw error;
  }
}
