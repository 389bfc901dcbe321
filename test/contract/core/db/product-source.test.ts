import { setImmediate } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { beforeAll, expect, it } from 'vitest';
import { openDatabase } from '../../../../orchestrator/core/db/connect.ts';
import { ListedUrls } from '../../../../orchestrator/core/db/listed-urls.ts';
import { createProductSource } from '../../../../orchestrator/core/db/product-source.ts';
import { ANY_HOST } from '../../../../shared/domain/domains.ts';
import { eachEngine } from '../../../support/mariadb/database.ts';
import { expectFault } from '../../../support/expect-fault.ts';

async function collect(ids: AsyncIterable<string>): Promise<string[]> {
  const all: string[] = [];
  for await (const id of ids) all.push(id);
  return all;
}

eachEngine('The product source', (database, engine) => {
  const mysql = engine === 'mysql';
  const read = (query: string) => collect(createProductSource(database().url, query).read());

  beforeAll(async () => {
    const db = await openDatabase(database().url);
    try {
      await db.knex.raw(
        `create table products (id bigint ${mysql ? 'unsigned' : ''} primary key, sku ${mysql ? 'varchar(800) character set utf8mb4' : 'text'}, raw_ ${mysql ? 'varbinary(20)' : 'blob'})`,
      );
      await db.knex('products').insert([
        { id: 1, sku: 'a b/c"\'\\?:x', raw_: Buffer.from('日本') },
        { id: 2, sku: '日本語🦊', raw_: Buffer.from([0xff, 0xfe]) },
        { id: '9007199254740993', sku: ' x ', raw_: null },
      ]);
      await db.knex.raw(`create table many (id int)`);
      for (let i = 0; i < 50; i++)
        await db.knex('many').insert(Array.from({ length: 500 }, (_, k) => ({ id: i * 500 + k })));
    } finally {
      await db.close();
    }
  });

  it('yields ids as text, in order, big integers unrounded', async () => {
    expect(await read('select id from products order by id')).toEqual(['1', '2', '9007199254740993']);
  });

  it('yields text unchanged, with characters of every kind, question marks included', async () => {
    expect(await read(`select sku as id, 'x?y' as other from products where sku <> '?' order by products.id`)).toEqual([
      'a b/c"\'\\?:x',
      '日本語🦊',
      ' x ',
    ]);
  });

  it('accepts a column ID or Id, and prefers the one named exactly id', async () => {
    expect(await read('select sku as ID from products where id = 1')).toEqual(['a b/c"\'\\?:x']);
    if (!mysql) expect(await read(`select 'no' as ID, 'yes' as id`)).toEqual(['yes']);
  });

  it('keeps nothing of a list that has been read', async () => {
    setFlagsFromString('--expose-gc');
    const collectGarbage = runInNewContext('gc') as () => void;
    const readUrls = async (): Promise<WeakRef<ListedUrls>> => {
      const urls = new ListedUrls(ANY_HOST);
      const query = `select id, 'https://host.example/' as url from products`;
      expect(await collect(createProductSource(database().url, query, urls).read())).toHaveLength(3);
      return new WeakRef(urls);
    };
    const urls = await readUrls();
    // Until its socket has closed, a connection keeps what it has read.
    for (let turn = 0; turn < 200 && urls.deref() !== undefined; turn++) {
      await setImmediate();
      collectGarbage();
    }
    expect(urls.deref()).toBeUndefined();
  });

  it('reads bytes as UTF-8 and refuses invalid ones', async () => {
    expect(await read('select raw_ as id from products where id = 1')).toEqual(['日本']);
    await expectFault(read('select raw_ as id from products order by products.id'), 'product-id-invalid', 'row 2');
  });

  it.each([
    ['null', 'select null as id'],
    ['empty', `select '' as id`],
    ['too long', 'select sku_ as id from long_'],
  ])('refuses an id that is %s and names its row', async (_, query) => {
    const long = 'x'.repeat(1_000);
    const sql = query.replace('select sku_ as id from long_', `select '${long}' as id`);
    await expectFault(read(`select 'ok' as id union all ${sql}`), 'product-id-invalid', 'row 2 of products.query');
  });

  it('lists the columns when none is named id', async () => {
    await expectFault(
      read('select sku, id as number_ from products'),
      'products-query',
      'its columns are: sku, number_',
    );
    await expect(read('select sku from products where 1 = 0')).rejects.toMatchObject({ code: 'products-query' });
  });

  it('refuses a query with two columns named id', async () => {
    await expect(read('select a.id, b.id from many a, many b')).rejects.toMatchObject({ code: 'products-query' });
  });

  it('quotes the database’s message for a query that fails', async () => {
    await expectFault(read('select id from nowhere'), 'products-query', /nowhere/);
    await expect(read('selekt')).rejects.toMatchObject({ code: 'products-query' });
  });

  it('cannot write', async () => {
    await expect(read('delete from products')).rejects.toMatchObject({ code: 'products-query' });
    await expect(read(`update products set sku = 'x'`)).rejects.toMatchObject({ code: 'products-query' });
    expect(await read('select id from products')).toHaveLength(3);
  });

  it('yields nothing for a query without rows', async () => {
    expect(await read('select id from products where 1 = 0')).toEqual([]);
  });

  it('reads many rows and can be stopped half-way', async () => {
    const all = await read('select id from many order by id');
    expect(all).toHaveLength(25_000);
    expect(all.at(-1)).toBe('24999');
    for await (const id of createProductSource(database().url, 'select id from many order by id').read()) {
      if (id === '1500') break;
    }
    expect(await read('select id from products')).toHaveLength(3);
  });

  it('refuses a list that is longer than a run takes', { tags: ['nightly'], timeout: 300_000 }, async () => {
    const ids = createProductSource(database().url, 'select a.id from many a, many b').read();
    let count = 0;
    const reading = async (): Promise<void> => {
      for await (const _ of ids) count++;
    };
    await expect(reading()).rejects.toMatchObject({ code: 'products-query' });
    expect(count).toBe(10_000_000);
  });

  it('reports that the database cannot be reached', async () => {
    const url = mysql ? database().url.replace(/@[^/]+/, '@127.0.0.1:1') : 'sqlite:/nonexistent/x.db';
    const reading = collect(createProductSource(url, 'select 1 as id').read());
    await expect(reading).rejects.toMatchObject({ code: 'database-unreachable' });
  });
});
