/** What stored products of a run share, read from the staging table before it is published. */
import type { Knex } from 'knex';
import { hasOwnUrls } from '../../../shared/domain/domains.ts';
import { isAnyQuery, pageAt, productAt } from '../../../shared/domain/landing.ts';
import type { SharedPage, SharedResults, SharedRow } from '../model/stores.ts';
import { ITEMS } from './chunk-rows.ts';
import type { Database } from './connect.ts';
import { readFill } from './fill.ts';
import { type Decisions, fieldValues, readDecisions } from './number-columns.ts';
import { countOf, rowOf, rowsOf, type SqlNumber, toNumber } from './rows.ts';
import { readRunShape, readSettings, type RunShape } from './run-shape.ts';
import { CONTENT_COLUMN, LANDING_COLUMN } from './staging.ts';
import { LONG_STATEMENT_MS } from './statement-timeout.ts';
import { readTable, isOther, standingColumn } from './table-info.ts';

/** Groups of each kind that are too small to be judged. */
const LISTED = 20;
const EXAMPLES = 3;
/** The most groups of at least `commonFrom()` products that fit into a run. */
const MOST_LARGE = 400;
/** A field that fewer of the other rows fill is not usual. */
const USUAL = 0.9;

export async function readSharedResults(
  knex: Knex,
  db: Database,
  { runId, least }: { runId: string; least: number },
): Promise<SharedResults> {
  const shape = await readRunShape(knex, db, runId);
  if (!shape.shares) return { pages: [], rows: [] };
  const decisions = await readDecisions(knex, runId, shape);
  const pages: SharedPage[] = [];
  for (const { value: page, ...group } of await groupBy(knex, shape, { column: LANDING_COLUMN, least })) {
    const isLarge = group.products >= least;
    const ownerId = isLarge ? await ownerOf(knex, runId, page) : null;
    const lacks = ownerId === null ? [] : await lacking(knex, { shape, decisions, page });
    pages.push({ page, ownerId, lacks, titles: isLarge ? await countTitles(knex, shape, page) : 1, ...group });
  }
  for (const { value: page, ...group } of shape.titles.size === 0 ? [] : await groupPaths(knex, shape, least)) {
    const lacks = await lacking(knex, { shape, decisions, page });
    pages.push({ page, ownerId: null, lacks, titles: await countTitles(knex, shape, page), ...group });
  }
  const rows: SharedRow[] = [];
  for (const { value: content, ...group } of await groupBy(knex, shape, { column: CONTENT_COLUMN, least })) {
    const isLarge = group.products >= least;
    rows.push({ ...group, before: isLarge ? await countSame(knex, db, { shape, decisions, content }) : 0 });
  }
  return { pages, rows };
}

/** IDs of the products of this page. */
export function readProductsOn(knex: Knex, { staging }: RunShape, page: string): Promise<string[]> {
  return knex(staging).where(on(page)).options({ timeout: LONG_STATEMENT_MS }).pluck<string[]>('product_id');
}

/** The rows of products that ended on this page. */
function on(page: string): (rows: Knex.QueryBuilder) => void {
  if (!isAnyQuery(page)) return (rows) => void rows.where({ [LANDING_COLUMN]: page });
  return (rows) => void rows.whereRaw('substr(??, 1, ?) = ?', [LANDING_COLUMN, page.length, page]);
}

type Group = { value: string; products: number; examples: string[] };

/**
 * Products with the same value: all groups of at least `least`, and the largest of the others. Of products with the
 * same row, those that share a page count once: the redirect is their reason. One pass: there is no index, and rows are
 * wide.
 */
async function groupBy(
  knex: Knex,
  { staging }: RunShape,
  { column, least }: { column: string; least: number },
): Promise<Group[]> {
  const [count, of] =
    column === CONTENT_COLUMN
      ? ['count(*) - count(??) + count(distinct ??)', [LANDING_COLUMN, LANDING_COLUMN]]
      : ['count(*)', []];
  const groups = await rowsOf<GroupRow>(
    knex(staging)
      .whereNotNull(column)
      .groupBy(column)
      .havingRaw(`${count} > 1`, of)
      .orderBy([{ column: 'products', order: 'desc' }, { column }])
      .limit(MOST_LARGE + LISTED)
      // As text: a driver's number has only 53 bits.
      .select(
        knex.raw(`cast(?? as char) as value, ${count} as products`, [column, ...of]),
        knex.raw('min(product_id) as ??, max(product_id) as ??', ['lowest', 'highest']),
      )
      .options({ timeout: LONG_STATEMENT_MS }),
  );
  const isLarge = ({ products }: GroupRow): boolean => toNumber(products) >= least;
  const small = groups.filter((group) => !isLarge(group)).slice(0, LISTED);
  return withExamples([...groups.filter(isLarge), ...small], (value) => knex(staging).where({ [column]: value }));
}

type GroupRow = { value: string; products: SqlNumber; lowest: string; highest: string };

/**
 * The groups with examples. Those of two are known; of more they are looked for, which reads the table up to the third.
 */
async function withExamples(rows: readonly GroupRow[], of: (value: string) => Knex.QueryBuilder): Promise<Group[]> {
  const found: Group[] = [];
  for (const { value, products, lowest, highest } of rows) {
    const some = of(value).orderBy('product_id').limit(EXAMPLES).options({ timeout: LONG_STATEMENT_MS });
    const examples =
      toNumber(products) <= 2 ? [...new Set([lowest, highest])] : await some.pluck<string[]>('product_id');
    found.push({ value, products: toNumber(products), examples });
  }
  return found;
}

/** Pages at least `least` products ended on, each at a query of its own: some walls give every request a number. */
async function groupPaths(knex: Knex, { staging }: RunShape, least: number): Promise<Group[]> {
  const path = 'substr(??, 1, instr(??, ?))';
  const bindings = [LANDING_COLUMN, LANDING_COLUMN, '?'];
  const paths = await rowsOf<GroupRow>(
    knex(staging)
      .whereRaw('instr(??, ?) > 0', [LANDING_COLUMN, '?'])
      .groupByRaw(path, bindings)
      .havingRaw('count(*) >= ? and count(distinct ??) > 1', [least, LANDING_COLUMN])
      .orderBy([{ column: 'products', order: 'desc' }, { column: 'value' }])
      .select(
        knex.raw(`${path} as value, count(*) as products`, bindings),
        knex.raw('min(product_id) as ??, max(product_id) as ??', ['lowest', 'highest']),
      )
      .options({ timeout: LONG_STATEMENT_MS }),
  );
  return withExamples(paths, (value) => knex(staging).where(on(value)));
}

/**
 * How many different titles the products of this page have, by the title field with the most; 1 without such a field.
 */
async function countTitles(knex: Knex, { staging, columns, titles }: RunShape, page: string): Promise<number> {
  const own = columns.filter(({ name }) => titles.has(name));
  if (own.length === 0) return 1;
  const counts = own.map(({ name }, i) => knex.raw('count(distinct ??) as ??', [name, `t${i}`]));
  const row = await rowOf<Record<string, SqlNumber>>(
    knex(staging)
      .where(on(page))
      .select(...counts)
      .first()
      .options({ timeout: LONG_STATEMENT_MS }),
  );
  return Math.max(1, ...Object.values(row ?? {}).map(toNumber));
}

/** The product of this run whose own page it is; null when there is none. */
async function ownerOf(knex: Knex, runId: string, page: string): Promise<string | null> {
  const { site } = await readSettings(knex, runId);
  if (hasOwnUrls(site.productUrl)) return ownerByUrl(knex, runId, page);
  const id = productAt(site.productUrl, page);
  if (id === null) return null;
  // In a discovery the path stands for the product.
  const item = knex(ITEMS)
    .where({ run_id: runId })
    .where((own) => void own.where({ path: id }).orWhere({ product_id: id }));
  const found = await rowOf<{ product_id: string }>(item.first('product_id').options({ timeout: LONG_STATEMENT_MS }));
  return found?.product_id ?? null;
}

/** The most URLs that are compared with a page: more contain its path only where it is as short as `/`. */
const COMPARED = 10_000;

/** The same where products have URLs of their own: the first of those whose URL spells this page. */
async function ownerByUrl(knex: Knex, runId: string, page: string): Promise<string | null> {
  // Scheme, `www.`, tracking parameters and a final slash may differ: the path, which they contain, narrows them down.
  const [path = ''] = page.slice(page.indexOf('/')).split('?');
  const like = `%${path.replace(/\/+$/, '').replaceAll(/[!%_]/g, '!$&')}%`;
  const items = knex(ITEMS)
    .where({ run_id: runId })
    .whereRaw("path like ? escape '!'", [like])
    .orderBy('n')
    .limit(COMPARED)
    .select('product_id', 'path')
    .options({ timeout: LONG_STATEMENT_MS });
  const wanted = page.replace(/\/+$/, '');
  const found = (await rowsOf<{ product_id: string; path: string }>(items)).find(
    (item) => pageAt(item.path) === wanted,
  );
  return found?.product_id ?? null;
}

interface Part {
  shape: RunShape;
  decisions: Decisions;
}

/** Fields that other rows usually fill, and no row of this page. */
async function lacking(knex: Knex, { shape, decisions, page }: Part & { page: string }): Promise<string[]> {
  const own = await readFill(knex, { shape, decisions }, on(page));
  const others = await readFill(knex, { shape, decisions }, (rows) => {
    void rows.where((other) => void other.whereNull(LANDING_COLUMN).orWhereNot(on(page)));
  });
  return Object.entries(others).flatMap(([field, share]) => (share >= USUAL && own[field] === 0 ? [field] : []));
}

/** Rows of the result table with the title and the ID of this content: other values may change each night. */
async function countSame(
  knex: Knex,
  db: Database,
  { shape, decisions, content }: Part & { content: string },
): Promise<number> {
  const info = await readTable(knex, db, shape.results.table);
  if (info === null) return 0;
  const staged = knex(shape.staging)
    .where({ [CONTENT_COLUMN]: content })
    .orderBy('product_id')
    .limit(1)
    .select(
      fieldValues(shape, decisions).map(({ column, sql, bindings }) =>
        knex.raw(`${sql} as ??`, [...bindings, column.name]),
      ),
    );
  const compared = shape.columns.filter(({ name: column }) => shape.titles.has(column));
  const name = (of: string, column: string): string => knex.ref(`${of}.${column}`).toQuery();
  const differences = compared.map(({ name: column }) =>
    isOther(db, standingColumn(info, column), name('r', column), name('s', column)),
  );
  return countOf(
    knex(`${shape.results.table} as r`)
      .joinRaw('join ? as s on 1 = 1', [staged as never])
      .whereRaw(`not (${differences.join(' or ')})`)
      .options({ timeout: LONG_STATEMENT_MS }),
  );
}
