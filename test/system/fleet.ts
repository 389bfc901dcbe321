/** A user's folder for system tests: a database with products, a fleet.yaml, and the real command line run on them. */
import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import Sqlite from 'better-sqlite3';
import { createConnection } from 'mysql2/promise';
import { stringify } from 'yaml';
import type { RunReport } from '../../orchestrator/core/model/report.ts';
import { createTestDatabase, type TestDatabase, type TestEngine } from '../support/mariadb/database.ts';
import {
  type CommandResult,
  findLeftovers,
  killLeftovers,
  type RunningCommand,
  startCommand,
} from '../support/processes.ts';
import { SHOP_MAPPING } from '../support/shop/product.ts';
import { tempDir } from '../support/temp-dir.ts';

/** The program as a user starts it. */
export const LAUNCHER = fileURLToPath(new URL('../../bin/orchestrator.js', import.meta.url));

export type Config = Record<string, unknown>;

export interface Fleet {
  dir: string;
  configPath: string;
  databaseUrl: string;
  /** Rows of a query, values as text or numbers. */
  query(sql: string): Promise<Record<string, unknown>[]>;
  /** Adds products for the next run. */
  addProducts(ids: readonly string[]): Promise<void>;
  /** Starts `orchestrator <args> --config <file>`. */
  start(...args: string[]): RunningCommand;
  /** Runs it to its end. */
  run(...args: string[]): Promise<CommandResult>;
  /** `run --dry-run --json`: the exit code and the document. */
  dryRun(...args: string[]): Promise<RunEnd>;
  /** Live processes that belong to this folder. */
  leftovers(): { pid: number; command: string }[];
  /** Kills what is left and drops the database; with `keep` the folder stays. */
  remove(keep?: boolean): Promise<void>;
}

/** The end of a run that was started with `--json`. */
export interface RunEnd {
  exitCode: number | null;
  report: RunReport;
  stderr: string;
}

export interface FleetOptions {
  engine: TestEngine;
  /** Instead of one on the shared server of all tests. */
  database?: TestDatabase;
  productUrl: string;
  ids: readonly string[];
  /** Merged over the defaults, section by section. */
  config?: Config;
  /** Node and launcher of an installed package; omitted: those of this checkout. */
  program?: readonly [node: string, launcher: string];
  /** Put before the program, such as that of a namespace. */
  prefix?: readonly [file: string, ...args: string[]];
  /** Of each command; default: less than a test may take. */
  timeoutMs?: number;
  /** Added to the environment of the next command. */
  environment?: () => Record<string, string>;
}

/** A statement may have 32,766 parameters. */
const PRODUCTS_AT_ONCE = 10_000;

/** 200 ms, 45 s, at least three instances: small enough for two cores, large enough to share out work. */
export async function makeFleet(options: FleetOptions): Promise<Fleet> {
  const folder = tempDir('crawlfleet-system-');
  const database = options.database ?? (await createTestDatabase(options.engine));
  const query = (sql: string, values: unknown[] = []) => runQuery(database.url, sql, values);
  await query('create table if not exists products (id varchar(500) not null, active integer not null)');
  const addProducts = async (ids: readonly string[]): Promise<void> => {
    for (let at = 0; at < ids.length; at += PRODUCTS_AT_ONCE) {
      const some = ids.slice(at, at + PRODUCTS_AT_ONCE);
      await query(`insert into products (id, active) values ${some.map(() => '(?, 1)').join(', ')}`, some);
    }
  };
  await addProducts(options.ids);
  const configPath = folder.file('fleet.yaml');
  writeFileSync(configPath, stringify(mergeConfig(defaults(options.productUrl, database.url), options.config ?? {})));
  const program = options.program ?? [process.execPath, LAUNCHER];
  const [file = '', ...before] = [...(options.prefix ?? []), ...program];
  const start = (...args: string[]): RunningCommand =>
    startCommand(file, [...before, ...args, '--config', configPath], {
      cwd: folder.path,
      timeoutMs: options.timeoutMs ?? 175_000,
      env: options.environment?.() ?? {},
    });
  return {
    dir: folder.path,
    configPath,
    databaseUrl: database.url,
    query,
    addProducts,
    start,
    run: (...args) => start(...args).finished,
    dryRun: (...args) => endOf(start('run', '--dry-run', '--json', ...args)),
    leftovers: () => findLeftovers(folder.path),
    async remove(keep = false) {
      killLeftovers(folder.path);
      await database.drop();
      if (!keep) folder.remove();
    },
  };
}

export async function endOf(run: RunningCommand): Promise<RunEnd> {
  const result = await run.finished;
  return { exitCode: result.exitCode, report: readReport(result), stderr: result.stderr };
}

/** The report of a `run --json`; throws with the printed output when there is none. */
export function readReport(result: CommandResult): RunReport {
  try {
    return JSON.parse(result.stdout) as RunReport;
  } catch (error) {
    throw new Error(`stdout is not one JSON document (exit ${result.exitCode}):\n${result.stdout}\n${result.stderr}`, {
      cause: error,
    });
  }
}

function defaults(productUrl: string, databaseUrl: string): Config {
  return {
    site: {
      product_url: productUrl,
      interval: '200ms',
      user_agent: 'crawlfleet-test/1.0 (+https://example.com/bot)',
      timeout: '3s',
      mapping: SHOP_MAPPING,
    },
    products: { query: 'select id from products where active = 1' },
    database: { url: databaseUrl },
    run: { deadline: '45s', grace: '30s', min_instances: 3 },
  };
}

function mergeConfig(base: Config, change: Config): Config {
  const merged = { ...base };
  for (const [section, values] of Object.entries(change))
    merged[section] = isSection(values) ? { ...(merged[section] as object), ...values } : values;
  return merged;
}

const isSection = (values: unknown): values is object => typeof values === 'object' && !Array.isArray(values);

async function runQuery(url: string, sql: string, values: unknown[]): Promise<Record<string, unknown>[]> {
  if (url.startsWith('sqlite:')) {
    const database = new Sqlite(url.slice('sqlite:'.length), { timeout: 5_000 });
    try {
      const statement = database.prepare(sql);
      if (statement.reader) return statement.all(...values) as Record<string, unknown>[];
      statement.run(...values);
      return [];
    } finally {
      database.close();
    }
  }
  const connection = await createConnection({ uri: url, timezone: 'Z' });
  try {
    const [rows] = await connection.query(sql, values);
    return Array.isArray(rows) ? (rows as Record<string, unknown>[]) : [];
  } finally {
    await connection.end();
  }
}
