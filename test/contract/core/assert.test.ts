/** `assert` of fields, from the parts of a run to its result table. */
import { expect, it } from 'vitest';
import { buildReport, publishRun } from '../../../orchestrator/core/act/results/finish.ts';
import { publishHeld } from '../../../orchestrator/core/act/results/publish-held.ts';
import type { DecimalMark } from '../../../shared/domain/currencies.ts';
import type { Assertion, Field, FieldValue, Row } from '../../../shared/domain/mapping.ts';
import type { ItemResult } from '../../../shared/wire/part.ts';
import { onBothEngines } from './db/harness.ts';
import { aNewRun, ResultsStage } from './results-stage.ts';

const ambiguous = (text: string): FieldValue => {
  return { text, point: Number(text), comma: Number(text.replace('.', '')) };
};

onBothEngines('An assertion', (bench, engine) => {
  let tables = 0;
  let began = 0;

  function shop(assert: Partial<Assertion>, field: Partial<Field> = {}) {
    const table = `assert_${engine}_${++tables}`;
    return async (prices: readonly FieldValue[], mark?: DecimalMark) => {
      const run = aNewRun(table, prices.length, { startMs: ++began * 1_000 });
      run.settings.run = { ...run.settings.run, maxFailed: 1 };
      const price: Field = {
        name: 'price',
        steps: [{ type: 'css', selector: '.price' }, { type: 'number' }],
        required: false,
        assert: { else: 'empty', ...assert },
        ...field,
      };
      const title: Field = { name: 'title', steps: [{ type: 'css', selector: 'h1' }], required: false };
      run.settings.mapping = {
        pages: [{ name: 'page', urlPatterns: [], urlParsers: [], rows: null, fields: [title, price] }],
      };
      const stage = new ResultsStage(bench());
      await stage.create(run);
      const results = prices.map((value, i): ItemResult => {
        const id = `p${i + 1}`;
        const row: Row = { title: `Teapot ${i + 1}`, price: value };
        return {
          n: i + 1,
          id,
          url: `https://shop.example/item/${id}`,
          at: '2026-01-01T00:01:00.000Z',
          attempts: 1,
          outcome: 'stored',
          rows: [{ key: null, row, ...(mark && typeof value === 'number' ? { marks: { price: mark } } : {}) }],
        };
      });
      await stage.load(run, results);
      const core = stage.core(run.id);
      await publishRun(core);
      const record = (await bench().stores.runs.get(run.id))!;
      const stands = (await bench().db.knex(table).orderBy('product_id').select('product_id', 'price')) as Row[];
      const failed = await bench()
        .db.knex('crawlfleet_items')
        .where({ run_id: run.id, outcome: 'failed' })
        .orderBy('n')
        .select<{ product_id: string; reason: string; detail: string }[]>('product_id', 'reason', 'detail');
      const rows = stands.map((row) => [row.product_id, row.price === null ? null : Number(row.price)]);
      return {
        record,
        core,
        rows,
        failed,
        notes: (await buildReport(core)).notes,
        verdict: await stage.verdict(run.id),
      };
    };
  }

  it('leaves a value out that breaks it, and the report says how many', async () => {
    const { record, rows, notes, failed, verdict } = await shop({ min: 0.01, max: 100 })([5, 0, 500, null]);
    expect(record).toMatchObject({ phase: 'completed', exitCode: 0 });
    expect(rows).toEqual([
      ['p1', 5],
      ['p2', null],
      ['p3', null],
      ['p4', null],
    ]);
    expect(failed).toEqual([]);
    expect(notes).toContain('values of price broke its assert: 2 were left out, for example p2: 0 is below min 0.01');
    expect(verdict.differences).toEqual([]);
  });

  it('of a required field fails the product, whose older row stays', async () => {
    const night = shop({ min: 0.01 }, { required: true });
    await night([5, 6]);
    const { rows, notes, failed, verdict } = await night([7, 0]);
    expect(rows).toEqual([
      ['p1', 7],
      ['p2', 6],
    ]);
    expect(failed).toEqual([{ product_id: 'p2', reason: 'assert', detail: 'price: 0 is below min 0.01' }]);
    expect(notes).toContain('values of price broke its assert: 1 failed (assert), for example p2: 0 is below min 0.01');
    expect(verdict.differences).toEqual([]);
  });

  it('holds the run where it says so, until a person releases it', async () => {
    const { record, core, rows } = await shop({ min: 0.01, else: 'hold' })([5, 0]);
    expect(record).toMatchObject({
      phase: 'held',
      exitCode: 13,
      reason: 'values broke an assert that holds the run: 1 of price (p2: 0 is below min 0.01)',
    });
    expect(rows).toEqual([]);
    expect(await publishHeld(core, record, false)).toEqual({ rows: 2 });
  });

  it('compares a number with the row that stands', async () => {
    const night = shop({ maxChange: 0.8 });
    await night([100, 100, null]);
    const { rows, notes } = await night([150, 17_334, 17_334, 17_334]);
    expect(rows).toEqual([
      ['p1', 150],
      ['p2', null],
      ['p3', 17_334],
      ['p4', 17_334],
    ]);
    expect(notes.join()).toContain('p2: 17334 differs from 100 by more than 80%');
  });

  it.each<[Assertion['else'], (number | null)[]]>([
    ['empty', [null, 1.5]],
    ['fail', [1.5]],
    ['hold', []],
  ])('judges a number that can be read in two ways once its column is decided: %s', async (what, stand) => {
    const prices = [ambiguous('1.234'), 1.5, ...Array.from({ length: 6 }, () => 2.5)];
    const { record, rows, failed, notes, verdict } = await shop({ max: 1_000, else: what })(prices, ',');
    expect(rows.map(([, price]) => price).slice(0, stand.length)).toEqual(stand);
    expect(verdict.differences).toEqual([]);
    const example = 'p1: 1234 is above max 1000';
    if (what === 'hold') expect(record.reason).toContain(`1 of price (${example})`);
    else expect(notes.join()).toContain(example);
    expect(failed.map(({ reason }) => reason)).toEqual(what === 'fail' ? ['assert'] : []);
  });

  it('says nothing of a number that stays undecided', async () => {
    const { record, rows, failed } = await shop({ max: 1_000, else: 'hold' })([ambiguous('1.234'), 1.5]);
    expect(record.phase).toBe('completed');
    expect(rows).toEqual([
      ['p1', null],
      ['p2', 1.5],
    ]);
    expect(failed).toEqual([]);
  });
});
