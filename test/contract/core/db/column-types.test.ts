/** Values of every type on their way from a part to the result table. */
import { expect, it } from 'vitest';
import { type Row, type Step } from '../../../../shared/domain/mapping.ts';
import { checkResultTable, createResultTable } from '../../../../orchestrator/core/db/result-table.ts';
import { createRun, field, load, mappingOf, onBothEngines, settings, stored, bound, publish } from './harness.ts';
import { features } from '../../../support/features.ts';

const date = (format: string | null): Step => ({ type: 'date', format, locale: null });
const MAPPING = mappingOf([
  field('in_stock', { type: 'boolean' }),
  field('released', date('yyyy-MM-dd')),
  field('updated', date('yyyy-MM-dd HH:mm')),
]);

onBothEngines('Booleans, dates and times', (bench, engine) => {
  async function crawl(table: string, rows: Row[]) {
    const { id } = await createRun(bench(), rows.length, { settings: settings(table, {}, MAPPING) });
    const results = rows.map((row, i) => stored(i + 1, `p${i + 1}`, row));
    const counts = await load(bench(), id, results);
    await publish(bench(), id);
    const { sample } = await bound(bench(), id).results.resultRows(10);
    return { id, counts, sample: sample.map((r) => [r.product_id, r.in_stock, r.released, r.updated]) };
  }

  it('have columns of their own in a table that we make', async () => {
    await createResultTable(bench().db, { table: 'typed' }, MAPPING, features);
    expect(await checkResultTable(bench().db, 'typed', MAPPING, ['p1'])).toEqual({ exists: true });
    const { sample, counts } = await crawl('typed', [
      { in_stock: true, released: '2024-02-29', updated: '2026-11-21T09:30:00' },
      { in_stock: false, released: '1000-01-01', updated: '9999-12-31T23:59:59.999' },
      { in_stock: null, released: null, updated: null },
    ]);
    expect(counts).toEqual({ stored: 3, gone: 0, failed: 0 });
    expect(sample).toEqual([
      ['p1', true, '2024-02-29', '2026-11-21T09:30:00'],
      ['p2', false, '1000-01-01', '9999-12-31T23:59:59.999'],
      ['p3', null, null, null],
    ]);
    if (engine === 'sqlite') return;
    const [columns] = (await bench().db.knex.raw('show columns from typed')) as [{ Field: string; Type: string }[]];
    expect(columns.slice(1, 4).map((c) => [c.Field, c.Type])).toEqual([
      ['in_stock', 'tinyint(1)'],
      ['released', 'date'],
      ['updated', 'datetime(3)'],
    ]);
  });

  it('go into texts as the page gave them', async () => {
    const key = engine === 'mysql' ? 'varchar(100)' : 'text';
    await bench().db.knex.raw(
      `create table texts (product_id ${key} not null primary key, in_stock int, released varchar(10), updated text, run_id varchar(64), url text, crawled_at varchar(30))`,
    );
    expect(await checkResultTable(bench().db, 'texts', MAPPING, ['p1'])).toEqual({ exists: true });
    const row = { in_stock: true, released: '2024-02-29', updated: '2026-11-21T09:30:00' };
    expect((await crawl('texts', [row])).sample).toEqual([['p1', true, '2024-02-29', '2026-11-21T09:30:00']]);
  });

  it('do not fit into columns that would change them', async () => {
    const key = engine === 'mysql' ? 'varchar(100)' : 'text';
    const [flag, day, time] = engine === 'mysql' ? ['text', 'int', 'timestamp null'] : ['text', 'int', 'real'];
    await bench().db.knex.raw(
      `create table changing (product_id ${key} not null primary key, in_stock ${flag}, released ${day}, updated ${time}, run_id varchar(64), url text, crawled_at varchar(30))`,
    );
    const error = (await checkResultTable(bench().db, 'changing', MAPPING, ['p1']).catch((e: unknown) => e)) as Error;
    for (const column of ['in_stock', 'released', 'updated'])
      expect(error.message).toMatch(new RegExp(`column ${column} is \\S+, but its values need`));
  });

  it('of fields that two page mappings spell differently go into one column', async () => {
    const [first, second] = [mappingOf([field('Name')]), mappingOf([field('NAME'), field('constructor')])];
    const mapping = { pages: [...first.pages, ...second.pages] };
    const { id, table } = await createRun(bench(), 2, { settings: settings(`spelled_${engine}`, {}, mapping) });
    const results = [stored(1, 'p1', { Name: 'a' }), stored(2, 'p2', { NAME: 'b', constructor: 'c' })];
    expect(await load(bench(), id, results)).toMatchObject({ stored: 2 });
    await publish(bench(), id);
    const rows = await bench().db.knex(table).orderBy('product_id').select('product_id', 'Name', 'constructor');
    expect(rows).toEqual([
      { product_id: 'p1', Name: 'a', constructor: null },
      { product_id: 'p2', Name: 'b', constructor: 'c' },
    ]);
  });
});
