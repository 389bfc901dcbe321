import { afterEach, expect, it, vi } from 'vitest';
import type { GarbageOptions } from '../../../orchestrator/cli/collect-garbage.ts';
import { collectGarbageQuietly } from '../../../orchestrator/cli/collect-garbage.ts';

afterEach(() => {
  vi.useRealTimers();
});

it('leaves no timer behind that would keep the process after its run', async () => {
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
