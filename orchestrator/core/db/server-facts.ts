/** What a database server reports about itself, for the check before a run. */
import type { Database } from './connect.ts';
import { inQuery } from './retry.ts';
import { mysqlRow, rowsOf, type SqlNumber } from './rows.ts';

export interface ServerFacts {
  /** `MariaDB 10.11.6`, `MySQL 8.0.36`, `SQLite 3.50.0`. */
  version: string;
  /** The server's time zone; null where there is no server. */
  timeZone: string | null;
  /** How far its clock is ahead of ours, in milliseconds; null where both are the same clock. */
  skewMs: number | null;
}

/** Throws the AppError of a failed statement. */
export async function readServerFacts(db: Database): Promise<ServerFacts> {
  if (db.engine === 'sqlite') {
    const [row] = await inQuery(db, (knex) =>
      rowsOf<{ version: string }>(knex.raw('select sqlite_version() as version')),
    );
    return { version: `SQLite ${row?.version ?? ''}`, timeZone: null, skewMs: null };
  }
  const askedMs = db.clock.now();
  const row = await inQuery(db, (knex) =>
    mysqlRow<{ version: string; zone: string; machine_zone: string; now_s: SqlNumber }>(
      knex.raw(
        'select version() as version, @@global.time_zone as zone, @@system_time_zone as machine_zone, unix_timestamp(now(3)) as now_s',
      ),
    ),
  );
  const { version, zone, machine_zone: machineZone, now_s: nowS } = row;
  // The server read its clock at some time between the two.
  const middleMs = (askedMs + db.clock.now()) / 2;
  return {
    version: /mariadb/i.test(version) ? `MariaDB ${version.split('-')[0]}` : `MySQL ${version}`,
    timeZone: zone === 'SYSTEM' ? machineZone : zone,
    skewMs: Number(nowS) * 1_000 - middleMs,
  };
}
