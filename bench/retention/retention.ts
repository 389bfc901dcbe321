/** A year of nights in one SQLite file, with and without `retention`: how large the file becomes. */
import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openDatabase } from '../../orchestrator/core/db/connect.ts';
import { createStores } from '../../orchestrator/core/db/create-stores.ts';
import { migrate } from '../../orchestrator/core/db/migrate.ts';
import { prune } from '../../orchestrator/core/db/prune.ts';
import { createResultTable } from '../../orchestrator/core/db/result-table.ts';
import type { Bench, BenchRow } from '../frame.ts';
import { benchRun, idOf, resultOf } from '../loading/bench-run.ts';
import { lockRequest } from '../../test/support/lock-request.ts';
import { features } from '../../test/support/features.ts';

const PRODUCTS = 2_000;
const NIGHTS = 365;
const DAY = 86_400_000;
const RETENTION_MS = 90 * DAY;
/** By then the first nights are old enough to be removed. */
const FULL = 100;

export const bench: Bench = {
  title: 'A year of nights in one database, with and without retention',
  async run() {
    const rows: BenchRow[] = [
      { name: 'retention: 90d', figures: await year(true) },
      { name: 'nothing removed', figures: await year(false) },
    ];
    const growth = ({ figures }: BenchRow): number => figures[`mbAfter${NIGHTS}`]! / figures[`mbAfter${FULL}`]!;
    return {
      about: `${NIGHTS} nights of ${PRODUCTS} products each, of which 3 % have changed, with a history of changes, in SQLite. A night consists of its database work: list, part, publishing, and pruning.`,
      rows,
      ratios: [
        {
          name: `size after ${NIGHTS} nights / after ${FULL}, with retention`,
          value: growth(rows[0]!),
          target: 'at most 1.1',
        },
        { name: `size after ${NIGHTS} nights / after ${FULL}, without`, value: growth(rows[1]!) },
      ],
    };
  },
};

async function year(withRetention: boolean): Promise<Record<string, number>> {
  const folder = mkdtempSync(join(tmpdir(), 'crawlfleet-bench-'));
  const file = join(folder, 'fleet.db');
  writeFileSync(file, '');
  const db = await openDatabase(`sqlite:${file}`);
  const figures: Record<string, number> = {};
  let pruneMs = 0;
  try {
    await migrate(db);
    const stores = createStores(db, features);
    const lock = await stores.runs.acquireLock(lockRequest('bench', 0, 1e15));
    if (!('fence' in lock)) throw new Error('the lock of a fresh database is taken');
    const ids = Array.from({ length: PRODUCTS }, (_, i) => idOf(i + 1));
    for (let night = 1; night <= NIGHTS; night++) {
      const run = benchRun(PRODUCTS, 1, `r${night}`);
      const nowMs = run.startedAtMs + night * DAY;
      run.startedAtMs = nowMs;
      run.settings.results.history = 'changes';
      await createResultTable(db, run.settings.results, run.settings.mapping, features);
      await stores.runs.create(run, ids, lock.fence, nowMs);
      const bound = stores.bind({ runId: run.id, fence: lock.fence, clock: { now: () => nowMs } });
      const part = { slot: 0, epoch: 1, seq: 0 };
      const results = ids.map((_, i) => resultOf(i + 1, { night }));
      const ref = { seq: 0, key: `runs/${run.id}/0/1/0`, sha256: '0'.repeat(64), sizeBytes: 1, products: PRODUCTS };
      await bound.results.register(part, [ref]);
      await bound.results.load(part, results);
      for (const [from, to] of [
        ['planned', 'launching'],
        ['launching', 'crawling'],
        ['crawling', 'releasing'],
        ['releasing', 'loading'],
      ] as const)
        await bound.run.move(from, to);
      await bound.results.publish('completed', { exitCode: 0, reason: null });
      await bound.results.dropStaging();
      const startMs = performance.now();
      if (withRetention)
        await prune(db, {
          tables: [run.settings.results.table],
          beforeMs: nowMs - RETENTION_MS,
          nowMs,
          signal: new AbortController().signal,
        });
      pruneMs += performance.now() - startMs;
      if (night === FULL || night === NIGHTS) {
        await db.knex.raw('pragma wal_checkpoint(truncate)');
        figures[`mbAfter${night}`] = statSync(file).size / 1e6;
      }
    }
    return { ...figures, pruneMsANight: pruneMs / NIGHTS };
  } finally {
    await db.close();
    rmSync(folder, { recursive: true, force: true });
  }
}
