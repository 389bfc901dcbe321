/** Databases for tests: a separate schema on the private MariaDB, or a separate SQLite file. */
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { createConnection } from 'mysql2/promise';
import { afterAll, beforeAll, describe, inject } from 'vitest';

export interface TestDatabase {
  url: string;
  drop(): Promise<void>;
}

export const ENGINES = ['sqlite', 'mysql'] as const;
export type TestEngine = (typeof ENGINES)[number];

/** A fresh, empty database. SQLite: a file in its own directory; MySQL: a schema on the server of the global setup. */
export function createTestDatabase(engine: TestEngine = 'mysql'): Promise<TestDatabase> {
  return engine === 'sqlite' ? createSqliteFile() : createSchema();
}

async function createSqliteFile(): Promise<TestDatabase> {
  const dir = await mkdtemp(join(tmpdir(), 'crawlfleet-sqlite-'));
  const file = join(dir, 'fleet.db');
  // openDatabase refuses a missing file, as it must for users.
  new Sqlite(file).exec('create table _made (x int); drop table _made').close();
  return { url: `sqlite:${file}`, drop: () => rm(dir, { recursive: true, force: true }) };
}

async function createSchema(): Promise<TestDatabase> {
  const name = `crawlfleet_test_${randomBytes(6).toString('hex')}`;
  await administer(`create database ${name} character set utf8mb4`);
  const url = new URL(adminUrl());
  url.pathname = `/${name}`;
  return { url: url.href, drop: () => administer(`drop database if exists ${name}`) };
}

/** Runs one statement as the administrator of the test server. */
export async function administer(sql: string): Promise<void> {
  const connection = await createConnection({ uri: adminUrl() });
  try {
    await connection.query(sql);
  } finally {
    await connection.end();
  }
}

/** URL of the administrator of the test server. */
function adminUrl(): string {
  return inject('adminDatabaseUrl');
}

/** Runs the same suite on SQLite and on MariaDB, each with its own database. */
export function eachEngine(title: string, suite: (database: () => TestDatabase, engine: TestEngine) => void): void {
  describe.each(ENGINES)(`${title} on %s`, (engine) => {
    let database: TestDatabase | undefined;
    beforeAll(async () => {
      database = await createTestDatabase(engine);
    });
    afterAll(async () => {
      await database?.drop();
    });
    suite(() => database!, engine);
  });
}

/** For suites of whole runs, which take long: on MariaDB in `npm test`, on SQLite only in `npm run test:all`. */
export function eachEngineByDay(title: string, suite: (engine: TestEngine) => void): void {
  describe(`${title} on mysql`, () => suite('mysql'));
  describe(`${title} on sqlite`, { tags: ['nightly'] }, () => suite('sqlite'));
}
