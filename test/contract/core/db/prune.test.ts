/** `retention`: what goes of an old run, and what stays. */
import { expect, it } from 'vitest';
import { prune } from '../../../../orchestrator/core/db/prune.ts';
import { NOW, allRows, createRun, gone, load, onBothEngines, publish, settings, stored } from './harness.ts';

const DAY = 86_400_000;

onBothEngines('Pruning', (bench, engine) => {
  const rowsOf = async (runId: string): Promise<Record<string, number>> => {
    const counts: Record<string, number> = {};
    for (const table of ['items', 'chunks', 'parts', 'events']) {
      const [row] = (await bench()
        .db.knex(`crawlfleet_${table}`)
        .where({ run_id: runId })
        .count({ rows: '*' })) as unknown as [{ rows: number | string }];
      counts[table] = Number(row.rows);
    }
    return counts;
  };
  const night = async (at: number, own = settings(`pruned_${engine}`, { history: 'changes' })): Promise<string> => {
    const { id } = await createRun(bench(), 3, { settings: own });
    await load(bench(), id, [stored(1, 'p1', { title: `of ${at}` }), stored(2), gone(3)]);
    await publish(bench(), id, at);
    return id;
  };

  it('removes the ledger of old runs and the changes of fields, and nothing of newer and open runs, or of the user', async () => {
    const table = `pruned_${engine}`;
    const [first, second, third] = [
      await night(NOW - 100 * DAY),
      await night(NOW - 95 * DAY),
      await night(NOW - 3 * DAY),
    ];
    const { id: open } = await createRun(bench(), 2);
    // Another site's, with a retention of its own.
    const other = await night(NOW - 100 * DAY, settings(`other_${engine}`, { history: 'changes' }));
    const before = { tables: [table], beforeMs: NOW - 90 * DAY, nowMs: NOW, signal: new AbortController().signal };
    const kept = await Promise.all([rowsOf(third), rowsOf(open), rowsOf(other)]);
    const rows = await allRows(bench(), table);
    const pruned = await prune(bench().db, before);
    expect(pruned.runs).toEqual([first, second]);
    expect(pruned.rows).toBeGreaterThan(10);
    for (const id of [first, second]) expect(await rowsOf(id)).toEqual({ items: 0, chunks: 0, parts: 0, events: 0 });
    expect(await Promise.all([rowsOf(third), rowsOf(open), rowsOf(other)])).toEqual(kept);
    expect(await allRows(bench(), table)).toEqual(rows);
    expect(await bench().stores.runs.get(first)).toMatchObject({ phase: 'completed' });
    const history = (await bench().db.knex(`${table}_history`).orderBy('id')) as Record<string, unknown>[];
    expect(history.map(({ product_id, field, run_id }) => [product_id, field, run_id])).toEqual([
      ['p3', null, first],
      ['p1', 'title', third],
    ]);
    expect(await prune(bench().db, before)).toEqual({ runs: [], rows: 0 });
  });

  it('goes on where it was cut off', async () => {
    const run = await night(NOW - 200 * DAY, settings(`cut_${engine}`));
    const abort = new AbortController();
    abort.abort();
    const before = { tables: [`cut_${engine}`], beforeMs: NOW - 150 * DAY, nowMs: NOW };
    expect((await prune(bench().db, { ...before, signal: abort.signal })).runs).toEqual([]);
    expect((await prune(bench().db, { ...before, signal: new AbortController().signal })).runs).toEqual([run]);
  });
});
