/** What values break an assertion, and what becomes of them. */
import { describe, expect, it } from 'vitest';
import type { Assertion, Field, FieldValue, Mapping } from '../../../shared/domain/mapping.ts';
import { Assertions, countBroken, judgeAsserts, sumAssertCounts } from '../../../orchestrator/core/model/assertions.ts';

const page = (assert: Partial<Assertion>, field: Partial<Field> = {}): Mapping['pages'][number] => ({
  name: 'page',
  urlPatterns: [],
  urlParsers: [],
  rows: null,
  fields: [
    {
      name: 'Price',
      steps: [{ type: 'css', selector: 'b' }],
      required: false,
      assert: { else: 'empty', ...assert },
      ...field,
    },
  ],
});
const judge = (assert: Partial<Assertion>, value: FieldValue, before?: number) =>
  new Assertions({ pages: [page(assert)] }).judge(
    { Price: value, other: 7 },
    before === undefined ? undefined : new Map([['price', before]]),
  );

describe('an assertion', () => {
  it.each<[Partial<Assertion>, FieldValue, string | null]>([
    [{ min: 1 }, 1, null],
    [{ min: 1 }, 0.99, '0.99 is below min 1'],
    [{ max: 10 }, 10, null],
    [{ max: 10 }, 10.5, '10.5 is above max 10'],
    [{ matches: '^\\d+ EUR$' }, '7 EUR', null],
    [{ matches: '^\\d+ EUR$' }, 'EUR', '"EUR" does not match ^\\d+ EUR$'],
    [{ matches: 'b' }, ['abc', 'bc'], null],
    [{ matches: 'b' }, ['abc', 'ac'], '"ac" does not match b'],
    [{ oneOf: ['new', 'used'] }, 'used', null],
    [{ oneOf: ['new', 'used'] }, 'Used', '"Used" is not one of the values allowed'],
    [{ oneOf: [true] }, true, null],
    [{ oneOf: [1, 2] }, 3, '3 is not one of the values allowed'],
    [{ min: 1, oneOf: ['x'] }, null, null],
    [{ min: 1 }, [], null],
    [{ min: 2_000 }, { text: '1.234', point: 1.234, comma: 1_234 }, '1.234 is below min 2000'],
    [{ min: 2 }, { text: '1.234', point: 1.234, comma: 1_234 }, null],
  ])('%j of %j', (assert, value, words) => {
    expect(judge(assert, value)).toEqual(words === null ? [] : [{ field: 'Price', else: 'empty', words }]);
  });

  it.each([
    [180, undefined, null],
    [180, 100, null],
    [181, 100, '181 differs from 100 by more than 80%'],
    [20, 100, null],
    [19, 100, '19 differs from 100 by more than 80%'],
    [19, 0, null],
    [-181, -100, '-181 differs from -100 by more than 80%'],
  ])('max_change says of %s after %s: %s', (now, before, words) => {
    expect(judge({ maxChange: 0.8 }, now, before)[0]?.words ?? null).toBe(words);
  });

  it('fails the product where the value must be there', () => {
    const required = new Assertions({ pages: [page({ min: 1 }, { required: true })] });
    expect(required.judge({ Price: 0 }, undefined)).toMatchObject([{ else: 'fail' }]);
    const rows = { each: { type: 'css', selector: 'li' }, key: 'price', empty: null } as const;
    const keyed = new Assertions({ pages: [{ ...page({ min: 1 }), rows }] });
    expect(keyed.judge({ Price: 0 }, undefined)).toMatchObject([{ else: 'fail' }]);
    const held = new Assertions({ pages: [page({ min: 1, else: 'hold' }, { required: true })] });
    expect(held.judge({ Price: 0 }, undefined)).toMatchObject([{ else: 'hold' }]);
  });
});

describe('the values of a run that broke one', () => {
  it('are counted by field, with one of them', () => {
    const [first, second] = [{}, {}];
    countBroken(first, 'P1', [{ field: 'price', else: 'empty', words: '0 is x' }]);
    countBroken(second, 'P2', [
      { field: 'price', else: 'hold', words: '9 is x' },
      { field: 'title', else: 'fail', words: '"x" is y' },
    ]);
    const counts = sumAssertCounts([first, second]);
    expect(judgeAsserts(counts)).toEqual({
      holds: 'values broke an assert that holds the run: 1 of price (P1: 0 is x)',
      notes: [
        'values of price broke its assert: 1 were left out, for example P1: 0 is x',
        'values of title broke its assert: 1 failed (assert), for example P2: "x" is y',
      ],
    });
    expect(judgeAsserts({})).toEqual({ holds: null, notes: [] });
  });
});
