/** The rights on the result table, with users of the private MariaDB that have some of them. */
import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Database, openDatabase } from '../../../../orchestrator/core/db/connect.ts';
import { checkResultRights } from '../../../../orchestrator/core/db/rights.ts';
import { createResultTable } from '../../../../orchestrator/core/db/result-table.ts';
import { readServerFacts } from '../../../../orchestrator/core/db/server-facts.ts';
import { administer, createTestDatabase, type TestDatabase } from '../../../support/mariadb/database.ts';
import { MAPPING } from './harness.ts';
import { features } from '../../../support/features.ts';

const ALL = 'select, insert, update, delete, create, drop, alter, index';
const user = `r${randomBytes(5).toString('hex')}`;
let own: TestDatabase;
let other: TestDatabase;
let shop: string;
let db: Database;

/** Sets the user's rights on the shop's schema, or one table of it, to exactly these. */
async function grant(...grants: [rights: string, on: string][]): Promise<void> {
  await administer(`revoke all privileges, grant option from ${user}@'%'`);
  await administer(`grant ${ALL} on ${new URL(own.url).pathname.slice(1)}.* to ${user}@'%'`);
  for (const [rights, on] of grants) await administer(`grant ${rights} on ${on} to ${user}@'%'`);
}

beforeAll(async () => {
  [own, other] = await Promise.all([createTestDatabase('mysql'), createTestDatabase('mysql')]);
  shop = new URL(other.url).pathname.slice(1);
  await administer(`create user ${user}@'%' identified by 'secret'`);
  await grant();
  const url = new URL(own.url);
  url.username = user;
  url.password = 'secret';
  const admin = await openDatabase(other.url);
  await createResultTable(admin, { table: 'snapshots' }, MAPPING, features);
  await admin.knex('snapshots').insert({ product_id: 'p1', run_id: 'r', url: 'u', crawled_at: '2026-01-01' });
  await admin.close();
  db = await openDatabase(url.href);
});
afterAll(async () => {
  await db.close();
  await administer(`drop user ${user}`);
  await Promise.all([own.drop(), other.drop()]);
});

const check = (table: string) => checkResultRights(db, table, MAPPING);

describe('The rights on the result table', () => {
  it('are complete on a table of the own schema, whether it exists or not', async () => {
    await check('snapshots');
    await createResultTable(db, { table: 'made' }, MAPPING, features);
    await check('made');
  });

  it('are reported together, with the GRANT that adds them', async () => {
    await grant(['select', `${shop}.snapshots`]);
    await expect(check(`${shop}.snapshots`)).rejects.toMatchObject({
      code: 'database-rights',
      message: expect.stringContaining('INSERT, UPDATE, DELETE are missing') as string,
      hint: `GRANT INSERT, UPDATE, DELETE ON ${shop}.snapshots TO '${user}'@'%';`,
    });
  });

  it('may be granted on the table alone', async () => {
    await grant(['select, insert, update, delete', `${shop}.snapshots`]);
    await check(`${shop}.snapshots`);
  });

  it('must cover every column that a run writes', async () => {
    await grant(['select, delete, insert, update (product_id)', `${shop}.snapshots`]);
    await expect(check(`${shop}.snapshots`)).rejects.toMatchObject({
      message: expect.stringContaining('the right UPDATE is missing') as string,
    });
  });

  it('include CREATE where the table does not exist yet, and the check creates nothing', async () => {
    await grant(['select, insert, update, delete', `${shop}.*`]);
    await expect(check(`${shop}.fresh`)).rejects.toMatchObject({
      message: expect.stringContaining('the right CREATE is missing') as string,
      hint: expect.stringContaining(`ON ${shop}.*`) as string,
    });
    await grant(['select, insert, update, delete, create', `${shop}.*`]);
    await check(`${shop}.fresh`);
    const admin = await openDatabase(other.url);
    const [tables] = (await admin.knex.raw('show tables')) as [object[]];
    const rows = (await admin.knex('snapshots').select('product_id')) as unknown[];
    await admin.close();
    expect(tables.map((t) => Object.values(t)[0] as string)).toEqual(['snapshots']);
    expect(rows).toEqual([{ product_id: 'p1' }]);
  });
});

describe('The facts of a server', () => {
  it('are its version, its time zone and a clock that agrees with ours', async () => {
    const facts = await readServerFacts(db);
    expect(facts.version).toMatch(/^(MariaDB|MySQL) \d+\.\d+/);
    expect(facts.timeZone).not.toBeNull();
    expect(Math.abs(facts.skewMs!)).toBeLessThan(5_000);
  });
});
