import { describe, expect, it } from 'vitest';
import { findCircles } from '../../support/import-graph.ts';

const imports = (...pairs: [from: string, to: string][]) => pairs.map(([from, to]) => ({ from, to }));

describe('circles of rooms', () => {
  it.each([
    ['two subfolders', imports(['a/x/1.ts', 'a/y/1.ts'], ['a/y/2.ts', 'a/x/2.ts']), 'a', ['x', 'y']],
    [
      'three',
      imports(['a/x/1.ts', 'a/y/1.ts'], ['a/y/2.ts', 'a/z/1.ts'], ['a/z/2.ts', 'a/x/2.ts']),
      'a',
      ['x', 'y', 'z'],
    ],
    ['a file and a subfolder', imports(['a/1.ts', 'a/x/1.ts'], ['a/x/2.ts', 'a/1.ts']), 'a', ['1.ts', 'x']],
    ['two folders of the root', imports(['a/b/1.ts', 'c/1.ts'], ['c/2.ts', 'a/1.ts']), '', ['a', 'c']],
  ])('%s', (_, given, folder, rooms) => {
    expect(findCircles(given)).toEqual([{ folder, rooms, imports: expect.any(Array) as unknown }]);
  });

  it('none where the arrows point one way', () => {
    expect(findCircles(imports(['a/x/1.ts', 'a/y/1.ts'], ['a/x/2.ts', 'a/z/1.ts'], ['a/y/1.ts', 'a/z/1.ts']))).toEqual(
      [],
    );
  });
});
