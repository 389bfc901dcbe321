/**
 * Loads one part inside the transaction that holds its ledger row, so that a part is loaded entirely or not at all,
 * even after a crash. A product's outcome is written once: the first one wins.
 */
import type { Knex } from 'knex';
import { ledgerDetail } from '../../../shared/domain/failure-kind.ts';
import { countLeftOut, type LeftOutCounts, pagesLeftOut, sumLeftOut } from '../../../shared/domain/left-out.ts';
import type { FailureReason, Outcome, OutcomeCounts } from '../../../shared/domain/outcome.ts';
import type { ItemResult } from '../../../shared/wire/part.ts';
import { isMoved } from '../model/part-results.ts';
import type { PartId } from '../model/stores.ts';
import { type AssertCounts, sumAssertCounts } from '../model/assertions.ts';
import { assertRows } from './assert-rows.ts';
import { type ChunkRow, CHUNKS, idOnWire, ITEM_COLUMNS, ITEMS } from './chunk-rows.ts';
import type { Database } from './connect.ts';
import type { KeptPage, PartIntake } from './data-feature.ts';
import { GrantedProducts } from './grants.ts';
import { closeSettled } from './host-slices.ts';
import { type MovableItem, moveProducts } from './moved-products.ts';
import type { RunShape } from './run-shape.ts';
import { inPieces, rowsOf } from './rows.ts';
import { LONG_STATEMENT_MS } from './statement-timeout.ts';
import { countMarks, marksOf, type ShownCounts, sumMarks } from './ambiguous-values.ts';
import { stageRows, type StoredResult } from './stage-rows.ts';

/** What is written for a product beside its rows. */
interface Settlement {
  n: number;
  id: string;
  outcome: Outcome;
  reason: FailureReason | null;
  detail: string | null;
  /** Rows in staging. */
  rows: number;
  /** How many pages a partial product was stored without; null: it is whole. */
  leftOut: number | null;
}

/** The outcomes of a load, and the rows it has staged. */
export interface LoadCounts extends OutcomeCounts {
  rows: number;
  /** The decimal marks shown by the numbers of the stored products. */
  marks: ShownCounts;
  /** How many of the stored had their rows copied, because their page is unchanged. */
  unchanged: number;
  savedBytes: number;
  /** How many of the stored are partial. */
  partial: number;
  /** The further pages that stored products come without. */
  leftOut: LeftOutCounts;
  /** Values that broke an assertion. */
  asserts: AssertCounts;
  /** Results for products that the instance was never granted: they count for nothing. */
  putAside: number;
}

/** Rows per INSERT. */
const LIST = 250;
const DETAIL_CHARS = 500;

const NOT_KEPT =
  'the page is unchanged (304), but its rows are no longer in the result table as they were: it will be read whole';

/** A part to load. */
interface Load {
  runId: string;
  shape: RunShape;
  /** Its columns, and nothing else. */
  place: PartId;
  results: readonly ItemResult[];
  nowMs: number;
  /** What these results mean to features. */
  intakes: readonly PartIntake[];
}

/** Counts only outcomes of this load: products that already had one are left unchanged. */
export async function loadResults(trx: Knex.Transaction, db: Database, load: Load): Promise<LoadCounts> {
  const { runId, shape, nowMs } = load;
  const results = await grantedResults(trx, load);
  const locked = await lockOpen(trx, db, load, results);
  const { open, passedOn } = await passOnMoved(trx, db, load, locked);
  const stored = open.filter((result): result is StoredResult => result.outcome === 'stored');
  const { fresh: read = [], unchanged = [] } = Object.groupBy(stored, (s) =>
    s.unchanged === undefined ? 'fresh' : 'unchanged',
  );
  const { passed: fresh, failed: broken, counts: asserts } = await assertRows(trx, db, shape, read);
  const { rows, refused } = await stageRows(trx, db, shape, fresh);
  const kept = await stageKept(trx, load.intakes, unchanged);
  for (const { id } of unchanged) if (!kept.has(id)) refused.set(id, NOT_KEPT);
  const settlements = open.map((result) => {
    const settlement = settle(result);
    const { id } = settlement;
    settlement.rows = rows.get(id) ?? kept.get(id)?.rows ?? 0;
    const [load, assert] = [refused.get(id), broken.get(id)];
    if (load !== undefined) refuse(settlement, 'load', load);
    if (assert !== undefined) refuse(settlement, 'assert', assert);
    return settlement;
  });
  await writeOutcomes(trx, db, load, settlements);
  await writeAttempts(trx, load, [...open, ...passedOn]);
  await closeReturned(
    trx,
    runId,
    locked.map(({ item }) => item.n),
  );
  for (const intake of load.intakes) await intake.enter?.(trx, fresh, nowMs);
  const pages = [...kept.values()];
  const counts = {
    stored: 0,
    gone: 0,
    failed: 0,
    rows: 0,
    marks: countMarks([...fresh.map(marksOf), ...pages.map(({ marks }) => marks)]),
    unchanged: kept.size,
    savedBytes: pages.reduce((sum, { bytes }) => sum + bytes, 0),
    partial: 0,
    leftOut: countLeftOut(fresh.flatMap(({ id, leftOut }) => (rows.has(id) && leftOut) || [])),
    asserts,
    putAside: load.results.length - results.length,
  };
  for (const s of settlements) {
    counts[s.outcome]++;
    counts.rows += s.rows;
    if (s.leftOut !== null) counts.partial++;
  }
  return counts;
}

/** The counts of a part that was loaded in pieces. */
export function sumCounts(pieces: readonly LoadCounts[]): LoadCounts {
  const sum = (count: (piece: LoadCounts) => number): number => pieces.reduce((all, piece) => all + count(piece), 0);
  return {
    stored: sum(({ stored }) => stored),
    gone: sum(({ gone }) => gone),
    failed: sum(({ failed }) => failed),
    rows: sum(({ rows }) => rows),
    unchanged: sum(({ unchanged }) => unchanged),
    savedBytes: sum(({ savedBytes }) => savedBytes),
    marks: sumMarks(pieces.map(({ marks }) => marks)),
    putAside: sum(({ putAside }) => putAside),
    asserts: sumAssertCounts(pieces.map(({ asserts }) => asserts)),
    partial: sum(({ partial }) => partial),
    leftOut: sumLeftOut(pieces.map(({ leftOut }) => leftOut)),
  };
}

/** Those for products that the instance was granted at some time; all of them in a run that keeps no grants. */
async function grantedResults(
  trx: Knex.Transaction,
  { runId, shape, place, results }: Load,
): Promise<readonly ItemResult[]> {
  if (!shape.grantsKept) return results;
  const granted = await GrantedProducts.read(trx, runId, place);
  return results.filter(({ n }) => granted.has(place, n));
}

interface OpenResult {
  item: MovableItem;
  result: ItemResult;
}

/** The results of open products planned under that number and id; each once, sorted by id like the staging table. */
async function lockOpen(
  trx: Knex.Transaction,
  { engine }: Database,
  { runId, shape }: Load,
  results: readonly ItemResult[],
): Promise<OpenResult[]> {
  const byN = new Map<number, ItemResult>();
  for (const result of results) if (!byN.has(result.n)) byN.set(result.n, result);
  const open: OpenResult[] = [];
  if (shape.renumberedFrom !== null) {
    const renumbered = [...byN.values()].filter(({ n }) => n > shape.renumberedFrom!);
    for (const { n } of renumbered) byN.delete(n);
    open.push(...(await lockRenumbered(trx, runId, shape.renumberedFrom, renumbered)));
  }
  const numbers = [...byN.keys()].sort((a, b) => a - b);
  for (const narrow of onNumbers(engine, numbers)) {
    const columns = [...ITEM_COLUMNS, 'moves', 'outcome'] as const;
    const rows = await rowsOf<MovableItem & { outcome: Outcome | null }>(
      trx(ITEMS)
        .where({ run_id: runId })
        .modify(narrow)
        .forUpdate()
        .select(...columns),
    );
    for (const { outcome, ...item } of rows) {
      const result = byN.get(item.n);
      if (result !== undefined && outcome === null && idOnWire(item) === result.id)
        open.push({ item, result: ofProduct(item, result) });
    }
  }
  // Inserting in primary-key order is a quarter faster.
  return open.sort((a, b) => (a.result.id < b.result.id ? -1 : 1));
}

/**
 * The results of open products that have moved, told by their URLs: all that lead to one page have the same results.
 * @param from what has a higher number has moved
 */
async function lockRenumbered(
  trx: Knex.Transaction,
  runId: string,
  from: number,
  results: readonly ItemResult[],
): Promise<OpenResult[]> {
  const byUrl = Map.groupBy(results, ({ id }) => id);
  const open: OpenResult[] = [];
  for (const urls of inPieces([...byUrl.keys()], LIST)) {
    const rows = await rowsOf<MovableItem>(
      trx(ITEMS)
        .where({ run_id: runId, outcome: null })
        .where('n', '>', from)
        .where((is) => {
          void is.whereIn('moved_to', urls).orWhere((own) => void own.whereNull('moved_to').whereIn('path', urls));
        })
        .orderBy('n')
        .forUpdate()
        .select(...ITEM_COLUMNS, 'moves')
        .options({ timeout: LONG_STATEMENT_MS }),
    );
    for (const item of rows) {
      const result = byUrl.get(idOnWire(item))?.shift();
      if (result !== undefined) open.push({ item, result: ofProduct(item, result) });
    }
  }
  return open;
}

/** A result as the product's own, whatever the instance knows it by: where its page has moved to, its request ended. */
function ofProduct({ n, product_id: id, path, moved_to }: MovableItem, result: ItemResult): ItemResult {
  if (moved_to === null || path === null) return { ...result, n, id };
  const own = { ...result, n, id, url: path };
  return own.outcome === 'stored' ? { ...own, finalUrl: own.finalUrl ?? result.url } : own;
}

/**
 * Products that go on at another host wait again, under new numbers (`passedOn`, with the results that led there). Of
 * the others the results stand.
 */
async function passOnMoved(
  trx: Knex.Transaction,
  db: Database,
  { runId, nowMs }: Load,
  locked: readonly OpenResult[],
): Promise<{ open: ItemResult[]; passedOn: ItemResult[] }> {
  const moved = locked.flatMap(({ item, result }) => (isMoved(result) ? [{ item, result }] : []));
  if (moved.length === 0) return { open: locked.map(({ result }) => result), passedOn: [] };
  const { numbers, refused } = await moveProducts(trx, db, { runId, nowMs }, moved);
  const open: ItemResult[] = [];
  const passedOn: ItemResult[] = [];
  for (const { item, result } of locked) {
    const n = numbers.get(item.n);
    const why = refused.get(item.n);
    if (n !== undefined) passedOn.push({ ...result, n });
    else if (why === undefined || result.outcome !== 'failed') open.push(result);
    else open.push({ ...result, detail: `${result.detail}: ${why}` });
  }
  return { open, passedOn };
}

async function stageKept(
  trx: Knex.Transaction,
  intakes: readonly PartIntake[],
  unchanged: readonly StoredResult[],
): Promise<Map<string, KeptPage>> {
  const kept = new Map<string, KeptPage>();
  if (unchanged.length === 0) return kept;
  for (const intake of intakes)
    for (const [id, page] of (await intake.stageKept?.(trx, unchanged)) ?? []) kept.set(id, page);
  return kept;
}

function settle(result: ItemResult): Settlement {
  const { n, id } = result;
  const common = { n, id, rows: 0, leftOut: null };
  switch (result.outcome) {
    case 'stored': {
      const leftOut = result.partial ? pagesLeftOut(result.leftOut ?? {}) : null;
      return { ...common, leftOut, outcome: 'stored', reason: null, detail: null };
    }
    case 'gone':
      return { ...common, outcome: 'gone', reason: null, detail: ledgerDetail(result) };
    case 'failed':
      return { ...common, outcome: 'failed', reason: result.reason, detail: cutDetail(ledgerDetail(result)) };
  }
}

function refuse(settlement: Settlement, reason: 'load' | 'assert', detail: string): void {
  settlement.outcome = 'failed';
  settlement.leftOut = null;
  settlement.reason = reason;
  settlement.detail = cutDetail(detail);
}

export function cutDetail(detail: string): string {
  // A cut through a surrogate pair leaves half of it, which every database rejects.
  return detail.slice(0, DETAIL_CHARS).toWellFormed();
}

async function writeOutcomes(
  trx: Knex.Transaction,
  { engine }: Database,
  { runId, shape, place, nowMs }: Load,
  settlements: readonly Settlement[],
): Promise<void> {
  const stored = settlements.filter((s) => s.outcome === 'stored');
  // One update for all products with the same number of rows: pages hold a few dozen records.
  for (const same of Map.groupBy(stored, ({ rows, leftOut }) => `${rows} ${leftOut}`).values()) {
    const [{ rows, leftOut }] = same as [Settlement, ...Settlement[]];
    const counted = {
      ...(shape.countsRows ? { result_rows: rows } : {}),
      ...(leftOut === null ? {} : { left_out: leftOut }),
    };
    const numbers = same.map((s) => s.n).sort((a, b) => a - b);
    for (const narrow of onNumbers(engine, numbers)) {
      const values = { outcome: 'stored', ...place, ...counted, settled_at: nowMs };
      await trx(ITEMS).where({ run_id: runId }).modify(narrow).update(values);
    }
  }
  const others = settlements.filter((s) => s.outcome !== 'stored');
  // Each has its own detail, so they are sent as rows; all of them exist, so this only updates.
  for (const piece of inPieces(others, LIST)) {
    const common = { run_id: runId, ...place, settled_at: nowMs };
    const rows = piece.map(({ id, rows: _rows, leftOut: _leftOut, ...own }) => ({ ...own, ...common, product_id: id }));
    await trx(ITEMS)
      .insert(rows)
      .onConflict(['run_id', 'n'])
      .merge(['outcome', 'reason', 'detail', 'slot', 'epoch', 'seq', 'settled_at']);
  }
}

/** Pages of the same kind are kept this often in one part: a broken site would fill the database with copies of one. */
const SAME_EVIDENCE = 3;

/** The attempts that failed, the one before a success among them. */
async function writeAttempts(
  trx: Knex.Transaction,
  { runId, place }: Load,
  open: readonly ItemResult[],
): Promise<void> {
  const { slot, epoch } = place;
  const seen = new Map<string, number>();
  const rows = open.flatMap((result) => {
    const failed = [...(result.first ? [result.first] : []), ...(result.outcome === 'failed' ? [result] : [])];
    return failed.map(({ at, reason, detail, evidence }) => {
      const kind = `${reason} ${evidence?.rule} ${evidence?.status}`;
      const before = seen.get(kind) ?? 0;
      seen.set(kind, before + 1);
      const kept = evidence !== undefined && before < SAME_EVIDENCE ? JSON.stringify(evidence) : null;
      const atMs = Date.parse(at);
      return { run_id: runId, n: result.n, at: atMs, slot, epoch, reason, detail: cutDetail(detail), evidence: kept };
    });
  });
  for (const piece of inPieces(rows, LIST))
    await trx('crawlfleet_attempts').insert(piece).onConflict(['run_id', 'n', 'at', 'slot', 'epoch']).ignore();
}

/** A late result may settle the last product of a chunk that was reassigned and is still waiting. */
async function closeReturned(trx: Knex.Transaction, runId: string, numbers: readonly number[]): Promise<void> {
  if (numbers.length === 0) return;
  const waiting = await rowsOf<ChunkRow>(
    trx(CHUNKS)
      .where({ run_id: runId, state: 'waiting' })
      .where('generation', '>', 1)
      .where('first_n', '<=', Math.max(...numbers))
      .where('last_n', '>=', Math.min(...numbers)),
  );
  await closeSettled(trx, runId, waiting);
}

/** Few enough that the optimizer uses the key for each: for two SQLite updates by reading the whole run. */
const RANGES = { mysql: 100, sqlite: 1 };
const NUMBERS = 1_000;
/** The least average length of runs that makes ranges better than a list. */
const WORTH = 4;

/** Restricts a query over crawlfleet_items to some numbers. */
type OnNumbers = (query: Knex.QueryBuilder) => void;

/**
 * Conditions that together cover these numbers exactly, one statement each: by ranges where that is shorter, by lists
 * otherwise. @param numbers ascending, each once
 */
export function onNumbers(engine: Database['engine'], numbers: readonly number[]): OnNumbers[] {
  const runs = runsOf(numbers);
  if (runs.length * WORTH > numbers.length)
    return inPieces(numbers, NUMBERS).map((piece) => (query) => void query.whereIn('n', piece));
  return onRanges(engine, runs);
}

/** The same for ranges. */
export function onRanges(
  engine: Database['engine'],
  ranges: readonly (readonly [first: number, last: number])[],
): OnNumbers[] {
  return inPieces(ranges, RANGES[engine]).map(
    (piece) => (query) =>
      void query.where((any) => {
        for (const range of piece) void any.orWhereBetween('n', range);
      }),
  );
}

/** First and last of each run of consecutive numbers. */
function runsOf(numbers: readonly number[]): [first: number, last: number][] {
  const runs: [number, number][] = [];
  for (const n of numbers) {
    const run = runs.at(-1);
    if (run && run[1] + 1 === n) run[1] = n;
    else runs.push([n, n]);
  }
  return runs;
}
