import { expect, it } from 'vitest';
import { describeMissingField, describePoorPage, failureKind, signOf } from '../../../../shared/domain/failure-kind.ts';
import type { FailureReason } from '../../../../shared/domain/outcome.ts';
import { deniedHost, notRequested } from '../../../../shared/domain/own-url.ts';
import type { ItemResult } from '../../../../shared/wire/part.ts';
import { openDatabase } from '../../../../orchestrator/core/db/connect.ts';
import { createStores } from '../../../../orchestrator/core/db/create-stores.ts';
import {
  NOW,
  createInstance,
  createRun,
  failed,
  gone,
  load,
  itWithSql,
  onEveryEngine,
  stored,
  at,
  bound,
} from './harness.ts';
import { expectFault } from '../../../support/expect-fault.ts';
import { features } from '../../../support/features.ts';

const none: ReadonlySet<string> = new Set();

onEveryEngine('WorkStore', (bench, engine) => {
  it('offers waiting chunks in order, except the excluded ones', async () => {
    const { work } = await createRun(bench(), 12, { chunkSize: 5 });
    const chunks = await work.waiting(10, none);
    expect(chunks.map((c) => [c.id, c.products.length])).toEqual([
      ['1-1', 5],
      ['2-1', 5],
      ['3-1', 2],
    ]);
    expect(chunks[2]!.products).toEqual([
      { n: 11, id: 'p11' },
      { n: 12, id: 'p12' },
    ]);
    const rest = await work.waiting(1, new Set(['1-1']));
    expect(rest.map((c) => c.id)).toEqual(['2-1']);
  });

  it('grants a chunk once, and repeats that grant in its answer', async () => {
    const { id, work } = await createRun(bench(), 20);
    await createInstance(bench(), id, 0);
    await createInstance(bench(), id, 1);
    expect(await work.grant(at(0), ['2-1', '1-1'], 9)).toEqual(['2-1', '1-1']);
    expect(await work.grant(at(1), ['1-1', '3-1'], 9)).toEqual(['3-1']);
    expect(await work.grant(at(0), ['1-1', '3-1', '9-1', '4-2', 'rubbish', '4-1', '4-1'], 9)).toEqual(['1-1', '4-1']);
    expect(await work.counts()).toEqual({
      chunks: 4,
      waiting: 0,
      granted: 4,
      bySlot: [
        { slot: 0, epoch: 1, chunks: 3, products: 15 },
        { slot: 1, epoch: 1, chunks: 1, products: 5 },
      ],
    });
  });

  it('respects the maximum number of chunks an instance may own', async () => {
    const { id, work } = await createRun(bench(), 20);
    await createInstance(bench(), id, 0);
    expect(await work.grant(at(0), ['1-1', '2-1', '3-1'], 2)).toEqual(['1-1', '2-1']);
    expect(await work.grant(at(0), ['3-1', '1-1'], 2)).toEqual(['1-1']);
  });

  it('grants nothing to an instance that is given up or unknown', async () => {
    const { id, fleet, work } = await createRun(bench(), 10);
    await createInstance(bench(), id, 0);
    await fleet.move(at(0), 'crawling', 'lost');
    expect(await work.grant(at(0), ['1-1'], 9)).toEqual([]);
    expect(await work.grant(at(7), ['1-1'], 9)).toEqual([]);
    expect(await work.counts()).toMatchObject({ waiting: 2, granted: 0 });
  });

  itWithSql(engine)('grants each chunk to one instance when many request it at once', async () => {
    const { id } = await createRun(bench(), 60, { chunkSize: 3 });
    const slots = [0, 1, 2, 3, 4];
    for (const slot of slots) await createInstance(bench(), id, slot);
    const asked = Array.from({ length: 20 }, (_, i) => `${i + 1}-1`);
    const second = await openDatabase(bench().url);
    try {
      const works = [bench().stores, createStores(second, features)].map(
        (stores) => bound({ ...bench(), stores }, id).work,
      );
      const answers = await Promise.all(
        slots.map((slot) => {
          // Each in a different order, which is what makes transactions deadlock.
          const order = [...asked.slice(slot * 4), ...asked.slice(0, slot * 4)];
          return works[slot % 2]!.grant(at(slot), order, 6);
        }),
      );
      const granted = answers.flat();
      expect(new Set(granted).size).toBe(granted.length);
      expect(granted).toHaveLength(20);
      expect(Math.max(...answers.map((a) => a.length))).toBeLessThanOrEqual(6);
    } finally {
      await second.close();
    }
  });

  it('takes back what an instance has not crawled, as the next generation', async () => {
    const { id, work } = await createRun(bench(), 15);
    await createInstance(bench(), id, 0);
    await createInstance(bench(), id, 0, 2);
    await work.grant(at(0), ['1-1', '2-1', '3-1'], 9);
    const done = [1, 2, 3, 4, 5, 6, 8].map((n) => stored(n));
    await load(bench(), id, done);
    expect(await work.returnChunks(at(0))).toBe(8);
    expect(await work.returnChunks(at(0))).toBe(0);
    const chunks = await work.waiting(10, none);
    expect(chunks.map((c) => [c.id, c.products.map((p) => p.n)])).toEqual([
      ['2-2', [7, 9, 10]],
      ['3-2', [11, 12, 13, 14, 15]],
    ]);
    expect(await work.grant(at(0, 2), ['2-1', '2-2'], 9)).toEqual(['2-2']);
    expect((await work.counts()).bySlot).toEqual([
      { slot: 0, epoch: 1, chunks: 1, products: 5 },
      { slot: 0, epoch: 2, chunks: 1, products: 3 },
    ]);
  });

  it('never leaves a chunk with a lost instance, in whatever order grant and release run', async () => {
    for (let round = 0; round < 8; round++) {
      const { id, fleet, work } = await createRun(bench(), 5);
      await createInstance(bench(), id, 0);
      const lose = async () => {
        await fleet.move(at(0), 'crawling', 'lost');
        await work.returnChunks(at(0));
      };
      await Promise.all([work.grant(at(0), ['1-1'], 9), lose()]);
      expect(await work.counts()).toMatchObject({ waiting: 1, granted: 0 });
    }
  });

  it('lets late results of a lost instance settle products, and never offers a settled chunk again', async () => {
    const { id, work } = await createRun(bench(), 10);
    await createInstance(bench(), id, 0);
    await work.grant(at(0), ['1-1', '2-1'], 9);
    await work.returnChunks(at(0));
    await load(
      bench(),
      id,
      [1, 2, 3, 4, 5, 6].map((n) => stored(n)),
    );
    expect(await work.counts()).toMatchObject({ waiting: 1 });
    expect((await work.waiting(10, none)).map((c) => [c.id, c.products.length])).toEqual([['2-2', 4]]);
  });

  it('fails the rest with a reason and keeps what is settled', async () => {
    const { id, work } = await createRun(bench(), 10);
    await createInstance(bench(), id, 0);
    await load(bench(), id, [stored(1), gone(2), failed(3)]);
    expect(await work.failRest('deadline')).toBe(7);
    expect(await work.failRest('cancelled')).toBe(0);
    expect(await work.outcomes()).toEqual({
      planned: 10,
      open: 0,
      stored: 1,
      gone: 1,
      failed: 8,
      reasons: { 'http-status': 1, deadline: 7 },
    });
    expect(await work.outcomesBySlot()).toEqual([{ slot: 0, epoch: 1, stored: 1, gone: 1, failed: 1 }]);
    expect(await work.waiting(10, none)).toEqual([]);
    expect(await work.counts()).toMatchObject({ waiting: 0 });
  });

  it('lists what an instance owns and has not settled, the last granted first', async () => {
    const { id, work } = await createRun(bench(), 20);
    await createInstance(bench(), id, 0);
    await work.grant(at(0), ['1-1', '3-1'], 9);
    await bound(bench(), id, { nowMs: NOW + 1_000 }).work.grant(at(0), ['2-1'], 9);
    await load(
      bench(),
      id,
      [1, 2, 3, 4, 5, 11].map((n) => stored(n)),
    );
    expect(await work.chunksOf(at(0))).toEqual([
      { id: '2-1', open: 5 },
      { id: '3-1', open: 4 },
    ]);
    expect(await work.chunksOf(at(0, 2))).toEqual([]);
  });

  it('takes back exactly the chunks that an instance returned, once, and only while it owns them', async () => {
    const { id, work } = await createRun(bench(), 20);
    await createInstance(bench(), id, 0);
    await createInstance(bench(), id, 1);
    await work.grant(at(0), ['1-1', '2-1', '3-1'], 9);
    await work.grant(at(1), ['4-1'], 9);
    expect(await work.transferChunks(at(0), ['3-1', '4-1', '2-7', 'rubbish', '9-1'])).toBe(5);
    expect(await work.transferChunks(at(0), ['3-1', '3-2'])).toBe(0);
    expect(await work.transferChunks(at(0), [])).toBe(0);
    expect((await work.waiting(10, none)).map((c) => [c.id, c.products.length])).toEqual([['3-2', 5]]);
    expect((await work.counts()).bySlot).toEqual([
      { slot: 0, epoch: 1, chunks: 2, products: 10 },
      { slot: 1, epoch: 1, chunks: 1, products: 5 },
    ]);
    // An old message of the first owner takes nothing from the next one, nor from itself under the next generation.
    expect(await work.grant(at(1), ['3-1', '3-2'], 9)).toEqual(['3-2']);
    expect(await work.transferChunks(at(0), ['3-1', '3-2'])).toBe(0);
  });

  it('takes nothing under an old fence, and leaves a settled chunk with its owner', async () => {
    const { id, work } = await createRun(bench(), 10);
    await createInstance(bench(), id, 0);
    const { fence } = bench();
    await work.grant(at(0), ['1-1', '2-1'], 9);
    await expectFault(bound(bench(), id, { fence: fence - 1 }).work.transferChunks(at(0), ['1-1']), 'lock-held');
    await load(
      bench(),
      id,
      [1, 2, 3, 4, 5].map((n) => stored(n)),
    );
    expect(await work.transferChunks(at(0), ['1-1'])).toBe(0);
    expect(await work.counts()).toMatchObject({ waiting: 0, granted: 2 });
  });

  it('leaves each chunk with one owner, in whatever order transfers, releases and grants run', async () => {
    const { id, work } = await createRun(bench(), 40);
    for (const slot of [0, 1]) await createInstance(bench(), id, slot);
    const all = Array.from({ length: 8 }, (_, i) => `${i + 1}-1`);
    await work.grant(at(0), all, 9);
    const next = all.map((c) => c.replace('-1', '-2'));
    const [first, second] = await Promise.all([
      work.transferChunks(at(0), all.slice(0, 5)),
      work.transferChunks(at(0), all.slice(3)),
      work.grant(at(1), next, 9),
    ]);
    expect(first + second).toBe(40);
    await work.grant(at(1), next, 9);
    expect((await work.counts()).bySlot).toEqual([{ slot: 1, epoch: 1, chunks: 8, products: 40 }]);
  });

  it('groups what became of the products without a row, also those that the main server settled', async () => {
    const { id, work } = await createRun(bench(), 12);
    await createInstance(bench(), id, 0);
    const of = (
      n: number,
      reason: FailureReason,
      detail: string,
      seen: { rule: string; status: number },
    ): ItemResult => {
      const evidence = { ...seen, url: '', headers: {}, body: '' };
      return { ...failed(n, detail), reason, evidence } as ItemResult;
    };
    const lack = describePoorPage(describeMissingField('title'), { isScriptBuilt: true, filled: [] });
    await load(bench(), id, [
      stored(1),
      gone(2),
      ...[3, 4, 5].map((n) => of(n, 'parse', lack, { rule: 'field-missing', status: 200 })),
      // Their details differ, their kind does not.
      ...[6, 7].map((n) =>
        of(n, 'redirect', `302 to https://shop.example/${'x'.repeat(100)}/${n}`, {
          rule: 'redirect-home',
          status: 302,
        }),
      ),
    ]);
    expect(await work.failRest('deadline')).toBe(5);
    const groups = await work.misses(10);
    expect(groups.map(({ reason, products, example }) => [reason, products, example])).toEqual([
      ['deadline', 5, 'p8'],
      ['parse', 3, 'p3'],
      ['redirect', 2, 'p6'],
      ['gone', 1, 'p2'],
    ]);
    const kinds = groups.map(({ reason, detail }) => signOf(failureKind(reason, detail)));
    expect(kinds).toEqual([null, 'field-missing title', '302 redirect-home', '404']);
    expect(failureKind('parse', groups[1]!.detail).isScriptBuilt).toBe(true);
    expect((await work.misses(2)).map(({ reason }) => reason)).toEqual(['deadline', 'parse']);
  });

  it('counts those that are left alone, by the user or an operator, apart from other failures', async () => {
    const { id, work } = await createRun(bench(), 8);
    await createInstance(bench(), id, 0);
    const details = [
      notRequested('site.follow.deny has its URL'),
      notRequested('no section of the mapping reads its URL'),
      deniedHost('a.example'),
      notRequested('it has no URL'),
      '302 to https://a.example/',
    ];
    const redirects = details.map((detail, i) => ({ ...failed(i + 1, detail), reason: 'redirect' }) as ItemResult);
    await load(bench(), id, [...redirects, stored(6), gone(7)]);
    expect(await work.leftAlone()).toBe(3);
    expect(await work.outcomes()).toMatchObject({ failed: 5 });
  });

  it('has no answers for a run without products', async () => {
    const { work } = await createRun(bench(), 0);
    expect(await work.counts()).toEqual({ chunks: 0, waiting: 0, granted: 0, bySlot: [] });
    expect(await work.waiting(5, none)).toEqual([]);
    expect(await work.misses(5)).toEqual([]);
    expect(await work.outcomes()).toMatchObject({ planned: 0, stored: 0, open: 0 });
  });
});
