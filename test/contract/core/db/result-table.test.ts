import { describe, expect, it } from 'vitest';
import type { Mapping } from '../../../../shared/domain/mapping.ts';
import {
  addColumns,
  checkResultTable,
  columnsToAdd,
  createResultTable,
} from '../../../../orchestrator/core/db/result-table.ts';
import { readStandingTable, readTable, standingColumn } from '../../../../orchestrator/core/db/table-info.ts';
import { FIELDS, MAPPING, ROWS_MAPPING, field, mappingOf, onBothEngines } from './harness.ts';
import { expectFault } from '../../../support/expect-fault.ts';
import { features } from '../../../support/features.ts';

const MYSQL = 'price bigint, weight double, tags json, run_id varchar(64), url text, crawled_at datetime(3)';
const SQLITE = 'price integer, weight real, tags text, run_id text, url text, crawled_at text';

onBothEngines('The result table', (bench, engine) => {
  const others = engine === 'mysql' ? MYSQL : SQLITE;
  const check = (table: string, ids: readonly string[] = ['p1', 'p2'], mapping: Mapping = MAPPING) =>
    checkResultTable(bench().db, table, mapping, ids);
  const make = (table: string, columns: string, suffix = '') =>
    bench().db.knex.raw(`create table ${table} (${columns}) ${suffix}`);

  it('is made from the mapping when it is missing, and then fits', async () => {
    expect(await check('made')).toEqual({ exists: false });
    expect(await readTable(bench().db.knex, bench().db, 'made')).toBeNull();
    await createResultTable(bench().db, { table: 'made' }, MAPPING, features);
    await createResultTable(bench().db, { table: 'made' }, MAPPING, features);
    const info = await readTable(bench().db.knex, bench().db, 'made');
    expect(info?.columns.map((c) => c.name)).toEqual([
      'product_id',
      'title',
      'price',
      'weight',
      'tags',
      'run_id',
      'url',
      'crawled_at',
    ]);
    expect(await check('made', ['a', 'A', 'a '])).toEqual({ exists: true });
  });

  it('gets the columns of new fields when it is ours, and keeps its rows', async () => {
    const { db } = bench();
    await createResultTable(db, { table: 'grown' }, MAPPING, features);
    await db.knex('grown').insert({ product_id: 'p1', title: 'Cup', run_id: 'r', url: 'u', crawled_at: '2026-01-01' });
    const mapping = mappingOf([...FIELDS, field('brand'), field('rating', { type: 'number' })]);
    const error = await check('grown', ['p1'], mapping).catch((e: unknown) => e as Error & { hint: string });
    expect((error as { hint: string }).hint).toMatch(/^crawlfleet has made this table: with --add-columns .*\nALTER/);
    const columns = await columnsToAdd(db, 'grown', mapping);
    expect(columns).toEqual(engine === 'mysql' ? ['brand text', 'rating double'] : ['brand TEXT', 'rating REAL']);
    await addColumns(db, 'grown', columns);
    expect(await check('grown', ['p1'], mapping)).toEqual({ exists: true });
    expect(await columnsToAdd(db, 'grown', mapping)).toEqual([]);
    expect(await db.knex('grown').select('product_id', 'title', 'brand')).toEqual([
      { product_id: 'p1', title: 'Cup', brand: null },
    ]);
    // All or none: the second one is there.
    await expect(addColumns(db, 'grown', ['more int', 'brand int'])).rejects.toThrow(/brand/i);
    expect((await readTable(db.knex, db, 'grown'))?.columns.map(({ name }) => name)).not.toContain('more');
  });

  it('of a user gets no column, only the statements', async () => {
    const { db } = bench();
    const key = engine === 'mysql' ? 'product_id varchar(100) primary key' : 'product_id text primary key';
    await make('theirs', `${key}, title text, ${others}`);
    const mapping = mappingOf([...FIELDS, field('brand')]);
    expect(await columnsToAdd(db, 'theirs', mapping)).toEqual([]);
    const error = await check('theirs', ['p1'], mapping).catch((e: unknown) => e as Error & { hint: string });
    expect((error as { hint: string }).hint).toMatch(/^ALTER TABLE theirs ADD COLUMN brand/);
    expect(await columnsToAdd(db, 'missing', mapping)).toEqual([]);
  });

  it('is named when it, or a column, is gone since the run began', async () => {
    const { db } = bench();
    await createResultTable(db, { table: 'standing' }, MAPPING, features);
    const info = await readStandingTable(db.knex, db, 'standing');
    expect(standingColumn(info, 'PRICE').name).toBe('price');
    expect(() => standingColumn(info, 'brand')).toThrow('column brand of the result table is gone since the run began');
    await db.knex.raw('drop table standing');
    await expectFault(
      readStandingTable(db.knex, db, 'standing'),
      'results-schema',
      'results.table standing is gone since the run began',
    );
  });

  it('may have further columns that can be left out, and names in another case', async () => {
    const id = engine === 'mysql' ? 'id int auto_increment primary key' : 'id integer primary key autoincrement';
    const key = engine === 'mysql' ? 'Product_ID varchar(100) not null unique' : 'Product_ID text not null unique';
    await make('further', `${id}, ${key}, TITLE text, note text, rank_ int not null default 0, ${others}`);
    expect(await check('further')).toEqual({ exists: true });
  });

  it('is refused with every mismatch at once and a statement for each', async () => {
    const columns = others.replace('price bigint', 'price varchar(20)').replace('price integer', 'price text');
    await make(
      'bad',
      `product_id varchar(100), title text, owner_ varchar(9) not null, ${columns}, unique (url${engine === 'mysql' ? '(50)' : ''}, run_id)`,
    );
    const mapping = mappingOf([...FIELDS, field('brand')]);
    const error = await check('bad', ['p1'], mapping).catch(
      (e: unknown) => e as Error & { hint: string; code: string },
    );
    expect(error).toMatchObject({ code: 'results-schema' });
    const { message, hint } = error as Error & { hint: string };
    expect(message).toContain('column brand is missing');
    expect(message).toMatch(/column price is (varchar\(20\)|text), but its values need (bigint|INTEGER)/i);
    expect(message).toContain('column owner_ must have a value');
    expect(message).toContain('product_id is not the primary key or a unique key on its own');
    expect(message).toContain('product_id may be null');
    expect(hint).toContain('ALTER TABLE bad ADD COLUMN brand');
    if (engine === 'mysql') {
      expect(hint).toContain('ALTER TABLE bad MODIFY COLUMN price bigint;');
      expect(hint).toContain('ALTER TABLE bad ADD UNIQUE KEY (product_id);');
    }
  });

  it('is refused by name when it serves another purpose, such as the one that products.query reads', async () => {
    const id = engine === 'mysql' ? 'id varchar(100) primary key' : 'id text primary key';
    await make('products', `${id}, title text, active int`);
    const error = await check('products').catch((e: unknown) => e as Error & { hint: string });
    expect(error).toMatchObject({
      code: 'results-schema',
      message: expect.stringContaining('none of the columns of results') as string,
    });
    expect((error as { hint: string }).hint).not.toContain('ALTER');
  });

  it('is refused when another unique key covers columns that we write', async () => {
    const key = engine === 'mysql' ? 'product_id varchar(100) primary key' : 'product_id text primary key';
    const title = engine === 'mysql' ? 'title varchar(100) unique' : 'title text unique';
    await make('two_keys', `${key}, ${title}, ${others}`);
    await expectFault(check('two_keys'), 'results-schema', 'covers columns we write');
  });

  it('may have a case-insensitive key as long as no two products collide in it', async () => {
    const key =
      engine === 'mysql'
        ? 'product_id varchar(100) character set utf8mb4 collate utf8mb4_general_ci primary key'
        : 'product_id text collate nocase primary key';
    await make('caseless', `${key}, title text, ${others}`);
    expect(await check('caseless', ['a', 'b', 'C'])).toEqual({ exists: true });
    await expectFault(check('caseless', ['a', 'b', 'A']), 'results-schema', 'treats some of the products as equal');
    expect(await check('caseless', [])).toEqual({ exists: true });
  });

  it('may be keyed by whole numbers when all products are such', async () => {
    const type = engine === 'mysql' ? 'int unsigned' : 'integer';
    await make('numbered', `product_id ${type} not null primary key, title text, ${others}`);
    expect(await check('numbered', ['0', '17', '4000000000'])).toEqual({ exists: true });
    for (const id of ['007', 'p1', '1.0', ' 1', '+1', '-0'])
      await expect(check('numbered', ['5', id]), id).rejects.toMatchObject({ code: 'results-schema' });
  });

  it('is refused when it is a view, one of our own tables, or has no table name', async () => {
    await bench().db.knex.raw('create view looking as select 1 as product_id');
    for (const name of ['looking', 'crawlfleet_runs', 'a b', 'x;y', '1abc', "it's", 'a.b.c'])
      await expect(check(name), name).rejects.toMatchObject({ code: 'results-schema' });
  });

  describe('for a mapping with rows', () => {
    const checkRows = (table: string, ids: readonly string[] = ['p1']) => check(table, ids, ROWS_MAPPING);
    const short = engine === 'mysql' ? 'varchar(100) collate utf8mb4_nopad_bin' : 'text';

    it('is made with a key of two columns, and then fits that mapping only', async () => {
      await createResultTable(bench().db, { table: 'made_rows' }, ROWS_MAPPING, features);
      const info = await readTable(bench().db.knex, bench().db, 'made_rows');
      expect(info?.columns.slice(0, 3).map((c) => [c.name, c.nullable])).toEqual([
        ['product_id', false],
        ['row_key', false],
        ['title', true],
      ]);
      expect(info?.uniqueKeys.map((k) => k.columns)).toEqual([['product_id', 'row_key']]);
      expect(await checkRows('made_rows', ['a', 'A', 'a '])).toEqual({ exists: true });
      await expect(check('made_rows')).rejects.toMatchObject({
        code: 'results-schema',
        message: expect.stringContaining('this mapping has no `rows`') as string,
        hint: expect.not.stringContaining('ALTER') as string,
      });
    });

    it('cannot be the table of a mapping without rows', async () => {
      await createResultTable(bench().db, { table: 'plain' }, MAPPING, features);
      const error = (await checkRows('plain').catch((e: unknown) => e)) as Error & { hint: string };
      expect(error).toMatchObject({ code: 'results-schema' });
      expect(error.message).toContain('column row_key is missing');
      expect(error.message).toContain('a key of product_id alone allows one row a product');
      expect(error.message).toContain('(product_id, row_key), in this order, is neither');
      if (engine === 'sqlite') {
        expect(error.hint).toContain('recreate the table with product_id TEXT');
        return;
      }
      await bench().db.knex('plain').insert({ product_id: 'p1', run_id: 'r', url: '', crawled_at: '2026-01-01' });
      await bench().db.knex.raw(error.hint.split(';')[0]!);
      expect(await checkRows('plain')).toEqual({ exists: true });
    });

    it('is refused when row_key might treat two keys as equal', async () => {
      const type = engine === 'mysql' ? 'varchar(100) collate utf8mb4_bin' : 'text collate nocase';
      await make(
        'merging',
        `product_id ${short} not null, row_key ${type} not null, title text, ${others}, primary key (product_id, row_key)`,
      );
      const error = (await checkRows('merging').catch((e: unknown) => e)) as Error & { hint: string };
      expect(error.message).toMatch(/column row_key \(.*\) might treat two keys as equal/);
      if (engine === 'sqlite') return;
      await bench().db.knex.raw(error.hint.split(';')[0]!);
      expect(await checkRows('merging')).toEqual({ exists: true });
    });

    it('may have its key as a unique one beside another primary key, and further ones that include it', async () => {
      const id = engine === 'mysql' ? 'id int auto_increment primary key' : 'id integer primary key autoincrement';
      await make(
        'beside',
        `${id}, product_id ${short} not null, row_key ${short} not null, title ${short}, ${others}, unique (product_id, row_key), unique (row_key, product_id, title)`,
      );
      expect(await checkRows('beside')).toEqual({ exists: true });
    });

    it('is refused when another unique key covers its rows', async () => {
      await make(
        'narrow',
        `product_id ${short} not null, row_key ${short} not null, title ${short}, ${others}, primary key (product_id, row_key), unique (row_key)`,
      );
      await expectFault(checkRows('narrow'), 'results-schema', 'two rows may share a value');
    });

    it('has no room for IDs of more than 512 characters beside row_key on MySQL', async () => {
      const ids = ['p1', 'x'.repeat(768)];
      if (engine === 'sqlite') {
        expect(await checkRows('unmade', ids)).toEqual({ exists: false });
        return;
      }
      await createResultTable(bench().db, { table: 'long_ids' }, ROWS_MAPPING, features);
      for (const table of ['unmade', 'long_ids'])
        await expectFault(checkRows(table, ids), 'product-id-invalid', 'more than 512 characters');
      expect(await checkRows('long_ids', ['p1', '😀'.repeat(512)])).toEqual({ exists: true });
      expect(await check('unmade', ids)).toEqual({ exists: false });
    });
  });

  if (engine === 'sqlite') return;

  describe('of MySQL', () => {
    it('is refused when product IDs do not fit into its key', async () => {
      await make('short_key', `product_id varchar(5) primary key, title text, ${others}`, 'character set latin1');
      expect(await check('short_key', ['abc'])).toEqual({ exists: true });
      for (const id of ['abcdef', '日本'])
        await expect(check('short_key', [id]), id).rejects.toMatchObject({
          message: expect.stringContaining('cannot hold all products') as string,
        });
    });

    it('is refused when its engine has no transactions', async () => {
      await make('old_engine', `product_id varchar(50) primary key, title text, ${others}`, 'engine=MyISAM');
      await expect(check('old_engine')).rejects.toMatchObject({
        hint: expect.stringContaining('ALTER TABLE old_engine ENGINE=InnoDB') as string,
      });
    });

    it('may be in another schema', async () => {
      const name = `${bench().db.schema}.elsewhere`;
      await createResultTable(bench().db, { table: name }, MAPPING, features);
      expect(await check(name)).toEqual({ exists: true });
      expect(await check('elsewhere')).toEqual({ exists: true });
    });
  });
});
