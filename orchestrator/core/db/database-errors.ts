/** The only file that contains error codes of MySQL, MariaDB and SQLite. */
import { AppError, type ErrorCode } from '../../../shared/domain/errors.ts';

/**
 * - `unwilling`: the server answers but accepts no writes for now: it is read-only (a failover), or its disk is full
 * - `conflict`: another transaction interfered; this one is rolled back and may be retried
 * - `lost`: no connection, no answer on it, or a limit refuses it; whether it committed is unknown
 * - `data`: the statement's values do not fit the columns
 * - `denied`: a permission is missing
 * - `other`
 */
export type DatabaseFault = 'unwilling' | 'conflict' | 'lost' | 'data' | 'denied' | 'other';

/** A limit of the server or of the user: on connections, on statements per hour, on prepared statements. */
const LIMITS = [
  'ER_CON_COUNT_ERROR',
  'ER_TOO_MANY_USER_CONNECTIONS',
  'ER_USER_LIMIT_REACHED',
  'ER_MAX_PREPARED_STMT_COUNT_REACHED',
];

/** Codes that mean the fault wherever they occur. */
const CODES: Record<Exclude<DatabaseFault, 'other'>, string> = {
  unwilling: `
    ER_READ_ONLY_MODE ER_INNODB_READ_ONLY ER_DISK_FULL ER_RECORD_FILE_FULL ER_ERROR_ON_WRITE
    ER_TEMP_FILE_WRITE_FAILURE SQLITE_FULL`,
  // With ER_NEED_REPREPARE and ER_RECORD_HAS_CHANGED, MariaDB 11 and MySQL demand that the transaction restarts, or the
  // statement is prepared again.
  conflict: `
    ER_LOCK_DEADLOCK ER_LOCK_WAIT_TIMEOUT ER_CHECKREAD ER_NEED_REPREPARE ER_RECORD_HAS_CHANGED SQLITE_BUSY
    SQLITE_BUSY_SNAPSHOT SQLITE_BUSY_RECOVERY SQLITE_LOCKED`,
  lost: `
    PROTOCOL_CONNECTION_LOST PROTOCOL_SEQUENCE_TIMEOUT PROTOCOL_PACKETS_OUT_OF_ORDER ECONNRESET ECONNREFUSED
    ECONNABORTED EPIPE ETIMEDOUT EHOSTUNREACH ENETUNREACH ENOTFOUND EAI_AGAIN ER_SERVER_SHUTDOWN
    ER_CONNECTION_KILLED ER_QUERY_INTERRUPTED ER_CLIENT_INTERACTION_TIMEOUT ${LIMITS.join(' ')}`,
  denied: `
    ER_ACCESS_DENIED_ERROR ER_ACCESS_DENIED_NO_PASSWORD_ERROR ER_DBACCESS_DENIED_ERROR ER_TABLEACCESS_DENIED_ERROR
    ER_COLUMNACCESS_DENIED_ERROR ER_SPECIFIC_ACCESS_DENIED_ERROR ER_OPTION_PREVENTS_STATEMENT SQLITE_READONLY
    SQLITE_PERM SQLITE_AUTH`,
  data: `
    ER_DATA_TOO_LONG ER_WARN_DATA_OUT_OF_RANGE ER_TRUNCATED_WRONG_VALUE ER_TRUNCATED_WRONG_VALUE_FOR_FIELD
    ER_INVALID_JSON_TEXT ER_INVALID_JSON_TEXT_IN_PARAM ER_INVALID_CHARACTER_STRING ER_CANNOT_CONVERT_STRING
    ER_BAD_NULL_ERROR ER_CHECK_CONSTRAINT_VIOLATED ER_CONSTRAINT_FAILED ER_NET_PACKET_TOO_LARGE WARN_DATA_TRUNCATED
    SQLITE_TOOBIG SQLITE_MISMATCH SQLITE_CONSTRAINT_NOTNULL SQLITE_CONSTRAINT_CHECK SQLITE_CONSTRAINT_DATATYPE`,
};

const FAULTS = new Map<string, DatabaseFault>();
for (const fault of Object.keys(CODES) as (keyof typeof CODES)[])
  for (const [code] of CODES[fault].matchAll(/\w+/g)) FAULTS.set(code, fault);

interface DriverError {
  code?: unknown;
  errno?: unknown;
  sqlState?: unknown;
  sqlMessage?: unknown;
  message?: unknown;
}

/** MariaDB's own error numbers, which mysql2 does not name. */
const NUMBERS: Record<number, string> = {
  4025: 'ER_CONSTRAINT_FAILED',
  1020: 'ER_CHECKREAD',
  1927: 'ER_CONNECTION_KILLED',
};

/** The driver's code, such as `ER_DATA_TOO_LONG`, `SQLITE_BUSY` or `ECONNRESET`; `unknown` when it has none. */
export function databaseCode(error: unknown): string {
  if (typeof error !== 'object' || error === null) return 'unknown';
  const { code, errno } = error as DriverError;
  if (typeof errno === 'number' && NUMBERS[errno]) return NUMBERS[errno];
  return typeof code === 'string' ? code : 'unknown';
}

export function classifyDatabaseError(error: unknown): DatabaseFault {
  const code = databaseCode(error);
  if (isReadOnlyServer(error, code) || isNoSpace(error, code)) return 'unwilling';
  const known = FAULTS.get(code);
  if (known !== undefined) return known;
  if (code.startsWith('SQLITE_READONLY')) return 'denied';
  // SQLSTATE class 22 is "data exception" in every SQL database.
  const { sqlState } = (error ?? {}) as DriverError;
  if (typeof sqlState === 'string' && sqlState.startsWith('22')) return 'data';
  // knex and mysql2 set no code when a pooled connection turns out to be dead.
  const text = error instanceof Error ? error.message : '';
  if (/closed state|Connection lost|Timeout acquiring a connection|connection ended/i.test(text)) return 'lost';
  return 'other';
}

/** The same code covers other server options, which waiting does not change. */
export function isReadOnlyServer(error: unknown, code = databaseCode(error)): boolean {
  return code === 'ER_OPTION_PREVENTS_STATEMENT' && /read[-_]only/i.test(databaseMessage(error));
}

export const isLimit = (error: unknown): boolean => LIMITS.includes(databaseCode(error));

export function limitReached(error: unknown, label: string): AppError {
  const said = `${databaseMessage(error)} (${databaseCode(error)})`;
  return new AppError('database-unreachable', `${label} accepts no more connections or statements: ${said}`, {
    hint: 'Raise the limit (of all connections: max_connections), or end other programs that use it up; a main server makes use of ten connections.',
  });
}

/** The storage engine passes on the error number of the operating system: ENOSPC. */
function isNoSpace(error: unknown, code: string): boolean {
  return (code === 'ER_GET_ERRNO' || code === 'ER_CANT_CREATE_TABLE') && /\b28\b/.test(databaseMessage(error));
}

/** The database's message without the statement: knex prepends the whole SQL. */
export function databaseMessage(error: unknown): string {
  if (typeof error !== 'object' || error === null) return String(error);
  const { sqlMessage, message } = error as DriverError;
  if (typeof sqlMessage === 'string') return sqlMessage;
  const text = typeof message === 'string' && message !== '' ? message : databaseCode(error);
  return text.slice(text.lastIndexOf(' - ') < 0 ? 0 : text.lastIndexOf(' - ') + 3);
}

/**
 * The error shown to users. It does not keep the driver's error as its cause: that contains the statement with its
 * values, including keys and tokens, and causes end up in logs.
 */
export function toAppError(error: unknown, label: string): AppError {
  if (error instanceof AppError) return error;
  if (isLimit(error)) return limitReached(error, label);
  const [code, what, hint] = SHOWN[classifyDatabaseError(error)];
  return new AppError(code, `${label}: ${what}: ${databaseMessage(error)} (${databaseCode(error)})`, { hint });
}

const OWN_WORDS: [ErrorCode, string, string] = [
  'database-failed',
  'a statement failed',
  'The message is the database’s own.',
];

const SHOWN: Record<DatabaseFault, [code: ErrorCode, what: string, hint: string]> = {
  unwilling: [
    'database-failed',
    'it accepts no writes',
    'Make the server writable or free disk space; continue a started run with: orchestrator resume',
  ],
  conflict: ['database-busy', 'it stayed locked', 'Look for another program with a long transaction.'],
  lost: ['database-unreachable', 'it does not answer', 'Check that the database runs, then: orchestrator resume'],
  denied: ['database-rights', 'a right is missing', 'Grant the database user the right that is named.'],
  data: OWN_WORDS,
  other: OWN_WORDS,
};
