import { afterEach, expect, it, vi } from 'vitest';
import { ask } from '../../../orchestrator/cli/confirm.ts';

afterEach(() => vi.restoreAllMocks());

it('ends a question that is left with a reason, not as an internal error', async () => {
  vi.spyOn(process.stderr, 'write').mockReturnValue(true);
  await expect(ask('Proceed? ', AbortSignal.abort())).rejects.toMatchObject({
    code: 'interrupted',
    message: 'no answer, so nothing was done',
  });
});
