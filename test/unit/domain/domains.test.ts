import { describe, expect, it } from 'vitest';
import {
  busiestDomain,
  domainOf,
  domainPaces,
  meanSpacingMs,
  ONE_DOMAIN,
  type ProductUrl,
} from '../../../shared/domain/domains.ts';
import { productUrl } from '../../../shared/domain/product.ts';
import { combinePolicies } from '../../../shared/domain/robots.ts';
import { policyAt, type RobotsPolicy } from '../../../shared/domain/robots-matcher.ts';

const THREE = [
  { url: 'https://a.example/item/{id}', weight: 5 },
  { url: 'https://b.example/{id}', weight: 3 },
  { url: 'https://c.example/?p={id}', weight: 2 },
];
const policy = (change: Partial<RobotsPolicy> = {}): RobotsPolicy => ({
  version: 'v1',
  access: 'all',
  rules: [],
  crawlDelayMs: null,
  source: 'a test',
  ...change,
});

describe('the domain of a product', () => {
  it.each<[string, (i: number) => string]>([
    ['numbers in a row', String],
    ['numbers with zeros before them', (i) => `P${String(i).padStart(8, '0')}`],
    ['the same beginning and end', (i) => `item-${i}-x`],
    ['every tenth number', (i) => String(i * 10)],
    ['letters of Japanese', (i) => `商品${i}`],
  ])('follows the weights within 1 %% over 100,000 IDs: %s', (_, idOf) => {
    const counts = [0, 0, 0];
    for (let i = 0; i < 100_000; i++) counts[domainOf(THREE, idOf(i))]!++;
    for (const [domain, share] of [0.5, 0.3, 0.2].entries())
      expect(Math.abs(counts[domain]! / 100_000 - share)).toBeLessThan(0.01);
  });

  it('depends on nothing but its ID and the weights', () => {
    const ids = Array.from({ length: 1_000 }, (_, i) => `P${i}`);
    const elsewhere = THREE.map(({ weight }, i) => ({ url: `http://127.0.0.${i}/{id}`, weight: weight * 7 }));
    expect(ids.map((id) => domainOf(THREE, id))).toEqual(ids.map((id) => domainOf(elsewhere, id)));
    // Written down: a later version that moved products to other domains would lose what is known of their pages.
    expect(['P1', 'P2', 'P3', 'P4', 'P5', 'P6'].map((id) => domainOf(THREE, id))).toEqual([1, 0, 0, 0, 1, 1]);
  });

  it('gives its URL', () => {
    const ids = Array.from({ length: 50 }, (_, i) => `P${i}`);
    for (const id of ids) expect(productUrl(THREE, id)).toBe(THREE[domainOf(THREE, id)]!.url.replace('{id}', id));
    expect(productUrl('https://a.example/{id}', 'a b')).toBe('https://a.example/a%20b');
  });
});

describe('the pace over several domains', () => {
  const spacing = (productUrlList: ProductUrl, robots: RobotsPolicy | null = null) =>
    meanSpacingMs(domainPaces(productUrlList, robots), 10_000, (ms) => ms);

  it('is that of the busiest domain', () => {
    expect(meanSpacingMs(ONE_DOMAIN, 10_000, (ms) => ms)).toBe(10_000);
    expect(spacing('https://a.example/{id}')).toBe(10_000);
    expect(spacing(THREE)).toBe(5_000);
  });

  it('is that of a domain with a long Crawl-delay', () => {
    expect(
      combinePolicies([
        { ...policy(), skewMs: 900_000 },
        { ...policy(), skewMs: -90_000 },
      ]).skewMs,
    ).toBe(-90_000);
    expect(combinePolicies([{ ...policy(), skewMs: 900_000 }, policy()]).skewMs).toBeUndefined();
    const slow = combinePolicies([policy(), policy(), policy({ crawlDelayMs: 60_000 })]);
    expect(spacing(THREE, slow)).toBe(12_000);
    expect(busiestDomain(domainPaces(THREE, slow), 10_000)).toEqual({ share: 0.2, delayMs: 60_000 });
    expect(spacing('https://a.example/{id}', policy({ crawlDelayMs: 15_000 }))).toBe(15_000);
  });
});

describe('the robots.txt of several domains', () => {
  const none = policy({ access: 'none', version: 'v0', source: 'HTTP 503' });

  it('counts as a whole for what holds at every domain', () => {
    const both = (...policies: RobotsPolicy[]) => combinePolicies(policies);
    expect(both(none, none).access).toBe('none');
    expect(both(none, policy())).toMatchObject({
      access: 'rules',
      rules: [],
      version: 'v0 v1',
      source: 'HTTP 503; a test',
    });
    expect(both(policy(), policy()).access).toBe('all');
    expect(both(policy({ crawlDelayMs: 5_000 }), policy({ crawlDelayMs: 3_000 })).crawlDelayMs).toBe(3_000);
    expect(both(policy({ crawlDelayMs: 5_000 }), policy()).crawlDelayMs).toBeNull();
    expect(policyAt(both(none, policy()), 1)).toEqual(policy());
  });

  it('is that of the site itself with one', () => {
    const one = policy();
    expect(combinePolicies([one])).toBe(one);
    expect(policyAt(one, 0)).toBe(one);
    expect(policyAt(null, 1)).toBeNull();
  });
});
