import { expect } from 'vitest';

/** The work fails with this code, and its message contains `text` or matches it. */
export async function expectFault(work: Promise<unknown>, code: string, text: string | RegExp = ''): Promise<void> {
  const message = typeof text === 'string' ? expect.stringContaining(text) : expect.stringMatching(text);
  await expect(work).rejects.toMatchObject({ code, message: message as string });
}
