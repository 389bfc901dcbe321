/**
 * The frontier of a discovery: every URL once, the best first, links that add up, and what the next night begins with.
 */
import { expect, it } from 'vitest';
import type { ItemResult } from '../../../../shared/wire/part.ts';
import { type DiscoverSettings, noDiscovery } from '../../../../orchestrator/core/model/discovery.ts';
import { createFrontier, type Found } from '../../../../orchestrator/features/discovery/frontier.ts';
import { judgeLinks, openFrontier } from '../../../../orchestrator/features/discovery/link-intake.ts';
import { inTransaction } from '../../../../orchestrator/core/db/retry.ts';
import {
  beginRound,
  bestWaiting,
  settleFrontier,
  storeDenyList,
  storeScores,
} from '../../../../orchestrator/features/discovery/settle-frontier.ts';
import {
  type Bench,
  createRun,
  failed,
  field,
  gone,
  load,
  mappingOf,
  NOW,
  onBothEngines,
  partRef,
  publish,
  settings,
} from '../../core/db/harness.ts';

const ORIGIN = 'https://shop.example';
const MAPPING = {
  pages: [
    ...mappingOf([field('title')], { urlPatterns: ['/item/'] }).pages,
    ...mappingOf([], { name: 'lists', urlPatterns: ['/list', '/month/'] }).pages,
  ],
};

const discover = (more: Partial<DiscoverSettings> = {}): DiscoverSettings => ({
  origin: ORIGIN,
  id: '/item/(\\w+)',
  depth: 100,
  order: 'breadth',
  allow: [],
  keep: 1_000,
  pages: 1_000,
  seen: 'exact',
  ...more,
});

/** A result of the product or page with these links. */
const page = (n: number, path: string, links: readonly string[], rows = 0): ItemResult => ({
  n,
  id: path,
  url: ORIGIN + path,
  at: '2026-11-21T02:15:30.123Z',
  attempts: 1,
  outcome: 'stored',
  rows: Array.from({ length: rows }, () => ({ key: null, row: { title: path } })),
  links: links.map((link) => new URL(link, ORIGIN).href),
});

onBothEngines('The frontier', (bench, engine) => {
  let made = 0;

  async function site(more: Partial<DiscoverSettings> = {}) {
    const own = discover(more);
    const table = `found_${engine}_${++made}`;
    const { db } = bench();
    await createFrontier(db, table);
    const opened = { discover: own, mapping: MAPPING, table };
    const seed = async (...paths: string[]) => {
      const { frontier, rules } = await openFrontier(db.knex, db, opened);
      const found = judgeLinks(
        rules,
        paths.map((path) => ORIGIN + path),
        0,
      ).candidates.map((one): Found => ({ ...one, parent: null }));
      return inTransaction(db, (trx) => frontier.enter(trx, found, { runId: null, nowMs: NOW }));
    };
    const night = async () => {
      const run = await createRun(bench(), [], {
        settings: { ...settings(table, {}, MAPPING), discover: own },
      });
      await db
        .knex('crawlfleet_runs')
        .where({ id: run.id })
        .update({ discovery: JSON.stringify(noDiscovery()) });
      return run;
    };
    const rows = (): Promise<{ path: string; state: string; n: number | null }[]> =>
      db.knex(`${table}_frontier`).orderBy('n').orderBy('path').select('path', 'state', 'n');
    return { table, seed, night, rows, settle: () => settleFrontier(db, table, own.seen), db };
  }

  const countsOf = async ({ stores }: Bench, id: string) => (await stores.runs.get(id))!.discovery!;

  it('takes each URL once, in chunks, and counts what pages lead to', async () => {
    const { seed, night, db, table } = await site();
    expect(await seed('/list', '/list#top', '/item/1', '/elsewhere')).toMatchObject({ fresh: 2, known: 1 });
    const run = await night();
    expect(await run.feed!.state()).toEqual({ waiting: 2, planned: 0, open: 0 });
    expect(await run.feed!.take(10)).toBe(2);
    expect(await run.feed!.take(10)).toBe(0);
    expect(await run.feed!.state()).toEqual({ waiting: 0, planned: 2, open: 2 });
    const [chunk, ...more] = await run.work.waiting(10, new Set());
    expect([...chunk!.products, ...more.flatMap(({ products }) => products)].map(({ n }) => n)).toEqual([1, 2]);
    const paths = new Map([chunk!, ...more].flatMap(({ products }) => products).map(({ n, id }) => [id, n]));
    expect([...paths.keys()].sort()).toEqual(['/item/1', '/list']);

    const links = ['/item/2?utm_source=x', '/item/2', '/item/1', '/list', 'https://other.example/', '/about'];
    const results = [page(paths.get('/list')!, '/list', links), page(paths.get('/item/1')!, '/item/1', ['/item/3'], 1)];
    await load(bench(), run.id, results);
    const counts = { entered: 0, found: 7, fresh: 2, known: 3, denied: { site: 1, mapping: 1 }, dropped: 0, fell: 0 };
    expect(await countsOf(bench(), run.id)).toEqual({ ...counts, hidden: 0 });
    // The same results from another instance change nothing.
    await load(bench(), run.id, results, { slot: 1, epoch: 1, seq: 0 });
    expect(await countsOf(bench(), run.id)).toMatchObject({ found: 7 });
    expect(await run.feed!.state()).toEqual({ waiting: 2, planned: 2, open: 0 });
    const one = { planned: 1, open: 0, stored: 1, gone: 0, failed: 0, reasons: {} };
    expect(await run.work.outcomes()).toEqual({ ...one, planned: 2, stored: 2, linkPages: one });
    await publish(bench(), run.id);
    expect(await db.knex(table).select('product_id', 'title')).toEqual([{ product_id: '1', title: '/item/1' }]);
  });

  it('tells a link that leads to the page of a known product from a product of its own', async () => {
    const { seed, night, rows } = await site();
    await seed('/item/1', '/item/2', '/item/3');
    const run = await night();
    await run.feed!.take(10);
    const results = (await rows()).map(({ path, n }) => {
      const found = page(n!, path, [], 1);
      if (path === '/item/1') return found;
      // Item 2 is item 1 by another address; item 3 is at an address that no link names.
      return {
        ...found,
        finalUrl: `${ORIGIN}${path === '/item/2' ? '/item/1?utm_source=x' : '/item/77'}`,
      } as ItemResult;
    });
    await load(bench(), run.id, results);
    const aliases = await run.feed!.aliases();
    expect(aliases).toEqual([{ id: '2', of: '1' }]);
    await run.results.refuse([{ id: '2', outcome: 'gone', reason: null, detail: 'the same page as 1' }], 'one alias');
    expect(await run.work.outcomes()).toMatchObject({ stored: 2, gone: 1 });
    expect(await run.feed!.state()).toEqual({ waiting: 0, planned: 3, open: 0 });
  });

  it('keeps the best, and drops the worst of this run and of earlier ones', async () => {
    const { seed, night, table, db } = await site({ order: 'score', keep: 3 });
    await storeScores(db, table, new Map(['1', '2', '3', '4', '5'].map((id) => [`item ${id}`, Number(id)])));
    expect(await seed('/list', '/item/1')).toMatchObject({ fresh: 2 });
    const run = await night();
    expect(await run.feed!.take(1)).toBe(1);
    expect((await run.work.waiting(1, new Set()))[0]!.products).toEqual([{ n: 1, id: '/item/1' }]);
    await load(bench(), run.id, [page(1, '/item/1', ['/item/2', '/item/3', '/item/4', '/item/5'], 1)]);
    expect(await countsOf(bench(), run.id)).toMatchObject({ found: 4, fresh: 3, dropped: 1, fell: 1 });
    expect(await bestWaiting(db, table, 10)).toEqual(['/item/5', '/item/4', '/item/3']);
    // What fell out was never taken: it may come back.
    await storeScores(db, table, new Map([['item 2', 9]]));
    expect(await seed('/item/2')).toMatchObject({ fresh: 1, fell: 1 });
    expect((await bestWaiting(db, table, 10))[0]).toBe('/item/2');
  });

  it('gives what was not crawled to the next night, and asks for nothing else again', async () => {
    const { seed, night, settle, table, db, rows } = await site();
    await seed('/list', '/item/1', '/item/2', '/item/3', '/item/4');
    const run = await night();
    await run.feed!.take(10);
    const numbers = new Map((await rows()).map(({ path, n }) => [path, n!]));
    await load(bench(), run.id, [
      page(numbers.get('/list')!, '/list', []),
      gone(numbers.get('/item/1')!, '/item/1'),
      failed(numbers.get('/item/2')!, 'HTTP 500', '/item/2'),
      { ...failed(numbers.get('/item/3')!, 'not allowed', '/item/3'), reason: 'robots' } as ItemResult,
    ]);
    // The run is not over: it may still crawl what it has taken.
    expect(await settle()).toBe(0);
    await run.work.failRest('deadline');
    await publish(bench(), run.id);
    expect(await settle()).toBe(3);
    expect((await bestWaiting(db, table, 10)).sort()).toEqual(['/item/2', '/item/3', '/item/4']);
    expect(await seed('/item/1', '/list')).toMatchObject({ fresh: 0, known: 2 });
    // A new round goes through the lists again, and not through products.
    await beginRound(db, table);
    expect(await seed('/item/1', '/list')).toMatchObject({ fresh: 1, known: 1 });
  });

  it('returns all that a cancelled run has taken, and gives up what fails each time', async () => {
    const { seed, night, settle } = await site();
    await seed('/item/1');
    const waiting: number[] = [];
    for (const end of ['cancel', 'fail', 'fail', 'fail']) {
      const run = await night();
      expect(await run.feed!.take(10)).toBe(1);
      await load(bench(), run.id, [end === 'cancel' ? page(1, '/item/1', [], 1) : failed(1, 'HTTP 500', '/item/1')]);
      if (end === 'cancel') await bench().stores.runs.setRequest(run.id, 'cancel');
      await publish(bench(), run.id);
      waiting.push(await settle());
    }
    expect(waiting).toEqual([1, 1, 1, 0]);
  });

  it('cuts pages that lead to nothing but more of themselves', async () => {
    const { seed, night, db, table, rows } = await site();
    await seed('/month/1', '/list');
    const run = await night();
    await run.feed!.take(1);
    for (let n = 1; n <= 60; n++) {
      const path = (await rows()).find((row) => row.n === n)?.path;
      if (path === undefined) break;
      const next = path.startsWith('/month/') ? [`/month/${Number(path.slice(7)) + 1}`, '/list'] : ['/month/1'];
      // One main server: what it has seen of a pattern is in its memory.
      const part = { slot: 0, epoch: 1, seq: n };
      await run.results.register(part, [partRef(run.id, part)]);
      await run.results.load(part, [page(n, path, next)]);
      await run.feed!.take(1);
    }
    const counts = await countsOf(bench(), run.id);
    expect(counts.found).toBe(counts.fresh + counts.known + (counts.denied.trap ?? 0) + counts.dropped);
    expect((await run.run.events(10, 'alarm')).map(({ detail }) => detail)).toEqual([
      expect.stringContaining('/month/#'),
    ]);
    expect(await bestWaiting(db, table, 10)).toEqual([]);
    // Known the next night too.
    expect(await seed('/month/99')).toMatchObject({ fresh: 0 });
  });

  it('denies what the list says, and remembers taken products in a Bloom filter', async () => {
    const { seed, night, settle, table, db, rows } = await site({ seen: 'bloom' });
    await storeDenyList(db, table, ['/item/9', 'ads.example']);
    expect(await seed('/item/1', '/item/91', '/list')).toMatchObject({ fresh: 2 });
    const run = await night();
    await run.feed!.take(10);
    const results = (await rows()).map(({ path, n }) => page(n!, path, [], path === '/list' ? 0 : 1));
    await load(bench(), run.id, results);
    await publish(bench(), run.id);
    await settle();
    expect(await rows()).toEqual([{ path: '/list', state: 'done', n: expect.any(Number) as number }]);
    expect(await seed('/item/1', '/item/2')).toMatchObject({ fresh: 1, known: 1 });
    // Folding again, with nothing new, keeps it.
    await settle();
    expect(await seed('/item/1')).toMatchObject({ fresh: 0, known: 1 });
  });
});
