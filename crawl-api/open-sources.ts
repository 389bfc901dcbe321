/**
 * Opens the sources of pages: plain HTTP always, a browser if the site needs one; both behind the same address guard.
 */
import { isIPv4, isIPv6 } from 'node:net';
import { type AddressGuard, createAddressGuard, type GuardOptions } from '../shared/adapters/http/address-guard.ts';
import { NameResolver } from '../shared/adapters/http/name-resolver.ts';
import { askRobots } from '../shared/adapters/robots-fetcher.ts';
import { isAnyHost } from '../shared/domain/domains.ts';
import { CONNECT_LIMIT_MS } from '../shared/domain/host-policy.ts';
import type { HostsCrawlParts } from './hosts/hosts-crawl.ts';
import { createTargetDispatcher } from '../shared/adapters/http/target-dispatcher.ts';
import { hasDefault, type Mapping, type PageMapping } from '../shared/domain/mapping.ts';
import { productToken } from '../shared/domain/robots.ts';
import { bareHostOf, portOf } from '../shared/domain/same-site.ts';
import type { Clock } from '../shared/ports/clock.ts';
import type { InstanceSettings } from '../shared/wire/settings.ts';
import type { Log } from './process/retry.ts';
import { type CompiledMapping, compileMapping } from './extract/compile-mapping.ts';
import { PageExtractor } from './extract/page-extractor.ts';
import type { BrowserSource, BrowserSourceOptions } from './fetch/browser/browser-source.ts';
import { type OpenExtractor, PageFetcher } from './fetch/page-fetcher.ts';
import type { PageSource } from './fetch/page-result.ts';

export interface SourceParts {
  settings: InstanceSettings;
  /** Source address of every request. */
  address: string;
  /** Base URL of the metadata service: the crawl never connects to it. */
  metadataEndpoint: string;
  chromiumPath: string | null;
  scratchDirectory: string;
  clock: Clock;
  log: Log;
}

export interface Sources {
  http: PageSource;
  /** Starts in the background; the first page waits for it. */
  browser: PageSource | null;
  /** How names are looked up and robots.txt is asked for, where products are on any hosts; else omitted. */
  hosts?: Pick<HostsCrawlParts, 'resolve' | 'askRobots'>;
  /** Rejects when the browser fails to start, at first or later; never settles otherwise. */
  broken: Promise<never>;
}

/** Throws an AppError when the site needs rendering and no browser is installed. The caller closes both. */
export async function openSources(parts: SourceParts): Promise<Sources> {
  const { settings, address, scratchDirectory, clock, log } = parts;
  const { site, mapping } = settings;
  const guard = createGuard(parts);
  const obeys = site.follow?.nofollow === 'obey';
  const compiled = await compileMapping(mapping, obeys ? { obeyedAs: productToken(site.userAgent) } : {});
  const openExtractor: OpenExtractor = (kind, url) => new PageExtractor(compiled, kind, url);
  if (isAnyHost(site.productUrl)) return openHostSources(parts, guard, openExtractor);
  const dispatcher = createTargetDispatcher({ localAddress: address, guard, connectTimeoutMs: site.timeoutMs });
  const http = new PageFetcher(dispatcher, site, clock, openExtractor);
  if (site.render === 'http') return { http, browser: null, broken: new Promise(() => {}) };
  try {
    const opening = openBrowser(await findBrowser(parts.chromiumPath), compiled, {
      localAddress: address,
      guard,
      settings: site,
      openExtractor,
      clock,
      profileDirectory: scratchDirectory,
      userOrigins: (site.userHeaders ?? []).map(({ origin }) => origin),
      onProblem: (problem) => log.warn({ problem }, 'browser'),
    });
    const broken = opening.then((source) => source.broken);
    // Avoids an unhandled rejection when the caller does not await it.
    broken.catch(() => {});
    return { http, browser: createStartingSource(opening), broken };
  } catch (error) {
    await http.close();
    throw error;
  }
}

/** Of many hosts: those that never answer must keep no place, and names no thread, for long. */
function openHostSources(parts: SourceParts, guard: AddressGuard, openExtractor: OpenExtractor): Sources {
  const { settings, address, clock } = parts;
  const { site } = settings;
  const names = new NameResolver({ clock });
  const family = isIPv6(address) ? 6 : 4;
  const { lookup } = names;
  const connectTimeoutMs = Math.min(CONNECT_LIMIT_MS, site.timeoutMs);
  const dispatcher = createTargetDispatcher({ localAddress: address, guard, connectTimeoutMs, lookup });
  const asker = { ...site, localAddress: address, lookup, clock, forbidden: forbiddenTo(parts) };
  return {
    http: new PageFetcher(dispatcher, site, clock, openExtractor),
    browser: null,
    hosts: {
      resolve: (name) => names.resolve(name, family),
      askRobots: (origin, url, how) => askRobots({ ...asker, origin, ...how }, url),
    },
    broken: new Promise(() => {}),
  };
}

/** Asks Playwright, which takes a second to load, only when no browser is installed. */
export async function findBrowser(chromiumPath: string | null): Promise<string> {
  const { findChromium } = await import('../shared/adapters/find-chromium.ts');
  const named = chromiumPath ?? undefined;
  try {
    return findChromium({ named, playwrightPath: () => '' });
  } catch {
    const { playwrightPath } = await import('./fetch/browser/browser-source.ts');
    return findChromium({ named, playwrightPath });
  }
}

/** Imports Playwright only where a browser is used, because it costs memory. */
export async function openBrowser(
  executablePath: string,
  compiled: CompiledMapping,
  options: Omit<BrowserSourceOptions, 'executablePath' | 'expect'>,
): Promise<BrowserSource> {
  const { createBrowserSource, expectBy } = await import('./fetch/browser/browser-source.ts');
  return createBrowserSource({ ...options, executablePath, expect: expectBy(compiled) });
}

/** True when the mapping can tell a valid page from any other: by a required field or by its rows. */
function isRequiring({ rows, fields }: PageMapping): boolean {
  return rows !== null || fields.some((field) => field.required && !hasDefault(field));
}

/** True when every page that was extracted is proven to be the right one. */
export function provesPages(mapping: Mapping): boolean {
  return mapping.pages.every(isRequiring);
}

function createGuard(parts: SourceParts): AddressGuard {
  const { site } = parts.settings;
  return createAddressGuard({
    productUrl: site.productUrl,
    further: site.follow?.hosts,
    allowPrivate: site.allowPrivate,
    forbidden: forbiddenTo(parts),
  });
}

function forbiddenTo({ settings, address, metadataEndpoint }: SourceParts): GuardOptions['forbidden'] {
  const { apiPort, localPort } = settings;
  const imds = new URL(metadataEndpoint);
  return [
    { address, port: apiPort },
    { address: localAddressOf(address), port: localPort },
    { address: bareHostOf(imds), port: portOf(imds) },
  ];
}

/** Address of the local listener: loopback, and the instance's own 127.x address where instances share a machine. */
export function localAddressOf(address: string): string {
  return isIPv4(address) && address.startsWith('127.') ? address : '127.0.0.1';
}

/** A source that is still starting. @param starting when it rejects, the owner ends the program */
export function createStartingSource(starting: Promise<PageSource>): PageSource {
  let started: PageSource | null = null;
  const start = starting.then(
    (source) => (started = source),
    () => null,
  );
  return {
    /** Waits for the start. When that fails, nothing is known about any page: waits until the caller gives up. */
    async fetch(url, hooks, signal, request) {
      const aborted = new Promise<null>((resolve) => {
        if (started !== null || signal.aborted) resolve(null);
        else signal.addEventListener('abort', () => resolve(null), { once: true });
      });
      const source = started ?? (await Promise.race([start.then((one) => one ?? aborted), aborted]));
      return source === null ? { kind: 'not-now' } : source.fetch(url, hooks, signal, request);
    },
    /** Waits for a pending start, so that nothing is left running. */
    async close() {
      const source = await start;
      await source?.close();
    },
  };
}
