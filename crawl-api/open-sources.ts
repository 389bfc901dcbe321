/**
 * Opens the sources of pages: plain HTTP always, a browser if the site needs one; both behind the same address guard.
 */
import { isIPv4 } from 'node:net';
import { type AddressGuard, createAddressGuard, portOf } from '../shared/adapters/http/address-guard.ts';
import { createTargetDispatcher } from '../shared/adapters/http/target-dispatcher.ts';
import type { Mapping, PageMapping } from '../shared/domain/mapping.ts';
import type { Clock } from '../shared/ports/clock.ts';
import type { InstanceSettings } from '../shared/wire/settings.ts';
import type { Log } from './control/retry.ts';
import { type CompiledMapping, compileMapping } from './extract/compile-mapping.ts';
import { PageExtractor } from './extract/page-extractor.ts';
import type { BrowserSource } from './fetch/browser/browser-source.ts';
import { type OpenExtractor, PageFetcher } from './fetch/page-fetcher.ts';
import type { FetchHooks, PageAnswer, PageSource } from './fetch/page-result.ts';

export interface SourceParts {
  settings: InstanceSettings;
  /** Source address of every request. */
  address: string;
  /** Base URL of the metadata service: the crawl never connects to it. */
  metadataEndpoint: string;
  /** Path of the browser to use; null: search for one. */
  chromiumPath: string | null;
  /** Folder for the browser's profiles. */
  scratchDirectory: string;
  clock: Clock;
  log: Log;
}

export interface Sources {
  http: PageSource;
  /** Starts in the background; the first page waits for it. */
  browser: PageSource | null;
  /** Rejects when the browser fails to start, at first or later; never settles otherwise. */
  broken: Promise<never>;
}

/** Throws an AppError when the site needs rendering and no browser is installed. The caller closes both. */
export async function openSources(parts: SourceParts): Promise<Sources> {
  const { settings, address, clock } = parts;
  const { site, mapping } = settings;
  const guard = createGuard(parts);
  const compiled = await compileMapping(mapping);
  const openExtractor = openExtractorOf(compiled);
  const dispatcher = createTargetDispatcher({ localAddress: address, guard, connectTimeoutMs: site.timeoutMs });
  const http = new PageFetcher(dispatcher, site, clock, openExtractor);
  if (site.render === 'http') return { http, browser: null, broken: new Promise(() => {}) };
  try {
    const executablePath = await findBrowser(parts.chromiumPath);
    const opening = openBrowser(parts, executablePath, guard, compiled);
    const broken = opening.then((source) => source.broken);
    // Avoids an unhandled rejection when the caller does not await it.
    broken.catch(() => {});
    return { http, browser: new StartingSource(opening), broken };
  } catch (error) {
    await http.close();
    throw error;
  }
}

const openExtractorOf =
  (mapping: CompiledMapping): OpenExtractor =>
  (kind, url) =>
    new PageExtractor(mapping, kind, url);

/** Asks Playwright, which takes a second to load, only when no browser is installed. */
async function findBrowser(chromiumPath: string | null): Promise<string> {
  const { findChromium } = await import('../shared/adapters/find-chromium.ts');
  const named = chromiumPath ?? undefined;
  try {
    return findChromium({ named, playwrightPath: () => '' });
  } catch {
    const { playwrightPath } = await import('./fetch/browser/create-browser-source.ts');
    return findChromium({ named, playwrightPath });
  }
}

/** Imports Playwright only where a browser is used, because it costs memory. */
async function openBrowser(
  parts: SourceParts,
  executablePath: string,
  guard: AddressGuard,
  compiled: CompiledMapping,
): Promise<BrowserSource> {
  const { settings, address, scratchDirectory, clock, log } = parts;
  const [{ createBrowserSource }, { expectBy }] = await Promise.all([
    import('./fetch/browser/create-browser-source.ts'),
    import('./fetch/browser/expected-elements.ts'),
  ]);
  return createBrowserSource({
    executablePath,
    localAddress: address,
    guard,
    settings: settings.site,
    openExtractor: openExtractorOf(compiled),
    expect: expectBy(compiled),
    clock,
    profileDirectory: scratchDirectory,
    onProblem: (problem) => log.warn({ problem }, 'browser'),
  });
}

/** True when the mapping can tell a valid page from any other: by a required field or by its rows. */
function isRequiring({ rows, fields }: PageMapping): boolean {
  return (
    rows !== null || fields.some(({ required, steps }) => required && !steps.some(({ type }) => type === 'default'))
  );
}

/** True when every page that was extracted is proven to be the right one. */
export function provesPages(mapping: Mapping): boolean {
  return mapping.pages.every(isRequiring);
}

function createGuard({ settings, address, metadataEndpoint }: SourceParts): AddressGuard {
  const { apiPort, localPort, site } = settings;
  const imds = new URL(metadataEndpoint);
  return createAddressGuard({
    productUrl: site.productUrl,
    allowPrivate: site.allowPrivate,
    forbidden: [
      { address, port: apiPort },
      { address: localAddressOf(address), port: localPort },
      { address: imds.hostname.replace(/^\[|\]$/g, ''), port: portOf(imds.protocol, imds.port) },
    ],
  });
}

/** Address of the local listener: loopback, and the instance's own 127.x address where instances share a machine. */
export function localAddressOf(address: string): string {
  return isIPv4(address) && address.startsWith('127.') ? address : '127.0.0.1';
}

export class StartingSource implements PageSource {
  readonly #starting: Promise<PageSource | null>;
  #started: PageSource | null = null;

  /** @param starting when it rejects, the owner ends the program */
  constructor(starting: Promise<PageSource>) {
    this.#starting = starting.then(
      (source) => (this.#started = source),
      () => null,
    );
  }

  /** Waits for the start. When that fails, nothing is known about any page: waits until the caller gives up. */
  async fetch(url: string, hooks: FetchHooks, signal: AbortSignal): Promise<PageAnswer> {
    const source = this.#started ?? (await this.#waitFor(signal));
    return source === null ? { kind: 'not-now' } : source.fetch(url, hooks, signal);
  }

  /** Waits for a pending start, so that nothing is left running. */
  async close(): Promise<void> {
    const source = await this.#starting;
    await source?.close();
  }

  /** Null when the caller has given up. */
  async #waitFor(signal: AbortSignal): Promise<PageSource | null> {
    const { promise: aborted, resolve } = Promise.withResolvers<null>();
    const onAbort = (): void => resolve(null);
    signal.addEventListener('abort', onAbort, { once: true });
    if (signal.aborted) onAbort();
    try {
      return await Promise.race([this.#starting.then((source) => source ?? aborted), aborted]);
    } finally {
      signal.removeEventListener('abort', onAbort);
    }
  }
}
