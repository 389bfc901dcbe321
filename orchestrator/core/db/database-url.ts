/** Reads database.url: `mysql://user:password@host:port/name` (also mariadb://) or `sqlite:./file`. */
import { resolve } from 'node:path';
import { AppError } from '../../../shared/domain/errors.ts';

export interface MysqlAddress {
  engine: 'mysql';
  host: string;
  port: number;
  user: string;
  password: string;
  database: string;
  /** `?ssl=true`: TLS with a certificate that is checked, and that names the host. */
  tls: boolean;
  /** The database's name for messages; contains no password. */
  label: string;
}

export interface SqliteAddress {
  engine: 'sqlite';
  /** Absolute. */
  file: string;
  label: string;
}

export type DatabaseAddress = MysqlAddress | SqliteAddress;

const FORMS = 'Write mysql://user:password@host:3306/name or sqlite:./fleet.db';

/** A relative SQLite path counts from the working directory. Throws `config-invalid`. */
export function parseDatabaseUrl(url: string): DatabaseAddress {
  const scheme = /^([a-z0-9+]+):/i.exec(url)?.[1]?.toLowerCase();
  if (scheme === 'sqlite') return parseSqlite(url);
  if (scheme === 'mysql' || scheme === 'mariadb') return parseMysql(url);
  throw invalid(scheme ? `has the scheme ${scheme}:, which is not a supported database` : 'has no scheme');
}

function parseSqlite(url: string): SqliteAddress {
  const path = url.slice('sqlite:'.length).replace(/^\/\/(?=\/)/, '');
  if (path === '' || path.startsWith(':memory:'))
    throw invalid('must name a file: a run has to outlive the process, memory does not');
  return { engine: 'sqlite', file: resolve(path), label: `sqlite:${path}` };
}

function parseMysql(url: string): MysqlAddress {
  let parsed: URL;
  try {
    parsed = new URL(url);
  } catch {
    throw invalid('is not a URL (a password with special characters must be percent-encoded)');
  }
  const host = parsed.hostname.replace(/^\[|\]$/g, '');
  const database = decode(parsed.pathname.replace(/^\//, ''));
  const user = decode(parsed.username);
  if (host === '') throw invalid('names no host');
  if (user === '') throw invalid('names no user');
  if (database === '' || database.includes('/')) throw invalid('names no database after the host');
  for (const [name, value] of parsed.searchParams) {
    if (name !== 'ssl' || (value !== 'true' && value !== 'false'))
      throw invalid(`has the parameter ${name}; only ssl=true and ssl=false are known`);
  }
  const port = parsed.port === '' ? 3306 : Number(parsed.port);
  return {
    engine: 'mysql',
    host,
    port,
    user,
    password: decode(parsed.password),
    database,
    tls: parsed.searchParams.get('ssl') === 'true',
    label: `database ${database} at ${parsed.hostname}:${port} as user ${user}`,
  };
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw invalid('has a % that does not begin a percent-encoding; a percent sign itself is written %25');
  }
}

function invalid(what: string): AppError {
  return new AppError('config-invalid', `database.url ${what}`, { hint: FORMS });
}
