import type { CrawlSettings } from '../../shared/wire/crawl-settings.ts';

/** What instances crawl by: the title of each product. */
export function oneTitle(productUrl: string): CrawlSettings {
  const fields = [{ name: 'title', steps: [{ type: 'css' as const, selector: 'h1' }], required: true }];
  return {
    version: 2,
    site: {
      productUrl,
      intervalMs: 1_000,
      maxRatePerSecond: null,
      timeoutMs: 5_000,
      maxPageBytes: 1_000_000,
      userAgent: 'testbot/1.0',
      allowPrivate: true,
      render: 'http',
      robots: 'ignore',
      onBan: 'cool-down',
      ban: { statuses: [], redirects: [], patterns: [], coolDownMs: 60_000 },
      canaries: [],
    },
    mapping: { pages: [{ name: 'product', urlPatterns: [], urlParsers: [], rows: null, fields }] },
  };
}
