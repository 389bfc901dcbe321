/** The rules of a table that a row of it may break: constraints, generated columns and triggers of the user's. */
import type { Knex } from 'knex';
import type { TableRule } from '../model/stores.ts';
import type { Database } from './connect.ts';
import { rowsOf } from './rows.ts';
import { splitTableName } from './table-info.ts';

/** The rules of a table, in order of kind and name. */
export async function readRules(knex: Knex, db: Database, table: string): Promise<TableRule[]> {
  const rules = await (db.engine === 'sqlite' ? readSqlite(knex, table) : readMysql(knex, db, table));
  return rules.sort((a, b) => (`${a.kind} ${a.name}` < `${b.kind} ${b.name}` ? -1 : 1));
}

async function readMysql(knex: Knex, db: Database, table: string): Promise<TableRule[]> {
  const { schema, name } = splitTableName(db, table);
  const own = (rows: string, select: Record<string, string>): Promise<Omit<TableRule, 'kind'>[]> =>
    rowsOf(knex(rows).where({ table_schema: schema, table_name: name }).select(select));
  const checks = await rowsOf<Omit<TableRule, 'kind'>>(
    knex('information_schema.table_constraints as t')
      .join('information_schema.check_constraints as c', (on) => {
        void on.on('c.constraint_schema', 't.constraint_schema').on('c.constraint_name', 't.constraint_name');
      })
      .where({ 't.table_schema': schema, 't.table_name': name, 't.constraint_type': 'CHECK' })
      .distinct({ name: 't.constraint_name', about: 'c.check_clause' }),
  );
  const keys = await own('information_schema.key_column_usage', {
    name: 'constraint_name',
    about: 'column_name',
    other: 'referenced_table_name',
  });
  const columns = await own('information_schema.columns', { name: 'column_name', about: 'generation_expression' });
  const triggers = await rowsOf<Omit<TableRule, 'kind'>>(
    knex('information_schema.triggers')
      .where({ event_object_schema: schema, event_object_table: name })
      .select({ name: 'trigger_name', about: 'event_manipulation' }),
  );
  return [
    ...checks.map((rule): TableRule => ({ kind: 'check', ...rule })),
    ...keys
      .filter((key) => (key as unknown as { other: string | null }).other !== null)
      .map(({ name: key, about }): TableRule => ({ kind: 'foreign key', name: key, about })),
    ...columns.filter(({ about }) => about).map((rule): TableRule => ({ kind: 'generated column', ...rule })),
    ...triggers.map((rule): TableRule => ({ kind: 'trigger', ...rule })),
  ];
}

async function readSqlite(knex: Knex, table: string): Promise<TableRule[]> {
  const [own] = await rowsOf<{ name: string; sql: string }>(
    knex.raw(`select name, sql from sqlite_master where type = 'table' and lower(name) = lower(?)`, [table]),
  );
  if (own === undefined) return [];
  const keys = await rowsOf<{ name: string; about: string }>(
    knex.raw('select "from" as about, "table" as name from pragma_foreign_key_list(?)', [own.name]),
  );
  const triggers = await rowsOf<{ name: string; about: string }>(
    knex.raw(`select name, sql as about from sqlite_master where type = 'trigger' and tbl_name = ?`, [own.name]),
  );
  // SQLite keeps checks and expressions only in the statement that made the table.
  const checks = expressionsAfter(own.sql, /(?:\bconstraint\s+["`[]?(\w+)["`\]]?\s+)?\bcheck\s*\(/gi);
  const generated = expressionsAfter(own.sql, /["`[]?(\w+)["`\]]?[^,()]*\bas\s*\(/gi);
  return [
    ...checks.map((rule): TableRule => ({ kind: 'check', ...rule })),
    ...keys.map((key): TableRule => ({ kind: 'foreign key', ...key })),
    ...generated.map((rule): TableRule => ({ kind: 'generated column', ...rule })),
    ...triggers.map((trigger): TableRule => ({ kind: 'trigger', ...trigger })),
  ];
}

/** What stands in the parentheses with which each match ends, under the name in its first group. */
function expressionsAfter(sql: string, pattern: RegExp): Omit<TableRule, 'kind'>[] {
  return [...sql.matchAll(pattern)].map((match) => {
    const start = match.index + match[0].length;
    let end = start;
    for (let depth = 1; end < sql.length; end++) {
      if (sql[end] === '(') depth++;
      if (sql[end] === ')' && --depth === 0) break;
    }
    return { name: match[1] ?? '', about: sql.slice(start, end) };
  });
}

const ABOUT_CHARS = 60;

/** One sentence for people. */
export function describeRules(rules: readonly TableRule[]): string {
  const one = ({ kind, name, about }: TableRule): string => {
    const text = about.replace(/\s+/g, ' ').trim();
    const what = kind === 'trigger' ? '' : ` (${text.length > ABOUT_CHARS ? `${text.slice(0, ABOUT_CHARS)}…` : text})`;
    return `${kind}${name === '' ? '' : ` ${name}`}${what}`;
  };
  return `a product whose row breaks one of its rules is failed(load): ${rules.map(one).join(', ')}`;
}

/**
 * The column that a message of the database is about: one that it names, or that is in the rule that it names. Null
 * when it names none.
 */
export function columnIn(message: string, columns: readonly string[], rules: readonly TableRule[]): string | null {
  const named = (text: string): string | null =>
    columns.find((column) => new RegExp(`(?<![\\w.])${escape(column)}(?!\\w)`, 'i').test(text)) ?? null;
  // The name of the table is that of no column: `shop`.`price`.
  const words = message.replace(/`[^`]+`\.`[^`]+`/g, '').replace(/\b\w+\.(?=\w)/g, '');
  const quoted = /column '([^']+)'/i.exec(message)?.[1];
  const exact = quoted === undefined ? undefined : columns.find((c) => c.toLowerCase() === quoted.toLowerCase());
  const rule = rules.find(({ name, kind }) => {
    return name !== '' && kind !== 'trigger' && new RegExp(`(?<!\\w)${escape(name)}(?!\\w)`, 'i').test(message);
  });
  return exact ?? (rule === undefined ? null : named(rule.about)) ?? named(words);
}

const escape = (text: string): string => text.replace(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`);
