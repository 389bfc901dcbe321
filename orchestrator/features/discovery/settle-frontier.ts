/**
 * What comes between two discoveries: what became of the URLs that runs have taken, and what the next one begins with.
 */
import type { Knex } from 'knex';
import { type FailureReason, NOT_CRAWLED, type Outcome } from '../../../shared/domain/outcome.ts';
import { OPEN_RUN_PHASES } from '../../../shared/domain/states.ts';
import type { DiscoverSettings } from '../../core/model/discovery.ts';
import { BloomSeen } from './seen-urls.ts';
import { bulkInsert } from '../../core/db/bulk-insert.ts';
import { ITEMS } from '../../core/db/chunk-rows.ts';
import type { Database } from '../../core/db/connect.ts';
import { countWaiting, type FrontierRow, frontierTable, notesTable, readSeen, scoresTable } from './frontier.ts';
import { inQuery, inTransaction } from '../../core/db/retry.ts';
import { countOf, inPieces, rowOf, rowsOf, type SqlNumber, toNumber } from '../../core/db/rows.ts';
import { LONG_STATEMENT_MS } from '../../core/db/statement-timeout.ts';
import { hashOf } from '../../core/db/key-hash.ts';

const PAGE = 5_000;
const LIST = 500;
/** How often a URL may fail before it is left alone. */
const MAX_TRIES = 3;
/** Known URLs from which on `seen: auto` is a Bloom filter: 12.5 MB instead of a gigabyte. */
const EXACT = 10_000_000;

/** Ended runs have settled what they took: crawled URLs are done, others wait again. Returns how many wait. */
export async function settleFrontier(
  db: Database,
  resultTable: string,
  seen: DiscoverSettings['seen'],
): Promise<number> {
  while (await settlePage(db, resultTable));
  await foldSeen(db, resultTable, seen);
  return inQuery(db, (knex) => countWaiting(knex, resultTable));
}

type Taken = Pick<FrontierRow, 'hash' | 'tries'> & {
  outcome: Outcome | null;
  reason: FailureReason | null;
  request: string | null;
};

/** False when nothing is left. A run of which nothing is known any more has crawled what it took. */
async function settlePage(db: Database, resultTable: string): Promise<boolean> {
  const table = frontierTable(resultTable);
  return inTransaction(db, async (trx) => {
    const taken = await rowsOf<Taken>(
      trx(`${table} as f`)
        .leftJoin('crawlfleet_runs as r', 'r.id', 'f.run_id')
        .leftJoin(`${ITEMS} as i`, (on) => void on.on('i.run_id', 'f.run_id').andOn('i.n', 'f.n'))
        .where('f.state', 'taken')
        .where((any) => void any.whereNull('r.id').orWhereNotIn('r.phase', OPEN_RUN_PHASES))
        .limit(PAGE)
        .select('f.hash', 'f.tries', 'i.outcome', 'i.reason', 'r.request')
        .options({ timeout: LONG_STATEMENT_MS }),
    );
    for (const [next, rows] of Map.groupBy(taken, nextState)) {
      const [state, tries] = next.split(' ');
      const hashes = rows.map(({ hash }) => hash);
      for (const piece of inPieces(hashes, LIST))
        await trx(table)
          .whereIn('hash', piece)
          .update({ state, tries: Number(tries) });
    }
    return taken.length === PAGE;
  });
}

function nextState({ tries, outcome, reason, request }: Taken): string {
  // Cancelling has thrown away what it stored.
  if (request === 'cancel') return `waiting ${tries}`;
  if (outcome !== 'failed' || reason === null) return `done ${tries}`;
  if (reason !== 'robots' && NOT_CRAWLED.includes(reason)) return `waiting ${tries}`;
  return tries + 1 < MAX_TRIES ? `waiting ${tries + 1}` : `done ${tries + 1}`;
}

/** Nothing waits: the pages that have no product are gone through again, to find what is new since. */
export async function beginRound(db: Database, resultTable: string): Promise<void> {
  await inTransaction(db, (trx) =>
    trx(frontierTable(resultTable))
      .where({ state: 'done' })
      .whereNull('id')
      .delete()
      .options({ timeout: LONG_STATEMENT_MS }),
  );
}

/** Replaces the deny list. */
export async function storeDenyList(db: Database, resultTable: string, lines: readonly string[]): Promise<void> {
  await inTransaction(db, async (trx) => {
    await trx(notesTable(resultTable)).where({ name: 'deny list' }).delete();
    if (lines.length > 0) await trx(notesTable(resultTable)).insert({ name: 'deny list', value: lines.join('\n') });
  });
}

/** Replaces the scores, and puts what waits into the order that the settings ask for. */
export async function storeScores(
  db: Database,
  resultTable: string,
  scores: ReadonlyMap<string, number> | null,
): Promise<void> {
  const table = scoresTable(resultTable);
  await inTransaction(db, async (trx) => {
    const waiting = trx(frontierTable(resultTable)).where({ state: 'waiting' });
    if (scores === null) {
      await waiting.update({ place: trx.ref('depth') }).options({ timeout: LONG_STATEMENT_MS });
      return;
    }
    await trx(table).delete().options({ timeout: LONG_STATEMENT_MS });
    const rows = [...scores].map(([key, score]) => [hashOf(key).toString('base64url'), score]);
    await bulkInsert(trx, db, { table, columns: ['hash', 'score'], existing: 'keep' }, rows);
    const own = trx(`${table} as s`)
      .whereRaw('s.hash = ??', [`${frontierTable(resultTable)}.hash`])
      .select('s.score');
    await waiting.update({ place: trx.raw('-coalesce(?, 0)', [own]) }).options({ timeout: LONG_STATEMENT_MS });
  });
}

/** The best of what waits. */
export function bestWaiting(db: Database, resultTable: string, limit: number): Promise<string[]> {
  return inQuery(db, (knex) =>
    knex(frontierTable(resultTable))
      .where({ state: 'waiting' })
      .orderBy(['place', 'found_at', 'hash'])
      .limit(limit)
      .pluck<string[]>('path'),
  );
}

/** How many URLs the last discovery into this table took; null before the first. */
export function lastTaken(db: Database, resultTable: string): Promise<number | null> {
  return inQuery(db, async (knex) => {
    const row = await rowOf<{ planned: SqlNumber }>(
      knex('crawlfleet_runs')
        .where({ results_table: resultTable })
        .whereNotNull('discovery')
        .orderBy('started_at', 'desc')
        .first('planned'),
    );
    return row === undefined ? null : toNumber(row.planned);
  });
}

/** Moves the products that are done into the Bloom filter, where the settings ask for one. */
async function foldSeen(db: Database, resultTable: string, seen: DiscoverSettings['seen']): Promise<void> {
  if (seen === 'exact') return;
  const table = frontierTable(resultTable);
  const done = (knex: Knex): Knex.QueryBuilder => knex(table).where({ state: 'done' }).whereNotNull('id');
  await inTransaction(db, async (trx) => {
    const earlier = await readSeen(trx, resultTable);
    const count = await countOf(done(trx));
    if (count === 0 || (seen === 'auto' && earlier === null && count < EXACT)) return;
    const bloom = earlier ?? new BloomSeen(Math.max(EXACT, count));
    for (let after = ''; ;) {
      const page = done(trx).where('hash', '>', after).orderBy('hash').limit(PAGE).select('hash');
      const rows = await rowsOf<{ hash: string }>(page);
      for (const { hash } of rows) bloom.add(Buffer.from(hash, 'base64url'));
      const last = rows.at(-1);
      if (last === undefined || rows.length < PAGE) break;
      after = last.hash;
    }
    await done(trx).delete().options({ timeout: LONG_STATEMENT_MS });
    await storeSeen(trx, resultTable, bloom);
  });
}

async function storeSeen(trx: Knex.Transaction, resultTable: string, bloom: BloomSeen): Promise<void> {
  const notes = notesTable(resultTable);
  const pages = [...bloom.pages()];
  await trx(notes).where('name', 'like', 'seen %').delete();
  const head = { capacity: bloom.capacity, count: bloom.count, pages: pages.length };
  await trx(notes).insert({ name: 'seen head', value: JSON.stringify(head) });
  for (const [i, page] of pages.entries())
    await trx(notes).insert({ name: `seen ${i}`, value: Buffer.from(page).toString('base64') });
}
