import { afterEach, describe, expect, it, vi } from 'vitest';
import {
  collectGarbageQuietly,
  type GarbageOptions,
  wordsOf,
} from '../../../../orchestrator/core/run/collect-garbage.ts';
import type { GcItem } from '../../../../orchestrator/core/gc/gc.ts';

afterEach(() => {
  vi.useRealTimers();
});

it('leaves no timer that would keep the process alive after its run', async () => {
  vi.useFakeTimers();
  const runs = {
    get guard(): never {
      throw new Error('the database is gone');
    },
  };
  const lines = await collectGarbageQuietly({ runs } as unknown as GarbageOptions);
  expect(lines).toEqual([expect.stringContaining('the database is gone')]);
  expect(vi.getTimerCount()).toBe(0);
});

describe('the output of gc at the start of a run', () => {
  const item = (change: Partial<GcItem>): GcItem => ({
    kind: 'instance',
    id: 'i-1',
    run: 'run-1',
    state: 'running',
    expiresAt: '2026-11-21T06:10:00.000Z',
    unknownRun: false,
    action: 'kept',
    detail: 'it has not expired',
    ...change,
  });
  const told = (...items: GcItem[]): string[] => wordsOf({ items, refused: null, owner: 'me' });

  it('has no line about instances of runs that the database knows', () => {
    expect(told(item({}))).toEqual([]);
  });

  it('has one line for each active run that the database does not know', () => {
    const lost = { unknownRun: true };
    const lines = told(
      item(lost),
      item({ ...lost, id: 'i-2', expiresAt: '2026-11-21T07:10:00.000Z' }),
      item({ ...lost, id: 'i-3', run: 'run-2' }),
    );
    expect(lines).toEqual([
      expect.stringMatching(/^2 instances of run run-1 are up until 2026-11-21T07:10:00, .*`orchestrator load run-1`/),
      expect.stringMatching(/^1 instances of run run-2 are up until 2026-11-21T06:10:00, /),
    ]);
  });

  it('names each expired instance once, with what gc did about it', () => {
    expect(told(item({ unknownRun: true, action: 'marked', detail: null }))).toEqual([
      'gc: instance i-1 of run run-1 is past its time: marked; a gc after a minute ends it',
    ]);
  });
});
