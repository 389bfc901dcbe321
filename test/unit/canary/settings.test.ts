import { writeFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { MAX_COST, canarySettings, worstCase } from '../../canary/settings.ts';
import { type TempDir, tempDir } from '../../support/temp-dir.ts';

let folder: TempDir;
beforeEach(() => {
  folder = tempDir();
});
afterEach(() => folder.remove());

const FLEET = `
site: { product_url: "https://shop.example/{id}", interval: 10s, mapping: maps/shop.yaml, user_agent: "bot/1 (+https://example.com)" }
aws: { region: eu-west-1, bucket: crawl, instance_profile: crawlfleet-instance, owner: main-1, instance_types: [t4g.nano] }
server: { url: "http://10.0.0.5:8700" }
`;
const put = (text: string): string => {
  writeFileSync(folder.file('fleet.yaml'), text);
  return folder.file('fleet.yaml');
};

describe('canarySettings', () => {
  it('takes cloud and server settings from the configuration, and caps the run', () => {
    const settings = canarySettings({ config: put(FLEET) });
    expect(settings).toMatchObject({ dryRun: false, region: 'eu-west-1', pages: { urlHost: '10.0.0.5', port: 8780 } });
    expect(settings.config.aws).toMatchObject({ bucket: 'crawl', owner: 'main-1' });
    expect(settings.config.run).toMatchObject({ max_cost: 0.2, min_instances: 2, max_instances: 2 });
    expect(settings.ids).toHaveLength(20);
    expect(settings.worstUsd).toBeLessThan(MAX_COST);
  });

  it('crawls the configured site with --ids, at its own interval, and at most 20 products', () => {
    const ids = folder.file('ids.txt');
    writeFileSync(ids, Array.from({ length: 30 }, (_, i) => `P${i}\n`).join(''));
    const settings = canarySettings({ config: put(FLEET), ids });
    expect(settings.pages).toBeNull();
    expect(settings.ids).toHaveLength(20);
    expect(settings.config.site).toMatchObject({ interval: '10s', mapping: folder.file('maps', 'shop.yaml') });
  });

  it('reads IDs from a file written on Windows, and addresses as intended', () => {
    const ids = folder.file('ids.txt');
    writeFileSync(ids, 'P1\r\nP2\r\n\r\n');
    expect(canarySettings({ config: put(FLEET), ids }).ids).toEqual(['P1', 'P2']);
    const pagesAt = (siteListen: string) => canarySettings({ config: put(FLEET), siteListen }).pages;
    expect(pagesAt('[::]:8790')).toMatchObject({ host: '::', port: 8790 });
    for (const wrong of ['8790', '0.0.0.0', '0.0.0.0:', '::1:80', 'a:b', 'a:0', 'a:70000'])
      expect(() => pagesAt(wrong)).toThrow('--site-listen must be an address and a port');
    expect(pagesAt('127.0.0.1:0')).toMatchObject({ host: '127.0.0.1', port: 0 });
  });

  it.each([{ instance_types: '[m7i.24xlarge]' }, { instance_types: '[t4g.nano, t3.2xlarge]' }])(
    'refuses instance types that could cost more than the limit: %o',
    ({ instance_types: types }) => {
      const config = put(FLEET.replace('[t4g.nano]', types));
      expect(() => canarySettings({ config })).toThrow(/over \$0\.20/);
    },
  );

  it('says what is missing for AWS, and accepts an endpoint on this machine without it', () => {
    expect(() => canarySettings({})).toThrow(/--region, --bucket, --profile, --server-url/);
    expect(canarySettings({ endpoint: 'http://127.0.0.1:4566' })).toMatchObject({ dryRun: true, pages: { port: 0 } });
    expect(() => canarySettings({ endpoint: 'http://10.1.2.3:4566' })).toThrow(/--region/);
  });
});

describe('worstCase', () => {
  it('is more than a planned run of the same length, and grows with it', () => {
    const half = worstCase('ap-northeast-1', ['t4g.nano'], 30 * 60_000);
    // Two nanos with their addresses for half an hour, and an hour of a balancer.
    expect(half).toBeGreaterThan(0.0104 + 0.0323);
    expect(worstCase('ap-northeast-1', ['t4g.nano'], 60 * 60_000)).toBeGreaterThan(half);
    expect(worstCase('xx-nowhere-9', ['t4g.nano'], 30 * 60_000)).toBeGreaterThan(half);
  });
});
