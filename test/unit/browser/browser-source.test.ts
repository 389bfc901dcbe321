/** A browser that cannot be restarted, or leaves its profile behind: fault rows F23 and F26. */
import fs from 'node:fs/promises';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { BrowserSession } from '../../../crawl-api/fetch/browser/browser-session.ts';
import { BrowserSource, type BrowserSourceOptions } from '../../../crawl-api/fetch/browser/browser-source.ts';
import type { FilterProxy } from '../../../crawl-api/fetch/browser/filter-proxy.ts';
import { SiteTraffic } from '../../../crawl-api/fetch/browser/site-traffic.ts';
import { ProxyGate } from '../../../crawl-api/fetch/browser/proxy-gate.ts';
import { systemClock } from '../../../shared/adapters/system-clock.ts';
import { replaceBuiltin } from '../../support/builtin.ts';

afterEach(() => void vi.restoreAllMocks());

const never = new AbortController().signal;
const url = 'http://shop.example/1';
const proxy: FilterProxy = {
  url: 'http://127.0.0.1:1',
  username: 'u',
  password: 'p',
  gate: new ProxyGate(),
  close: async () => {},
};

function createSource() {
  const problems: string[] = [];
  let started = 0;
  const options = {
    executablePath: '/nowhere/chromium',
    settings: { userAgent: 'x', timeoutMs: 2_000, maxPageBytes: 1_000 },
    clock: systemClock,
    profileDirectory: '/nowhere',
    onProblem: (text: string) => problems.push(text),
  } as unknown as BrowserSourceOptions;
  const source = new BrowserSource(options, proxy);
  const fetch = () => source.fetch(url, { onStart: () => void started++, onFirstByte: () => {} }, never);
  return { source, fetch, problems, started: () => started };
}

/** A browser whose pages do not load and whose end reports a problem. */
function createSession(problem: string | null): BrowserSession {
  return {
    dead: never,
    pages: 0,
    memoryBytes: () => 0,
    giveCookies: async () => {},
    takeCookies: async () => [],
    documents: { open: () => ({ move: null }), shut: () => {} },
    traffic: new SiteTraffic(systemClock),
    end: async () => problem,
    page: { on: () => {}, off: () => {}, mainFrame: () => null, goto: () => Promise.reject(new Error('it hangs')) },
  } as unknown as BrowserSession;
}

describe('a browser that cannot be restarted', () => {
  it('fails no product: the start is retried once, then reported to the caller', async () => {
    const open = vi.spyOn(BrowserSession, 'open').mockRejectedValue(new Error('no memory'));
    const { source, fetch, problems, started } = createSource();
    const told = vi.fn();
    source.broken.catch(told);
    expect(await fetch()).toEqual({ kind: 'not-now' });
    expect(open).toHaveBeenCalledTimes(2);
    expect(problems).toEqual(['no memory', 'no memory']);
    expect(told).toHaveBeenCalledWith(new Error('no memory'));
    expect(await fetch()).toEqual({ kind: 'not-now' });
    expect(open).toHaveBeenCalledTimes(2);
    expect(started()).toBe(0);
    await source.close();
  });

  it('is used when it starts on the second attempt', async () => {
    vi.spyOn(BrowserSession, 'open')
      .mockRejectedValueOnce(new Error('slow'))
      .mockResolvedValueOnce(createSession(null));
    const { source, fetch, problems } = createSource();
    const told = vi.fn();
    source.broken.catch(told);
    expect(await fetch()).toMatchObject({ kind: 'failed', reason: 'network', detail: 'it hangs' });
    expect(problems[0]).toBe('slow');
    expect(told).not.toHaveBeenCalled();
    await source.close();
  });

  it('is not reported when the source is closed during the start', async () => {
    const opening = Promise.withResolvers<BrowserSession>();
    const open = vi.spyOn(BrowserSession, 'open').mockReturnValue(opening.promise);
    const { source, fetch } = createSource();
    const told = vi.fn();
    source.broken.catch(told);
    const page = fetch();
    await vi.waitFor(() => expect(open).toHaveBeenCalled());
    const closed = source.close();
    opening.reject(new Error('killed'));
    expect(await page).toEqual({ kind: 'not-now' });
    await closed;
    expect(open).toHaveBeenCalledTimes(1);
    expect(told).not.toHaveBeenCalled();
  });
});

describe('a profile that cannot be removed', () => {
  it('is reported, and affects neither this product nor the next', async () => {
    vi.spyOn(BrowserSession, 'open').mockImplementation(async () => createSession('its profile is left'));
    const { source, fetch, problems } = createSource();
    expect(await fetch()).toMatchObject({ kind: 'failed', detail: 'it hangs' });
    expect(await fetch()).toMatchObject({ kind: 'failed', detail: 'it hangs' });
    expect(problems).toContain('its profile is left');
    await source.close();
  });

  it('does not hide why the browser did not start', async () => {
    const rm = vi.fn().mockRejectedValue(new Error('ENOTEMPTY: directory not empty'));
    replaceBuiltin(fs, 'mkdtemp', (async (prefix: string) => `${prefix}1`) as typeof fs.mkdtemp);
    replaceBuiltin(fs, 'rm', rm);
    const { source } = createSource();
    await expect(source.start()).rejects.toMatchObject({
      code: 'platform',
      message: expect.stringContaining('did not start'),
    });
    expect(rm).toHaveBeenCalled();
  });
});
