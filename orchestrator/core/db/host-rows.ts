/** Rows of crawlfleet_hosts: what is known of each host over all runs of a database. */
import type { Knex } from 'knex';
import type { EpochId } from '../../../shared/domain/epoch-id.ts';
import { hostGroupOf, type HostKey } from '../../../shared/domain/host-key.ts';
import { REFUSALS } from '../../../shared/wire/callbacks.ts';
import type { HostNote, HostRecord, HostWish, NotedHost } from '../model/stores.ts';
import type { Database } from './connect.ts';
import { withRests } from './host-rests.ts';
import { inQuery, inTransaction } from './retry.ts';
import { inPieces, rowsOf, type SqlNumber, toBoolean, toNumber } from './rows.ts';

const HOSTS = 'crawlfleet_hosts';

/** Rows per statement. */
const LIST = 500;

/** A row of the table. */
export interface HostRow {
  host: string;
  /** Its registrable domain; null: no run with `site.host_key: host` had a name there. */
  domain: string | null;
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

/**
 * The rows of these hosts, made where there are none, and locked. With names as keys (`host`) also those of their
 * domains: a grant of a domain and one of a name in it wait for each other there.
 */
export async function lockHosts(
  trx: Knex.Transaction,
  hosts: ReadonlySet<string>,
  key?: HostKey,
): Promise<Map<string, HostRow>> {
  const isByName = key === 'host';
  const asked = isByName ? new Set([...hosts, ...[...hosts].map(domainOfHost)]) : hosts;
  const found = new Map<string, HostRow>();
  for (const piece of inPieces([...asked].sort(), LIST)) {
    const rows = piece.map((host) => (isByName ? { host, domain: domainOfHost(host) } : { host }));
    // Locks a row that is there at once: a shared lock first would let two grants deadlock.
    await trx(HOSTS)
      .insert(rows)
      .onConflict('host')
      .merge(isByName ? ['domain'] : ['host']);
    const locked = trx(HOSTS).whereIn('host', piece).orderBy('host').forUpdate();
    for (const row of await rowsOf<HostRow>(locked)) found.set(row.host, row);
  }
  if (isByName) for (const row of found.values()) found.set(row.host, withWish(row, found.get(row.domain ?? '')));
  return found;
}

/** The registrable domain of a host, whatever key it is of. */
const domainOfHost = (hostname: string): string => hostGroupOf({ hostname });

/** A name with what an operator asks of all its domain. */
function withWish<T extends Pick<HostRow, 'denied' | 'pace_ms'>>(
  row: T,
  domain: Pick<HostRow, 'denied' | 'pace_ms'> | undefined,
): T {
  return domain === undefined ? row : { ...row, denied: domain.denied, pace_ms: domain.pace_ms };
}

/** True for a row of a name whose domain has a row of its own. */
const isName = ({ host, domain }: Pick<HostRow, 'host' | 'domain'>): boolean => domain !== null && domain !== host;

/** The rows of names that runs with `site.host_key: host` have, or had, in those of these hosts that are domains. */
export async function namesIn(knex: Knex, rows: readonly HostRow[]): Promise<HostRow[]> {
  const domains = new Map(rows.flatMap((row) => (row.domain === row.host ? [[row.host, row]] : [])));
  const found: HostRow[] = [];
  for (const piece of inPieces([...domains.keys()], LIST)) {
    const names = await rowsOf<HostRow>(knex(HOSTS).whereIn('domain', piece).orderBy('host'));
    for (const row of names) if (isName(row)) found.push(withWish(row, domains.get(row.domain!)));
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

/**
 * Those of these hosts of which something is stored, in the order of their names. With names as keys an operator asks
 * it of their domains.
 */
export async function readNotes(knex: Knex, hosts: readonly string[], key?: HostKey): Promise<NotedHost[]> {
  const notes: NotedHost[] = [];
  const wishes = key === 'host' ? await readDomains(knex, hosts) : null;
  for (const piece of inPieces([...hosts].sort(), LIST)) {
    const some = knex(HOSTS).whereIn('host', piece).orderBy('host');
    const rows = await withRests(knex, await rowsOf<HostRow>(some));
    if (wishes === null) {
      notes.push(...rows.filter(isNoted).map(notesOf));
      continue;
    }
    const stored = new Map(rows.map((row) => [row.host, row]));
    const own = piece.map((host) => withWish(stored.get(host) ?? { ...NOTHING, host }, wishes.get(domainOfHost(host))));
    notes.push(...own.filter(isNoted).map(notesOf));
  }
  return notes;
}

/** The rows of the domains of these hosts. */
async function readDomains(knex: Knex, hosts: readonly string[]): Promise<Map<string, HostRow>> {
  const found = new Map<string, HostRow>();
  for (const piece of inPieces([...new Set(hosts.map(domainOfHost))], LIST))
    for (const row of await rowsOf<HostRow>(knex(HOSTS).whereIn('host', piece))) found.set(row.host, row);
  return found;
}

type Noted = Pick<HostRow, 'host' | 'delay_ms' | 'not_before' | 'refusals' | 'denied' | 'pace_ms'>;

const NOTHING: Omit<Noted, 'host'> = {
  delay_ms: null,
  not_before: null,
  refusals: null,
  denied: null,
  pace_ms: null,
};

const isNoted = ({ delay_ms, not_before, refusals, denied, pace_ms }: Noted): boolean =>
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
export async function readWishes(
  knex: Knex,
  { runId, sinceMs, key }: { runId: string; sinceMs: number; key?: HostKey | undefined },
): Promise<HostWish[]> {
  const wished = knex(HOSTS).where('wished_at', '>=', sinceMs).orderBy(['wished_at', 'host']);
  const rows = await rowsOf<HostRow>(key === 'host' ? wished : wished.where({ run_id: runId }));
  const names = key === 'host' ? await namesIn(knex, rows) : [];
  const domains = new Map(rows.map((row) => [row.host, row]));
  const own = [...rows, ...names.map((row) => ({ ...row, wished_at: domains.get(row.domain!)!.wished_at }))];
  const wishes = own
    .filter(({ run_id }) => run_id === runId)
    .map((row): HostWish => {
      const { host, paceMs, denied } = notesOf(row);
      return { host, paceMs, denied, wishedAtMs: toNumber(row.wished_at) };
    });
  return wishes.sort((a, b) => a.wishedAtMs - b.wishedAtMs);
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

/** The names in a domain that are hosts of runs, each with the run that had it last. */
export function readNames(db: Database, domain: string): Promise<{ host: string; runId: string | null }[]> {
  return inQuery(db, async (knex) => {
    const names = await namesIn(knex, await rowsOf<HostRow>(knex(HOSTS).where({ host: domain })));
    return names.map(({ host, run_id: runId }) => ({ host, runId }));
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
    if (hosts.length > 0)
      removed += await inTransaction(db, (trx) => remove(trx, unneeded(trx).whereIn('host', hosts)));
    after = hosts.length < LIST ? undefined : hosts.at(-1);
  }
  return removed;
}

/** A domain stays as long as a name in it, which no run would find. A grant of a name waits for its row. */
async function remove(trx: Knex.Transaction, unneeded: Knex.QueryBuilder): Promise<number> {
  const rows = await rowsOf<HostRow>(unneeded.orderBy('host').forUpdate());
  const needed = new Set((await namesIn(trx, rows)).map(({ domain }) => domain));
  const hosts = rows.map(({ host }) => host).filter((host) => !needed.has(host));
  return trx(HOSTS).whereIn('host', hosts).delete();
}

const orNull = (value: SqlNumber | null): number | null => (value === null ? null : toNumber(value));

function notesOf({ host, delay_ms, not_before, refusals, pace_ms, denied }: Noted): NotedHost {
  return {
    host,
    delayMs: orNull(delay_ms),
    notBeforeMs: orNull(not_before),
    refusals,
    paceMs: orNull(pace_ms),
    denied: denied === null ? null : toBoolean(denied),
  };
}
