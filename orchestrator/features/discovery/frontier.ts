/**
 * The frontier of a discovery: every URL that was found and not forgotten, in tables beside the result table. A waiting
 * URL becomes a product of the run when it is taken; only then does it count as seen. docs/decisions/0029-discovery.md.
 */
import type { Knex } from 'knex';
import { MAX_ID_CHARS } from '../../../shared/domain/product.ts';
import type { DiscoverSettings } from '../../core/model/discovery.ts';
import type { Candidate } from './link-rules.ts';
import { BloomSeen } from './seen-urls.ts';
import { bulkInsert, type ColumnList, type SqlValue } from '../../core/db/bulk-insert.ts';
import { byteText } from '../../core/db/column-types.ts';
import type { Database } from '../../core/db/connect.ts';
import { inQuery } from '../../core/db/retry.ts';
import { countOf, inPieces, rowsOf, type SqlNumber } from '../../core/db/rows.ts';
import { LONG_STATEMENT_MS } from '../../core/db/statement-timeout.ts';
import { createTable } from '../../core/db/table-statements.ts';
import { hashOf } from '../../core/db/key-hash.ts';

const HASH_CHARS = 22;
/** Rows in one statement. */
const LIST = 500;

export const frontierTable = (resultTable: string): string => `${resultTable}_frontier`;
/** What a discovery remembers beside its URLs, by name: the deny list, patterns of traps, the Bloom filter. */
export const notesTable = (resultTable: string): string => `${resultTable}_discovery`;
export const scoresTable = (resultTable: string): string => `${resultTable}_scores`;

/** Creates the tables unless they exist. */
export async function createFrontier(db: Database, resultTable: string): Promise<void> {
  const hash = byteText(db, HASH_CHARS);
  const long = byteText(db, MAX_ID_CHARS);
  const urls = `hash ${hash} not null primary key, path ${long} not null, id ${long}, depth integer not null,
    place double not null, state varchar(8) not null, tries integer not null, parent ${hash}, found_at bigint not null,
    found_run varchar(64), run_id varchar(64), n integer, modified_at bigint`;
  const indexes = { place: 'state, place, found_at', taken: 'run_id, n', id: 'id' };
  const notes = [`name ${byteText(db, 700)} not null primary key`, 'value longtext not null'];
  const scores = [`hash ${hash} not null primary key`, 'score double not null'];
  await inQuery(db, async (knex) => {
    await createTable(knex, db, { table: frontierTable(resultTable), lines: [urls], indexes });
    await createTable(knex, db, { table: notesTable(resultTable), lines: notes });
    await createTable(knex, db, { table: scoresTable(resultTable), lines: scores });
  });
}

export interface FrontierRow {
  hash: string;
  path: string;
  id: string | null;
  depth: number;
  place: number;
  state: 'waiting' | 'taken' | 'done';
  /** How often it has failed. */
  tries: number;
  parent: string | null;
  found_at: SqlNumber;
  found_run: string | null;
  run_id: string | null;
  n: number | null;
  /** When its page was modified, by its sitemap. */
  modified_at: SqlNumber | null;
}

/** A URL that a run has taken, under a number. */
type TakenRow = FrontierRow & { n: number };

const COLUMNS: ColumnList = [
  'hash',
  ...'path id depth place state tries parent found_at found_run run_id n modified_at'.split(' '),
];

/** A candidate and where it was found. */
export interface Found extends Candidate {
  /** Hash of the page that links to it; null for a seed. */
  parent: string | null;
  modifiedMs?: number | null;
}

export interface Entered {
  fresh: number;
  known: number;
  /** Found by this run, and worse than what waits. */
  dropped: number;
  /** Found by earlier runs, and now worse than what waits. */
  fell: number;
  /** How many of `known` a Bloom filter has probably hidden. */
  hidden: number;
}

/** The URLs of one result table: enters what was found, each once, and keeps the best. */
export class Frontier {
  readonly #settings: DiscoverSettings;
  readonly #table: string;
  readonly #db: Database;
  readonly #seen: BloomSeen | null;

  constructor(db: Database, resultTable: string, settings: DiscoverSettings, seen: BloomSeen | null) {
    this.#db = db;
    this.#table = resultTable;
    this.#settings = settings;
    this.#seen = seen;
  }

  /** @param runId of the run that has found them; null before it has begun */
  async enter(
    trx: Knex.Transaction,
    found: readonly Found[],
    { runId, nowMs }: { runId: string | null; nowMs: number },
  ): Promise<Entered> {
    const fresh = new Map<string, Found>();
    for (const one of found) {
      const hash = hashText(one.key);
      const other = fresh.get(hash);
      if (other === undefined || one.depth < other.depth) fresh.set(hash, one);
    }
    await this.#removeKnown(trx, fresh);
    const hidden = this.#removeSeen(fresh);
    const scores = await this.#scoresOf(trx, [...fresh.keys()]);
    const rows = [...fresh].map(([hash, { path, id, depth, parent, modifiedMs }]): SqlValue[] => {
      const place = this.#settings.order === 'score' ? -(scores.get(hash) ?? 0) : depth;
      return [hash, path, id, depth, place, 'waiting', 0, parent, nowMs, runId, null, null, modifiedMs ?? null];
    });
    const target = { table: frontierTable(this.#table), columns: COLUMNS, existing: 'error' } as const;
    const refused = await bulkInsert(trx, this.#db, target, rows);
    const counts = { fresh: rows.length - refused.length, known: found.length - rows.length + refused.length };
    const evicted = counts.fresh > 0 ? await this.#evict(trx, runId) : { dropped: 0, fell: 0 };
    return { ...counts, fresh: counts.fresh - evicted.dropped, ...evicted, hidden };
  }

  /** Its hash by the run and number under which it was taken. */
  async parents(trx: Knex.Transaction, runId: string, numbers: readonly number[]): Promise<Map<number, TakenRow>> {
    const parents = new Map<number, TakenRow>();
    for (const piece of inPieces(numbers, LIST)) {
      const rows = trx(frontierTable(this.#table)).where({ run_id: runId }).whereIn('n', piece);
      for (const row of await rowsOf<TakenRow>(rows)) parents.set(row.n, row);
    }
    return parents;
  }

  /**
   * Drops what waits of a pattern that was found to be a trap, and stores the pattern. Returns how many of this run.
   */
  async cut(
    trx: Knex.Transaction,
    pattern: string,
    { runId, isCut }: { runId: string; isCut: (path: string) => boolean },
  ): Promise<Pick<Entered, 'dropped' | 'fell'>> {
    const row = { name: `trap ${pattern}`.slice(0, 700), value: '' };
    await trx(notesTable(this.#table)).insert(row).onConflict('name').ignore();
    const waiting = await rowsOf<FrontierRow>(
      trx(frontierTable(this.#table)).where({ state: 'waiting', id: null }).select('hash', 'path', 'found_run'),
    );
    const trapped = waiting.filter(({ path }) => isCut(path));
    return this.#remove(trx, trapped, runId);
  }

  async #removeKnown(trx: Knex.Transaction, fresh: Map<string, Found>): Promise<void> {
    for (const piece of inPieces([...fresh.keys()], LIST)) {
      const known = await rowsOf<{ hash: string }>(
        trx(frontierTable(this.#table)).whereIn('hash', piece).select('hash'),
      );
      for (const { hash } of known) {
        const modifiedMs = fresh.get(hash)?.modifiedMs ?? null;
        // What a sitemap says feeds `products.recrawl`, of known URLs too.
        if (modifiedMs !== null)
          await trx(frontierTable(this.#table)).where({ hash }).update({ modified_at: modifiedMs });
        fresh.delete(hash);
      }
    }
  }

  /** Returns how many the filter has probably hidden: each new URL is, with the probability of a false positive. */
  #removeSeen(fresh: Map<string, Found>): number {
    if (this.#seen === null) return 0;
    for (const hash of fresh.keys()) if (this.#seen.has(Buffer.from(hash, 'base64url'))) fresh.delete(hash);
    const rate = this.#seen.falsePositiveRate();
    return (fresh.size * rate) / (1 - rate);
  }

  async #scoresOf(trx: Knex.Transaction, hashes: readonly string[]): Promise<Map<string, number>> {
    const scores = new Map<string, number>();
    if (this.#settings.order !== 'score') return scores;
    for (const piece of inPieces(hashes, LIST)) {
      const rows = trx(scoresTable(this.#table)).whereIn('hash', piece);
      for (const { hash, score } of await rowsOf<{ hash: string; score: number }>(rows)) scores.set(hash, score);
    }
    return scores;
  }

  /** The worst beyond `keep`: they are unseen, so a better score may bring them back. */
  async #evict(trx: Knex.Transaction, runId: string | null): Promise<Pick<Entered, 'dropped' | 'fell'>> {
    const excess = (await countWaiting(trx, this.#table)) - this.#settings.keep;
    if (excess <= 0) return { dropped: 0, fell: 0 };
    const worst = await rowsOf<FrontierRow>(
      trx(frontierTable(this.#table))
        .where({ state: 'waiting' })
        .orderBy(['place', 'found_at', 'hash'].map((column) => ({ column, order: 'desc' })))
        .limit(excess)
        .select('hash', 'found_run'),
    );
    return this.#remove(trx, worst, runId);
  }

  async #remove(
    trx: Knex.Transaction,
    rows: readonly Pick<FrontierRow, 'hash' | 'found_run'>[],
    runId: string | null,
  ): Promise<Pick<Entered, 'dropped' | 'fell'>> {
    for (const piece of inPieces(rows, LIST)) {
      const hashes = piece.map(({ hash }) => hash);
      await trx(frontierTable(this.#table)).whereIn('hash', hashes).delete();
    }
    const dropped = rows.filter(({ found_run: run }) => run === runId).length;
    return { dropped, fell: rows.length - dropped };
  }
}

const hashText = (key: string): string => hashOf(key).toString('base64url');

export const countWaiting = (knex: Knex, resultTable: string): Promise<number> =>
  countOf(knex(frontierTable(resultTable)).where({ state: 'waiting' }));

/** The rows of the notes table whose names begin with this word, without it. */
export async function readNotes(knex: Knex, resultTable: string, word: string): Promise<Map<string, string>> {
  const rows = await rowsOf<{ name: string; value: string }>(
    knex(notesTable(resultTable)).where('name', 'like', `${word} %`).options({ timeout: LONG_STATEMENT_MS }),
  );
  return new Map(rows.map(({ name, value }) => [name.slice(word.length + 1), value]));
}

/** The Bloom filter of earlier nights; null while every URL is known exactly. */
export async function readSeen(knex: Knex, resultTable: string): Promise<BloomSeen | null> {
  const notes = await readNotes(knex, resultTable, 'seen');
  const head = notes.get('head');
  if (head === undefined) return null;
  const { capacity, count, pages } = JSON.parse(head) as { capacity: number; count: number; pages: number };
  const bytes = Array.from({ length: pages }, (_, i) => notes.get(String(i)) ?? []).flat();
  return BloomSeen.from(
    capacity,
    count,
    bytes.map((page) => Buffer.from(page, 'base64')),
  );
}
