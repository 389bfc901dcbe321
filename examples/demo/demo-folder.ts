/** The folder of one demo: an SQLite file with the product table, and the fleet.yaml that crawls it. */
import { globSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { stringify } from 'yaml';
import { SHOP_MAPPING, productIds } from '../../test/support/shop/product.ts';

export interface DemoFolder {
  path: string;
  databaseFile: string;
  configFile: string;
  /** The run's report, once it exists. */
  findReport(): string | null;
}

/** Creates `<parent>/<timestamp>/`; each demo has its own, so that demos do not share rows. */
export function makeDemoFolder(parent: string, productUrl: string, products: number, intervalMs: number): DemoFolder {
  const path = join(parent, new Date().toISOString().replaceAll(':', '').replace(/\..*/, ''));
  mkdirSync(path, { recursive: true });
  const databaseFile = join(path, 'fleet.db');
  const configFile = join(path, 'fleet.yaml');
  fillDatabase(databaseFile, productIds(products));
  writeFileSync(configFile, stringify(fleetConfig(productUrl, intervalMs)));
  return {
    path,
    databaseFile,
    configFile,
    findReport: () => {
      const [report] = globSync('.crawlfleet/runs/*/report.json', { cwd: path });
      return report === undefined ? null : join(path, report);
    },
  };
}

function fillDatabase(file: string, ids: readonly string[]): void {
  const database = new Database(file);
  try {
    database.exec('create table products (id text primary key, active integer not null default 1)');
    const insert = database.prepare('insert into products (id) values (?)');
    database.transaction(() => ids.forEach((id) => insert.run(id)))();
  } finally {
    database.close();
  }
}

function fleetConfig(productUrl: string, intervalMs: number): object {
  return {
    site: {
      product_url: productUrl,
      interval: `${intervalMs}ms`,
      user_agent: 'crawlfleet-demo/1.0 (+https://example.com/bot)',
      mapping: SHOP_MAPPING,
    },
    products: { query: 'select id from products where active = 1' },
    database: { url: 'sqlite:./fleet.db' },
    results: { table: 'product_snapshots' },
    // If the demo is killed, its sandbox ends itself this long after the deadline.
    run: { grace: '15s' },
  };
}
