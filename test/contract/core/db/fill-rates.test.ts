import { expect, it } from 'vitest';
import {
  ROWS_MAPPING,
  createRun,
  failed,
  gone,
  keyed,
  load,
  onBothEngines,
  onEveryEngine,
  settings,
  stored,
  storedRows,
  toLoading,
  bound,
  COMPLETE,
} from './harness.ts';
import { expectFault } from '../../../support/expect-fault.ts';

onBothEngines('Fill rates', (bench, engine) => {
  it('are the shares of rows with a value; zero counts as a value, an empty text or list does not', async () => {
    const { id, results } = await createRun(bench(), 4);
    expect(await results.fillOfFields()).toEqual({});
    await load(bench(), id, [
      stored(1, 'p1', { title: '', price: 0, weight: null, tags: [] }),
      stored(2, 'p2', { title: null, price: null, weight: 0, tags: ['a'] }),
      stored(3, 'p3', { price: null }),
      stored(4, 'p4', { price: 7, weight: null }),
    ]);
    expect(await results.fillOfFields()).toEqual({ title: 0.5, price: 0.5, weight: 0.5, tags: 0.75 });
  });

  it('count rows where a product has many', async () => {
    const { id, results } = await createRun(bench(), 2, {
      settings: settings(`fill_rows_${engine}`, {}, ROWS_MAPPING),
    });
    await load(bench(), id, [
      storedRows(1, [keyed('a', { price: null }), keyed('b', { price: 1 }), keyed('c', { price: 2 })]),
      storedRows(2, [keyed('a', { price: null })]),
    ]);
    expect((await results.fillOfFields()).price).toBe(0.5);
  });

  it('of earlier runs are those of the newest completed ones of the same table that began before', async () => {
    const { runs } = bench().stores;
    const own = settings(`fill_${engine}`);
    const ended = async (to: 'completed' | 'cancelled', title: number) => {
      const { id, results } = await createRun(bench(), 1, { settings: own });
      await results.setFill({ stored: 1, fields: { title } }, null);
      await toLoading(bench(), id);
      await results.publish(to, COMPLETE);
    };
    await ended('completed', 0.1);
    await ended('completed', 0.2);
    await ended('cancelled', 0.3);
    await ended('completed', 0.4);
    const now = await createRun(bench(), 1, { settings: own });
    await createRun(bench(), 1, { settings: settings(`fill_other_${engine}`) });
    await ended('completed', 0.5);
    const titles = async (limit: number) =>
      (await now.results.earlierFills(limit)).map((earlier) => earlier.fields.title);
    expect(await titles(5)).toEqual([0.4, 0.2, 0.1]);
    expect(await titles(2)).toEqual([0.4, 0.2]);
    await expectFault(
      bound(bench(), now.id, { fence: bench().fence - 1 }).results.setFill({ stored: 1, fields: {} }, null),
      'lock-held',
    );
    expect(await runs.get(now.id)).toMatchObject({ phase: 'planned' });
  });
});

onEveryEngine('A canary page', (bench) => {
  it('is any product that is stored; there is none before the first', async () => {
    const { id, work } = await createRun(bench(), 4);
    await load(bench(), id, [failed(1), gone(2)]);
    expect(await work.anyStored()).toBeNull();
    await load(bench(), id, [stored(3)], { slot: 0, seq: 1 });
    expect(await work.anyStored()).toBe('p3');
  });
});

onEveryEngine('Failed products', (bench) => {
  it('are listed in order, in pages, by reason', async () => {
    const { id, work } = await createRun(bench(), 6);
    await load(bench(), id, [stored(1), failed(2), gone(3), failed(4, 'HTTP 503')]);
    await work.failRest('deadline');
    expect(await work.failedProducts(0, 10)).toEqual([
      { n: 2, id: 'p2', reason: 'http-status', detail: 'HTTP 500' },
      { n: 4, id: 'p4', reason: 'http-status', detail: 'HTTP 503' },
      { n: 5, id: 'p5', reason: 'deadline', detail: null },
      { n: 6, id: 'p6', reason: 'deadline', detail: null },
    ]);
    expect((await work.failedProducts(4, 1)).map((p) => p.n)).toEqual([5]);
    expect((await work.failedProducts(0, 10, ['deadline'])).map((p) => p.n)).toEqual([5, 6]);
  });
});
