import { describe, expect, it } from 'vitest';
import {
  MAX_CRAWL_SETTINGS_BYTES,
  packCrawlSettings,
  unpackCrawlSettings,
} from '../../../shared/wire/crawl-settings.ts';
import { sha256Hex } from '../../../shared/wire/signature.ts';

describe('crawl settings', () => {
  it('of 20,000 long lines fit into their object, and come back as they were', () => {
    const deny = Array.from({ length: 20_000 }, (_, i) => `/category/${i}/${'long-name-'.repeat(20)}`);
    const { bytes, sha256 } = packCrawlSettings({ version: 1, deny });
    expect(bytes.length).toBeLessThan(MAX_CRAWL_SETTINGS_BYTES);
    expect(unpackCrawlSettings(bytes, sha256)).toEqual({ version: 1, deny });
  });

  it('that are too long are refused', () => {
    expect(() => packCrawlSettings({ version: 1, deny: ['/'.repeat(20_000_000)] })).toThrow(
      'discover.deny is too long',
    );
  });

  it('are not parsed under the wrong hash', () => {
    expect(unpackCrawlSettings(Buffer.from('no gzip'), 'a'.repeat(64))).toBeNull();
    const bytes = Buffer.from('no gzip');
    expect(() => unpackCrawlSettings(bytes, sha256Hex(bytes))).toThrow();
  });
});
