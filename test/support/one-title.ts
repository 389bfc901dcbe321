import type { InstanceSettings } from '../../shared/wire/settings.ts';

/** The part of an instance's settings that says what to crawl: the title of each product. */
export function oneTitle(productUrl: string): Pick<InstanceSettings, 'heartbeatMs' | 'partMs' | 'site' | 'mapping'> {
  const fields = [{ name: 'title', steps: [{ type: 'css' as const, selector: 'h1' }], required: true }];
  return {
    heartbeatMs: 500,
    partMs: 1_000,
    site: {
      productUrl,
      intervalMs: 1_000,
      timeoutMs: 5_000,
      maxPageBytes: 1_000_000,
      userAgent: 'testbot/1.0',
      allowPrivate: true,
      render: 'http',
      robots: 'ignore',
      ban: { statuses: [], redirects: [], patterns: [], coolDownMs: 60_000 },
      canaries: [],
    },
    mapping: { pages: [{ name: 'product', urlPatterns: [], urlParsers: [], rows: null, fields }] },
  };
}
