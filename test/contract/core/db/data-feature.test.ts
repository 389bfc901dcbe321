/** What the stores ask of features, and when: in the transactions of the core. */
import { expect, it } from 'vitest';
import type { DataFeature } from '../../../../orchestrator/core/db/data-feature.ts';
import { createStores } from '../../../../orchestrator/core/db/create-stores.ts';
import { createResultTable } from '../../../../orchestrator/core/db/result-table.ts';
import { allRows, bound, COMPLETE, createRun, load, onBothEngines, settings, stored, toLoading } from './harness.ts';

onBothEngines('A feature', (bench, engine) => {
  it('is asked once for a run, told of each part and its commit, and publishes in the same transaction', async () => {
    const table = `asked_${engine}`;
    const said: string[] = [];
    let fails = true;
    const feature: DataFeature = {
      productFeed: {
        openPageNames: (_knex, { runId }) => {
          said.push(`names ${runId}`);
          return Promise.resolve(null);
        },
      },
      afterPublish: {
        createTables: (_db, results) => Promise.resolve(void said.push(`tables ${results.table}`)),
        openIntake: (_knex, { runId }) => {
          said.push(`intake ${runId}`);
          return Promise.resolve({
            enter: (_trx, results) => Promise.resolve(void said.push(`enter ${results.map(({ id }) => id).join()}`)),
            committed: () => void said.push('committed'),
          });
        },
        async publishing(trx, _db, { runId }) {
          await trx('crawlfleet_runs').where({ id: runId }).update({ reason: 'written by the feature' });
          said.push('publishing');
          if (fails) throw new Error('the feature fails');
        },
      },
    };
    const own = settings(table);
    const { id } = await createRun(bench(), 3, { settings: own });
    await createResultTable(bench().db, own.results, own.mapping, [feature]);
    const seen = { ...bench(), stores: createStores(bench().db, [feature]) };
    const run = bound(seen, id);
    await run.work.waiting(1, new Set());
    await run.work.waiting(1, new Set());
    await load(seen, id, [stored(1)]);
    expect(said).toEqual([`tables ${table}`, `names ${id}`, `intake ${id}`, 'enter p1', 'committed']);

    await toLoading(seen, id);
    await expect(run.results.publish('completed', COMPLETE)).rejects.toThrow('the feature fails');
    expect(await run.run.get()).toMatchObject({ phase: 'loading', reason: null });
    expect(await allRows(seen, table)).toEqual([]);
    fails = false;
    expect(await run.results.publish('completed', COMPLETE)).toEqual({ rows: 1 });
    expect(await allRows(seen, table)).toHaveLength(1);
  });
});
