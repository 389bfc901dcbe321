/** The values of a night, as they are staged and beside the rows that stand: what `results.guard` makes of them. */
import { expect, it } from 'vitest';
import { publishRun, buildReport } from '../../../../orchestrator/core/act/results/finish.ts';
import { renderReport } from '../../../../orchestrator/core/run/render-report.ts';
import { metricsText } from '../../../../orchestrator/core/read/metrics.ts';
import { publishHeld } from '../../../../orchestrator/core/act/results/publish-held.ts';
import type { NewRun } from '../../../../orchestrator/core/model/stores.ts';
import type { Field, FieldValue } from '../../../../shared/domain/mapping.ts';
import { onBothEngines } from '../../core/db/harness.ts';
import { aNewRun, ResultsStage } from '../../core/results-stage.ts';

const css = (selector: string) => ({ type: 'css', selector }) as const;
const FIELDS: Field[] = [
  { name: 'title', steps: [css('h1')], required: false },
  { name: 'price', steps: [css('.price'), { type: 'price' }], required: false },
  { name: 'price_currency', steps: [css('.price'), { type: 'currency' }], required: false },
  { name: 'stock', steps: [css('.stock'), { type: 'integer' }], required: false },
  { name: 'sold', steps: [css('.sold'), { type: 'boolean' }], required: false },
  { name: 'since', steps: [css('.since'), { type: 'date', format: null, locale: null }], required: false },
  { name: 'images', steps: [css('img'), { type: 'all' }], required: false },
];

type Values = Record<string, FieldValue>;

onBothEngines('The values of a run', (bench, engine) => {
  let tables = 0;
  let began = 0;

  function shop(products = 40, change: (run: NewRun) => void = () => undefined) {
    const table = `values_${engine}_${++tables}`;
    const night = async (valuesOf: (n: number) => Values = () => ({}), only = change) => {
      const run = aNewRun(table, products, { startMs: ++began * 1_000 });
      run.settings.mapping = { pages: [{ name: 'page', urlPatterns: [], urlParsers: [], rows: null, fields: FIELDS }] };
      only(run);
      const stage = new ResultsStage(bench());
      await stage.create(run);
      const rowOf = (n: number): Values => ({
        title: `Teapot ${n}`,
        price: n + 0.99,
        price_currency: 'EUR',
        stock: n % 7,
        sold: n % 3 === 0,
        since: '2026-01-02',
        images: [`/${n}.jpg`],
        ...valuesOf(n),
      });
      const at = '2026-01-01T00:01:00.000Z';
      const results = Array.from({ length: products }, (_, i) => {
        const [n, id] = [i + 1, `p${i + 1}`];
        const rows = [{ key: null, row: rowOf(n) }];
        return { n, id, url: `https://shop.example/item/${id}`, at, attempts: 1, outcome: 'stored' as const, rows };
      });
      await stage.load(run, results);
      const core = stage.core(run.id);
      await publishRun(core);
      return { run, core, record: (await bench().stores.runs.get(run.id))! };
    };
    return night;
  }

  it('are described in the report, field by field', async () => {
    const night = shop();
    await night();
    const { run, core, record } = await night((n) => (n <= 10 ? { price: 100, title: null } : {}));
    expect(record).toMatchObject({ phase: 'completed', exitCode: 0 });
    const report = await buildReport(core);
    const { values } = report;
    expect(values).toMatchObject({ products: 40, common: 40 });
    expect(values).not.toHaveProperty('note');
    expect(values!.fields).toMatchObject({
      title: { filled: 0.75, empty: 0, top: 0.033333, changed: 0.25 },
      price: { filled: 1, empty: 0, top: 0.25, numbers: { low: 12.99, median: 30.99, high: 100 }, changed: 0.25 },
      price_currency: { currencies: { EUR: 1 }, top: 1, changed: 0 },
      stock: { empty: 0.125, numbers: { low: 0, median: 3, high: 6 }, changed: 0 },
      sold: { empty: 0, changed: 0 },
      since: { changed: 0, top: 1 },
      images: { changed: 0, top: 0.025 },
    });
    const lines = renderReport(report)
      .split('\n')
      .map((line) => line.trim().replaceAll(/ {2,}/g, ' | '));
    expect(lines).toContain('Values of 40 stored products; 40 of them were crawled before');
    expect(lines).toContain('price | 100 % | 0 % | 25 % | 30.99 | 12.99 to 100 | 25 %');
    expect(lines).toContain('price_currency | 100 % | 0 % | 100 % | - | EUR 100 % | 0 %');
    const { text } = await metricsText(bench().stores, run.id);
    const labels = `table="${run.settings.results.table}",field="price"`;
    expect(text).toContain(`crawlfleet_run_field_share{${labels},share="changed"} 0.25`);
    expect(text).toContain(`crawlfleet_run_field_number{${labels},quantile="0.5"} 30.99`);
    expect(text).toContain(
      `crawlfleet_run_field_currency_share{${labels.replace('price', 'price_currency')},currency="EUR"} 1`,
    );
  });

  it.each<[string, (n: number) => Values, RegExp]>([
    ['zero', () => ({ price: 0 }), /price: 100 % zero or empty \(before: 0 %, 0 %\), for example p1: 1\.99 became 0/],
    ['cents', (n) => ({ price: n * 100 + 99 }), /price: 100 % changed tenfold or more/],
    ['another currency', () => ({ price_currency: 'CHF' }), /price_currency: 100 % in another currency/],
    ['one title', () => ({ title: 'Cookies' }), /title: 100 % one and the same value .* p1: Teapot 1 became Cookies/],
  ])('hold the run when every page says the same wrong thing: %s', async (_, wrong, words) => {
    const night = shop();
    await night();
    await night();
    const { run, core, record } = await night(wrong);
    expect(record).toMatchObject({ phase: 'held', exitCode: 13 });
    expect(record.reason).toMatch(words);
    // Their row is released by a person, and the next night is compared with it.
    await publishHeld(core, record, false);
    expect((await night(wrong)).record).toMatchObject({ phase: 'completed', exitCode: 0 });
    expect(await bench().db.knex(run.settings.results.table).where({ product_id: 'p1' })).toHaveLength(1);
  });

  it('are not compared with those of another mapping', async () => {
    const night = shop();
    await night();
    const other = (run: NewRun): void => void (run.settings.mapping.pages[0]!.fields = FIELDS.slice(0, 2));
    const { record } = await night(() => ({ price: 0 }), other);
    expect(record).toMatchObject({ phase: 'completed', exitCode: 0 });
    expect(record.values).toMatchObject({
      common: 0,
      note: 'values were not compared: no earlier run has this mapping',
    });
  });

  it('hold nothing where fewer than thirty products were there before', async () => {
    const night = shop(29);
    await night();
    const { record } = await night(() => ({ price: 0 }));
    expect(record).toMatchObject({ phase: 'completed', exitCode: 0 });
    expect(record.values!.note).toBe(
      'values were not compared: 29 of the sampled products were crawled before, and 30 are needed',
    );
  });

  it('hold nothing without a guard', async () => {
    const night = shop(40, (run) => void (run.settings.results.guard = null));
    await night();
    expect((await night(() => ({ price: 0 }))).record).toMatchObject({ phase: 'completed', exitCode: 0 });
  });

  it('are drawn from the whole list of a large run', async () => {
    const night = shop(2_500);
    const { record } = await night();
    expect(record.values!.products).toBe(2_000);
    expect(record.values!.fields.price!.numbers!.median).toBeCloseTo(1_250, -2);
  });
});
