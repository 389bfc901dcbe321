/** The marks that gc keeps in the database, and the runs it finds there. */
import { expect, it } from 'vitest';
import { createGcMarks, dropOrphanStaging, findOrphanStaging } from '../../../../orchestrator/core/db/garbage.ts';
import { createRun, NOW, onBothEngines } from './harness.ts';

const DAY = 86_400_000;

onBothEngines('F44 the marks of gc', (bench) => {
  it('are kept by owner, and may be written again', async () => {
    const store = createGcMarks(bench().db);
    const mark = { kind: 'instance' as const, id: 'i-1', firstSeenAtMs: NOW };
    const balancer = { kind: 'balancer' as const, id: 'cf-1', firstSeenAtMs: NOW + 1 };
    await store.note('me', [mark, balancer], [], NOW - DAY);
    await store.note('other', [{ ...mark, id: 'i-2' }], [], NOW - DAY);
    expect(await store.list('me')).toHaveLength(2);
    for (let i = 0; i < 2; i++) await store.note('me', [mark], [balancer], NOW - DAY);
    expect(await store.list('me')).toEqual([mark]);
    await store.note('me', [], [mark, { kind: 'instance', id: 'i-2' }], NOW - DAY);
    expect(await store.list('me')).toEqual([]);
    expect(await store.list('other')).toHaveLength(1);
  });

  it('survive a gc of another region or endpoint, until they are old', async () => {
    const store = createGcMarks(bench().db);
    const tokyo = { kind: 'instance' as const, id: 'i-tokyo', firstSeenAtMs: NOW };
    const osaka = { kind: 'instance' as const, id: 'i-osaka', firstSeenAtMs: NOW + 1 };
    await store.note('two', [tokyo], [], NOW - DAY);
    await store.note('two', [osaka], [{ kind: 'instance', id: 'i-other' }], NOW - DAY);
    expect((await store.list('two')).map((s) => s.id).sort()).toEqual(['i-osaka', 'i-tokyo']);
    await store.note('two', [osaka], [], NOW + 1);
    expect(await store.list('two')).toEqual([osaka]);
    // Seen again: it keeps its age.
    await store.note('two', [osaka], [], NOW + 2);
    expect(await store.list('two')).toEqual([osaka]);
  });
});

onBothEngines('Orphan staging tables', (bench) => {
  it('are those of runs that ended a day ago or were never stored, never those of held or unfinished ones', async () => {
    const { db } = bench();
    const end = async (phase: string): Promise<string> => {
      const { id } = await createRun(bench(), 1);
      await db.knex('crawlfleet_runs').where({ id }).update({ phase, finished_at: NOW });
      return id;
    };
    const [completed, cancelled, held] = [await end('completed'), await end('cancelled'), await end('held')];
    const { id: unfinished } = await createRun(bench(), 1);
    const lost = '20261120-021500-abcd';
    for (const name of [`crawlfleet_staging_${lost}`, 'crawlfleet_staging_my own', 'crawlfleetXstagingX1'])
      await db.knex.schema.createTable(name, (t) => void t.integer('x'));

    expect(await findOrphanStaging(db, NOW + DAY - 1, new Set())).toEqual([lost]);
    const found = await findOrphanStaging(db, NOW + DAY, new Set());
    expect(found.sort()).toEqual([completed, cancelled, lost].sort());
    expect(await findOrphanStaging(db, NOW + DAY, new Set([completed]))).not.toContain(completed);
    expect((await dropOrphanStaging(db, [...found, 'my own'])).sort()).toEqual(found.sort());
    expect(await findOrphanStaging(db, NOW + DAY, new Set())).toEqual([]);
    for (const id of [held, unfinished]) expect(await db.knex.schema.hasTable(`crawlfleet_staging_${id}`)).toBe(true);
    expect(await db.knex.schema.hasTable('crawlfleet_staging_my own')).toBe(true);
  });
});
