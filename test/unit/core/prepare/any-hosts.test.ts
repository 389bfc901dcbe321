/** What a plan says of records at any hosts: their requests, and which are left alone. */
import { describe, expect, it } from 'vitest';
import { packSettingsOf } from '../../../../orchestrator/core/act/launches/crawl-settings.ts';
import { denyPrefixes, idleDenyLines } from '../../../../orchestrator/core/config/deny-lines.ts';
import type { Config } from '../../../../orchestrator/core/config/load-config.ts';
import { configSchema } from '../../../../orchestrator/core/config/schema.ts';
import type { Target } from '../../../../orchestrator/core/config/target.ts';
import { zipfLoads } from '../../../../orchestrator/core/simulation/many-hosts.ts';
import type { Plan } from '../../../../orchestrator/core/plan/plan.ts';
import type { ProductList } from '../../../../orchestrator/core/prepare/products.ts';
import { makePlan, type PlanFacts, planWhatFits } from '../../../../orchestrator/core/prepare/make-plan.ts';
import { listedUrlsOf, productUrlsOf } from '../../../../orchestrator/core/prepare/own-urls.ts';
import { renderPlan } from '../../../../orchestrator/core/plan/render-plan.ts';
import { DenyList } from '../../../../shared/domain/deny-list.ts';
import { aRun, ALLOW_ALL } from '../builders.ts';

const { mapping, ...settings } = aRun().settings;

function config(denyLines: string[], urlPatterns: string[] = []): Config {
  const values = configSchema.parse({
    site: { hosts: 'any', interval: '15s', mapping: {}, user_agent: 'examplebot/1.0 (+https://example.com/bot)' },
    products: { query: 'select id, url from people' },
    database: { url: 'sqlite:/x.db' },
    run: { deadline: '4h' },
  });
  const pages = mapping.pages.map((page) => ({ ...page, urlPatterns }));
  return { values, mapping: { pages }, denyLines, file: '/fleet.yaml', features: [] };
}

const denyList = (lines: string[]): DenyList => new DenyList(denyPrefixes(lines, []), null);

function listed(given: Config, urls: readonly string[]) {
  const list = listedUrlsOf(given);
  urls.forEach((url, i) => list.add(i + 1, `p${i + 1}`, url));
  const ids = urls.map((_, i) => `p${i + 1}`);
  return { ids, duplicates: 0, ...productUrlsOf(given, ids, list) };
}

const SANDBOX: Target = { dryRun: true, kind: 'sandbox', region: 'eu-west-1', bucket: 'b', endpoint: null };

const ASKED_NOTHING: Pick<PlanFacts, 'prices' | 'quota' | 'browser'> = {
  prices: { lists: [], warnings: [] },
  quota: { vcpus: null, note: null },
  browser: 'ready',
};

const planOf = (given: Config, products: ProductList, target = SANDBOX): Plan =>
  makePlan({ config: given, target, products, robots: ALLOW_ALL, ...ASKED_NOTHING });

const text = (plan: Plan): string => renderPlan(plan).replace(/\n +/g, ' ');

describe('the requests of a record at any hosts', () => {
  // A night of four hours has 912 places for requests at the pace of 15 s, four of them of robots.txt.
  const products = listed(
    config([]),
    Array.from({ length: 5_000 }, (_, i) => `https://a.example/p/${i}`),
  );

  it('are 1.3 for each page before a night has shown how many', () => {
    const plan = planOf(config([]), products);
    expect(plan.manyHosts).toMatchObject({ each: { requestsEach: 1.3, isMeasured: false } });
    expect(plan.products / planOf(config([]), { ...products, requestsEach: 1 }).products).toBeCloseTo(1 / 1.3, 2);
    expect(text(plan)).toContain(
      'requests      1.3 a record with redirects and further pages, until a night has shown',
    );
    const given = config([]);
    const pages = given.mapping.pages.map((page) => ({
      ...page,
      urlParsers: [{ description: 'a', steps: page.fields[0]!.steps }],
    }));
    const site = { ...given.values.site, pages_per_product: 2 };
    const further = planOf({ ...given, mapping: { pages }, values: { ...given.values, site } }, products);
    expect(further.manyHosts).toMatchObject({ each: { requestsEach: 2.6 } });
    // A run has robots.txt among its requests, so they are no measure for `pages_per_product`.
    expect(further).not.toHaveProperty('pages');
  });

  it('are what an earlier night has shown, whatever is configured', () => {
    const plan = planOf(config([]), { ...products, requestsEach: 2.1234 });
    expect(plan.manyHosts).toMatchObject({ each: { requestsEach: 2.1234, isMeasured: true } });
    expect(text(plan)).toContain(
      'requests      2.12 a record with redirects and further pages, as in an earlier night',
    );
  });
});

describe('hosts that give no answer', () => {
  const products = listed(
    config([]),
    Array.from({ length: 500 }, (_, i) => `https://h${i}.example/`),
  );

  it('are none before a night has shown how many', () => {
    expect(text(planOf(config([]), products))).toMatch(/^hosts +500$/m);
  });

  it('are planned with the share of them in an earlier night, which takes its time', () => {
    const plan = planOf(config([]), { ...products, deadShare: 0.12 });
    expect(plan.manyHosts).toMatchObject({ deadShare: 0.12 });
    expect(text(plan)).toMatch(/^hosts +500, 12 % of them without an answer, as in an earlier night$/m);
    // Sixty of them keep a place for 20 s each.
    expect(plan.paceMs).toBeGreaterThan(planOf(config([]), products).paceMs + 2_000);
  });
});

describe('names of one domain', () => {
  // Of each host a night takes 698 records.
  const many = (names: number, each: number): string[] =>
    Array.from({ length: names * each }, (_, i) => `https://n${i % names}.platform.example/p/${i}`);
  const byName = (): Config => {
    const { values, ...given } = config([]);
    return { ...given, values: { ...values, site: { ...values.site, host_key: 'host' } } };
  };

  it('share the night of their domain, and the plan says what each would have by itself', () => {
    const urls = [...many(4, 500), 'https://www.a.example/1', 'https://m.a.example/2'];
    const plan = planOf(config([]), listed(config([]), urls));
    expect(plan.manyHosts).toMatchObject({ hosts: 2, cutHosts: 1 });
    const more = 2_002 - plan.products;
    const note = `site.host_key: host would allow ${more.toLocaleString('en')} records more: platform.example has 4 names`;
    expect(text(plan)).toContain(note);
    const split = planOf(byName(), listed(byName(), urls));
    expect(split.manyHosts).toMatchObject({ hosts: 6, cutHosts: 0 });
    expect(split.products).toBe(2_002);
    expect(text(split)).not.toContain('host_key');
  });

  it('are not named where a night has time for all, or where none has less by itself', () => {
    for (const urls of [many(4, 50), many(1, 2_000), many(1, 2_000).map((url) => url.replace('n0', 'www'))])
      expect(text(planOf(config([]), listed(config([]), urls)))).not.toContain('host_key');
    const two = many(2, 800).map((url) => url.replace('platform', 'second'));
    const plan = planOf(config([]), listed(config([]), [...many(4, 500), ...two]));
    expect(text(plan)).toMatch(/more: platform\.example has 4 names, and 1 more domain with several/);
  });
});

describe('a deny list for any hosts', () => {
  it('has domains with all names below them, prefixes of one host, and paths of each', () => {
    const deny = denyList([
      'big.example',
      'www.shop.example/by-user/',
      'https://a.example:8443/x?b=1&a=2',
      '/login',
      '中.example',
    ]);
    for (const url of [
      'https://big.example/',
      'http://www.big.example:8080/any?x=1',
      'https://a.b.big.example./y',
      'https://shop.example/by-user/7',
      'https://m.shop.example//by-user/7',
      'https://a.example/x?a=2&b=1&c=3',
      'https://whoever.example/login/now',
      'https://xn--fiq.example/',
    ])
      expect(deny.hasUrl(url), url).toBe(true);
    for (const url of [
      'https://notbig.example/',
      'https://example/',
      'https://shop.example/',
      'https://whoever.example/a/login',
      'x',
    ])
      expect(deny.hasUrl(url), url).toBe(false);
    expect(denyList([]).hasUrl('https://a.example/')).toBe(false);
  });

  it('says which of its lines can match nothing', () => {
    expect(
      idleDenyLines(['big.example', '/a', '1,big.example', 'big', 'https://a.example/x?utm_source=y'], []),
    ).toEqual(['1,big.example', 'big', 'https://a.example/x?utm_source=y']);
  });

  it('of 20,000 domains fits many times into what instances take', () => {
    const lines = Array.from({ length: 20_000 }, (_, i) => `${((i + 1) * 2_654_435_761).toString(36)}.example`);
    const { bytes } = packSettingsOf({ ...settings, mapping }, denyPrefixes(lines, []));
    expect(bytes.length).toBeLessThan(500_000);
    const deny = denyList(lines);
    expect(lines.every((line) => deny.hasUrl(`https://www.${line}/p/1`))).toBe(true);
  });
});

describe('records that are left alone', () => {
  const URLS = ['https://m.big.example/1', 'https://a.example/p/1', 'https://a.example/about', 'https://a.example/p/2'];

  it('are on no host, whatever their URL, and are counted', () => {
    const products = listed(config(['big.example'], ['/p/']), URLS);
    expect(products.loads).toEqual([{ host: 'a.example', records: 2, delayMs: 0 }]);
    expect(products.leftAlone).toEqual({ denied: 1, unmapped: 1 });
    expect(products.ids.map((id) => products.urls!.get(id))).toEqual([
      'denied:https://m.big.example/1',
      'https://a.example/p/1',
      'unmapped:https://a.example/about',
      'https://a.example/p/2',
    ]);
    expect(listed(config([]), URLS)).not.toHaveProperty('leftAlone');
  });

  it('may be most of a list: they are no rows to correct', () => {
    const many = Array.from({ length: 100 }, (_, i) => `https://big.example/${i}`);
    expect(listed(config(['big.example']), [...many, 'https://a.example/p/1']).leftAlone).toMatchObject({
      denied: 100,
    });
  });

  it('are said by the plan', () => {
    const given = config(['big.example'], ['/p/']);
    const plan = planOf(given, listed(given, URLS));
    expect(plan.manyHosts).toMatchObject({ listed: 2, leftAlone: { denied: 1, unmapped: 1 } });
    expect(text(plan)).toContain(
      'left alone    1 by site.follow.deny, 1 that no section of the mapping reads: failed(redirect)',
    );
    expect(text(plan)).not.toContain('can match no link');
  });

  it('need an instance that says so, also where they are the whole list', () => {
    const given = config(['a.example', 'big.example']);
    const plan = planOf(given, listed(given, URLS));
    expect(plan).toMatchObject({ verdict: 'feasible', instances: 1, manyHosts: { listed: 0 } });
    expect(plan.paceMs).toBeGreaterThan(0);
    expect(text(plan)).toContain('left alone    4 by site.follow.deny: failed(redirect)');
    expect(text(plan)).not.toContain('fullest');
    expect(planOf(given, listed(given, []))).toMatchObject({ verdict: 'feasible', instances: 0 });
  });

  it('are those of denied hosts too, which cost no time and yet are in the night', () => {
    const given = config(['big.example']);
    const urls = [...URLS, ...Array.from({ length: 2_000 }, (_, i) => `https://denied.example/${i}`)];
    const all = listed(given, urls);
    const loads = all.loads!.map((load) =>
      load.host === 'denied.example' ? { ...load, isDenied: true as const } : load,
    );
    const facts = { config: given, target: SANDBOX, robots: ALLOW_ALL, ...ASKED_NOTHING };
    const { plan, products } = planWhatFits({ ...facts, products: { ...all, loads } });
    const without = planOf(given, listed(given, URLS));
    expect(plan).toMatchObject({ products: 3, paceMs: without.paceMs, endP50Ms: without.endP50Ms });
    expect(plan.manyHosts).toMatchObject({ hosts: 1, listed: 3, records: 3, cutHosts: 0, nights: 1 });
    expect(text(plan)).toContain(
      'left alone    1 by site.follow.deny, 2,000 at 1 host that orchestrator hosts deny names: failed(redirect)',
    );
    expect(text(plan)).toMatch(/fullest +a\.example 3$/m);
    // Last, and whole: a denied host takes none of the time of a slice.
    expect(products.ids.length).toBe(2_004);
    expect([...products.ids].slice(0, 3)).toEqual(['p2', 'p3', 'p4']);
    expect(products.chunks!.at(-1)).toMatchObject({ last: 2_004 });
    expect(products.chunks!.every(({ hosts }) => hosts!.leftMs < 60_000)).toBe(true);
  });
});

describe('a list at 100,000 hosts, day and night', () => {
  const given = config([]);
  const { site, run, aws } = given.values;
  const around = (change: Partial<typeof aws>): Plan => {
    const values = {
      ...given.values,
      site: { ...site, pages_at_once: 32 },
      run: { ...run, deadline: 24 * 3_600_000, min_instances: 4 },
      aws: { ...aws, region: 'us-east-1', ...change },
    };
    const loads = zipfLoads(100_000, 2_000_000, 1).map((load, i) => ({ host: `h${i}.example`, ...load }));
    const target: Target = { dryRun: false, kind: 'aws', region: 'us-east-1', bucket: 'b', endpoint: null };
    return planOf({ ...given, values }, { ids: [], duplicates: 0, loads }, target);
  };

  it('takes four of the smallest machines, for less than 30 dollars a month without a load balancer', () => {
    const plan = around({ load_balancer: 'none' });
    expect(plan).toMatchObject({ verdict: 'feasible', instances: 4, instanceType: 't4g.nano' });
    expect(plan.products).toBeGreaterThan(1_000_000);
    const perMonth = 30 * plan.cost.total;
    expect(perMonth).toBeGreaterThan(25);
    expect(perMonth).toBeLessThan(30);
  });

  it('is told what a load balancer would add, apart from the rest', () => {
    const [without, balanced] = [around({ load_balancer: 'none' }), around({ load_balancer: null })];
    expect(without.cost.balancer).toBe(0);
    expect(balanced.cost.balancer).toBeGreaterThan(0.5);
    expect(without.noBalancer!.saves).toBeCloseTo(balanced.cost.total - without.cost.total, 2);
    expect(text(without)).toMatch(/^balancer +none: .* which saves \$0\.\d\d$/m);
    expect(text(balanced)).toMatch(/balancer with \d public addresses \$0\.\d\d/);
  });
});
