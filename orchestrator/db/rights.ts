/** Proves before a run that the database user has every privilege a run needs, by using each on a table of our own. */
import { randomBytes } from 'node:crypto';
import { AppError } from '../../shared/domain/errors.ts';
import type { Database } from './connect.ts';
import { grantee } from './grantee.ts';
import { classifyDatabaseError, databaseMessage, toAppError } from './database-errors.ts';

/** Throws `database-rights` with the GRANT that is missing. Leaves nothing behind. */
export async function checkRights(db: Database): Promise<void> {
  const table = `crawlfleet_probe_${randomBytes(6).toString('hex')}`;
  const { knex } = db;
  const steps: [right: string, step: () => PromiseLike<unknown>][] = [
    ['CREATE', () => knex.schema.createTable(table, (t) => void t.integer('id').primary())],
    ['ALTER', () => knex.schema.alterTable(table, (t) => void t.integer('more'))],
    ['INDEX', () => knex.schema.alterTable(table, (t) => void t.index(['more'], `${table}_more`))],
    ['INSERT', () => knex(table).insert({ id: 1, more: 1 })],
    ['UPDATE', () => knex(table).where({ id: 1 }).update({ more: 2 })],
    ['SELECT', () => knex(table).select('id')],
    ['DELETE', () => knex(table).where({ id: 1 }).delete()],
    ['DROP', () => knex.schema.dropTable(table)],
  ];
  for (const [right, step] of steps) {
    try {
      await step();
    } catch (error) {
      await knex.schema.dropTableIfExists(table).catch(() => undefined);
      if (classifyDatabaseError(error) !== 'denied') throw toAppError(error, db.label);
      throw new AppError('database-rights', `${db.label}: the right ${right} is missing: ${databaseMessage(error)}`, {
        hint:
          db.engine === 'sqlite'
            ? 'The file or its directory is read-only for this user: give write access to both.'
            : `GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, ALTER, INDEX, DROP, CREATE TEMPORARY TABLES ON ${db.schema}.* TO ${await grantee(db)};`,
      });
    }
  }
}
