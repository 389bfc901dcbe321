/** What a discovery takes from its frontier while it crawls. */
import type { Knex } from 'knex';
import { cutChunks } from '../../../shared/domain/sharing.ts';
import type { FeedState, RunFeed } from '../../core/model/stores.ts';
import type { RunSettings } from '../../core/model/run-settings.ts';
import type { Plan } from '../../core/plan/plan.ts';
import { BoundRun } from '../../core/db/bound-run.ts';
import { bulkInsert } from '../../core/db/bulk-insert.ts';
import { CHUNKS, insertChunks, ITEMS } from '../../core/db/chunk-rows.ts';
import { inPieces, rowOf, rowsOf, type SqlNumber, toNumber } from '../../core/db/rows.ts';
import { readRunShape, readSettings } from '../../core/db/run-shape.ts';
import { LANDING_COLUMN } from '../../core/db/staging.ts';
import { LONG_STATEMENT_MS } from '../../core/db/statement-timeout.ts';
import { countWaiting, type FrontierRow, frontierTable } from './frontier.ts';
import { openFrontier } from './link-intake.ts';

/** Rows in one statement. */
const LIST = 500;
/** Beyond it, how many wait makes no difference to the run. */
const COUNTED = 10_000;

const ITEM_COLUMNS = ['run_id', 'n', 'product_id', 'path', 'link_page'] as const;

/** RunFeed on knex. */
export class KnexFrontier extends BoundRun implements RunFeed {
  #table: string | null = null;

  /** The state of the frontier, read in one statement: what is taken in between would be missing on both sides. */
  async state(): Promise<FeedState> {
    const { id } = this;
    const table = await this.#resultTable();
    return this.query(async (knex) => {
      const waiting = knex(frontierTable(table)).where({ state: 'waiting' }).select(knex.raw('1')).limit(COUNTED);
      const settled = knex('crawlfleet_parts')
        .where({ run_id: id })
        .select(
          knex.raw(`sum(case state when 'loaded' then stored + gone + failed when 'failed' then products else 0 end)`),
        );
      const row = await rowOf<{ planned: SqlNumber; waiting: SqlNumber; settled: SqlNumber | null }>(
        knex('crawlfleet_runs')
          .where({ id })
          .first(
            'planned',
            knex.raw('(select count(*) from ? as w) as waiting', [waiting]),
            knex.raw('? as settled', [settled]),
          ),
      );
      const planned = toNumber(row?.planned);
      return { waiting: toNumber(row?.waiting), planned, open: Math.max(0, planned - toNumber(row?.settled)) };
    });
  }

  async waiting(): Promise<number> {
    const table = await this.#resultTable();
    return this.query((knex) => countWaiting(knex, table));
  }

  async take(limit: number): Promise<number> {
    const { db, id } = this;
    const table = await this.#resultTable();
    return this.write(async (trx) => {
      const run = await rowOf<{ planned: SqlNumber; plan: string; settings: string }>(
        trx('crawlfleet_runs').where({ id }).forUpdate().first('planned', 'plan', 'settings'),
      );
      if (run === undefined) return 0;
      const planned = toNumber(run.planned);
      const { discover } = JSON.parse(run.settings) as RunSettings;
      if (discover === undefined) return 0;
      const rows = await rowsOf<FrontierRow>(
        trx(frontierTable(table))
          .where({ state: 'waiting' })
          .orderBy(['place', 'found_at', 'hash'])
          .limit(Math.max(0, Math.min(limit, discover.pages - planned))),
      );
      if (rows.length === 0) return 0;
      const taken = rows.map((row, i) => ({ ...row, state: 'taken', run_id: id, n: planned + i + 1 }));
      for (const piece of inPieces(taken, LIST))
        await trx(frontierTable(table)).insert(piece).onConflict('hash').merge(['state', 'run_id', 'n']);
      const target = { table: ITEMS, columns: ITEM_COLUMNS, existing: 'error' } as const;
      const items = taken.map(({ n, id: product, path }) => [
        id,
        n,
        product ?? path,
        path,
        product === null ? 1 : null,
      ]);
      await bulkInsert(trx, db, target, items);
      await this.#addChunks(trx, planned, taken.length, JSON.parse(run.plan) as Plan);
      await trx('crawlfleet_runs').where({ id }).increment('planned', taken.length);
      return taken.length;
    });
  }

  aliases(): ReturnType<RunFeed['aliases']> {
    const { db, id } = this;
    return this.query(async (knex) => {
      const { discover, mapping, results } = await readSettings(knex, id);
      const { staging, shares } = await readRunShape(knex, db, id);
      if (discover === undefined || !shares) return [];
      const { rules } = await openFrontier(knex, db, { discover, mapping, table: results.table });
      const { protocol } = new URL(discover.origin);
      return readAliases(knex, { staging, frontier: frontierTable(results.table) }, (page) => {
        const judged = rules.judge(`${protocol}//${page}`, 0);
        return 'denied' in judged ? null : judged.id;
      });
    });
  }

  /** Smaller than planned while there is less than a chunk for each instance. */
  async #addChunks(trx: Knex.Transaction, before: number, added: number, plan: Plan): Promise<void> {
    const run_id = this.id;
    const last = await rowOf<{ idx: SqlNumber | null }>(trx(CHUNKS).where({ run_id }).max({ idx: 'idx' }).first());
    const size = Math.min(plan.chunkSize, Math.ceil(added / Math.max(1, plan.instances)));
    const chunks = cutChunks(added, size).map(({ index, first, last: end }) => ({
      index: toNumber(last?.idx) + index,
      first: before + first,
      last: before + end,
    }));
    await insertChunks(trx, this.db, run_id, chunks);
  }

  async #resultTable(): Promise<string> {
    this.#table ??= (await this.query((knex) => readSettings(knex, this.id))).results.table;
    return this.#table;
  }
}

/** @param idAt the ID of the product of a page, without its protocol */
async function readAliases(
  knex: Knex,
  { staging, frontier }: { staging: string; frontier: string },
  idAt: (page: string) => string | null,
): ReturnType<RunFeed['aliases']> {
  const aliases: { id: string; of: string }[] = [];
  for (let after = ''; ;) {
    const landed = await rowsOf<{ id: string; page: string }>(
      knex(staging)
        .whereNotNull(LANDING_COLUMN)
        .where('product_id', '>', after)
        .orderBy('product_id')
        .limit(LIST)
        .select({ id: 'product_id', page: LANDING_COLUMN })
        .options({ timeout: LONG_STATEMENT_MS }),
    );
    const last = landed.at(-1);
    if (last === undefined) return aliases;
    after = last.id;
    const others = landed.flatMap(({ id, page }) => {
      const of = idAt(page);
      return of === null || of === id ? [] : [{ id, of }];
    });
    const ids = others.map(({ of }) => of);
    const known = new Set(await knex(frontier).whereIn('id', ids).pluck<string[]>('id'));
    aliases.push(...others.filter(({ of }) => known.has(of)));
  }
}
