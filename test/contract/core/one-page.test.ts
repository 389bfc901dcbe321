/** One page is one product: what the end of a run makes of products that share a page or a row. */
import { expect, it } from 'vitest';
import { buildReport, publishRun } from '../../../orchestrator/core/act/results/finish.ts';
import type { Field } from '../../../shared/domain/mapping.ts';
import type { NewRun } from '../../../orchestrator/core/model/stores.ts';
import type { ItemResult } from '../../../shared/wire/part.ts';
import { onBothEngines } from './db/harness.ts';
import { aNewRun, ResultsStage } from './results-stage.ts';

const SHOP = 'https://shop.example';
const text = (name: string): Field => ({ name, steps: [{ type: 'css', selector: `.${name}` }], required: false });

onBothEngines('One page is one product', (bench, engine) => {
  let tables = 0;
  const newTable = () => `one_page_${engine}_${++tables}`;

  /** The run of one night, ended. */
  async function night(
    table: string,
    results: readonly ItemResult[],
    change: Partial<NewRun['settings']['site']> = {},
    more: readonly string[] = [],
  ) {
    const stage = new ResultsStage(bench());
    const run = aNewRun(table, results.length);
    const fields = ['title', 'brand', 'price', ...more].map(text);
    run.settings.mapping = { pages: [{ name: 'page', urlPatterns: [], urlParsers: [], rows: null, fields }] };
    run.settings.site = { ...run.settings.site, productUrl: `${SHOP}/item/{id}`, ...change };
    await stage.create(run);
    await stage.load(run, results);
    await publishRun(stage.core(run.id));
    const record = (await bench().stores.runs.get(run.id))!;
    const { notes, products } = await buildReport(stage.core(run.id));
    const rows = await stage.rows(run);
    return { record, notes, products, titles: rows.map(([, title]) => title), verdict: await stage.verdict(run.id) };
  }

  function stored(n: number, title: string, finalPath?: string): ItemResult {
    const url = `${SHOP}/item/p${n}`;
    const row = { title, brand: 'Kiln', price: finalPath === undefined ? `${n}.00` : '9.00' };
    const moved = finalPath === undefined ? {} : { finalUrl: SHOP + finalPath };
    const common = { n, id: `p${n}`, url, at: '2026-01-01T00:01:00.000Z', attempts: 1 };
    return { ...common, outcome: 'stored', rows: [{ key: null, row }], ...moved };
  }
  const many = (count: number, make: (n: number) => ItemResult) => Array.from({ length: count }, (_, i) => make(i + 1));

  it('fails all products of a consent page, and keeps the rows of the night before', async () => {
    const table = newTable();
    await night(
      table,
      many(60, (n) => stored(n, `Teapot ${n}`)),
    );
    const results = many(60, (n) => {
      return n <= 12 ? stored(n, 'Before you continue', `/consent?return=/item/p${n}`) : stored(n, `Teapot ${n}`);
    });
    const { record, products, notes, titles, verdict } = await night(table, results);
    expect(record).toMatchObject({ phase: 'completed', exitCode: 12 });
    expect(products).toMatchObject({ stored: 48, failed: 12, reasons: { redirect: 12 } });
    expect(new Set(titles).size).toBe(60);
    expect(notes.join('\n')).toContain(
      'the requests of 12 products ended on shop.example/consent?return=, which does not name any of them, so they failed (redirect)',
    );
    expect(verdict.holds).toBe(true);
    expect(verdict.notes.join()).toContain('12 products were stored by their part, and refused');
  });

  it('fails all products of a wall that gives each request a number, and holds one with filled rows', async () => {
    const blocked = (n: number): ItemResult => {
      const result = stored(n, 'Access denied', `/blocked?uuid=${n * 7_919}-c0ffee&vid=${n % 5}`);
      if (result.outcome === 'stored') Object.assign(result.rows[0]!.row, { brand: null, price: null });
      return result;
    };
    const { products, notes } = await night(
      newTable(),
      many(40, (n) => (n <= 12 ? blocked(n) : stored(n, `Teapot ${n}`))),
    );
    expect(products).toMatchObject({ stored: 28, failed: 12, reasons: { redirect: 12 } });
    expect(notes.join('\n')).toContain(
      'the requests of 12 products ended on shop.example/blocked?…, which does not name',
    );
    const { record } = await night(
      newTable(),
      many(40, (n) =>
        stored(n, n <= 12 ? 'Our bestseller' : `Teapot ${n}`, n <= 12 ? `/start?visit=${n * 7_919}` : undefined),
      ),
    );
    expect(record.reason).toContain('12 products have one and the same row');
  });

  it('compares addresses where a field has the name of a column of the comparison', async () => {
    const table = newTable();
    const results = many(40, (n) => {
      const result = stored(
        n,
        n <= 12 ? 'Access denied' : `Teapot ${n}`,
        n <= 12 ? `/blocked?uuid=${n}-c0ffee` : undefined,
      );
      if (result.outcome !== 'stored') return result;
      const { row } = result.rows[0]!;
      Object.assign(row, { value: `${n}`, products: `${n}` });
      if (n <= 12) Object.assign(row, { brand: null, price: null });
      return result;
    });
    const { products } = await night(table, results, {}, ['value', 'products']);
    expect(products).toMatchObject({ stored: 28, failed: 12, reasons: { redirect: 12 } });
  });

  it('stores products that only the shop can tell apart by their addresses', async () => {
    const other = (n: number): ItemResult => {
      const result = stored(n, `Book ${Math.ceil(n / 4)}`, `/show.php?article=${n * 7_919}`);
      if (result.outcome === 'stored') Object.assign(result.rows[0]!.row, { brand: null, price: `${n}.50` });
      return result;
    };
    const { record, products, notes } = await night(
      newTable(),
      many(90, (n) => (n <= 40 ? other(n) : stored(n, `Teapot ${n}`))),
    );
    expect(record).toMatchObject({ phase: 'completed', exitCode: 0 });
    expect(products).toMatchObject({ stored: 90, failed: 0 });
    expect(notes.join('\n')).not.toContain('show.php');
  });

  it('stores them where the user says so, and lists them', async () => {
    const results = many(20, (n) => stored(n, 'All teapots', '/teapots'));
    const { record, products, notes } = await night(newTable(), results, { samePage: 'store' });
    expect(record).toMatchObject({ phase: 'completed', exitCode: 0 });
    expect(products.stored).toBe(20);
    expect(notes.join('\n')).toContain('20 products ended on shop.example/teapots: p1, p10, p11 …');
  });

  it('holds a run in which one row stands under many IDs, until a night was published with it', async () => {
    const table = newTable();
    const wall = (n: number): ItemResult => {
      const result = stored(n, n <= 15 ? 'Sold out' : `Teapot ${n}`);
      if (n <= 15 && result.outcome === 'stored') result.rows[0]!.row.price = '0';
      return result;
    };
    const held = await night(table, many(40, wall));
    expect(held.record).toMatchObject({ phase: 'held', exitCode: 13 });
    expect(held.record.reason).toContain('15 products have one and the same row, for example p1, p10, p11');
    const free = await night(newTable(), many(40, wall), { samePage: 'store' });
    expect(free.record).toMatchObject({ phase: 'completed' });
    const next = await night(free.record.settings.results.table, many(40, wall));
    expect(next.record).toMatchObject({ phase: 'completed', exitCode: 0 });
  });

  it('lets nights of an ordinary catalogue pass: aliases, variants on one page, successors, canonical addresses', async () => {
    const table = newTable();
    const count = 200;
    const title = (n: number): string => `Teapot ${n}`;
    const ordinary = (shift: number) =>
      many(count, (n) => {
        // Pairs of IDs for one article.
        if (n <= 10) return stored(n, title(Math.ceil(n / 2)), `/teapots/name-${Math.ceil(n / 2)}`);
        // Sizes of one article, each with its own price on the page of all.
        if (n <= 50) return stored(n, title(Math.ceil(n / 8)), `/teapots/group-${Math.ceil(n / 8)}`);
        // Discontinued: the shop leads to the successor.
        if (n <= 70) return stored(n, title(100), '/item/p100');
        if (n <= 130) return stored(n, title(n), `/teapots/teapot-${n + shift}`);
        return stored(n, title(n), n % 2 === 0 ? `/de/item/p${n}` : undefined);
      });
    for (let i = 0; i < 3; i++) {
      const { record, products, verdict } = await night(table, ordinary(i));
      expect(record).toMatchObject({ phase: 'completed', exitCode: 0 });
      expect(products).toMatchObject({ stored: count, failed: 0 });
      expect(verdict.differences).toEqual([]);
    }
  });
});
