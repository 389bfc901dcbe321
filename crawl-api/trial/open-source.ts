/** Opens the source that fetches a trial's page: a crawl's fetcher with the same guard, or the browser. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { AddressGuard } from '../../shared/adapters/http/address-guard.ts';
import { createAddressGuard } from '../../shared/adapters/http/address-guard.ts';
import { createTargetDispatcher } from '../../shared/adapters/http/target-dispatcher.ts';
import { systemClock } from '../../shared/adapters/system-clock.ts';
import type { PageTrial } from '../../shared/wire/page-trial.ts';
import type { PageExtractor, PageKind } from '../extract/page-extractor.ts';
import type { Expected } from '../fetch/browser/expected-elements.ts';
import { PageFetcher } from '../fetch/page-fetcher.ts';
import type { PageSource } from '../fetch/page-result.ts';

/** Any address of this machine: no fleet shares it. */
const ANY_ADDRESS = '0.0.0.0';

export interface SourceOptions {
  url: string;
  site: PageTrial['site'];
  openExtractor: (kind: PageKind, url: string) => PageExtractor;
  /** What the browser waits for on the page of this URL. */
  expect: (url: string) => Expected;
}

/** A private ip:port in `url` itself is allowed, as in a crawl. Rejects when no browser is installed. */
export async function openSource(options: SourceOptions): Promise<PageSource> {
  const { url, site, openExtractor } = options;
  const guard = createAddressGuard({ productUrl: url, allowPrivate: site.allowPrivate, forbidden: [] });
  if (site.render === 'browser') return openBrowser(options, guard);
  const dispatcher = createTargetDispatcher({
    localAddress: ANY_ADDRESS,
    guard,
    connectTimeoutMs: site.timeoutMs,
  });
  return new PageFetcher(dispatcher, site, systemClock, openExtractor);
}

async function openBrowser({ site, openExtractor, expect }: SourceOptions, guard: AddressGuard): Promise<PageSource> {
  const [{ createBrowserSource, playwrightPath }, { findChromium }] = await Promise.all([
    import('../fetch/browser/create-browser-source.ts'),
    import('../../shared/adapters/find-chromium.ts'),
  ]);
  const profileDirectory = await mkdtemp(path.join(tmpdir(), 'crawlfleet-extract-'));
  const removeProfiles = (): Promise<void> => rm(profileDirectory, { recursive: true, force: true, maxRetries: 5 });
  try {
    const browser = await createBrowserSource({
      executablePath: findChromium({ named: site.chromiumPath ?? undefined, playwrightPath }),
      localAddress: ANY_ADDRESS,
      guard,
      settings: site,
      openExtractor,
      expect,
      clock: systemClock,
      profileDirectory,
      onProblem: (problem) => void process.stderr.write(`${problem}\n`),
    });
    return {
      fetch: (url, hooks, signal) => browser.fetch(url, hooks, signal),
      close: async () => {
        await browser.close();
        await removeProfiles();
      },
    };
  } catch (error) {
    await removeProfiles();
    throw error;
  }
}
