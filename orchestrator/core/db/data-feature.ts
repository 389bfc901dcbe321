/**
 * What a feature may have to say in the database: which products are crawled next (ProductFeed), and what their results
 * mean once they are loaded and published (AfterPublish). docs/decisions/0043-data-seams.md.
 */
import type { Knex } from 'knex';
import type { Mapping } from '../../../shared/domain/mapping.ts';
import type { Product } from '../../../shared/domain/product.ts';
import type { DiscoverSettings } from '../model/discovery.ts';
import type { RunSettings } from '../model/run-settings.ts';
import type { RunBinding, RunFeed } from '../model/stores.ts';
import type { Plan } from '../plan/plan.ts';
import type { Database } from './connect.ts';
import type { ExceptSettled } from './newer-runs.ts';
import type { Decisions } from './number-columns.ts';
import type { ProductSource } from './product-source.ts';
import type { RunShape } from './run-shape.ts';
import type { ReadPage, StoredResult } from './stage-rows.ts';

export interface DataFeature {
  productFeed?: ProductFeed;
  afterPublish?: AfterPublish;
}

/** What features answer; those that have no part in it are left out. */
export const answersOf = async <T extends object>(asked: readonly (Promise<T | null> | undefined)[]): Promise<T[]> =>
  (await Promise.all(asked.map(async (answer) => (await answer) ?? null))).flatMap((answer) => answer ?? []);

/** What is crawled next. */
interface ProductFeed {
  /** Chooses from products.query what tonight crawls; null: all of it. */
  choose?(db: Database, list: ProductQuery): Promise<ChosenProducts | null>;
  /** What a run finds while it crawls. At most one feature finds products. */
  openRun?(db: Database, binding: RunBinding): RunFeed;
  /** Asked once in a process: says what the pages of products were called when their rows were read; null: nothing. */
  openPageNames?(knex: Knex, run: { db: Database; runId: string }): Promise<NamePages | null>;
}

/** Adds `validators` to products that are about to be offered. */
export type NamePages = (knex: Knex, offered: OfferedProducts, nowMs: number) => Promise<void>;

export interface OfferedProducts {
  products: readonly Product[];
  /** Its ID in the ledger and the result table: instances may know the product by its URL. */
  idOf: (product: Product) => string;
}

export interface ProductQuery {
  /** `products.query`. */
  source: ProductSource;
  /** `products.recrawl`; null: the whole list is crawled. */
  recrawl: RecrawlSettings | null;
  resultTable: string;
  /** False: nothing in the database may be changed. */
  mayWrite: boolean;
}

/** The settings as `products.recrawl` has them. */
interface RecrawlSettings {
  base: number;
  k: number;
  every: Record<string, number>;
  score: string;
  max_share: number;
  capacity: number | null;
}

export interface ChosenProducts {
  ids: string[];
  duplicates: number;
  /** How many products the query lists. */
  listed: number;
  fit: FitProducts;
}

/** Plans a run for what fits into it. `ids`: those that fit, in the order to crawl; omitted: as they were. */
export type FitProducts = (planner: Planner) => { plan: Plan; ids?: string[] };

/** Plans for any number of products of one run. */
interface Planner {
  plan: (products: string[] | number) => Plan;
  /** Plans with as many instances as EC2 may have, at any price. */
  planUnlimited: (products: number) => Plan;
}

/** What published results mean to a feature, in the transactions of the core. */
interface AfterPublish {
  /** Creates its tables beside the result table, which exists, unless they do. */
  createTables?(db: Database, results: ResultTable, mapping: Mapping): Promise<void>;
  /** Asked once in a process: what the parts of this run mean to it; null: nothing. */
  openIntake?(knex: Knex, run: { db: Database; runId: string; shape: RunShape }): Promise<PartIntake | null>;
  /** Writes in the transaction that publishes, before rows are replaced. */
  publishing?(trx: Knex.Transaction, db: Database, publication: Publication): Promise<void>;
  /** Result tables of this configuration beside `results.table`: their runs are pruned too. */
  furtherTables?(config: { sections?: ReadonlyMap<string, unknown> }): string[];
  /** Does what follows a run, in bounded time. Returns a line for the user, or null. */
  afterRun?(db: Database, run: EndedRun): Promise<string | null>;
}

export type ResultTable = Pick<RunSettings['results'], 'table' | 'history' | 'conditional'>;

/** The results of parts, in the transaction that loads them. A part may come in pieces. */
export interface PartIntake {
  /** Stages the rows of products whose page is unchanged. Returns those pages; the other products fail. */
  stageKept?(trx: Knex.Transaction, results: readonly StoredResult[]): Promise<Map<string, KeptPage>>;
  /** @param results pages that were read whole, stored now and not before */
  enter?(trx: Knex.Transaction, results: readonly StoredResult[], nowMs: number): Promise<void>;
  /** The transaction is committed. */
  committed?(): void;
}

/** A page whose rows stand. */
export interface KeptPage extends ReadPage {
  rows: number;
  /** The URL that they were read from, where products have URLs of their own. */
  url?: string;
}

export interface Publication {
  runId: string;
  shape: RunShape;
  decisions: Decisions;
  exceptSettled: ExceptSettled;
  nowMs: number;
}

interface EndedRun {
  resultTable: string;
  /** True when `products.recrawl` chooses what is crawled, by the configuration. */
  recrawls: boolean;
  /** What the run discovers by; omitted: it was no discovery. */
  discover?: DiscoverSettings | undefined;
}
