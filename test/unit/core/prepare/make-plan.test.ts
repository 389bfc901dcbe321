import { gunzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import type { Config } from '../../../../orchestrator/core/config/load-config.ts';
import { configSchema } from '../../../../orchestrator/core/config/schema.ts';
import type { ProductList } from '../../../../orchestrator/core/prepare/products.ts';
import { assumedTarget, chooseTarget, type Target } from '../../../../orchestrator/core/config/target.ts';
import { renderPlan } from '../../../../orchestrator/core/plan/render-plan.ts';
import type { Plan } from '../../../../orchestrator/core/plan/plan.ts';
import { makePlan, type PlanFacts, refusalOfPlan } from '../../../../orchestrator/core/prepare/make-plan.ts';
import { planFor, quotaOf } from '../../../../orchestrator/core/prepare/preflight.ts';
import { settingsOf } from '../../../../orchestrator/core/prepare/settings-of.ts';
import { packSettingsOf } from '../../../../orchestrator/core/act/launches/crawl-settings.ts';
import { newRunKeys } from '../../../../orchestrator/core/new-run.ts';
import { IGNORED_ROBOTS } from '../../../../orchestrator/core/model/robots-pace.ts';
import type { RobotsPolicy } from '../../../../shared/domain/robots-matcher.ts';
import { domainPaces } from '../../../../shared/domain/domains.ts';
import { siteOrigins } from '../../../../shared/domain/product.ts';
import { combinePolicies } from '../../../../shared/domain/robots.ts';
import { aRun, ALLOW_ALL } from '../builders.ts';

const TARGET: Target = { dryRun: true, kind: 'sandbox', region: 'ap-northeast-1', bucket: 'b-1', endpoint: null };
const LINKED = 'examplebot/1.0 (+https://example.com/bot)';

function config(site: Record<string, unknown> = {}, more: Record<string, unknown> = {}): Config {
  const values = configSchema.parse({
    site: { product_url: 'https://shop.example/item/{id}', mapping: {}, user_agent: LINKED, ...site },
    products: { query: 'select 1 as id' },
    database: { url: 'sqlite:/x.db' },
    run: { deadline: '4h' },
    ...more,
  });
  return { values, mapping: structuredClone(aRun().settings.mapping), file: '/fleet.yaml', features: [] };
}

const products = (count: number): ProductList => ({
  ids: Array.from({ length: count }, (_, i) => `p${i + 1}`),
  duplicates: 0,
});

/** Of a dry run of five products of a site that allows everything. */
const planOf = (config: Config, change: Partial<PlanFacts> = {}): Plan => makePlan({ ...factsOf(config), ...change });

const factsOf = (config: Config): PlanFacts => ({
  config,
  target: TARGET,
  products: products(5),
  robots: ALLOW_ALL,
  prices: { lists: [], warnings: [] },
  quota: { vcpus: config.values.aws.vcpu_quota, note: null },
  browser: 'ready',
});

const plan = (robots: RobotsPolicy, site = {}, count = 2_000): Plan =>
  planOf(config(site), { products: products(count), robots });

describe('the plan of products with URLs of their own', () => {
  const hosts = [
    { origin: 'https://a.example', products: 1_500 },
    { origin: 'https://b.example', products: 500 },
  ];
  const own = config({ product_url: undefined, hosts: hosts.map(({ origin }) => origin) });
  const urls = new Map(Array.from(products(2_000).ids, (id, i) => [id, `${hosts[i < 1_500 ? 0 : 1]!.origin}/${id}`]));
  const list: ProductList = { ...products(2_000), urls, hosts, urlNotes: ['a note'] };

  it('follows the busiest host, by the shares of the list', () => {
    const made = planOf(own, { products: list });
    const weighted = hosts.map(({ origin, products: weight }) => ({ url: `${origin}/{id}`, weight: weight / 2 }));
    const same = planOf(config({ product_url: weighted }), { products: products(2_000) });
    expect(made).toEqual({ ...same, hosts, warnings: ['a note', ...same.warnings] });
    expect(made.domains).toEqual({ count: 2, busiestShare: 0.75 });
    expect(settingsOf(own, TARGET, made).site.productUrl).toEqual([
      { url: 'https://a.example/{url}', weight: 1_500 },
      { url: 'https://b.example/{url}', weight: 500 },
    ]);
  });

  it('keeps the place of a host without a product, whose robots.txt is read, too', () => {
    const idle = [hosts[0]!, { ...hosts[1]!, products: 0 }];
    const { site } = settingsOf(own, TARGET, planOf(own, { products: { ...list, hosts: idle } }));
    expect(siteOrigins(site.productUrl)).toEqual(['https://a.example', 'https://b.example']);
    expect(domainPaces(site.productUrl, null)[1]!.share).toBeLessThan(1e-6);
  });

  it('asks the robots.txt of its host for each URL, and for none that is not requested', () => {
    const rules = (pattern: string): RobotsPolicy => ({
      ...ALLOW_ALL,
      access: 'rules',
      rules: [{ allow: false, pattern }],
    });
    const robots = combinePolicies([rules('/none'), rules('/p')]);
    const some = { ids: ['p1', 'p2', 'x'], duplicates: 0, hosts };
    const known = new Map([
      ['p1', 'https://a.example/p1'],
      ['p2', 'https://b.example/p2'],
      ['x', 'https://elsewhere.example/none'],
    ]);
    const { warnings } = planOf(own, { products: { ...some, urls: known }, robots });
    expect(warnings).toContainEqual(
      'robots.txt forbids 1 of 3 products, for example https://b.example/p2; they will end as failed(robots)',
    );
  });
});

describe('the plan and the browser', () => {
  it('plans for a boot that installs Chromium, and names the remedy', () => {
    const target: Target = { ...TARGET, kind: 'aws', dryRun: false };
    const make = (browser: 'ready' | 'installed') => planOf(config(), { target, products: products(2_000), browser });
    expect(make('ready').warnings).toEqual([]);
    expect(make('installed').warnings.join()).toContain('orchestrator image');
    expect(make('installed').bootP95Ms).toBeGreaterThan(make('ready').bootP95Ms);
  });
});

it('warns a dry run of a wrong clock; a paid one has the clock of AWS', () => {
  const off = (skewMs: number) => ({ robots: { ...ALLOW_ALL, skewMs } });
  expect(planOf(config(), off(2 * 3_600_000)).warnings).toEqual([
    expect.stringContaining('the clock of this machine is 2h behind that of the site'),
  ]);
  expect(planOf(config(), off(-90_000)).warnings.join()).toContain('is 1m 30s ahead of that of the site');
  expect(planOf(config()).warnings).toEqual([]);
  const target: Target = { ...TARGET, kind: 'aws', dryRun: false };
  expect(planOf(config(), { target, ...off(2 * 3_600_000) }).warnings).toEqual([]);
});

it('plans rendered pages with the time that they took in an earlier run', () => {
  const target: Target = { ...TARGET, kind: 'aws', dryRun: false };
  const make = (pageMs: object): Plan =>
    planOf(config({ render: 'browser', interval: '1s' }), { target, products: { ...products(20_000), ...pageMs } });
  expect(make({ pageMs: 4_000 }).instances).toBeGreaterThan(2 * make({}).instances);
});

describe('the plan and the load balancer', () => {
  const target: Target = { ...TARGET, kind: 'aws', dryRun: false };
  const make = (aws: object, change: Partial<PlanFacts> = {}): Plan =>
    planOf(config({}, { aws }), { target, products: products(2_000), ...change });

  it('has none for up to ten instances that this machine reaches, and says what that saves', () => {
    const usual = make({});
    const direct = make({}, { reachesInstances: true });
    expect(usual.noBalancer).toBeUndefined();
    expect(direct.cost.balancer).toBe(0);
    expect(direct.noBalancer!.saves).toBeCloseTo(usual.cost.total - direct.cost.total);
    expect(direct.noBalancer!.saves).toBeGreaterThan(usual.cost.total / 2);
    expect(renderPlan(direct)).toMatch(/balancer +none: .* which saves\s+\$0\.\d\d/);
    const many = make({}, { reachesInstances: true, products: products(60_000) });
    expect(many.instances).toBeGreaterThan(10);
    expect(many.noBalancer).toBeUndefined();
  });

  it('exists in a small run, too, where a certificate encrypts what goes to it', () => {
    const certificate = { arn: 'arn:aws:acm:eu-west-1:123456789012:certificate/c', name: 'crawl.example.com' };
    expect(make({ certificate }, { reachesInstances: true }).noBalancer).toBeUndefined();
  });

  it('has none of any size with aws.load_balancer: none, and the named one otherwise', () => {
    expect(make({ load_balancer: 'none' }, { products: products(60_000) }).noBalancer).toBeDefined();
    const named = make({ load_balancer: 'mine' }, { reachesInstances: false });
    expect(named.noBalancer).toBeUndefined();
    expect(make({ load_balancer: 'auto' })).toEqual(make({}));
  });
});

describe('the plan and robots.txt', () => {
  it('adds no note when everything is allowed', () => {
    expect(plan(ALLOW_ALL).warnings).toEqual([]);
  });

  it('applies a longer Crawl-delay with a note, and ignores a shorter one', () => {
    const slow = plan({ ...ALLOW_ALL, access: 'rules', crawlDelayMs: 30_000 });
    expect(slow.intervalMs).toBe(30_000);
    expect(slow.warnings.join()).toMatch(/robots.txt asks for 30 ?s.*wins over site.interval \(10 ?s\)/);
    expect(slow.instances).toBeGreaterThan(plan(ALLOW_ALL).instances);
    expect(plan({ ...ALLOW_ALL, crawlDelayMs: 1_000 })).toMatchObject({ intervalMs: 10_000, warnings: [] });
  });

  it('warns when robots.txt cannot be read, and continues', () => {
    const none = plan({ ...ALLOW_ALL, access: 'none', source: 'HTTP 503' });
    expect(none.verdict).toBe('feasible');
    expect(none.warnings.join()).toContain('nothing may be crawled at present: HTTP 503');
  });

  it('counts the forbidden products among the first 1,000', () => {
    const rules = [{ allow: false, pattern: '/item/p1' }];
    const some = plan({ ...ALLOW_ALL, access: 'rules', rules });
    // p1, p10-p19, p100-p199 and p1000.
    expect(some.warnings.join()).toContain('robots.txt forbids 112 of the first 1000 products');
    expect(some.verdict).toBe('feasible');
  });

  it('refuses a run whose products are all forbidden', () => {
    const rules = [{ allow: false, pattern: '/item/' }];
    const all = plan({ ...ALLOW_ALL, access: 'rules', rules, source: 'https://shop.example/robots.txt' }, {}, 5);
    expect(all.verdict).toBe('infeasible');
    expect(all.faults.join()).toContain('robots.txt forbids all of 5 products');
    expect(refusalOfPlan(all)?.message).toMatch(/robots\.txt forbids all/);
  });

  it('says when robots.txt is ignored', () => {
    expect(plan(IGNORED_ROBOTS, { robots: 'ignore' }).warnings).toEqual([expect.stringContaining('is ignored')]);
  });
});

describe('the plan after a run whose operator asked it to keep the pace', () => {
  const pace = { atMs: 0, intervalMs: 20_000, pausedUntilMs: 5, addresses: 4, isForNextPlan: true, runId: 'last' };
  const asked = [{ host: 'shop.example', intervalMs: 10_000, operatorPace: pace }];
  const after = (count: number, change: Partial<PlanFacts> = {}): Plan =>
    planOf(config(), { products: products(count), asked, ...change });

  it('counts that interval and no more addresses, but leaves the configured one to a reset', () => {
    const fits = after(2_000);
    expect(fits).toMatchObject({ verdict: 'feasible', intervalMs: 10_000, paceMs: after(2_000).paceMs });
    expect(fits.paceMs).toBeGreaterThan(20_000);
    expect(fits.operatorPace).toEqual({ ...pace, pausedUntilMs: null, isForNextPlan: false });
    expect(fits.instances).toBeLessThanOrEqual(4);
    expect(fits.warnings.join()).toMatch(
      /operator of run last asked this plan to keep 20s between two requests of one address, and no more addresses than were at work \(4\); the deadline of 4h holds.*pace last --reset/,
    );
  });

  it('is refused with the way out where the deadline needs more', () => {
    expect(after(6_000)).toMatchObject({
      verdict: 'infeasible',
      faults: [
        expect.stringMatching(/the operator of run last asked this plan for no more addresses than were at work: 4/),
      ],
      remedies: [expect.stringMatching(/^--deadline /), expect.stringMatching(/^orchestrator pace last --reset/)],
    });
  });
});

describe('the plan within seven days of a ban', () => {
  const asked = [{ host: 'shop.example', intervalMs: 10_000, bannedLately: true as const }];

  it('counts the slower beginning of each address, and says why', () => {
    const usual = planOf(config(), { products: products(2_000) });
    const after = planOf(config(), { products: products(2_000), asked });
    expect(after.bannedLately).toEqual([0]);
    expect(after.capacityEach).toBeLessThan(usual.capacityEach);
    expect(after.endP50Ms).toBeGreaterThan(usual.endP50Ms);
    expect(after.warnings.join()).toMatch(
      /banned an address within the last seven days: each address begins there at twice/,
    );
  });

  it('is not slower for a probe, which finds out what happens at its interval', () => {
    expect(planOf({ ...config(), maxRequests: 10 }, { products: products(5), asked }).bannedLately).toBeUndefined();
  });
});

describe('the plan after a run in which the site asked for a slower pace', () => {
  const cap = { addresses: 4, delayMs: 20_000, beforeMs: 10_000, atMs: 0, runId: '20260101-000000-last' };
  const asked = [{ host: 'shop.example', intervalMs: 20_000, cap }];
  const stillAsks = { ...ALLOW_ALL, crawlDelayMs: 20_000 };
  const after = (count: number, robots = stillAsks as RobotsPolicy, site = {}, change: Partial<PlanFacts> = {}): Plan =>
    planOf(config(site), { products: products(count), robots, asked, ...change });

  it('takes the delay as interval and no more addresses, and says that the deadline holds', () => {
    const fits = after(2_000);
    expect(fits).toMatchObject({ verdict: 'feasible', intervalMs: 20_000, paces: asked });
    expect(fits.instances).toBeLessThanOrEqual(4);
    expect(fits.warnings.join()).toMatch(
      /shop\.example raised its Crawl-delay from 10s to 20s during run 20260101-000000-last.*at most 0\.2\/s.*deadline of 4h holds/,
    );
  });

  it('says what that means for a deadline that it cannot keep, and what would help', () => {
    const late = after(6_000);
    expect(late.verdict).toBe('infeasible');
    expect(late.earliestEndMs).toBeGreaterThan(late.deadlineMs);
    expect(late.faults.join()).toMatch(
      /It takes \d+ instances at one request per 20s each.*shop\.example has asked for less: .* while 4 addresses were at work/,
    );
    expect(late.remedies).toEqual([
      expect.stringMatching(/^--deadline /),
      expect.stringMatching(/^with permission of shop\.example site\.max_rate: 0\.\d+\/s$/),
    ]);
    expect(late.warnings.join()).toMatch(/deadline of 4h is too early for that: the earliest end is /);
    const allowed = after(6_000, stillAsks, { max_rate: '1/s' });
    expect(allowed).toMatchObject({ verdict: 'feasible', intervalMs: 20_000 });
    expect(allowed.paces).toBeUndefined();
  });

  it('keeps it for one more plan when robots.txt no longer asks for it', () => {
    const next = after(2_000, ALLOW_ALL);
    expect(next).toMatchObject({ intervalMs: 20_000, paces: [{ cap: { ...cap, isLast: true } }] });
    const oneAfter = after(2_000, ALLOW_ALL, {}, { asked: next.paces! });
    expect(oneAfter).toMatchObject({ intervalMs: 10_000, warnings: [] });
    expect(after(2_000, stillAsks, {}, { asked: next.paces! }).paces).toEqual(asked);
    const unread = { ...ALLOW_ALL, access: 'none' as const };
    expect(after(2_000, unread).paces).toEqual(asked);
  });

  it('concerns no other host, no site whose robots.txt is ignored, and no probe', () => {
    expect(after(2_000, ALLOW_ALL, { product_url: 'https://other.example/{id}' }).intervalMs).toBe(10_000);
    expect(after(2_000, IGNORED_ROBOTS, { robots: 'ignore' }).intervalMs).toBe(10_000);
    const probe = { ...config(), maxRequests: 10 };
    expect(planOf(probe, { products: products(5), asked }).paces).toBeUndefined();
  });

  it('concerns only its own host of several', () => {
    const product_url = ['a', 'shop'].map((name) => ({ url: `https://${name}.example/{id}`, weight: 1 }));
    const both = after(2_000, ALLOW_ALL, { product_url });
    expect(both.paces).toMatchObject([
      { host: 'a.example', intervalMs: 10_000 },
      { host: 'shop.example', intervalMs: 20_000, cap: { addresses: 4 } },
    ]);
    expect(both.instances).toBeLessThanOrEqual(4);
  });
});

describe('the plan and the site', () => {
  it('counts the further pages of a product', () => {
    const one = plan(ALLOW_ALL);
    const three = plan(ALLOW_ALL, { pages_per_product: { mean: 3, max: 9 } });
    expect(plan(ALLOW_ALL, { pages_per_product: 3 })).toEqual(three);
    expect(three.paceMs).toBeCloseTo(3 * one.paceMs);
    expect(three.lowerBoundInstances).toBeGreaterThanOrEqual(3 * one.lowerBoundInstances - 3);
    expect(three.instances).toBeGreaterThan(2 * one.instances);
  });

  it('counts the canary pages that prove unchanged ones', () => {
    expect(plan(ALLOW_ALL, { conditional: true }).paceMs).toBeCloseTo(1.02 * plan(ALLOW_ALL).paceMs);
  });

  it('warns when the mapping finds further pages that the plan does not count', () => {
    const chained = config();
    chained.mapping.pages[0]!.urlParsers = [
      { description: 'next page', steps: [{ type: 'css', selector: 'a.next', attribute: 'href' }] },
    ];
    expect(planOf(chained).warnings.join()).toContain('site.pages_per_product is 1');
    chained.values.site.pages_per_product = 2;
    expect(planOf(chained).warnings).toEqual([]);
    chained.values.site.pages_per_product = { mean: 36, max: 200 };
    const counted = planOf(chained);
    expect(counted.pages).toEqual({ mean: 36, max: 200 });
    const words = renderPlan(counted).replace(/\n +/g, ' ');
    expect(words).toContain(
      `about ${(36 * counted.products).toLocaleString('en-US')}: 36 a product on average, at most 200 (site.pages_per_product)`,
    );
    expect(plan(ALLOW_ALL)).not.toHaveProperty('pages');
  });

  it('selects a type with 2 GB for a browser, and warns when there is none', () => {
    expect(plan(ALLOW_ALL).instanceType).toBe('t4g.nano');
    expect(plan(ALLOW_ALL, { render: 'browser' }).instanceType).toBe('t4g.small');
    expect(plan(ALLOW_ALL, { render: 'auto' }).instanceType).toBe('t4g.small');
    const small = config({ render: 'browser' }, { aws: { instance_types: ['t4g.nano'] } });
    expect(planOf(small).warnings.join()).toContain('t4g.nano has 0.5 GB');
  });
});

describe('the User-Agent', () => {
  const aws = {
    aws: { region: 'eu-west-1', bucket: 'b-1', instance_profile: 'p' },
    server: { url: 'http://10.0.0.1:8700' },
  };

  it.each([null, 'examplebot/1.0', 'Mozilla/5.0 https://example.com'])('%s is refused on AWS', (agent) => {
    expect(() => chooseTarget(config({ user_agent: agent }, aws), false, {})).toThrow(/site\.user_agent with a link/);
  });

  it('without a link is reported together with everything else that is missing', () => {
    const both = { aws: { ...aws.aws, bucket: null }, server: aws.server };
    expect(() => chooseTarget(config({ user_agent: 'bot' }, both), false, {})).toThrow(
      /needs aws\.bucket in .*site\.user_agent with a link/,
    );
  });

  it('with a link is accepted on AWS; without one a dry run warns', () => {
    expect(chooseTarget(config({}, aws), false, {})).toMatchObject({ kind: 'aws' });
    expect(chooseTarget(config({ user_agent: null }), true, {})).toMatchObject({ kind: 'sandbox' });
    expect(plan(ALLOW_ALL, { user_agent: 'bot/1' }).warnings.join()).toContain('site.user_agent has no link');
    expect(plan(ALLOW_ALL, { user_agent: null }).warnings.join()).toContain('site.user_agent is not set');
  });

  it('warns that a mapping without a required field cannot tell a ban page from a product', () => {
    const loose = config();
    loose.mapping.pages[0]!.name = 'mapping';
    loose.mapping.pages[0]!.fields.forEach((field) => (field.required = false));
    expect(planOf(loose).warnings.join()).toMatch(/^the mapping has no required field/);
  });

  it('warns of paths that find nothing', () => {
    expect(planOf({ ...config(), misspelt: ['line 4: …'] }).warnings).toContain('line 4: …');
  });
});

describe('site.countries', () => {
  const server = { url: 'http://10.0.0.1:8700' };
  const choose = (countries: string[] | null, aws: Record<string, unknown>, dryRun = false) =>
    chooseTarget(config({ countries }, { aws: { bucket: 'b-1', instance_profile: 'p', ...aws }, server }), dryRun, {});
  const two = { regions: [{ region: 'ap-northeast-1' }, { region: 'us-east-1' }] };

  it.each([
    [null, two],
    [['JP', 'US'], two],
    [['ap-northeast-1', 'US'], two],
    [['JP'], { region: 'ap-northeast-3' }],
    [['xy-new-9'], { region: 'xy-new-9' }],
  ])('%j allows %j', (countries, aws) => {
    expect(choose(countries, aws).kind).toBe('aws');
  });

  it.each([
    [['JP'], two, 'allows JP, but not us-east-1 (US)'],
    [['DE', 'FR'], { region: 'us-west-2' }, 'allows DE, FR, but not us-west-2 (US)'],
    [['JP'], { region: 'xy-new-9' }, 'not xy-new-9 (in a country that this version does not know)'],
  ])('%j refuses %j on AWS, with the country, and allows a dry run', (countries, aws, expected) => {
    expect(() => choose(countries, aws)).toThrow(expected);
    expect(choose(countries, aws, true).kind).toBe('sandbox');
  });

  it.each(['jp', 'Japan', ''])('does not accept %j as a country', (country) => {
    expect(() => config({ countries: [country] })).toThrow('ISO country code');
  });
});

describe('settingsOf', () => {
  it('stores the settings of the crawl, with units', () => {
    const full = config({
      render: 'auto',
      robots: 'ignore',
      on_ban: 'stop',
      ban: { statuses: [403], cool_down: '5m' },
      canaries: [{ id: 'P1', fields: { title: 'x' } }],
    });
    const settings = settingsOf(full, TARGET, planOf(full, { robots: IGNORED_ROBOTS }));
    expect(settings.site).toMatchObject({
      render: 'auto',
      robots: 'ignore',
      onBan: 'stop',
      ban: { statuses: [403], redirects: [], patterns: [], coolDownMs: 300_000 },
      canaries: [{ id: 'P1', fields: { title: 'x' } }],
    });
  });

  it('names cookies only where they are not kept, so that instances of an earlier version can read them', () => {
    const siteOf = (site: Record<string, unknown>) => settingsOf(config(site), TARGET, planOf(config(site))).site;
    expect(siteOf({})).not.toHaveProperty('keepCookies');
    expect(siteOf({ keep_cookies: false })).toMatchObject({ keepCookies: false });
  });
});

describe('site.request', () => {
  const of = (site: Record<string, unknown>) => {
    const settings = settingsOf(config(site), TARGET, planOf(config(site)));
    return { ...settings, read: settings.results.conditional };
  };
  const post = (body: string) => ({ request: { method: 'POST', reads_only: true, body } });

  it('is kept where it is a POST, and nothing else changes', () => {
    const { site } = of(post('{"id":"{id}"}'));
    expect(site).toMatchObject({ request: { method: 'POST', body: '{"id":"{id}"}', contentType: 'application/json' } });
    expect({ ...site, request: undefined }).toEqual({ ...of({}).site, request: undefined });
    expect(of({ request: { method: 'GET' } })).toEqual(of({}));
  });

  it('lets no page count as read that was read by another request', () => {
    const conditional = { conditional: true };
    const named = [{}, post('{"a":"{id}"}'), post('{"b":"{id}"}')].map((site) => of({ ...conditional, ...site }).read);
    expect(new Set(named).size).toBe(3);
    expect(of({ ...conditional, request: { method: 'GET' } }).read).toBe(named[0]);
  });
});

describe('what instances crawl by', () => {
  it('has none of the secrets of the run', () => {
    const secrets = Array.from({ length: 7 }, (_, i) => `a-secret-of-the-run-${i}`);
    const [database, operator, hmac, smtp, slack, ping, control] = secrets as [string, ...string[]];
    const own = { database: { url: `mysql://user:${database}@db/shop` }, server: { operator_token: operator } };
    const notify = [
      { webhook: 'https://hooks.example/', secret: hmac },
      { email: { to: 'a@b.example', from: 'c@d.example', smtp: `smtp://user:${smtp}@mail.example` } },
      { slack: `https://hooks.example/${slack}` },
    ];
    const full: Config = {
      ...config({}, own),
      sections: new Map<string, unknown>([
        ['notify', notify],
        ['ping', { url: `https://hc.example/${ping}` }],
      ]),
    };
    const run = {
      ...newRunKeys(),
      ...settingsOf(full, TARGET, planOf(full)),
      sandbox: { pid: 1, controlToken: control!, dataDir: '/data' },
    };
    const text = gunzipSync(packSettingsOf(run).bytes).toString();
    expect(text).toContain('https://shop.example/item/{id}');
    for (const secret of [...secrets, run.privateKey]) expect(text).not.toContain(secret);
  });
});

describe('settings that no instance takes', () => {
  it('are refused by the plan, as by a run', async () => {
    const plan = (lines: number) => {
      const denyLines = Array.from({ length: lines }, (_, i) => `/${i}/`.padEnd(750, 'a'));
      const given = factsOf({ ...config(), denyLines });
      return planFor(
        { ...given, environment: {} },
        {
          robots: () => Promise.resolve(ALLOW_ALL),
          asked: () => Promise.resolve([]),
          quota: () => quotaOf(given.config, TARGET),
        },
      );
    };
    await expect(plan(28_000)).rejects.toMatchObject({
      code: 'config-invalid',
      message: expect.stringContaining('too long') as string,
    });
    expect((await plan(1)).plan.verdict).toBe('feasible');
  });
});

describe('aws.recycle_every', () => {
  const rotated = (every: string, target: Target) =>
    planOf(config({}, { aws: { recycle_every: every } }), { target, products: products(3_000) });

  it('is refused where a fleet could not boot that fast, and the message names the shortest allowed value', () => {
    const aws: Target = { ...TARGET, dryRun: false, kind: 'aws' };
    expect(() => rotated('10m', aws)).toThrow(
      expect.objectContaining({ code: 'config-invalid', hint: expect.stringContaining('15m') }),
    );
    expect(rotated('15m', aws)).toMatchObject({ verdict: 'feasible', renewals: { everyMs: 900_000, costMs: 180_000 } });
    expect(() => rotated('20s', TARGET)).toThrow(expect.objectContaining({ code: 'config-invalid' }));
    expect(rotated('25s', TARGET).verdict).toBe('feasible');
  });

  it('is compared with the browser boot where instances install one', () => {
    const aws: Target = { ...TARGET, dryRun: false, kind: 'aws' };
    const full = config({}, { aws: { recycle_every: '29m' } });
    const planned = (browser: 'ready' | 'installed') =>
      planOf(full, { target: aws, products: products(3_000), browser });
    expect(planned('ready').verdict).toBe('feasible');
    expect(() => planned('installed')).toThrow(
      expect.objectContaining({ code: 'config-invalid', hint: expect.stringContaining('30m') }),
    );
  });

  it('is part of the settings of the run, and increases the number of instances', () => {
    const full = config({}, { aws: { recycle_every: '1h' } });
    const planned = planOf(full, { robots: IGNORED_ROBOTS });
    expect(settingsOf(full, TARGET, planned).aws.recycleEveryMs).toBe(3_600_000);
    const aws: Target = { ...TARGET, dryRun: false, kind: 'aws' };
    const often = planOf(config({}, { aws: { recycle_every: '15m' } }), { target: aws, products: products(30_000) });
    expect(often.instances).toBeGreaterThan(planOf(config(), { target: aws, products: products(30_000) }).instances);
  });
});

describe('the vCPU quota of the plan', () => {
  it('is the unused part of the quota, with a note', () => {
    const quota = { vcpus: 4, note: 'Of 64 vCPUs 60 run already' };
    const tight = planOf(config(), { products: products(30_000), quota });
    expect(tight).toMatchObject({ verdict: 'over-quota', vcpuQuota: 4 });
    expect(tight.warnings).toContain(quota.note);
  });
});

describe('a real run', () => {
  it('treats the configured endpoint like AWS, with the boot times of AWS', () => {
    const real = { region: 'ap-northeast-1', bucket: 'b-1', instance_profile: 'p', endpoint: 'https://vpce.example' };
    const full = config(
      { user_agent: 'bot/1 (+https://example.com)' },
      { aws: real, server: { url: 'http://10.0.0.5:8700' } },
    );
    const target = chooseTarget(full, false, {});
    expect(target).toMatchObject({ dryRun: false, kind: 'aws', endpoint: 'https://vpce.example' });
    expect(assumedTarget(full, false, {})).toEqual(target);
    expect(assumedTarget(config({}, { aws: { endpoint: 'https://vpce.example' } }), false, {}).kind).toBe('aws');
  });
});

describe('a dry run', () => {
  const at = (endpoint: string) => () => chooseTarget(config({}, { aws: { endpoint } }), true, {});

  it.each([
    'http://AKIAIOSFODNN7EXAMPLE:secret@127.0.0.1:4566',
    'http://127.0.0.1:4566/?key=ASIAIOSFODNN7EXAMPLE',
    'http://user@127.0.0.1:4566',
  ])('refuses keys in the URL of its endpoint, and does not print them: %s', (endpoint) => {
    expect(at(endpoint)).toThrow(expect.objectContaining({ code: 'endpoint-refused' }) as Error);
    expect(at(endpoint)).not.toThrow(/EXAMPLE|secret/);
  });

  it('may use an endpoint on this machine', () => {
    expect(at('http://127.0.0.1:4566')()).toMatchObject({ kind: 'emulator', endpoint: 'http://127.0.0.1:4566' });
  });

  it('may not use an endpoint elsewhere', () => {
    expect(at('https://ec2.us-east-1.amazonaws.com')).toThrow(/endpoint on this machine/);
  });
});
