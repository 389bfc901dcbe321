import { describe, expect, it } from 'vitest';
import { groupStory } from '../../../../orchestrator/features/serve/page/story.ts';

const gave = (slot: number, products: number) =>
  `slot ${slot} has given back ${products} products that others can crawl sooner`;
const STORY = [
  { atMs: 1, text: 'slots 0-2, 4 are claimed' },
  { atMs: 2, text: gave(1, 20) },
  { atMs: 3, text: '! it will be late by 12m 5s' },
  { atMs: 4, text: gave(11, 5) },
  { atMs: 5, text: 'the rows are published' },
  { atMs: 6, text: gave(2, 1_000) },
  { atMs: 7, text: '! it will be late by 3m' },
];

describe('what happened', () => {
  it('is newest first, with repetitions under their newest entry', () => {
    expect(groupStory(STORY).map(({ newest, older }) => [newest.atMs, older.map(({ atMs }) => atMs)])).toEqual([
      [7, [3]],
      [6, [4, 2]],
      [5, []],
      [1, []],
    ]);
  });

  it('loses no entry, and does not change what it is given', () => {
    const before = structuredClone(STORY);
    expect(groupStory(STORY).flatMap(({ newest, older }) => [newest, ...older])).toHaveLength(STORY.length);
    expect(STORY).toEqual(before);
  });

  it('is filtered by text in any case, and by alarms', () => {
    expect(groupStory(STORY, ' ROWS ').map(({ newest }) => newest.atMs)).toEqual([5]);
    expect(groupStory(STORY, '', true).map(({ newest }) => newest.atMs)).toEqual([7]);
    expect(groupStory(STORY, 'slot 11').map(({ newest }) => newest.atMs)).toEqual([4]);
    expect(groupStory(STORY, 'nothing like it')).toEqual([]);
  });
});
