/**
 * A named lock of the database server (`GET_LOCK`) on its own connection, outside the pool: the server frees it as soon
 * as the holder's connection is gone, whatever any clock shows. It complements the lease and never replaces it
 * (docs/decisions/0008-locks.md).
 */
import { createHash } from 'node:crypto';
import { AppError } from '../../../shared/domain/errors.ts';
import type { ConnectionLock } from '../model/stores.ts';
import type { Database } from './connect.ts';
import { classifyDatabaseError, databaseCode, databaseMessage, toAppError } from './database-errors.ts';
import { limitStatements } from './statement-timeout.ts';

/** Time limit: the server answers all of these queries from memory. */
const STATEMENT_MS = 10_000;
/** Time limit from the KILL of a connection to the release of its lock. */
const RELEASE_WAIT_S = 5;

interface RawConnection {
  query(options: { sql: string; values: unknown[] }, done: (error: Error | null, rows: unknown) => void): void;
  destroy(): void;
}

type Row = Record<string, string | number | null>;

export class MysqlConnectionLock implements ConnectionLock {
  readonly #db: Database;
  readonly #names: readonly string[];
  #connection: RawConnection | null = null;

  /** Makes no connection yet. */
  constructor(db: Database, names: readonly string[]) {
    this.#db = db;
    // In one order, or two main servers could each hold a name that the other waits for.
    this.#names = [...new Set(names)].sort().map((name) => lockName(db.schema ?? '', name));
  }

  async acquire(): Promise<'ours' | 'others'> {
    // A connection that died while idle fails only when used: retry once on a new one.
    if (this.#connection !== null) {
      const held = await this.#acquireOnce(0).catch((error: unknown) => {
        if (classifyDatabaseError(error) !== 'lost') throw toAppError(error, this.#db.label);
        return null;
      });
      if (held !== null) return held;
    }
    return this.#reported(() => this.#acquireOnce(0));
  }

  async evict(): Promise<'ours' | 'others'> {
    return this.#reported(async () => {
      for (const name of this.#names) {
        const { id, own } = await this.#ask('select is_used_lock(?) as id, connection_id() as own', [name]);
        if (id != null && id !== own) await this.#kill(Number(id));
      }
      return this.#acquireOnce(RELEASE_WAIT_S);
    });
  }

  async release(): Promise<void> {
    // The server releases a connection's locks when it ends; waiting for a clean disconnect would gain nothing.
    for (const name of this.#names) await this.#ask('select release_lock(?)', [name]).catch(() => undefined);
    this.#drop();
  }

  async #acquireOnce(waitS: number): Promise<'ours' | 'others'> {
    for (const name of this.#names) {
      // Checked first: MySQL counts how often a session takes a lock and requires as many releases.
      const { ours } = await this.#ask('select is_used_lock(?) = connection_id() as ours', [name]);
      if (Number(ours) === 1) continue;
      const { got } = await takingLock(this.#db.label, () => this.#ask('select get_lock(?, ?) as got', [name, waitS]));
      if (Number(got) !== 1) return 'others';
    }
    return 'ours';
  }

  async #kill(id: number): Promise<void> {
    try {
      await this.#ask(`kill connection ${Math.trunc(id)}`, []);
    } catch (error) {
      const code = databaseCode(error);
      // The connection ended on its own in between.
      if (code === 'ER_NO_SUCH_THREAD') return;
      if (code !== 'ER_KILL_DENIED_ERROR') throw error;
      throw new AppError(
        'lock-held',
        `${this.#db.label}: connection ${id} of another database user holds the lock of this crawl and does not answer`,
        { hint: `End that main server, or as administrator: KILL ${id}` },
      );
    }
  }

  async #reported<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      throw toAppError(error, this.#db.label);
    }
  }

  async #ask(sql: string, values: unknown[]): Promise<Row> {
    const connection = (this.#connection ??= await this.#open());
    return new Promise((resolve, reject) => {
      connection.query({ sql, values }, (error, rows) => {
        if (error === null) return resolve((rows as Row[])[0] ?? {});
        if (classifyDatabaseError(error) === 'lost') this.#drop();
        reject(error);
      });
    });
  }

  async #open(): Promise<RawConnection> {
    const raw: unknown = await this.#db.knex.client.acquireRawConnection();
    limitStatements(raw, STATEMENT_MS);
    return raw as RawConnection;
  }

  #drop(): void {
    this.#connection?.destroy();
    this.#connection = null;
  }
}

/** Throws `database-schema` for a server that refuses named locks, and every other error as it is. */
export async function takingLock<T>(label: string, getLock: () => Promise<T>): Promise<T> {
  try {
    return await getLock();
  } catch (error) {
    if (classifyDatabaseError(error) !== 'other') throw error;
    throw new AppError('database-schema', `${label} refuses GET_LOCK, which a run needs: ${databaseMessage(error)}`, {
      hint: 'Use a server that is no node of a cluster; or, in a Percona XtraDB Cluster whose writes all go to this node, set pxc_strict_mode to MASTER.',
    });
  }
}

/** The server's name of a lock: all schemas share one namespace, and names have at most 64 characters. */
export function lockName(schema: string, of: string): string {
  const name = `crawlfleet ${schema} ${of}`;
  return name.length <= 64 ? name : `crawlfleet ${createHash('sha256').update(name).digest('hex').slice(0, 40)}`;
}
