/** Fill rates and newer runs in memory: the contracts of db/result-store.ts and db/newer-runs.ts without SQL. */
import { columnsOf } from '../../../shared/domain/mapping.ts';
import type { FillRates } from '../../control/model/report.ts';
import { settledRows } from './memory-numbers.ts';
import { PUBLISHED } from '../../db/newer-runs.ts';
import type { MemoryRow, MemoryRun, MemoryDatabase } from './memory-database.ts';

/** Share of staged rows with a value, by field. */
export function fillOf(run: MemoryRun): FillRates['fields'] {
  const rows = settledRows(run).map(([, row]) => row);
  if (rows.length === 0) return {};
  const columns = columnsOf(run.record.settings.mapping);
  return Object.fromEntries(
    columns.map(({ name }) => [name, rows.filter((r) => isFilled(r, name)).length / rows.length]),
  );
}

function isFilled(row: MemoryRow, field: string): boolean {
  const value = row[field] ?? null;
  return value !== null && value !== '' && !(Array.isArray(value) && value.length === 0);
}

/** Of the newest completed runs of the same table that began before. */
export function earlierFills(db: MemoryDatabase, run: MemoryRun, limit: number): FillRates[] {
  const { startedAtMs } = run.record;
  return ofTable(db, run)
    .filter(
      (r) =>
        r.record.parentId === null &&
        r.record.phase === 'completed' &&
        r.record.startedAtMs < startedAtMs &&
        r.record.planned > 0,
    )
    .sort((a, b) => b.record.startedAtMs - a.record.startedAtMs)
    .slice(0, limit)
    .flatMap((r) => (r.fill ? [r.fill] : []));
}

/** Runs that began after this one and published into its table, newest first. */
export function newerThan(db: MemoryDatabase, run: MemoryRun): MemoryRun[] {
  return ofTable(db, run)
    .filter(({ record }) => PUBLISHED.includes(record.phase) && record.request !== 'cancel')
    .filter((r) => isLater(r, run) && [...r.parts.values()].some((p) => p.stored > 0 || p.gone > 0))
    .sort((a, b) => (isLater(a, b) ? -1 : 1));
}

/** Names of the runs that legitimately replaced rows of this run: the contract of readOverwriters(). */
export function winnersOver(db: MemoryDatabase, run: MemoryRun): Set<string> {
  const ends = (of: MemoryRun, from?: string): number[] =>
    of.events
      .filter((e) => e.kind === 'run' && PUBLISHED.includes(e.to ?? '') && (from === undefined || e.from === from))
      .map((e) => e.atMs);
  const publishedMs = Math.max(...ends(run));
  const winners = [...db.runs.values()].filter(
    (r) =>
      r !== run &&
      PUBLISHED.includes(r.record.phase) &&
      r.record.request !== 'cancel' &&
      (isLater(r, run) || ends(r, 'held').some((ms) => ms >= publishedMs)),
  );
  return new Set(winners.map((r) => r.record.id));
}

/** The products that these runs settled as stored or gone. */
export function settledBy(runs: readonly MemoryRun[]): Set<string> {
  return new Set(
    runs.flatMap((run) => run.items.filter((i) => i.outcome === 'stored' || i.outcome === 'gone').map((i) => i.id)),
  );
}

function ofTable(db: MemoryDatabase, run: MemoryRun): MemoryRun[] {
  const { table } = run.record.settings.results;
  return [...db.runs.values()].filter((r) => r !== run && r.record.settings.results.table === table);
}

function isLater({ record: a }: MemoryRun, { record: b }: MemoryRun): boolean {
  return a.startedAtMs > b.startedAtMs || (a.startedAtMs === b.startedAtMs && a.id > b.id);
}
