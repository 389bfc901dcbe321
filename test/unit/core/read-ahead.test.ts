import { describe, expect, it } from 'vitest';
import { readAhead } from '../../../orchestrator/core/act/results/read-ahead.ts';

interface Item {
  name: string;
  sizeBytes: number;
}

const items = (...sizes: number[]): Item[] => sizes.map((sizeBytes, i) => ({ name: `p${i}`, sizeBytes }));

describe('readAhead', () => {
  it('yields every item in order with the result or failure of its read', async () => {
    const fault = new Error('no');
    const read = ({ name }: Item): Promise<string> =>
      name === 'p1' ? Promise.reject(fault) : Promise.resolve(`<${name}>`);
    const seen: unknown[] = [];
    for await (const [item, outcome] of readAhead(items(1, 1, 1, 1), read)) seen.push([item.name, outcome]);
    expect(seen).toEqual([
      ['p0', { value: '<p0>' }],
      ['p1', { error: fault }],
      ['p2', { value: '<p2>' }],
      ['p3', { value: '<p3>' }],
    ]);
  });

  it.each([
    ['two beyond the current one', items(1, 1, 1, 1, 1), [3, 4, 5, 5, 5]],
    ['none in parallel with large ones', items(3e6, 3e6, 3e6), [1, 2, 3]],
    ['as many as fit', items(1, 1.5e6, 1.5e6, 1), [2, 4, 4, 4]],
  ])('starts reading %s', async (_, list, begunBy) => {
    let begun = 0;
    const counts: number[] = [];
    const read = (): Promise<null> => {
      begun++;
      return Promise.resolve(null);
    };
    for await (const _ of readAhead(list, read, 2)) counts.push(begun);
    expect(counts).toEqual(begunBy);
  });

  it('starts no more reads once the loop has exited', async () => {
    let begun = 0;
    const read = (): Promise<number> => Promise.resolve(++begun);
    for await (const _ of readAhead(items(1, 1, 1, 1, 1, 1), read, 2)) break;
    expect(begun).toBe(3);
  });
});
