/** Gives every statement on a mysql2 connection a time limit: a frozen server sends nothing, not even an error. */
import { isReadOnlyServer } from './database-errors.ts';

/** The time limit of most statements, which take milliseconds; a batch of 1,000 rows on a busy server takes seconds. */
const STATEMENT_MS = 30_000;
/** The time limit of the few that touch every row of a run: publish, the staging table, checks of existing tables. */
export const LONG_STATEMENT_MS = 15 * 60_000;

type Callback = (error: Error | null, ...rest: unknown[]) => void;
type Call = (options: string | Record<string, unknown>, values?: unknown, callback?: Callback) => unknown;

interface Mysql2Connection {
  query: Call;
  execute: Call;
  destroy(): void;
}

export interface LimitedConnection {
  run(sql: string): Promise<void>;
}

/**
 * Wraps `query` and `execute`, the two calls that knex and crawlfleet use. A timeout destroys the connection: the
 * answer may still arrive, and the next statement would take it for its own.
 */
export function limitStatements(raw: unknown, limitMs: number = STATEMENT_MS): LimitedConnection {
  const connection = raw as Mysql2Connection;
  connection.query = limited(connection, connection.query.bind(connection), limitMs);
  connection.execute = limited(connection, connection.execute.bind(connection), limitMs);
  return {
    run: (sql) =>
      new Promise((resolve, reject) => {
        connection.query({ sql }, [], (error) => (error ? reject(error) : resolve()));
      }),
  };
}

function limited(connection: Mysql2Connection, call: Call, limitMs: number): Call {
  return (options, values, callback) => {
    const given = typeof options === 'string' ? { sql: options } : options;
    const [bound, done] = typeof values === 'function' ? [undefined, values as Callback] : [values, callback];
    const request = { timeout: limitMs, ...given };
    if (!done) return call(request, bound);
    return call(request, bound, (error, ...rest) => {
      const timedOut = (error as { code?: string } | null)?.code === 'PROTOCOL_SEQUENCE_TIMEOUT';
      // After a failover the name leads to another server, but this connection stays with the old one, now read-only.
      if (timedOut || (error && isReadOnlyServer(error))) connection.destroy();
      done(error, ...rest);
    });
  };
}
