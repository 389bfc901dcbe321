/** Page requests while their source is still starting. */
import { describe, expect, it } from 'vitest';
import type { FetchHooks, PageResult, PageSource } from '../../../crawl-api/fetch/page-result.ts';
import { createStartingSource } from '../../../crawl-api/open-sources.ts';

const HOOKS: FetchHooks = { onStart: () => {}, onFirstByte: () => {} };
const PAGE: PageResult = { kind: 'failed', reason: 'network', detail: 'x', reply: null, retryAfterMs: null };

function scene() {
  const { promise, resolve, reject } = Promise.withResolvers<PageSource>();
  const asked: string[] = [];
  let closed = 0;
  const inner: PageSource = {
    fetch: async (url) => {
      asked.push(url);
      return PAGE;
    },
    close: async () => void closed++,
  };
  const source = createStartingSource(promise);
  return { source, asked, closed: () => closed, start: () => resolve(inner), fail: () => reject(new Error('none')) };
}

describe('a source that is still starting', () => {
  it('fetches the page once it has started', async () => {
    const { source, asked, start } = scene();
    const page = source.fetch('u', HOOKS, new AbortController().signal);
    expect(asked).toEqual([]);
    start();
    expect(await page).toBe(PAGE);
    expect(await source.fetch('v', HOOKS, new AbortController().signal)).toBe(PAGE);
    expect(asked).toEqual(['u', 'v']);
  });

  it('stops waiting on abort', async () => {
    const { source } = scene();
    const stop = new AbortController();
    const page = source.fetch('u', HOOKS, stop.signal);
    stop.abort();
    expect(await page).toEqual({ kind: 'not-now' });
    expect(await source.fetch('u', HOOKS, stop.signal)).toEqual({ kind: 'not-now' });
  });

  it('fails no page when it does not start', async () => {
    const { source, fail } = scene();
    const stop = new AbortController();
    let ended = false;
    const page = source.fetch('u', HOOKS, stop.signal).finally(() => (ended = true));
    fail();
    await source.close();
    expect(ended).toBe(false);
    stop.abort();
    expect(await page).toEqual({ kind: 'not-now' });
  });

  it('closes a source that has begun to start', async () => {
    const { source, closed, start } = scene();
    const close = source.close();
    start();
    await close;
    expect(closed()).toBe(1);
  });
});
