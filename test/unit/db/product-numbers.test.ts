import { describe, expect, it } from 'vitest';
import knexFactory from 'knex';
import { onNumbers, runsOf } from '../../../orchestrator/db/load-part.ts';

const knex = knexFactory({ client: 'mysql2' });
const range = (first: number, last: number): number[] => Array.from({ length: last - first + 1 }, (_, i) => first + i);

function statements(numbers: readonly number[]): string[] {
  return onNumbers(numbers).map((narrow) =>
    knex('items').modify(narrow).toQuery().replace('select * from `items` ', ''),
  );
}

describe('Conditions on product numbers', () => {
  it('use the ranges of consecutive numbers', () => {
    expect(runsOf([])).toEqual([]);
    expect(runsOf([5])).toEqual([[5, 5]]);
    expect(runsOf([1, 2, 3, 7, 9, 10])).toEqual([
      [1, 3],
      [7, 7],
      [9, 10],
    ]);
  });

  it('are ranges for chunks with a few missing products', () => {
    expect(statements([...range(1, 50), ...range(201, 220), ...range(222, 250)])).toEqual([
      'where (`n` between 1 and 50 or `n` between 201 and 220 or `n` between 222 and 250)',
    ]);
  });

  it('are a list for scattered numbers', () => {
    expect(statements([1, 3, 5, 6])).toEqual(['where `n` in (1, 3, 5, 6)']);
  });

  it('are several statements for many numbers, and none for none', () => {
    expect(statements([])).toEqual([]);
    const odd = range(1, 1_500).map((n) => 2 * n);
    expect(statements(odd)).toHaveLength(2);
    const chunks = range(0, 149).flatMap((i) => range(i * 100 + 1, i * 100 + 10));
    const split = statements(chunks);
    expect(split.map((sql) => sql.split(' or ').length)).toEqual([100, 50]);
  });
});
