import { describe, expect, it } from 'vitest';
import { sortDueTimes } from '../../../orchestrator/schedule/due.ts';

const HOUR = 3_600_000;

describe('F53 due times that have passed', () => {
  it.each([
    ['none', [], [1_000, HOUR], { due: null, lateMs: 0, missed: [] }],
    ['one, on time', [1_000], [1_000, 0], { due: 1_000, lateMs: 0, missed: [] }],
    ['one, a minute late, is still on time', [1_000], [61_000, 0], { due: 1_000, lateMs: 0, missed: [] }],
    ['one, later, without making up', [1_000], [61_001, 0], { due: null, lateMs: 0, missed: [1_000] }],
    ['one, late, that is made up for', [1_000], [HOUR, HOUR], { due: 1_000, lateMs: HOUR - 1_000, missed: [] }],
    ['one that is too old for that', [1_000], [HOUR + 1_001, HOUR], { due: null, lateMs: 0, missed: [1_000] }],
    ['several: the newest alone', [1, 2, 3], [4, HOUR], { due: 3, lateMs: 0, missed: [1, 2] }],
    ['several, all too old', [1, 2, 3], [2 * HOUR, HOUR], { due: null, lateMs: 0, missed: [1, 2, 3] }],
    ['one that is ahead by a clock that was set', [1_000], [500, 0], { due: 1_000, lateMs: 0, missed: [] }],
  ] as const)('%s', (_what, times, [nowMs, catchUpMs], expected) => {
    expect(sortDueTimes(times, nowMs, catchUpMs)).toEqual(expected);
  });
});
