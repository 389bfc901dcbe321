/** Opens the database of database.url: one knex pool with the settings, limits and timeouts that a run relies on. */
import { existsSync } from 'node:fs';
import { connect, isIP, type Socket } from 'node:net';
import knexFactory, { type Knex } from 'knex';
import type { ConnectionOptions } from 'mysql2';
import { systemRandom } from '../../../shared/adapters/random.ts';
import { systemClock } from '../../../shared/adapters/system-clock.ts';
import { AppError } from '../../../shared/domain/errors.ts';
import type { Clock } from '../../../shared/ports/clock.ts';
import type { Random } from '../../../shared/ports/random.ts';
import { type MysqlAddress, parseDatabaseUrl, type SqliteAddress } from './database-url.ts';
import { classifyDatabaseError, databaseCode, databaseMessage, isLimit, limitReached } from './database-errors.ts';
import { repeat } from './repeat.ts';
import { limitStatements } from './statement-timeout.ts';

export interface Database extends AsyncDisposable {
  knex: Knex;
  engine: 'mysql' | 'sqlite';
  /** The host, user and database, for messages; never the password. */
  label: string;
  /** Collation that compares texts by their bytes, with trailing spaces; null on SQLite, where this is the default. */
  byteCollation: string | null;
  /** Schema of unqualified table names; null on SQLite. */
  schema: string | null;
  /** Maximum statement size the server accepts, in bytes. */
  maxPacketBytes: number;
  /** How many connections the server lets this user have at a time; Infinity where it does not limit them. */
  maxConnections: number;
  clock: Clock;
  random: Random;
  close(): Promise<void>;
}

export interface OpenOptions {
  clock?: Clock;
  random?: Random;
  /** Creates the SQLite file when it does not exist. */
  create?: boolean;
  /** How long a MySQL server may take to accept a connection. */
  connectMs?: number;
  /** Default time limit of a statement on a MySQL server. */
  statementMs?: number;
  /** Called once while a MySQL server that does not answer yet is waited for; without it the server is asked once. */
  onWait?: (text: string) => void;
}

const CONNECT_MS = 10_000;
/** A server restarts in seconds, and a user at a terminal waits for the error. */
const RESTART_MS = 30_000;
/** Enough for the loop's reads, the callbacks and the loader at once; MySQL allows 151 connections by default. */
const POOL_SIZE = 8;
/**
 * Prepared statements that a connection keeps, here and at the server. Each number of rows of a bulk insert is one,
 * with a description of each of its thousands of values.
 */
const KEPT_STATEMENTS = 4;
/**
 * The smallest pool: with one connection, nothing else could be done during a long publish, such as renewing the lock.
 */
const LEAST_POOL_SIZE = 2;
/** The connections of a main server outside of its pool: the lock's and the product query's. */
const OTHER_CONNECTIONS = 2;
/** What a main server needs, with a smaller pool. */
export const LEAST_CONNECTIONS = LEAST_POOL_SIZE + OTHER_CONNECTIONS;
/** What it makes use of. */
export const ALL_CONNECTIONS = POOL_SIZE + OTHER_CONNECTIONS;
/** Shorter than the server's idle limit, so that the pool never hands out a dead connection. */
const POOL_IDLE_MS = 20_000;
/** Waiting for an SQLite lock blocks the whole process, so the wait is short and retry.ts repeats it. */
const SQLITE_BUSY_MS = 100;

/** Throws `config-invalid`, `database-unreachable`, `database-rights` and, for an old server, `database-schema`. */
export async function openDatabase(url: string, options: OpenOptions = {}): Promise<Database> {
  const address = parseDatabaseUrl(url);
  const tools = { clock: options.clock ?? systemClock, random: options.random ?? systemRandom };
  return address.engine === 'sqlite'
    ? openSqlite(address, tools, options.create ?? false)
    : openMysql(address, tools, options);
}

/** knex prints its warnings on stdout, where --json prints its one document. The ones that matter are also thrown. */
const SILENT = { warn() {}, error() {}, deprecate() {}, debug() {} };

async function openSqlite(
  address: SqliteAddress,
  tools: Pick<Database, 'clock' | 'random'>,
  create: boolean,
): Promise<Database> {
  if (!create && !existsSync(address.file)) {
    throw new AppError('database-unreachable', `database.url: there is no file ${address.file}`, {
      hint: 'Make it first, with the product table in it; a relative path counts from the folder of the configuration.',
    });
  }
  const db = connectSqlite(address.file, address.label, tools);
  try {
    await db.knex.raw('select count(*) from sqlite_master');
  } catch (error) {
    await db.close();
    throw new AppError('database-unreachable', `${address.label} cannot be opened: ${databaseMessage(error)}`, {
      hint: 'Check that the file is an SQLite database and that this user may write to it and to its directory.',
    });
  }
  return db;
}

/** @param file a path; or a serialized database, which is opened in memory */
export function connectSqlite(
  file: string | Buffer,
  label: string,
  tools: Pick<Database, 'clock' | 'random'>,
): Database {
  const knex = knexFactory({
    client: 'better-sqlite3',
    connection: { filename: file as string },
    useNullAsDefault: true,
    compileSqlOnError: false,
    log: SILENT,
    // One connection, so one transaction at a time: other transactions wait here.
    pool: { min: 1, max: 1, acquireTimeoutMillis: 120_000, afterCreate: afterCreate(prepareSqlite) },
  });
  return {
    knex,
    engine: 'sqlite',
    label,
    byteCollation: null,
    schema: null,
    maxPacketBytes: 64_000_000,
    maxConnections: Infinity,
    ...tools,
    ...closing(knex),
  };
}

function closing(knex: Knex): Pick<Database, 'close' | typeof Symbol.asyncDispose> {
  const close = (): Promise<void> => knex.destroy();
  return { close, [Symbol.asyncDispose]: close };
}

async function openMysql(
  address: MysqlAddress,
  tools: Pick<Database, 'clock' | 'random'>,
  options: OpenOptions,
): Promise<Database> {
  const prepare = (connection: unknown): Promise<void> => prepareMysql(connection, options.statementMs);
  const openPool = (max: number): Knex =>
    knexFactory({
      client: 'mysql2',
      connection: mysqlConnection(address, options.connectMs),
      compileSqlOnError: false,
      log: SILENT,
      acquireConnectionTimeout: 30_000,
      pool: { min: 0, max, idleTimeoutMillis: POOL_IDLE_MS, afterCreate: afterCreate(prepare) },
    });
  let knex = openPool(POOL_SIZE);
  try {
    const server = await askRestarting(knex, address, { ...tools, onWait: options.onWait });
    if (server.maxConnections < ALL_CONNECTIONS) {
      await knex.destroy();
      knex = openPool(Math.max(LEAST_POOL_SIZE, server.maxConnections - OTHER_CONNECTIONS));
    }
    return {
      knex,
      engine: 'mysql',
      label: address.label,
      schema: address.database,
      ...server,
      ...tools,
      ...closing(knex),
    };
  } catch (error) {
    await knex.destroy();
    throw error instanceof AppError ? error : connectError(error, address);
  }
}

/** Connection settings shared by the pool and the product source. */
export function mysqlConnection(
  address: MysqlAddress,
  connectMs = CONNECT_MS,
): ConnectionOptions & Knex.MySql2ConnectionConfig {
  return {
    host: address.host,
    port: address.port,
    user: address.user,
    password: address.password,
    database: address.database,
    connectTimeout: connectMs,
    charset: 'utf8mb4',
    timezone: 'Z',
    supportBigNumbers: true,
    bigNumberStrings: true,
    maxPreparedStatements: KEPT_STATEMENTS,
    ...(address.tls ? { ssl: { verifyIdentity: true } } : {}),
    ...(address.tls && isIP(address.host) ? { stream: () => socketTo(address) } : {}),
  };
}

/** A socket to a server that is named by its address: Node compares the certificate with this name of a socket. */
function socketTo({ host, port }: MysqlAddress): Socket {
  return Object.assign(connect(port, host).setNoDelay(), { _host: host });
}

/** Waits for a server that may be restarting, if there is an `onWait`. A name that is not known stays so. */
function askRestarting(
  knex: Knex,
  { label }: MysqlAddress,
  { onWait, ...tools }: Pick<Database, 'clock' | 'random'> & { onWait: OpenOptions['onWait'] },
): ReturnType<typeof askServer> {
  if (onWait === undefined) return askServer(knex);
  return repeat(tools, () => askServer(knex), {
    forMs: RESTART_MS,
    passes: (error) => isLost(error) && !UNKNOWN_HOST.includes(databaseCode(error)),
    onWait: (error) =>
      onWait(`cannot reach ${label} (${databaseCode(error)}): waiting up to ${RESTART_MS / 1_000} s for it`),
  });
}

const UNKNOWN_HOST: readonly string[] = ['ENOTFOUND', 'EAI_AGAIN'];
const isLost = (error: unknown): boolean => classifyDatabaseError(error) === 'lost' && !isLimit(error);

async function askServer(knex: Knex): Promise<Pick<Database, 'byteCollation' | 'maxPacketBytes' | 'maxConnections'>> {
  const sql =
    'select version() as version, @@max_allowed_packet as packet, @@session.max_user_connections as connections';
  const [[row]] = (await knex.raw(sql)) as [[Record<'packet' | 'connections' | 'version', string | number>]];
  const { version, packet, connections } = row;
  return {
    byteCollation: byteCollationOf(String(version)),
    maxPacketBytes: Number(packet),
    // 0 stands for no limit.
    maxConnections: Number(connections) > 0 ? Number(connections) : Infinity,
  };
}

/** Throws `database-schema` when the server has no collation that distinguishes trailing spaces. */
export function byteCollationOf(version: string): string {
  const [major = 0, minor = 0, patch = 0] = (/\d+\.\d+\.\d+/.exec(version.replace(/^5\.5\.5-/, ''))?.[0] ?? '')
    .split('.')
    .map(Number);
  const atLeast = (a: number, b: number, c: number): boolean =>
    major !== a ? major > a : minor !== b ? minor > b : patch >= c;
  if (/mariadb/i.test(version) && atLeast(10, 6, 0)) return 'utf8mb4_nopad_bin';
  if (!/mariadb/i.test(version) && atLeast(8, 0, 17)) return 'utf8mb4_0900_bin';
  throw new AppError('database-schema', `the database server is version ${version}`, {
    hint: 'MySQL 8.0.17 or MariaDB 10.6 and later are needed.',
  });
}

/** Turns a failed first connection into an error that names what to check. */
export function connectError(error: unknown, address: MysqlAddress): AppError {
  const code = databaseCode(error);
  const said = databaseMessage(error);
  if (code === 'ER_BAD_DB_ERROR' || code === 'ER_DBACCESS_DENIED_ERROR') {
    return new AppError('database-unreachable', `cannot open ${address.label}: ${said}`, {
      hint: `Create it and grant it: CREATE DATABASE ${address.database}; GRANT ALL ON ${address.database}.* TO '${address.user}'`,
    });
  }
  const secured = tlsHint(code, said, address);
  if (secured !== null)
    return new AppError('database-unreachable', `cannot open ${address.label}: ${said} (${code})`, { hint: secured });
  if (classifyDatabaseError(error) === 'denied') {
    return new AppError('database-unreachable', `cannot open ${address.label}: ${said}`, {
      hint: `Check the user and the password in database.url (special characters must be percent-encoded)${address.tls ? '' : ', and whether the user may connect only by TLS (REQUIRE SSL): then append ?ssl=true'}.`,
    });
  }
  if (isLimit(error)) return limitReached(error, address.label);
  return new AppError('database-unreachable', `cannot reach ${address.label}: ${said} (${code})`, {
    hint: 'Check the host and the port in database.url, that the server runs, and that a firewall lets this machine in.',
  });
}

const TRUST =
  'If its certificate authority is a private one, as that of RDS, set NODE_EXTRA_CA_CERTS, in the environment that this program starts in, to a readable file with its certificate (PEM)';

/** What to do about a connection that TLS, or its absence, has prevented; null for any other. */
function tlsHint(code: string, said: string, { host }: MysqlAddress): string | null {
  // Azure has a number of its own for it.
  if (code === 'ER_SECURE_TRANSPORT_REQUIRED' || /SSL connection is required/i.test(said))
    return 'The server accepts only connections by TLS: append ?ssl=true to database.url.';
  if (code === 'HANDSHAKE_NO_SSL_SUPPORT')
    return 'The server has no TLS: set it up there, or take ?ssl=true out of database.url if the network in between is yours.';
  if (code !== 'HANDSHAKE_SSL_ERROR') return null;
  if (/altnames/.test(said))
    return `The certificate is for another server than ${host}: write a name that it has into database.url.`;
  if (/expired|not yet valid/.test(said))
    return 'Renew the certificate of the server, and check the clocks of both machines.';
  if (/self.signed|local issuer|unable to verify/.test(said)) return `${TRUST}.`;
  return `Server and Node must agree on TLS 1.2 or later. ${TRUST}.`;
}

type Done = (error: Error | null, connection: unknown) => void;

/**
 * The preparation in the callback form that knex awaits; an async function would make Node print a warning per
 * connection.
 */
function afterCreate(prepare: (connection: unknown) => Promise<void>): (connection: unknown, done: Done) => void {
  const finish = async (connection: unknown, done: Done): Promise<void> => {
    let fault: Error | null = null;
    try {
      await prepare(connection);
    } catch (error) {
      fault = error instanceof Error ? error : new Error(String(error));
    }
    done(fault, connection);
  };
  return (connection, done) => void finish(connection, done);
}

async function prepareSqlite(raw: unknown): Promise<void> {
  const connection = raw as { pragma(text: string): unknown };
  const settings = [
    `busy_timeout = ${SQLITE_BUSY_MS}`,
    'journal_mode = WAL',
    'synchronous = NORMAL',
    'foreign_keys = ON',
  ];
  for (const setting of settings) connection.pragma(setting);
}

/**
 * Settings for every connection, the product query's too: what the server's defaults or its init_connect may have set.
 */
export const PLAIN_SESSION = [
  'set names utf8mb4',
  `set session time_zone = '+00:00'`,
  'set session sql_select_limit = 18446744073709551615',
];

/**
 * READ COMMITTED: the gap locks of the default level make parallel loads deadlock, and no statement needs them.
 * wait_timeout, in seconds: a main server that freezes or is cut off within a transaction keeps the fence and its rows
 * locked until the server ends its connection, by default after eight hours. The time a statement runs does not count,
 * and our transactions only run statements.
 */
const SESSION = [
  ...PLAIN_SESSION,
  `set session sql_mode = 'STRICT_ALL_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION'`,
  `set session innodb_lock_wait_timeout = 10`,
  `set session wait_timeout = least(@@session.wait_timeout, 30)`,
  `set session transaction isolation level read committed, read write`,
  // With another default, single statements would stay open, or a commit would begin a transaction or end the
  // connection.
  `set session autocommit = 1`,
  `set session completion_type = 'NO_CHAIN'`,
  `set session sql_safe_updates = 0`,
];

async function prepareMysql(connection: unknown, statementMs: number | undefined): Promise<void> {
  const limited = limitStatements(connection, statementMs);
  for (const sql of SESSION) await limited.run(sql);
}
