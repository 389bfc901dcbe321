/**
 * Discovery on a shop of 100,000 products and on a wiki of 50,000 pages: real pages, extraction, loader and frontier
 * (SQLite); without instances and HTTP, which other benches measure.
 */
import { rmSync, writeFileSync, mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { compileMapping } from '../../crawl-api/extract/compile-mapping.ts';
import { PageExtractor } from '../../crawl-api/extract/page-extractor.ts';
import { discoverSource } from '../../orchestrator/features/discovery/discover-source.ts';
import { discoveryConfig } from '../../orchestrator/features/discovery/discovery-config.ts';
import { type Config } from '../../orchestrator/core/config/load-config.ts';
import type { RunSettings } from '../../orchestrator/core/model/run-settings.ts';
import type { RunStores } from '../../orchestrator/core/model/stores.ts';
import { type Database, openDatabase } from '../../orchestrator/core/db/connect.ts';
import { createStores } from '../../orchestrator/core/db/create-stores.ts';
import { noDiscovery } from '../../orchestrator/core/model/discovery.ts';
import { migrate } from '../../orchestrator/core/db/migrate.ts';
import { createResultTable } from '../../orchestrator/core/db/result-table.ts';
import type { Plan } from '../../orchestrator/core/plan/plan.ts';
import type { ItemResult } from '../../shared/wire/part.ts';
import { Catalogue } from '../../test/support/shop/linked/catalogue.ts';
import { LinkedShop } from '../../test/support/shop/linked/linked-shop.ts';
import { Wiki, WIKI_MAPPING, wikiScores } from '../../test/support/shop/linked/wiki.ts';
import { renderPage } from '../../test/support/shop/page.ts';
import { expectedProduct, SHOP_MAPPING } from '../../test/support/shop/product.ts';
import type { Bench, BenchResult } from '../frame.ts';
import { lockRequest } from '../../test/support/lock-request.ts';
import { features, readConfig } from '../../test/support/features.ts';

const ORIGIN = 'https://shop.example';
const PRODUCTS = 100_000;

/** HTML of a path; null: there is no such page. */
type Render = (path: string) => string | null;

/** A folder with fleet.yaml and a database, and nights of discovery in it. */
class Site {
  readonly folder: string;
  readonly db: Database;
  readonly config: Config;
  /** Number of requests for each path. */
  readonly asked = new Map<string, number>();
  #nights = 0;

  private constructor(db: Database, config: Config, folder: string) {
    this.db = db;
    this.config = config;
    this.folder = folder;
  }

  static async open(mapping: object, discover: object, prepare?: (db: Database) => Promise<void>): Promise<Site> {
    const folder = mkdtempSync(join(tmpdir(), 'crawlfleet-bench-'));
    const file = join(folder, 'fleet.yaml');
    const values = {
      site: { product_url: `${ORIGIN}/item/{id}`, mapping },
      products: { query: 'select id from products' },
      database: { url: 'sqlite:./fleet.db' },
      run: { deadline: '4h' },
      discover,
    };
    writeFileSync(file, stringify(values));
    writeFileSync(join(folder, 'fleet.db'), '');
    const config = discoveryConfig(readConfig(file, {}));
    const db = await openDatabase(config.values.database.url);
    await migrate(db);
    await prepare?.(db);
    return new Site(db, config, folder);
  }

  async close(): Promise<void> {
    await this.db.close();
    rmSync(this.folder, { recursive: true });
  }

  /**
   * One run: requests pages until `stop` returns true or nothing is left. What it has taken and not loaded then has no
   * outcome, as after a kill.
   */
  async night(render: Render, batch: number, stop: (path: string) => boolean): Promise<void> {
    const { db, config } = this;
    const output = { line: () => undefined, document: () => undefined };
    await discoverSource(output, new AbortController().signal).choose({ config, database: db } as never, null);
    const stores = createStores(db, features);
    const lock = await stores.runs.acquireLock(lockRequest('bench', Date.now(), 3_600_000));
    if (!('fence' in lock)) throw new Error('the lock is taken');
    const id = `20261124-00000${++this.#nights}-bnch`;
    const results = { table: config.values.results.table, onGone: 'keep' } as const;
    const own = { mapping: config.mapping, discover: config.discovery, results } as RunSettings;
    await createResultTable(db, own.results, own.mapping, features);
    const times = { startedAtMs: Date.now(), deadlineAtMs: Date.now() + 3_600_000 };
    const plan = { chunkSize: 50, instances: 1 } as Plan;
    const keys = { privateKey: '', publicKey: String(this.#nights) };
    const run = { id, parentId: null, dryRun: true, settings: own, plan, planned: 0, duplicates: 0, ...times, ...keys };
    await stores.runs.create({ ...run, discovery: noDiscovery() }, [], lock.fence, Date.now());
    const bound = stores.bind({ runId: id, fence: lock.fence, clock: Date });
    await this.#crawl(bound, render, { batch, stop });
    await bound.work.failRest('lost-instance');
    const phases = ['planned', 'launching', 'crawling', 'releasing', 'loading'] as const;
    for (const [i, phase] of phases.entries()) if (i > 0) await bound.run.move(phases[i - 1]!, phase);
    await bound.results.publish('completed', { exitCode: 0, reason: null });
    await bound.results.dropStaging();
    await stores.runs.releaseLock(lock.fence);
  }

  async #crawl(
    run: RunStores,
    render: Render,
    { batch, stop }: { batch: number; stop: (path: string) => boolean },
  ): Promise<void> {
    const mapping = await compileMapping(this.config.mapping);
    for (let seq = 0; (await run.feed!.take(batch)) > 0; seq++) {
      const products = (await run.work.waiting(batch, new Set())).flatMap((chunk) => chunk.products);
      const results: ItemResult[] = [];
      for (const { n, id: path } of products) {
        this.asked.set(path, (this.asked.get(path) ?? 0) + 1);
        const html = render(path);
        const common = { n, id: path, url: ORIGIN + path, at: new Date().toISOString(), attempts: 1 };
        if (html === null) results.push({ ...common, outcome: 'gone', status: 404 });
        else {
          const extractor = new PageExtractor(mapping, 'html', ORIGIN + path);
          extractor.write(html);
          const { rows, links } = extractor.end();
          results.push({ ...common, outcome: 'stored', rows: rows ?? [], links });
        }
        if (stop(path)) return;
      }
      const part = { slot: 0, epoch: 1, seq };
      const sha256 = String(seq).padStart(64, '0');
      await run.results.register(part, [{ seq, key: String(seq), sha256, sizeBytes: 1, products: results.length }]);
      await run.results.load(part, results);
    }
  }
}

async function crawlShop() {
  const shop = new LinkedShop({ seed: 1, products: PRODUCTS });
  const render: Render = (path) => {
    const url = new URL(path, ORIGIN);
    const id = /^\/item\/(\w+)$/.exec(url.pathname)?.[1];
    return id === undefined
      ? shop.render(url.pathname, url.searchParams)
      : renderPage(expectedProduct(1, id), [], shop.frameOf(id));
  };
  const mappings = [
    { url_patterns: ['/item/'], ...SHOP_MAPPING },
    { name: 'lists', url_patterns: ['/category/', '/search', '/calendar/', '/list', '/a/b', '/$'] },
  ];
  const into = { table: 'found', id: '/item/(\\w+)' };
  const discover = { seeds: [`${ORIGIN}/`], depth: 400, pages: 1_000_000, keep: 1_000_000, into };
  const site = await Site.open({ mappings }, discover);
  const startMs = performance.now();
  try {
    let pages = 0;
    await site.night(render, 500, () => ++pages === PRODUCTS / 2);
    await site.night(render, 500, () => false);
    const tookMs = performance.now() - startMs;
    const found = new Set(
      (await site.db.knex('found').select('product_id')).map((row: { product_id: string }) => row.product_id),
    );
    const missing = [...new Catalogue(PRODUCTS).products()].filter((id) => !found.has(id)).length;
    const twice = [...site.asked.values()].filter((times) => times > 1).length;
    const lists = [...site.asked.keys()].filter((path) => !path.startsWith('/item/')).length;
    const traps = [...site.asked.keys()].filter((path) => /^\/(calendar|list|a\/b)/.test(path)).length;
    const requests = [...site.asked.values()].reduce((all, one) => all + one, 0);
    return { requests, found: found.size, missing, twice, lists, traps, pagesPerSecond: (requests * 1_000) / tookMs };
  } finally {
    await site.close();
  }
}

/** Number of requests until the requested pages have 80 % of the score. */
async function crawlWiki(order: 'breadth' | 'score'): Promise<number> {
  const wiki = new Wiki();
  const scores = new Map([...wikiScores()].map(({ path, score }) => [path, score]));
  const wanted = 0.8 * [...scores.values()].reduce((all, one) => all + one, 0);
  const discover = {
    seeds: [`${ORIGIN}/wiki/0`],
    depth: 1_000,
    order,
    ...(order === 'score' ? { scores: 'select path as id, score from scored' } : {}),
    pages: 100_000,
    keep: 1_000_000,
    into: { table: 'articles' },
  };
  const site = await Site.open(WIKI_MAPPING, discover, async ({ knex }) => {
    await knex.schema.createTable('scored', (t) => {
      t.string('path');
      t.double('score');
    });
    await knex.batchInsert(
      'scored',
      [...scores].map(([path, score]) => ({ path, score })),
      400,
    );
  });
  try {
    let reached = 0;
    let requests = 0;
    await site.night(
      (path) => wiki.render(path),
      20,
      (path) => {
        requests++;
        reached += scores.get(path) ?? 0;
        return reached >= wanted;
      },
    );
    return requests;
  } finally {
    await site.close();
  }
}

export const bench: Bench = {
  title: 'Discovery: a shop of 100,000 products killed half-way, a wiki of 50,000 pages by score',
  async run(): Promise<BenchResult> {
    const shop = await crawlShop();
    const breadth = await crawlWiki('breadth');
    const score = await crawlWiki('score');
    return {
      about:
        'The shop has 50 categories, two searches of 200 pages, a calendar, lists in every order and paths that repeat, all linked from each page; the run is killed after 50,000 pages and the next night continues. ' +
        'The wiki has 3 to 30 links a page, and Zipf scores that are independent of the links; requests until 80 % of the total score. Pages, extraction, loader and frontier are real, on SQLite; no HTTP.',
      rows: [
        { name: 'shop', figures: shop },
        { name: 'wiki, breadth first', figures: { requests: breadth } },
        { name: 'wiki, by score', figures: { requests: score } },
      ],
      ratios: [
        { name: 'products of the shop that were found', value: shop.found / PRODUCTS, target: '1' },
        { name: 'requested twice, of the 500 in progress at the kill', value: shop.twice / 500, target: 'at most 1' },
        { name: 'requests by score, of all pages', value: score / 50_000, target: 'at most 0.33' },
        { name: 'requests by score, of breadth first', value: score / breadth },
      ],
    };
  },
};
