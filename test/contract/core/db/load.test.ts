import { AppError } from '../../../../shared/domain/errors.ts';
import { expect, it } from 'vitest';
import { openDatabase } from '../../../../orchestrator/core/db/connect.ts';
import { createStores } from '../../../../orchestrator/core/db/create-stores.ts';
import {
  allRows,
  at,
  AT,
  bound,
  createInstance,
  createRun,
  failed,
  gone,
  itWithSql,
  keepingGrants,
  load,
  manyStored,
  onEveryEngine,
  onMysql,
  partRef,
  publish,
  readFacts,
  settings,
  stored,
} from './harness.ts';
import { features } from '../../../support/features.ts';

onEveryEngine('Loading a part', (bench, engine) => {
  const staged = (id: string) => allRows(bench(), `crawlfleet_staging_${id}`);

  itWithSql(engine)('stores rows, settles products and counts them in the ledger', async () => {
    const { id } = await createRun(bench(), 4);
    const results = [stored(2), gone(3), failed(1, 'HTTP 500 日本語'), stored(4, 'p4', { title: null, tags: [] })];
    expect(await load(bench(), id, results, { slot: 1, seq: 0 })).toEqual({ stored: 2, gone: 1, failed: 1 });
    const rows = await staged(id);
    expect(rows.map((r) => [r.product_id, r.title, Number(r.price), r.weight, r.tags])).toEqual([
      ['p2', 'Title 2', 200, 0.25, '["a","b"]'],
      ['p4', null, 400, 0.5, '[]'],
    ]);
    const at = rows[0]!.crawled_at;
    expect(at instanceof Date ? at.toISOString() : at).toBe(AT);
    const [part] = await bound(bench(), id).results.parts();
    expect(part).toMatchObject({ slot: 1, epoch: 1, seq: 0, state: 'loaded', stored: 2, gone: 1, failed: 1 });
    expect(await bound(bench(), id).results.totals()).toEqual({ stored: 2, gone: 1, failed: 1, seen: 1, loaded: 1 });
    const items = await bench().db.knex('crawlfleet_items').where({ run_id: id }).orderBy('n');
    expect(items.map((i) => i.detail)).toEqual(['HTTP 500 日本語', null, 'HTTP 404', null]);
  });

  itWithSql(engine)(
    'keeps the rule and the status of the evidence with the detail, and nothing else of it',
    async () => {
      const { id } = await createRun(bench(), 3);
      const evidence = {
        rule: 'script-shell',
        url: 'https://shop.example/',
        headers: { server: 'x' },
        body: '<script>',
      };
      const results = [1, 2, 3].map((n) => failed(n, n === 3 ? 'd'.repeat(500) : 'the page is a script'));
      Object.assign(results[0]!, { evidence: { ...evidence, status: 200 } });
      Object.assign(results[1]!, { evidence: { ...evidence, status: null } });
      Object.assign(results[2]!, { evidence: { ...evidence, status: 403 } });
      await load(bench(), id, results);
      const items = (await bench().db.knex('crawlfleet_items').where({ run_id: id }).orderBy('n')) as {
        detail: string;
      }[];
      expect(items.slice(0, 2).map((i) => i.detail)).toEqual([
        'script-shell, HTTP 200: the page is a script',
        'script-shell: the page is a script',
      ]);
      expect(items[2]?.detail).toMatch(/^script-shell, HTTP 403: d+$/);
      expect(items[2]?.detail).toHaveLength(500);
    },
  );

  itWithSql(engine)(
    'loads a part in pieces as if it were whole, and none of it when a piece cannot be read',
    async () => {
      const { id } = await createRun(bench(), 4);
      const pieces = [[stored(2), failed(1, 'HTTP 500')], [stored(2, 'p2', { title: 'again' }), gone(3)], [stored(4)]];
      let breaks = true;
      const part = async function* () {
        yield* pieces.slice(0, 2);
        if (breaks) throw new AppError('object-corrupt', 'line 5');
        yield pieces[2]!;
      };
      const given = { [Symbol.asyncIterator]: part };
      await expect(load(bench(), id, given)).rejects.toThrow('line 5');
      expect(await staged(id)).toEqual([]);
      expect(await bound(bench(), id).results.parts()).toMatchObject([{ state: 'seen', stored: 0 }]);
      breaks = false;
      const counts = { stored: 2, gone: 1, failed: 1 };
      expect(await load(bench(), id, given)).toEqual(counts);
      expect((await staged(id)).map((r) => r.title)).toEqual(['Title 2', 'Title 4']);
      expect(await bound(bench(), id).results.parts()).toMatchObject([{ state: 'loaded', ...counts }]);
    },
  );

  it('F50: changes nothing when the same part is loaded again', async () => {
    const { id, work } = await createRun(bench(), 3);
    const first = await load(bench(), id, [stored(1), failed(2)]);
    const changed = [stored(1, 'p1', { title: 'other' }), stored(2), stored(3)];
    expect(await load(bench(), id, changed)).toEqual(first);
    expect((await staged(id)).map((r) => r.title)).toEqual(['Title 1']);
    expect(await work.outcomes()).toMatchObject({ stored: 1, failed: 1, open: 1 });
  });

  itWithSql(engine)('F50: loads a part once when two loaders start on it at the same time', async () => {
    const { id } = await createRun(bench(), 50);
    const results = manyStored(50);
    await bound(bench(), id).results.register({ slot: 0, epoch: 1 }, [partRef(id, { slot: 0, epoch: 1, seq: 0 }, 50)]);
    const second = await openDatabase(bench().url);
    try {
      const at = { slot: 0, epoch: 1, seq: 0 };
      const loads = [bench().stores, createStores(second, features)].map((stores) =>
        bound({ ...bench(), stores }, id).results.load(at, results),
      );
      expect(await Promise.all(loads)).toEqual([
        { stored: 50, gone: 0, failed: 0 },
        { stored: 50, gone: 0, failed: 0 },
      ]);
    } finally {
      await second.close();
    }
    expect(await staged(id)).toHaveLength(50);
  });

  it('keeps the first outcome of a product when parts of other slots and epochs follow', async () => {
    const { id, work } = await createRun(bench(), 3);
    await load(bench(), id, [stored(1), failed(2)]);
    const late = [stored(1, 'p1', { title: 'late' }), stored(2), stored(3)];
    expect(await load(bench(), id, late, { slot: 0, epoch: 2, seq: 0 })).toEqual({ stored: 1, gone: 0, failed: 0 });
    expect((await staged(id)).map((r) => r.title)).toEqual(['Title 1', 'Title 3']);
    expect(await work.outcomesBySlot()).toEqual([
      { slot: 0, epoch: 1, stored: 1, gone: 0, failed: 1 },
      { slot: 0, epoch: 2, stored: 1, gone: 0, failed: 0 },
    ]);
  });

  it('puts aside results for products that their instance was never granted, whoever settled them before', async () => {
    const { id, work } = await createRun(bench(), 20, { settings: keepingGrants(`granted_${engine}`) });
    for (const slot of [0, 1]) await createInstance(bench(), id, slot);
    await work.grant(at(0), ['1-1', '3-1'], 9);
    await work.grant(at(1), ['2-1'], 9);
    expect(await load(bench(), id, manyStored(20))).toEqual({ stored: 10, gone: 0, failed: 0, putAside: 10 });
    expect(await load(bench(), id, manyStored(20), { slot: 1, seq: 0 })).toEqual({
      stored: 5,
      gone: 0,
      failed: 0,
      putAside: 15,
    });
    expect(await load(bench(), id, manyStored(20), { slot: 1, seq: 0 })).toMatchObject({ stored: 5, putAside: 15 });
    // An epoch that was never granted anything.
    expect(await load(bench(), id, manyStored(20), { slot: 1, epoch: 2, seq: 0 })).toMatchObject({ putAside: 20 });
    expect(await staged(id)).toHaveLength(15);
    expect(await work.outcomes()).toMatchObject({ stored: 15, open: 5 });
    expect(await readFacts(bench(), id)).toMatchObject({
      ungranted: { count: 0 },
      partsOff: { count: 0 },
      putAside: { count: 45, examples: ['0/1/0', '1/1/0', '1/2/0'] },
    });
  });

  it('counts late results of chunks that were returned and granted to others', async () => {
    const { id, work } = await createRun(bench(), 10, { settings: keepingGrants(`late_${engine}`) });
    for (const slot of [0, 1]) await createInstance(bench(), id, slot);
    await work.grant(at(0), ['1-1', '2-1'], 9);
    expect(await work.transferChunks(at(0), ['2-1'])).toBe(5);
    expect(await work.returnChunks(at(0))).toBe(5);
    expect(await work.grant(at(1), ['1-2', '2-2'], 9)).toEqual(['1-2', '2-2']);
    await work.returnChunks(at(1));
    // Granted once more to an instance that had it before.
    expect(await work.grant(at(0), ['1-3'], 9)).toEqual(['1-3']);
    expect(await load(bench(), id, manyStored(8))).toEqual({ stored: 8, gone: 0, failed: 0 });
    expect(await load(bench(), id, manyStored(10), { slot: 1, seq: 0 })).toEqual({ stored: 2, gone: 0, failed: 0 });
    expect(await readFacts(bench(), id)).toMatchObject({ ungranted: { count: 0 }, putAside: { count: 0 } });
  });

  it('loads everything in a run of an earlier version, which kept no grants', async () => {
    const { id } = await createRun(bench(), 5);
    expect(await load(bench(), id, manyStored(5))).toEqual({ stored: 5, gone: 0, failed: 0 });
    expect(await readFacts(bench(), id)).toMatchObject({ ungranted: { count: 0 }, putAside: { count: 0 } });
  });

  itWithSql(engine)('shows verify a result that counts although it was never granted', async () => {
    const { id, work } = await createRun(bench(), 10, { settings: keepingGrants(`planted_${engine}`) });
    await createInstance(bench(), id, 0);
    await work.grant(at(0), ['1-1'], 9);
    await load(bench(), id, manyStored(5));
    await bench()
      .db.knex('crawlfleet_items')
      .where({ run_id: id, n: 7 })
      .update({ outcome: 'stored', slot: 0, epoch: 1, seq: 0 });
    expect(await readFacts(bench(), id)).toMatchObject({ ungranted: { count: 1, examples: ['p7'] } });
  });

  it('settles each product once when parts with the same products are loaded concurrently', async () => {
    const { id } = await createRun(bench(), 200);
    const results = manyStored(200);
    const counts = await Promise.all(
      [0, 1, 2, 3].map((slot) => load(bench(), id, slot % 2 ? results : results.toReversed(), { slot, seq: 0 })),
    );
    expect(counts.reduce((sum, c) => sum + c.stored, 0)).toBe(200);
    expect(await staged(id)).toHaveLength(200);
    expect(await bound(bench(), id).results.totals()).toMatchObject({ stored: 200, seen: 4, loaded: 4 });
  });

  it('ignores results for products that are not in the plan under that number', async () => {
    const { id } = await createRun(bench(), 2);
    const results = [stored(1, 'p2'), stored(99), stored(2), stored(2, 'p2', { title: 'twice' })];
    expect(await load(bench(), id, results)).toEqual({ stored: 1, gone: 0, failed: 0 });
    expect((await staged(id)).map((r) => [r.product_id, r.title])).toEqual([['p2', 'Title 2']]);
  });

  itWithSql(engine)('F49: fails the rows whose values have the wrong type and stores the others', async () => {
    const { id, work } = await createRun(bench(), 8);
    const results = [
      stored(1),
      stored(2, 'p2', { price: 1.5 }),
      stored(3, 'p3', { price: 'abc' }),
      stored(4, 'p4', { weight: 'heavy' }),
      stored(5, 'p5', { price: 2 ** 53 }),
      stored(6, 'p6', { price: Number.NaN }),
      stored(7, 'p7', { weight: Number.NaN }),
      stored(8, 'p8', { weight: Infinity }),
    ];
    expect(await load(bench(), id, results)).toEqual({ stored: 1, gone: 0, failed: 7 });
    expect((await work.outcomes()).reasons).toEqual({ load: 7 });
    const items = await bench().db.knex('crawlfleet_items').where({ run_id: id, reason: 'load' }).orderBy('n');
    const [price, weight] = ['not a whole number in column price', 'not a number in column weight'];
    expect(items.map((i) => i.detail)).toEqual([price, price, weight, price, price, weight, weight]);
  });

  itWithSql(engine)('F49: finds the rows the database refuses among many and stores the others', async () => {
    const table = `strict_${engine}`;
    const { knex } = bench().db;
    const title = engine === 'mysql' ? 'title varchar(20)' : 'title text check (length(title) <= 20)';
    const price = engine === 'mysql' ? 'price smallint' : 'price int check (price < 32768)';
    const id = engine === 'mysql' ? 'product_id varchar(50) not null primary key' : 'product_id text primary key';
    // SQLite checks belong to the table, not to the type; staging copies only types, so there NOT NULL fails.
    const more = engine === 'mysql' ? 'weight double, tags text' : 'weight real not null, tags text';
    await knex.raw(
      `create table ${table} (${id}, ${title}, ${price}, ${more}, run_id varchar(64), url text, crawled_at varchar(30))`,
    );
    const run = await createRun(bench(), 1_000, { settings: settings(table), chunkSize: 100 });
    const bad = new Set([1, 17, 500, 501, 999]);
    const results = Array.from({ length: 1_000 }, (_, i) => {
      const wrong = engine === 'mysql' ? (i % 2 ? { title: 'x'.repeat(21) } : { price: 40_000 }) : { weight: null };
      return stored(i + 1, `p${i + 1}`, { price: 7, ...(bad.has(i + 1) ? wrong : {}) });
    });
    const counts = await load(bench(), run.id, results);
    expect(counts).toEqual({ stored: 995, gone: 0, failed: 5 });
    const items = await knex('crawlfleet_items').where({ run_id: run.id, outcome: 'failed' }).orderBy('n');
    expect(items.map((i) => Number(i.n))).toEqual([...bad]);
    const code =
      engine === 'mysql' ? 'ER_WARN_DATA_OUT_OF_RANGE in column price' : 'SQLITE_CONSTRAINT_NOTNULL in column weight';
    expect(items[0]).toMatchObject({ reason: 'load', detail: code });
  });

  itWithSql(engine)('F49: accepts rows of megabytes and refuses one that exceeds every packet', async () => {
    const table = `large_${engine}`;
    const text = engine === 'mysql' ? 'longtext' : 'text';
    const id = engine === 'mysql' ? 'product_id varchar(50) not null primary key' : 'product_id text primary key';
    await bench().db.knex.raw(
      `create table ${table} (${id}, title ${text}, price bigint, weight double, tags text, run_id varchar(64), url text, crawled_at varchar(30))`,
    );
    const run = await createRun(bench(), 6, { settings: settings(table) });
    const results = [1, 2, 3, 4, 5].map((n) => stored(n, `p${n}`, { title: '日'.repeat(1_000_000) }));
    results.push(stored(6, 'p6', { title: 'x'.repeat(17_000_000) }));
    const refused = engine === 'mysql' ? 1 : 0;
    expect(await load(bench(), run.id, results)).toMatchObject({
      stored: 6 - refused,
      failed: refused,
    });
  });

  it('F49: stores emoji and a title of 3,000 characters in a table that we make', async () => {
    const { id } = await createRun(bench(), 2);
    const title = '😀'.repeat(3_000);
    const results = [stored(1, 'p1', { title }), stored(2, 'p2', { tags: ['🧨'] })];
    expect(await load(bench(), id, results)).toEqual({ stored: 2, gone: 0, failed: 0 });
    expect((await staged(id))[0]!.title).toBe(title);
  });

  it('registers parts once, whatever their order', async () => {
    const { id, results } = await createRun(bench(), 2);
    const ref = (seq: number) => partRef(id, { slot: 3, epoch: 1, seq });
    await results.register({ slot: 3, epoch: 1 }, []);
    await results.register({ slot: 3, epoch: 1 }, [ref(1), ref(2)]);
    await results.register({ slot: 3, epoch: 1 }, [ref(0)]);
    await results.register({ slot: 3, epoch: 1 }, [{ ...ref(1), products: 77 }, ref(4)]);
    expect((await results.parts()).map((p) => [p.seq, p.products, p.state])).toEqual([
      [0, 1, 'seen'],
      [1, 1, 'seen'],
      [2, 1, 'seen'],
      [4, 1, 'seen'],
    ]);
  });

  it('sets an unreadable part aside, so that nothing waits for it', async () => {
    const { id, work, results } = await createRun(bench(), 2);
    await results.register({ slot: 0, epoch: 1 }, [
      partRef(id, { slot: 0, epoch: 1, seq: 0 }),
      partRef(id, { slot: 0, epoch: 1, seq: 1 }),
    ]);
    await results.failPart({ slot: 0, epoch: 1, seq: 0 }, 'the hash is wrong');
    expect(await results.totals()).toMatchObject({ seen: 1, loaded: 0 });
    expect((await results.parts()).map((p) => p.state)).toEqual(['failed', 'seen']);
    expect(await work.outcomes()).toMatchObject({ open: 2 });
  });

  it('refuses a part that is not in the ledger', async () => {
    const { results } = await createRun(bench(), 1);
    const loading = results.load({ slot: 0, epoch: 1, seq: 5 }, [stored(1)]);
    await expect(loading).rejects.toMatchObject({ code: 'internal' });
  });
});

onMysql('F49: a user’s table that is narrower than the values found', (bench) => {
  it.each([
    ['emoji into utf8mb3', 'varchar(500) character set utf8mb3', '😀 sale', 'ER_TRUNCATED_WRONG_VALUE_FOR_FIELD'],
    ['Japanese into latin1', 'varchar(500) character set latin1', '日本語', 'ER_TRUNCATED_WRONG_VALUE_FOR_FIELD'],
    ['3,000 characters into 500', 'varchar(500)', 'x'.repeat(3_000), 'ER_DATA_TOO_LONG'],
  ])('%s: that row fails with the code, the other rows are stored and published', async (what, type, title, code) => {
    const table = `takes_${what.toLowerCase().replace(/\W+/g, '_')}`;
    await bench().db.knex.raw(
      `create table ${table} (product_id varchar(50) not null primary key, title ${type}, price bigint, weight double, tags json, run_id varchar(64), url text, crawled_at datetime(3))`,
    );
    const { id } = await createRun(bench(), 40, { settings: settings(table) });
    const results = Array.from({ length: 40 }, (_, i) => stored(i + 1, `p${i + 1}`, i === 16 ? { title } : {}));
    expect(await load(bench(), id, results)).toEqual({ stored: 39, gone: 0, failed: 1 });
    const items = await bench().db.knex('crawlfleet_items').where({ run_id: id, outcome: 'failed' });
    expect(items).toMatchObject([{ product_id: 'p17', reason: 'load', detail: `${code} in column title` }]);
    expect(await publish(bench(), id)).toEqual({ rows: 39 });
  });
});
