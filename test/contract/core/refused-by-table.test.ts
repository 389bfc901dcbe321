/** A row that the result table refuses costs its own product, and nobody else's night. */
import { expect, it } from 'vitest';
import { publishRun } from '../../../orchestrator/core/act/results/finish.ts';
import { publishHeld } from '../../../orchestrator/core/act/results/publish-held.ts';
import type { NewRun } from '../../../orchestrator/core/model/stores.ts';
import type { Field } from '../../../shared/domain/mapping.ts';
import type { ItemResult } from '../../../shared/wire/part.ts';
import type { TestEngine } from '../../support/mariadb/database.ts';
import { onBothEngines } from './db/harness.ts';
import { aNewRun, ResultsStage } from './results-stage.ts';

const FIELDS: Field[] = [
  { name: 'title', steps: [{ type: 'css', selector: 'h1' }], required: false },
  { name: 'price', steps: [{ type: 'css', selector: '.price' }, { type: 'integer' }], required: false },
];

/** A rule of the user's that the price 0 breaks, as it is written for a table that exists. */
const RULES: Record<string, Partial<Record<TestEngine, string[]>>> = {
  'a check': {
    mysql: ['alter table T add constraint worth check (price > 0)'],
    sqlite: ['REBUILD constraint worth check (price > 0)'],
  },
  'a foreign key': {
    mysql: [
      'create table T_prices (price bigint primary key) engine=InnoDB',
      'insert into T_prices values (1), (2), (3), (4), (5), (6), (7), (8), (9), (10), (11), (12)',
      'alter table T modify price bigint null',
      'alter table T add constraint T_fk foreign key (price) references T_prices (price)',
    ],
    sqlite: [
      'create table T_prices (price numeric primary key)',
      'insert into T_prices values (1), (2), (3), (4), (5), (6), (7), (8), (9), (10), (11), (12)',
      'REBUILD foreign key (price) references T_prices (price)',
    ],
  },
  'a trigger': {
    mysql: [
      `create trigger T_tr before insert on T for each row
       begin if new.price = 0 then signal sqlstate '45000' set message_text = 'no price of nothing'; end if; end`,
    ],
    sqlite: [
      `create trigger T_tr before insert on T when new.price = 0 begin select raise(abort, 'no price of nothing'); end`,
    ],
  },
  'a trigger that ends the transaction': {
    sqlite: [`create trigger T_tr before insert on T when new.price = 0 begin select raise(rollback, 'never'); end`],
  },
  'a generated column': {
    mysql: ['alter table T add column share int as (coalesce(100 / nullif(price, 0), 99999999999)) stored'],
  },
};

const named = (statement: string, table: string): string => statement.replaceAll(/\bT(?=\b|_)/g, table);

onBothEngines('A row that the result table refuses', (bench, engine) => {
  let tables = 0;

  function newRun(table: string, products: number): NewRun {
    const run = aNewRun(table, products);
    run.settings.mapping = { pages: [{ name: 'page', urlPatterns: [], urlParsers: [], rows: null, fields: FIELDS }] };
    return run;
  }

  async function begin(rule: string | null, prices: readonly number[], maxFailed = 0.5) {
    const stage = new ResultsStage(bench());
    const table = `refused_by_table_${engine}_${++tables}`;
    const run = newRun(table, prices.length);
    run.settings.run = { ...run.settings.run, maxFailed };
    await stage.create(run);
    for (const statement of rule === null ? [] : RULES[rule]![engine]!) await apply(named(statement, table), table);
    await stage.load(run, prices.map(stored));
    return { stage, run };
  }

  /** SQLite adds no constraint to a table that exists. */
  async function apply(statement: string, table: string): Promise<void> {
    const { knex } = bench().db;
    if (!statement.startsWith('REBUILD ')) return void (await knex.raw(statement));
    const [{ sql }] = (await knex.raw('select sql from sqlite_master where name = ?', [table])) as [{ sql: string }];
    await knex.raw(`drop table ${table}`);
    await knex.raw(`${sql.slice(0, sql.lastIndexOf(')'))}, ${statement.slice('REBUILD '.length)})`);
  }

  const stored = (price: number, i: number): ItemResult => {
    const n = i + 1;
    const row = { title: `Teapot ${n}`, price };
    const at = '2026-01-01T00:01:00.000Z';
    return {
      n,
      id: `p${n}`,
      url: `https://shop.example/item/p${n}`,
      at,
      attempts: 1,
      outcome: 'stored',
      rows: [{ key: null, row }],
    };
  };

  async function endOf({ stage, run }: { stage: ResultsStage; run: NewRun }) {
    const record = (await bench().stores.runs.get(run.id))!;
    const failed = await bench()
      .db.knex('crawlfleet_items')
      .where({ run_id: run.id, outcome: 'failed' })
      .orderBy('n')
      .select<{ product_id: string; reason: string; detail: string }[]>('product_id', 'reason', 'detail');
    return { record, failed, ids: (await stage.rows(run)).map(([id]) => id), verdict: await stage.verdict(run.id) };
  }

  const rules = Object.keys(RULES).filter((rule) => RULES[rule]![engine] !== undefined);
  it.each(rules)(
    'is failed(load) by %s, with the words of the database, and all others are published',
    async (rule) => {
      const night = await begin(rule, [1, 2, 0, 4, 5, 6, 0, 8]);
      await publishRun(night.stage.core(night.run.id));
      const { record, failed, ids, verdict } = await endOf(night);
      expect(record).toMatchObject({ phase: 'completed', exitCode: 0 });
      expect(failed.map(({ product_id, reason }) => `${product_id} ${reason}`)).toEqual(['p3 load', 'p7 load']);
      expect(failed[0]!.detail).toContain('the result table refuses the row');
      if (rule === 'a check' || rule === 'a foreign key' || rule === 'a generated column') {
        if (!(engine === 'sqlite' && rule === 'a foreign key')) expect(failed[0]!.detail).toMatch(/; price is 0/);
      }
      expect(ids).toEqual(['p1', 'p2', 'p4', 'p5', 'p6', 'p8']);
      expect(verdict.differences).toEqual([]);
    },
  );

  it('keeps the row of an earlier night', async () => {
    const first = await begin(null, [1, 2, 3]);
    await publishRun(first.stage.core(first.run.id));
    const table = first.run.settings.results.table;
    for (const statement of RULES['a trigger']![engine]!) await apply(named(statement, table), table);
    const run = newRun(table, 3);
    run.settings.run = { ...run.settings.run, maxFailed: 0.5 };
    const stage = new ResultsStage(bench());
    await stage.create(run);
    await stage.load(run, [1, 0, 3].map(stored));
    await publishRun(stage.core(run.id));
    expect((await stage.rows(run)).map(([id, , of]) => [id, of === run.id])).toEqual([
      ['p1', true],
      ['p2', false],
      ['p3', true],
    ]);
  });

  it('holds the run where more are refused than may fail, until a person publishes the others', async () => {
    const night = await begin('a check', [0, 0, 0, 0, 5, 6], 0.5);
    const core = night.stage.core(night.run.id);
    await publishRun(core);
    const held = await endOf(night);
    expect(held.record).toMatchObject({ phase: 'held', exitCode: 13 });
    expect(held.record.reason).toContain('rows of 4 products were refused: p1, p2, p3');
    expect(held.failed).toEqual([]);
    expect((await core.run.events(10, 'alarm'))[0]?.detail).toContain('p1, p2, p3, p4');
    await publishHeld(core, held.record, false);
    const { record, failed, ids } = await endOf(night);
    expect(record).toMatchObject({ phase: 'completed', exitCode: 12 });
    expect(failed).toHaveLength(4);
    expect(ids).toEqual(['p5', 'p6']);
  });

  it('is no reason where the statement fails without any row', async () => {
    const night = await begin(null, [1, 2]);
    const { knex } = bench().db;
    await knex.schema.alterTable(night.run.settings.results.table, (t) => void t.renameColumn('url', 'elsewhere'));
    await expect(publishRun(night.stage.core(night.run.id))).rejects.toThrow(/url/);
    expect((await bench().stores.runs.get(night.run.id))?.phase).toBe('loading');
    await knex.schema.alterTable(night.run.settings.results.table, (t) => void t.renameColumn('elsewhere', 'url'));
    await publishRun(night.stage.core(night.run.id));
    expect((await endOf(night)).ids).toEqual(['p1', 'p2']);
  });

  it('of a product with many records costs the product, whose older records stay', async () => {
    const first = await begin(null, []);
    const table = first.run.settings.results.table;
    await bench().db.knex.schema.dropTable(table);
    const records = async (rule: string | null, counts: readonly (readonly number[])[]) => {
      const run = newRun(table, counts.length);
      run.settings.run = { ...run.settings.run, maxFailed: 0.5 };
      const [page] = run.settings.mapping.pages;
      run.settings.mapping = {
        pages: [{ ...page!, rows: { each: { type: 'css', selector: 'li' }, key: 'title', empty: null } }],
      };
      const stage = new ResultsStage(bench());
      await stage.create(run);
      for (const statement of rule === null ? [] : RULES[rule]![engine]!)
        await bench().db.knex.raw(named(statement, table));
      const results = counts.map((prices, i): ItemResult => {
        const rows = prices.map((price, at) => ({ key: `offer ${at}`, row: { title: `offer ${at}`, price } }));
        return { ...stored(1, i), outcome: 'stored', rows };
      });
      await stage.load(run, results);
      await publishRun(stage.core(run.id));
      return endOf({ stage, run });
    };
    await records(null, [
      [1, 2],
      [3, 4],
    ]);
    const { record, failed, ids, verdict } = await records('a trigger', [[5], [6, 0, 7]]);
    expect(record).toMatchObject({ phase: 'completed', exitCode: 0 });
    expect(failed.map(({ product_id: id }) => id)).toEqual(['p2']);
    expect(ids).toEqual(['p1', 'p2', 'p2']);
    expect(verdict.differences).toEqual([]);
  });

  it('that is to be deleted with its gone product stays where others refer to it, with an alarm', async () => {
    const first = await begin(null, [1, 2, 3, 4, 5, 6, 7, 8]);
    await publishRun(first.stage.core(first.run.id));
    const table = first.run.settings.results.table;
    const { knex } = bench().db;
    const key = engine === 'mysql' ? 'varchar(768) character set utf8mb4 collate utf8mb4_nopad_bin' : 'text';
    await knex.raw(
      `create table ${table}_notes (product_id ${key}, foreign key (product_id) references ${table} (product_id))`,
    );
    await knex(`${table}_notes`).insert({ product_id: 'p2' });
    const run = newRun(table, 8);
    run.settings.results.onGone = 'delete';
    const stage = new ResultsStage(bench());
    await stage.create(run);
    const gone = (n: number): ItemResult => {
      const { id, url, at } = stored(n, n - 1);
      return { n, id, url, at, attempts: 1, outcome: 'gone', status: 404 };
    };
    await stage.load(run, [gone(1), gone(2), ...[3, 4, 5, 6, 7, 8].map((n) => stored(n, n - 1))]);
    const core = stage.core(run.id);
    await publishRun(core);
    const { record, ids, verdict } = await endOf({ stage, run });
    expect(record).toMatchObject({ phase: 'completed', exitCode: 0 });
    expect(ids).toEqual(['p2', 'p3', 'p4', 'p5', 'p6', 'p7', 'p8']);
    expect((await core.run.events(10, 'alarm'))[0]?.detail).toContain('the rows of 1 gone products, so they stay: p2');
    expect(verdict.differences).toEqual([]);
  });
});
