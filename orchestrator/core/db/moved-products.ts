/**
 * Products that go on at another host: their page, or the robots.txt that holds for it, has moved there. The
 * instance that found it must not ask there, so they get new numbers, and chunks that are granted with that host.
 */
import type { Knex } from 'knex';
import { ANY_HOST, isAnyHost } from '../../../shared/domain/domains.ts';
import { findUrlFault, readOwnUrl } from '../../../shared/domain/own-url.ts';
import { hostGapMs } from '../../../shared/domain/host-policy.ts';
import { ROBOTS_PATH } from '../../../shared/domain/robots.ts';
import { MAX_REDIRECTS } from '../../../shared/domain/same-site.ts';
import type { ChunkRange } from '../../../shared/domain/sharing.ts';
import type { Move } from '../../../shared/wire/part.ts';
import { COMMON_FROM } from '../decide/end/shared-results.ts';
import type { MovedOn } from '../model/part-results.ts';
import type { RunSettings } from '../model/run-settings.ts';
import { cutByHost, inCrawlOrder } from '../plan/cut-hosts.ts';
import type { Plan } from '../plan/plan.ts';
import { CHUNKS, hostsOfItem, insertChunks, ITEMS, type OpenItem } from './chunk-rows.ts';
import type { Database } from './connect.ts';
import { restForGap } from './host-rests.ts';
import { hashOf } from './key-hash.ts';
import { readRun } from './run-shape.ts';
import { LONG_STATEMENT_MS } from './statement-timeout.ts';
import { inPieces, rowOf, rowsOf, type SqlNumber, toNumber } from './rows.ts';

const MOVED_TO = 'crawlfleet_moved_to';
/** Pages per statement. */
const LIST = 500;

/** An open product, and how often it was passed on before; null: never. */
export type MovableItem = OpenItem & { moves: number | null };

/** A result of an open product that goes on elsewhere. */
export interface MovedResult {
  item: MovableItem;
  result: MovedOn;
}

/**
 * Makes these locked products wait as products of the hosts that they have moved to. Returns their new numbers by the
 * old ones, and why the others stay where they are, by number: nothing can be asked there, or many products end there.
 */
export async function moveProducts(
  trx: Knex.Transaction,
  db: Database,
  { runId, nowMs }: { runId: string; nowMs: number },
  moved: readonly MovedResult[],
): Promise<{ numbers: Map<number, number>; refused: Map<number, string> }> {
  const refused = new Map<number, string>();
  // One transaction at a time numbers products and chunks.
  const run = await lockRun(trx, runId);
  const may = moved.filter(({ item, result }) => {
    const fault = faultOf(run.settings, item, result.moved);
    if (fault !== null) refused.set(item.n, fault);
    return fault === null;
  });
  if (run.settings.site.samePage !== 'store')
    for (const [n, why] of await refuseCommon(trx, runId, may)) refused.set(n, why);
  const passed = may.filter(({ item }) => !refused.has(item.n)).map(passOn);
  const { hostKey, intervalMs } = run.settings.site;
  const going = moved.filter(({ item }) => !refused.has(item.n));
  const left = new Set(going.flatMap(({ item }) => hostsOfItem(item, hostKey)));
  await restForGap(trx, { runId, intervalMs, nowMs }, left);
  return { numbers: await number(trx, db, { run, runId, passed }), refused };
}

/** The product as it is at the other host. */
function passOn({ item, result: { moved } }: MovedResult): MovableItem {
  const moves = (item.moves ?? 0) + 1;
  const { url } = readOwnUrl(ANY_HOST, moved.page);
  return { ...item, moves, moved_to: url === item.path ? null : url, robots_url: moved.robots ?? null };
}

/** Why the product cannot be asked for there; null: it can. */
function faultOf({ site }: RunSettings, { moves }: MovableItem, { page, robots }: Move): string | null {
  if (!isAnyHost(site.productUrl)) return 'the run names its site';
  if ((moves ?? 0) >= MAX_REDIRECTS) return `it has led to other hosts ${MAX_REDIRECTS} times before`;
  if (robots !== undefined && URL.parse(robots)?.pathname !== ROBOTS_PATH) return `${robots} is no robots.txt`;
  return findUrlFault(site.productUrl, page) ?? (robots === undefined ? null : findUrlFault(site.productUrl, robots));
}

/** Those that lead to a page to which many products of the run lead: it is the page of none of them. */
async function refuseCommon(
  trx: Knex.Transaction,
  runId: string,
  moved: readonly MovedResult[],
): Promise<Map<number, string>> {
  const refused = new Map<number, string>();
  const elsewhere = moved.filter(({ result }) => result.moved.robots === undefined);
  const byPage = Map.groupBy(elsewhere, ({ result }) => hashOf(result.moved.page).toString('hex'));
  for (const piece of inPieces([...byPage], LIST)) {
    const pages = piece.map(([page]) => page);
    const rows = await rowsOf<{ page: string; products: SqlNumber }>(
      trx(MOVED_TO).where({ run_id: runId }).whereIn('page', pages).select('page', 'products'),
    );
    const before = new Map(rows.map(({ page, products }) => [page, toNumber(products)]));
    const counted = piece.map(([page, own]) => ({
      run_id: runId,
      page,
      url: own[0]!.result.moved.page,
      products: (before.get(page) ?? 0) + own.length,
    }));
    await trx(MOVED_TO).insert(counted).onConflict(['run_id', 'page']).merge(['products']);
    for (const [i, [, own]] of piece.entries()) {
      const products = counted[i]?.products ?? 0;
      if (products < COMMON_FROM) continue;
      for (const { item, result } of own) refused.set(item.n, `${products} products lead to ${result.moved.page}`);
    }
  }
  return refused;
}

interface Run {
  settings: RunSettings;
  plan: Plan;
  windowMs: number;
}

async function lockRun(trx: Knex.Transaction, runId: string): Promise<Run> {
  type Row = Record<'settings' | 'plan', string> & Record<'started_at' | 'deadline_at', SqlNumber>;
  const columns = ['settings', 'plan', 'started_at', 'deadline_at'] as const;
  const row = await rowOf<Row>(
    trx('crawlfleet_runs')
      .where({ id: runId })
      .forUpdate()
      .first(...columns),
  );
  return {
    settings: JSON.parse(row!.settings) as RunSettings,
    plan: JSON.parse(row!.plan) as Plan,
    windowMs: toNumber(row!.deadline_at) - toNumber(row!.started_at),
  };
}

/** Numbers these products after all others, host by host, and adds their chunks. */
async function number(
  trx: Knex.Transaction,
  db: Database,
  { run, runId, passed }: { run: Run; runId: string; passed: readonly MovableItem[] },
): Promise<Map<number, number>> {
  const numbers = new Map<number, number>();
  if (passed.length === 0) return numbers;
  const { hostKey, intervalMs } = run.settings.site;
  const gapMs = hostGapMs(intervalMs, 0);
  const byHosts = [...Map.groupBy(passed, (item) => hostsOfItem(item, hostKey).join(' ')).values()];
  const hosts = inCrawlOrder(byHosts.map((items) => ({ items, products: items.length, gapMs })));
  const [lastItem, lastChunk] = [await last(trx(ITEMS), runId, 'n'), await last(trx(CHUNKS), runId, 'idx')];
  let n = lastItem;
  for (const item of hosts.flatMap(({ items }) => items)) {
    const { moves, moved_to, robots_url } = item;
    numbers.set(item.n, ++n);
    await trx(ITEMS).where({ run_id: runId, n: item.n }).update({ n, moves, moved_to, robots_url });
    // What an earlier move has left.
    if (moves !== 1) await trx('crawlfleet_attempts').where({ run_id: runId, n: item.n }).update({ n });
  }
  const chunks = cutByHost(hosts, run.windowMs, run.plan.chunkSize).map(
    ({ index, first, last: end, hosts: own }): ChunkRange => ({
      index: lastChunk + index,
      first: lastItem + first,
      last: lastItem + end,
      hosts: { sliceOf: own?.sliceOf == null ? null : lastChunk + own.sliceOf, leftMs: own?.leftMs ?? 0 },
    }),
  );
  await insertChunks(trx, db, runId, chunks);
  return numbers;
}

async function last(table: Knex.QueryBuilder, runId: string, column: 'n' | 'idx'): Promise<number> {
  const row = await rowOf<{ last: SqlNumber | null }>(table.where({ run_id: runId }).max({ last: column }).first());
  return toNumber(row?.last);
}

/** Stored products that have moved to a page to which many lead (`products`), by page. */
export async function readMovedTogether(
  knex: Knex,
  runId: string,
): Promise<{ page: string; products: number; ids: string[] }[]> {
  const common = await rowsOf<{ url: string; products: SqlNumber }>(
    knex(MOVED_TO)
      .where({ run_id: runId })
      .where('products', '>=', COMMON_FROM)
      .orderBy('page')
      .select('url', 'products'),
  );
  if (common.length === 0) return [];
  const { planned } = await readRun<{ planned: SqlNumber }>(knex, runId, 'planned');
  const ids = new Map<string, string[]>();
  for (const piece of inPieces(common, LIST)) {
    const stored = knex(ITEMS)
      .where({ run_id: runId, outcome: 'stored' })
      .where('n', '>', toNumber(planned))
      .whereIn(
        'moved_to',
        piece.map(({ url }) => url),
      )
      .orderBy('n')
      .select('product_id', 'moved_to')
      .options({ timeout: LONG_STATEMENT_MS });
    for (const { product_id, moved_to } of await rowsOf<OpenItem>(stored))
      ids.set(moved_to!, [...(ids.get(moved_to!) ?? []), product_id]);
  }
  return common.flatMap(({ url, products }) => {
    const own = ids.get(url);
    return own === undefined ? [] : [{ page: url, products: toNumber(products), ids: own }];
  });
}
