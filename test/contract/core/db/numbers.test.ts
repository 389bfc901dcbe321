/** Numbers that can be read in two ways are decided by the run's whole column when its rows are published. */
import { expect, it } from 'vitest';
import type { DecimalMark } from '../../../../shared/domain/currencies.ts';
import type { AmbiguousNumber } from '../../../../shared/domain/ambiguous-number.ts';
import { type ItemResult, itemResultSchema } from '../../../../shared/wire/part.ts';
import type { Field } from '../../../../shared/domain/mapping.ts';
import { noRoomForNumbers } from '../../../../orchestrator/core/db/no-room-for-numbers.ts';
import {
  allRows,
  type Bench,
  COMPLETE,
  publishRows,
  createRun,
  field,
  keyed,
  load,
  mappingOf,
  onBothEngines,
  publish,
  readFacts,
  ROWS_MAPPING,
  settings,
  storedRows,
  toLoading,
} from './harness.ts';

const open = (text: string, point: number | null, comma: number | null): AmbiguousNumber => ({ text, point, comma });
const THOUSANDS = open('1.234', 1.234, 1234);

/** A product with this weight; `mark` is the decimal mark in its text. */
function weighs(n: number, weight: number | AmbiguousNumber | null, mark?: DecimalMark): ItemResult {
  const row = { key: null, row: { weight }, ...(mark === undefined ? {} : { marks: { weight: mark } }) };
  // As read from a part.
  return itemResultSchema.parse(JSON.parse(JSON.stringify(storedRows(n, [row]))));
}

async function weights(bench: Bench, table: string): Promise<unknown[]> {
  return (await allRows(bench, table)).map(({ weight }) => weight);
}

onBothEngines('Numbers that can be read in two ways', (bench, engine) => {
  it.each<[DecimalMark, number]>([
    [',', 1234],
    ['.', 1.234],
  ])('are read with the decimal mark %s when other parts of the column show it', async (mark, expected) => {
    const { runs } = bench().stores;
    const { id, table, results } = await createRun(bench(), 3);
    const first = [weighs(1, THOUSANDS), weighs(2, null)];
    await load(bench(), id, first);
    await load(bench(), id, [weighs(3, 12.5, mark)], { slot: 1, seq: 0 });
    // A part that is loaded again counts once.
    await load(bench(), id, first);
    expect((await results.fillOfFields()).weight).toBeCloseTo(2 / 3);
    await publish(bench(), id);
    expect(await weights(bench(), table)).toEqual([expected, null, 12.5]);
    const shown = { '.': 0, ',': 0, [mark]: 1 };
    expect((await runs.get(id))?.numbers).toEqual([
      { field: 'weight', mark, shown, decided: 1, empty: 0, example: null },
    ]);
    expect((await readFacts(bench(), id)).resultRows).toBe(3);
  });

  it.each<[string, readonly DecimalMark[]]>([
    ['no', []],
    ['both', ['.', ',']],
  ])('stay empty where the column shows %s decimal marks, and are counted with an example', async (_, marks) => {
    const { runs } = bench().stores;
    const { id, table, results } = await createRun(bench(), 4);
    const others = marks.map((mark, i) => weighs(3 + i, 2.5, mark));
    await load(bench(), id, [weighs(1, THOUSANDS), weighs(2, 7), ...others]);
    expect((await results.fillOfFields()).weight).toBeCloseTo((1 + marks.length) / (2 + marks.length));
    await publish(bench(), id);
    expect(await weights(bench(), table)).toEqual([null, 7, ...marks.map(() => 2.5)]);
    expect((await runs.get(id))?.numbers).toMatchObject([{ mark: null, decided: 0, empty: 1, example: '1.234' }]);
  });

  it.each<[number, string, unknown]>([
    [3, 'are read when three products and one in twenty show the mark', 1234],
    [2, 'stay empty when fewer do: a stray value is not the format of a column', null],
  ])('%i: %s', async (shown, _, expected) => {
    const { id, table } = await createRun(bench(), 60);
    const others = Array.from({ length: 59 }, (_, i) =>
      i < shown ? weighs(i + 2, 12.5, ',') : weighs(i + 2, i % 2 === 0 ? 7 : THOUSANDS),
    );
    await load(bench(), id, [weighs(1, THOUSANDS), ...others]);
    await publish(bench(), id);
    expect((await weights(bench(), table))[0]).toEqual(expected);
    const counts = { mark: shown === 3 ? ',' : null, shown: { '.': 0, ',': shown } };
    expect((await bench().stores.runs.get(id))?.numbers).toMatchObject([counts]);
  });

  it('are read in a small run as the last one was published, though nothing in it was ambiguous', async () => {
    const { runs } = bench().stores;
    const own = settings(`number_nights_${engine}`);
    const night = async (...products: ItemResult[]) => {
      const { id } = await createRun(bench(), products.length, { settings: own });
      await load(bench(), id, products);
      await publish(bench(), id);
      return (await runs.get(id))?.numbers?.[0];
    };
    expect(await night(weighs(1, 12.5, ','))).toMatchObject({ mark: ',', decided: 0, empty: 0 });
    expect(await night(weighs(1, THOUSANDS))).toMatchObject({ mark: ',', decided: 1 });
    // The third night knows it from the second, which showed none itself.
    expect(await night(weighs(1, THOUSANDS))).toMatchObject({ mark: ',', decided: 1 });
    expect(await night(weighs(1, THOUSANDS), weighs(2, 12.5, '.'))).toMatchObject({ mark: null, empty: 1 });
    expect(await night(weighs(1, THOUSANDS), weighs(2, 12.5, '.'))).toMatchObject({ mark: '.', decided: 1 });
  });

  it('stay empty where no decimal mark makes them a number', async () => {
    const { id, table } = await createRun(bench(), 2);
    const text = 'Was $120.00 Now $60.00';
    await load(bench(), id, [weighs(1, open(text, null, null)), weighs(2, 2.5, '.')]);
    await publish(bench(), id);
    expect(await weights(bench(), table)).toEqual([null, 2.5]);
    expect((await bench().stores.runs.get(id))?.numbers).toMatchObject([{ mark: '.', empty: 1, example: text }]);
  });

  it('are decided when a held run is released, by all loaded rows; while it is held the run records them', async () => {
    const { runs } = bench().stores;
    const { id, table, run, results } = await createRun(bench(), 2);
    await load(bench(), id, [weighs(1, THOUSANDS)]);
    await toLoading(bench(), id);
    await results.noteNumbers();
    await run.move('loading', 'held');
    expect((await runs.get(id))?.numbers).toMatchObject([{ field: 'weight', empty: 1 }]);
    await load(bench(), id, [weighs(2, 0.5, ',')], { slot: 0, seq: 1 });
    await results.publish('completed', { ...COMPLETE, held: true });
    expect(await weights(bench(), table)).toEqual([1234, 0.5]);
    expect((await runs.get(id))?.numbers).toMatchObject([{ field: 'weight', decided: 1, empty: 0 }]);
  });

  it('are decided in the rows of a product and in lists, too', async () => {
    const rows = await createRun(bench(), 1, { settings: settings(`number_rows_${engine}`, {}, ROWS_MAPPING) });
    const records = [
      { ...keyed('a', { weight: THOUSANDS }) },
      { ...keyed('b', { weight: 1.5 }), marks: { weight: ',' as const } },
    ];
    await load(bench(), rows.id, [storedRows(1, records)]);
    await publish(bench(), rows.id);
    expect(await weights(bench(), rows.table)).toEqual([1234, 1.5]);

    const mapping = mappingOf([field('sizes', { type: 'number' }, { type: 'all' })]);
    const lists = await createRun(bench(), 2, { settings: settings(`number_lists_${engine}`, {}, mapping) });
    const line = (n: number, sizes: (number | AmbiguousNumber)[], mark?: DecimalMark): ItemResult =>
      storedRows(n, [{ key: null, row: { sizes }, ...(mark ? { marks: { sizes: mark } } : {}) }]);
    await load(bench(), lists.id, [line(1, [1, THOUSANDS]), line(2, [2.5], ',')]);
    await publish(bench(), lists.id);
    const [first] = await allRows(bench(), lists.table);
    const sizes = first?.sizes;
    expect(typeof sizes === 'string' ? JSON.parse(sizes) : sizes).toEqual([1, 1234]);
  });

  it('have columns of the result table’s exact type, and fail their product where that has no empty value', async () => {
    const { knex } = bench().db;
    const own = `number_strict_${engine}`;
    await createRun(bench(), 1, { settings: settings(own) });
    await knex.schema.alterTable(own, (t) => void t.dropColumn('weight'));
    await knex.schema.alterTable(own, (t) => void t.double('weight').notNullable().defaultTo(0));
    const { id, table, work } = await createRun(bench(), 2, { settings: settings(own) });
    await load(bench(), id, [weighs(1, THOUSANDS), weighs(2, 2.5, ',')]);
    await publish(bench(), id);
    expect(await weights(bench(), table)).toEqual([2.5]);
    expect((await work.outcomes()).reasons).toEqual({ load: 1 });
    const [failed] = await knex('crawlfleet_items').where({ run_id: id, outcome: 'failed' }).select('detail');
    expect(failed).toEqual({
      detail: expect.stringMatching(/column weight, which is NOT NULL; .* name the decimal mark/) as string,
    });
    const check = (weight: Field) => noRoomForNumbers(bench().db, own, mappingOf([weight]));
    expect(await check(field('weight', { type: 'number' }))).toEqual([
      expect.stringMatching(/column weight of number_strict_\w+ is NOT NULL.*decimal/),
    ]);
    expect(await check(field('weight', { type: 'number', decimal: ',' }))).toEqual([]);
    expect(
      await check({ ...field('weight'), steps: [{ type: 'json_ld', path: 'weight' }, { type: 'number' }] }),
    ).toEqual([]);
  });

  it('are decided again, with the same result, when a publish dies before its commit', async () => {
    const { knex } = bench().db;
    const { stores } = bench();
    const { id, table, results } = await createRun(bench(), 3);
    await load(bench(), id, [weighs(1, THOUSANDS), weighs(2, 12.5, ','), weighs(3, null)]);
    // The upsert fails, after the numbers were recorded.
    await knex.schema.alterTable(table, (t) => void t.renameColumn('url', 'elsewhere'));
    await expect(publish(bench(), id)).rejects.toThrow();
    expect(await allRows(bench(), table)).toEqual([]);
    const undone = await stores.runs.get(id);
    expect([undone?.phase, undone?.numbers]).toEqual(['loading', undefined]);
    await knex.schema.alterTable(table, (t) => void t.renameColumn('elsewhere', 'url'));
    for (let times = 0; times < 2; times++) {
      const { rows } = await publishRows(results);
      expect(rows).toBe(3);
      expect(await weights(bench(), table)).toEqual([1234, 12.5, null]);
      expect((await stores.runs.get(id))?.numbers).toMatchObject([{ mark: ',', decided: 1, empty: 0 }]);
    }
  });

  it('are not decided in a run that was cancelled', async () => {
    const { runs } = bench().stores;
    const { id, table } = await createRun(bench(), 2);
    await load(bench(), id, [weighs(1, THOUSANDS), weighs(2, 12.5, ',')]);
    await runs.setRequest(id, 'cancel');
    expect(await publish(bench(), id)).toEqual({ rows: 0 });
    expect(await allRows(bench(), table)).toEqual([]);
    expect((await runs.get(id))?.phase).toBe('cancelled');
  });
});
