import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import type { PageMapping } from '../../../shared/domain/mapping.ts';
import {
  MAX_CRAWL_SETTINGS_BYTES,
  packCrawlSettings,
  unpackCrawlSettings,
} from '../../../shared/wire/crawl-settings.ts';
import { sha256Hex } from '../../../shared/wire/signature.ts';
import { oneTitle } from '../../support/one-title.ts';

const SETTINGS = oneTitle('https://shop.example/item/{id}');

describe('crawl settings', () => {
  it('of 20,000 long lines and 1,000 sections fit into their object, and come back as they were', () => {
    const deny = Array.from({ length: 20_000 }, (_, i) => `/category/${i}/${'long-name-'.repeat(20)}`);
    const [page] = SETTINGS.mapping.pages as [PageMapping];
    const pages = Array.from({ length: 1_000 }, (_, i) => ({ ...page, name: `s${i}`, urlPatterns: [`/c${i}/`] }));
    const settings = { ...SETTINGS, mapping: { pages }, links: 'report' as const, deny };
    const { bytes, sha256 } = packCrawlSettings(settings);
    expect(bytes.length).toBeLessThan(MAX_CRAWL_SETTINGS_BYTES);
    expect(unpackCrawlSettings(bytes, sha256)).toEqual(settings);
  });

  it('are the same bytes again, whatever the order of their keys', () => {
    const { mapping, site, version } = SETTINGS;
    const { productUrl, ...others } = site;
    expect(packCrawlSettings({ mapping, site: { ...others, productUrl }, version })).toEqual(
      packCrawlSettings(SETTINGS),
    );
  });

  it('that are too long are refused', () => {
    const deny = ['/'.repeat(20_000_000)];
    expect(() => packCrawlSettings({ ...SETTINGS, deny })).toThrow('the settings of the instances are too long');
  });

  it('are not parsed under the wrong hash', () => {
    expect(unpackCrawlSettings(Buffer.from('no gzip'), 'a'.repeat(64))).toBeNull();
    const bytes = Buffer.from('no gzip');
    expect(() => unpackCrawlSettings(bytes, sha256Hex(bytes))).toThrow();
  });

  it('of an earlier version are a deny list', () => {
    const bytes = gzipSync(JSON.stringify({ version: 1, deny: ['/private/'] }));
    expect(unpackCrawlSettings(bytes, sha256Hex(bytes))).toEqual({ version: 1, deny: ['/private/'] });
  });
});
