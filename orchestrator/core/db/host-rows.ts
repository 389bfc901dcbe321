/** Rows of crawlfleet_hosts: what is known of each host over all runs of a database. */
import type { Knex } from 'knex';
import type { EpochId } from '../../../shared/domain/epoch-id.ts';
import { REFUSALS } from '../../../shared/wire/callbacks.ts';
import type { HostNote, HostRecord, HostWish, NotedHost } from '../model/stores.ts';
import type { Database } from './connect.ts';
import { withRests } from './host-rests.ts';
import { inQuery } from './retry.ts';
import { inPieces, rowsOf, type SqlNumber, toBoolean, toNumber } from './rows.ts';

const HOSTS = 'crawlfleet_hosts';

/** Rows per statement. */
const LIST = 500;

/** A row of the table. */
export interface HostRow {
  host: string;
  /** Null: it was never granted. */
  run_id: string | null;
  slot: number | null;
  epoch: number | null;
  first_n: number | null;
  last_n: number | null;
  delay_ms: SqlNumber | null;
  not_before: SqlNumber | null;
  refusals: number | null;
  denied: number | null;
  pace_ms: SqlNumber | null;
  wished_at: SqlNumber | null;
}

/** What a grant writes: who has the host, and its products in the chunks granted. */
export type Claim = Pick<HostRow, 'host' | 'refusals'> & { run_id: string; first_n: number; last_n: number } & EpochId;

/** The rows of these hosts, made where there are none, and locked. @param hosts sorted, each once */
export async function lockHosts(trx: Knex.Transaction, hosts: readonly string[]): Promise<Map<string, HostRow>> {
  const found = new Map<string, HostRow>();
  for (const piece of inPieces(hosts, LIST)) {
    const rows = piece.map((host) => ({ host }));
    // Writes nothing to a row that is there, and locks it at once: a shared lock first would let two grants deadlock.
    await trx(HOSTS).insert(rows).onConflict('host').merge(['host']);
    const locked = trx(HOSTS).whereIn('host', piece).orderBy('host').forUpdate();
    for (const row of await rowsOf<HostRow>(locked)) found.set(row.host, row);
  }
  return found;
}

/** The rows of these hosts, which no grant changes until the end of the transaction. */
export async function lockHostsShared(trx: Knex.Transaction, hosts: readonly string[]): Promise<HostRow[]> {
  const found: HostRow[] = [];
  for (const piece of inPieces([...new Set(hosts)].sort(), LIST))
    found.push(...(await rowsOf<HostRow>(trx(HOSTS).whereIn('host', piece).orderBy('host').forShare())));
  return found;
}

/** Writes these claims over those that the locked rows have. */
export async function writeClaims(trx: Knex.Transaction, claims: readonly Claim[]): Promise<void> {
  for (const piece of inPieces(claims, LIST))
    await trx(HOSTS)
      .insert(piece)
      .onConflict('host')
      .merge(['run_id', 'slot', 'epoch', 'first_n', 'last_n', 'refusals']);
}

/** Raises what is known of those of these hosts of which the instance had the last grant. */
export async function raiseNotes(
  trx: Knex.Transaction,
  owner: { run_id: string } & EpochId,
  notes: readonly HostNote[],
): Promise<void> {
  const noted = new Map(notes.map((note) => [note.host, note]));
  for (const piece of inPieces([...noted.keys()].sort(), LIST)) {
    const own = trx(HOSTS).where(owner).whereIn('host', piece).orderBy('host').forUpdate();
    const rows = (await rowsOf<HostRow>(own)).map((row) => {
      const { delayMs = 0, notBeforeMs = 0, refusals = 0 } = noted.get(row.host) ?? {};
      return {
        host: row.host,
        delay_ms: raised(row.delay_ms, delayMs),
        not_before: raised(row.not_before, notBeforeMs),
        // A first one that was followed by a right page is forgotten.
        refusals: row.refusals === REFUSALS.once ? refusals || null : raised(row.refusals, refusals),
      };
    });
    if (rows.length > 0) await trx(HOSTS).insert(rows).onConflict('host').merge(['delay_ms', 'not_before', 'refusals']);
  }
}

const raised = (known: SqlNumber | null, ms: number): number | null =>
  known === null && ms === 0 ? null : Math.max(toNumber(known), ms);

/** Those of these hosts of which something is stored, in the order of their names. */
export async function readNotes(knex: Knex, hosts: readonly string[]): Promise<NotedHost[]> {
  const notes: NotedHost[] = [];
  for (const piece of inPieces([...hosts].sort(), LIST)) {
    const some = knex(HOSTS).whereIn('host', piece).orderBy('host');
    const rows = await withRests(knex, await rowsOf<HostRow>(some));
    notes.push(...rows.filter(isNoted).map(notesOf));
  }
  return notes;
}

const isNoted = ({ delay_ms, not_before, refusals, denied, pace_ms }: HostRow): boolean =>
  [delay_ms, not_before, refusals, denied, pace_ms].some((known) => known !== null);

/** Stores what an operator asks of a host; what is omitted stays. */
export async function setHost(
  db: Database,
  host: string,
  { denied, paceMs }: Partial<Pick<HostWish, 'denied' | 'paceMs'>>,
): Promise<void> {
  const wish = {
    wished_at: db.clock.now(),
    ...(denied === undefined ? {} : { denied: denied === null ? null : Number(denied) }),
    ...(paceMs === undefined ? {} : { pace_ms: paceMs }),
  };
  await inQuery(db, (knex) =>
    knex(HOSTS)
      .insert({ host, ...wish })
      .onConflict('host')
      .merge(Object.keys(wish)),
  );
}

/** What operators have asked since then of hosts that a run had last, the oldest first. */
export async function readWishes(knex: Knex, runId: string, sinceMs: number): Promise<HostWish[]> {
  const rows = knex(HOSTS).where('wished_at', '>=', sinceMs).where({ run_id: runId }).orderBy(['wished_at', 'host']);
  return (await rowsOf<HostRow>(rows)).map((row) => {
    const { host, paceMs, denied } = notesOf(row);
    return { host, paceMs, denied, wishedAtMs: toNumber(row.wished_at) };
  });
}

/** All that is stored of a host; null: nothing is. */
export function readHost(db: Database, host: string): Promise<HostRecord | null> {
  return inQuery(db, async (knex) => {
    const [row] = await withRests(knex, await rowsOf<HostRow>(knex(HOSTS).where({ host })));
    if (row === undefined) return null;
    const { run_id, slot, epoch, first_n, last_n } = row;
    const claim =
      run_id === null || slot === null || epoch === null
        ? null
        : { runId: run_id, slot, epoch, first: toNumber(first_n), last: toNumber(last_n) };
    return { ...notesOf(row), wishedAtMs: orNull(row.wished_at), claim };
  });
}

/**
 * Removes the rows of hosts that no later run needs: they are neither denied nor paced, they do not rest, and no
 * run has had them since `beforeMs`, nor any that is not over. Returns how many.
 */
export async function pruneHosts(
  db: Database,
  { beforeMs, nowMs, signal }: { beforeMs: number; nowMs: number; signal: AbortSignal },
): Promise<number> {
  const unneeded = (knex: Knex): Knex.QueryBuilder => {
    const had = knex('crawlfleet_runs')
      .where({ id: knex.ref(`${HOSTS}.run_id`) })
      .where((since) => void since.whereNull('finished_at').orWhere('finished_at', '>=', beforeMs));
    const before = (column: string, ms: number) => (any: Knex.QueryBuilder) =>
      void any.whereNull(column).orWhere(column, '<', ms);
    return knex(HOSTS)
      .whereNull('denied')
      .whereNull('pace_ms')
      .where(before('not_before', nowMs))
      .where(before('wished_at', beforeMs))
      .whereNotExists(had);
  };
  let removed = 0;
  for (let after: string | undefined = ''; after !== undefined && !signal.aborted;) {
    const from: string = after;
    // Found without a lock, and looked at again under that of these rows alone: runs are granted hosts meanwhile.
    const found = await inQuery(db, (knex) =>
      rowsOf<{ host: string }>(unneeded(knex).where('host', '>', from).orderBy('host').limit(LIST).select('host')),
    );
    const hosts = found.map(({ host }) => host);
    if (hosts.length > 0) removed += await inQuery(db, (knex) => unneeded(knex).whereIn('host', hosts).delete());
    after = hosts.length < LIST ? undefined : hosts.at(-1);
  }
  return removed;
}

const orNull = (value: SqlNumber | null): number | null => (value === null ? null : toNumber(value));

function notesOf({ host, delay_ms, not_before, refusals, pace_ms, denied }: HostRow): NotedHost {
  return {
    host,
    delayMs: orNull(delay_ms),
    notBeforeMs: orNull(not_before),
    refusals,
    paceMs: orNull(pace_ms),
    denied: denied === null ? null : toBoolean(denied),
  };
}
