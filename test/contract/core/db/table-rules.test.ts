/** The rules that a result table has beside its types. */
import { expect, it } from 'vitest';
import { columnIn, describeRules, readRules } from '../../../../orchestrator/core/db/table-rules.ts';
import { onBothEngines } from './harness.ts';

onBothEngines('The rules of a table', (bench, engine) => {
  it('are its checks, foreign keys, generated columns and triggers', async () => {
    const { db } = bench();
    const own = `rules_${engine}`;
    await db.knex.raw(`create table ${own}_shops (id int primary key)`);
    await db.knex.raw(
      `create table ${own} (id int primary key, shop int, price int, cents int generated always as (price * 100) stored,
       constraint worth check (price > 0), constraint of_shop foreign key (shop) references ${own}_shops (id))`,
    );
    const body = engine === 'mysql' ? 'for each row set new.price = new.price' : 'begin select 1; end';
    await db.knex.raw(`create trigger ${own}_tr before insert on ${own} ${body}`);
    const rules = await readRules(db.knex, db, own);
    expect(rules.map(({ kind, name }) => `${kind} ${name}`)).toEqual([
      'check worth',
      `foreign key ${engine === 'mysql' ? 'of_shop' : `${own}_shops`}`,
      'generated column cents',
      `trigger ${own}_tr`,
    ]);
    expect(describeRules(rules)).toMatch(
      /failed\(load\): check worth \(.*price.* > 0\)*, foreign key .* \(shop\), generated/,
    );
    expect(await readRules(db.knex, db, `${own}_shops`)).toEqual([]);
    expect(await readRules(db.knex, db, `${own}_none`)).toEqual([]);
    const columns = ['id', 'shop', 'price'];
    expect(columnIn(`CONSTRAINT \`worth\` failed for \`price\`.\`shop\``, columns, rules)).toBe('price');
    expect(columnIn(`Out of range value for column 'cents' at row 1`, columns, rules)).toBe('price');
    expect(columnIn(`Data too long for column 'SHOP' at row 1`, columns, rules)).toBe('shop');
    expect(columnIn(`a price-less row`, columns, rules)).toBe('price');
    expect(columnIn('never', columns, rules)).toBeNull();
  });
});
