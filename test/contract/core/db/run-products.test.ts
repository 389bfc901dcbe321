/** The products of a run as the page lists them: by part of the ID, outcome and reason, and over HTTP. */
import { beforeAll, describe, expect, it } from 'vitest';
import type { RunSettings } from '../../../../orchestrator/core/model/run-settings.ts';
import { History, type ProductQuery } from '../../../../orchestrator/core/db/history.ts';
import { listen } from '../../../../orchestrator/core/server/listen.ts';
import { createServeApp } from '../../../../orchestrator/features/serve/serve-app.ts';
import { systemClock } from '../../../../shared/adapters/system-clock.ts';
import { createRun, onBothEngines, settings, type TestRun } from './harness.ts';

const NAMED = ['Abc-1', 'abC-2', 'x%y', 'xay', 'x_y', "o'x!y"];

onBothEngines('The products of a run', (bench) => {
  let run: TestRun;
  const find = async (query: Partial<ProductQuery>) => {
    const { products, next } = await new History(bench().db).products(run.id, { after: 0, ...query });
    return { ids: products.map(({ id }) => id), next };
  };

  beforeAll(async () => {
    const site = { productUrl: 'https://a.example/{id}', intervalMs: 5_000 } as RunSettings['site'];
    const ids = [...NAMED, ...Array.from({ length: 450 }, (_, i) => `many ${i + 1}`)];
    run = await createRun(bench(), ids, { settings: { ...settings('run_products'), site } });
    // Another run of the same products, which is not to be found.
    await createRun(bench(), NAMED);
    const items = () => bench().db.knex('crawlfleet_items').where({ run_id: run.id });
    await items().whereIn('n', [2, 4]).update({ outcome: 'failed', reason: 'timeout', detail: 'none in 30 s' });
    await items().where({ n: 3 }).update({ outcome: 'failed', reason: 'http-status' });
    await items().where({ n: 1 }).update({ outcome: 'stored' });
    // Far behind the others: other ranges of the key.
    await items().where({ n: 456 }).update({ n: 65_000 });
  });

  it('are found by a part of the ID in any case, in which no character has a meaning of its own', async () => {
    expect(await find({ text: 'BC-' })).toEqual({ ids: ['Abc-1', 'abC-2'], next: null });
    expect(await find({ text: 'x%' })).toEqual({ ids: ['x%y'], next: null });
    expect(await find({ text: 'x_y' })).toEqual({ ids: ['x_y'], next: null });
    expect(await find({ text: "'x!y" })).toEqual({ ids: ["o'x!y"], next: null });
    expect(await find({ text: 'many 450' })).toEqual({ ids: ['many 450'], next: null });
  });

  it('are found by outcome and reason', async () => {
    expect((await find({ outcome: 'failed' })).ids).toEqual(['abC-2', 'x%y', 'xay']);
    expect((await find({ outcome: 'failed', reason: 'timeout' })).ids).toEqual(['abC-2', 'xay']);
    expect((await find({ text: 'x', reason: 'timeout' })).ids).toEqual(['xay']);
    expect((await find({ reason: 'poison' })).ids).toEqual([]);
  });

  it('come 200 at a time, each once', async () => {
    const ids: string[] = [];
    const sizes: number[] = [];
    for (let after: number | null = 0; after !== null;) {
      const page = await find({ text: 'many', after });
      ids.push(...page.ids);
      sizes.push(page.ids.length);
      after = page.next;
    }
    expect(sizes.slice(0, 2)).toEqual([200, 200]);
    expect(ids).toEqual(Array.from({ length: 450 }, (_, i) => `many ${i + 1}`));
  });

  describe('over HTTP', () => {
    const get = async (path: string) => {
      const { db, stores } = bench();
      const app = createServeApp({
        stores,
        history: new History(db),
        clock: systemClock,
        assets: new Map([['/index.html', { type: 'text/html', body: Buffer.from('the page') }]]),
        actions: {} as never,
        pace: () => Promise.resolve(''),
        startOfRetry: () => Promise.reject(new Error('not asked for')),
        token: null,
        isOpen: false,
        listenHost: '127.0.0.1',
        health: () => ({ ok: true }),
        logOf: () => null,
        nextDue: () => Promise.resolve(null),
      });
      const listener = await listen(app, '127.0.0.1:0', 'test');
      try {
        const response = await fetch(`http://127.0.0.1:${listener.port}${path}`);
        return { status: response.status, text: await response.text(), headers: response.headers };
      } finally {
        await listener.close();
      }
    };

    it('have their URL, and a page of their own', async () => {
      const { status, text } = await get(`/api/runs/${run.id}/products?outcome=failed&reason=http-status`);
      expect(status).toBe(200);
      expect(JSON.parse(text)).toEqual({
        products: [
          {
            n: 3,
            id: 'x%y',
            path: null,
            outcome: 'failed',
            reason: 'http-status',
            detail: null,
            url: 'https://a.example/x%25y',
          },
        ],
        next: null,
        planned: 456,
      });
      expect((await get(`/runs/${run.id}/products`)).text).toBe('the page');
    });

    it('of the run: settings without secrets; no log where there is none', async () => {
      const { status, text } = await get(`/api/runs/${run.id}/settings`);
      expect([status, JSON.parse(text).site.productUrl]).toEqual([200, 'https://a.example/{id}']);
      const log = await get(`/api/runs/${run.id}/log`);
      expect([log.status, JSON.parse(log.text).error]).toEqual([404, `run ${run.id} has left no log on this machine`]);
    });

    it('have their rows as CSV and NDJSON files', async () => {
      const { knex } = bench().db;
      const row = { url: 'https://a.example/1', run_id: run.id, crawled_at: '2026-11-21 02:15:30' };
      await knex('run_products').insert([
        { ...row, product_id: '1', title: '=1+1' },
        { ...row, product_id: '2', title: 'a, b' },
        { ...row, product_id: '3', title: 'of another run', run_id: 'other' },
      ]);
      const csv = await get(`/api/runs/${run.id}/rows.csv`);
      expect(csv.headers.get('content-disposition')).toBe(`attachment; filename=${run.id}.csv`);
      expect(csv.headers.get('content-type')).toContain('text/csv');
      const lines = csv.text.split('\r\n');
      expect(lines).toHaveLength(4);
      expect(lines[0]).toMatch(/^product_id,.*title/);
      expect(lines[1]).toContain(",'=1+1,");
      expect(lines[2]).toContain(',"a, b",');
      const { text } = await get(`/api/runs/${run.id}/rows.ndjson`);
      const rows = text
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line) as { title: string });
      expect(rows.map(({ title }) => title)).toEqual(['=1+1', 'a, b']);
    });

    it('refuse a wrong query and an unknown run', async () => {
      for (const query of ['after=-1', 'after=x', 'outcome=lost', 'reason=none', 'other=1'])
        expect((await get(`/api/runs/${run.id}/products?${query}`)).status, query).toBe(400);
      expect((await get('/api/runs/none/products')).status).toBe(404);
    });
  });
});
