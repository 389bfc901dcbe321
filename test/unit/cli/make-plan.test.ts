import { describe, expect, it } from 'vitest';
import type { Config } from '../../../orchestrator/cli/config/load-config.ts';
import { configSchema } from '../../../orchestrator/cli/config/schema.ts';
import type { ProductList } from '../../../orchestrator/cli/products.ts';
import type { Target } from '../../../orchestrator/cli/target.ts';
import { makePlan, refuseInfeasible } from '../../../orchestrator/cli/make-plan.ts';
import { settingsOf } from '../../../orchestrator/cli/settings-of.ts';
import { assumedTarget, chooseTarget } from '../../../orchestrator/cli/target.ts';
import { IGNORED_ROBOTS } from '../../../orchestrator/control/observe/robots-cache.ts';
import type { RobotsPolicy } from '../../../shared/domain/robots-matcher.ts';
import { aRun, ALLOW_ALL } from '../control/builders.ts';

const TARGET: Target = { dryRun: true, kind: 'sandbox', region: 'ap-northeast-1', bucket: 'b', endpoint: null };
const LINKED = 'examplebot/1.0 (+https://example.com/bot)';

function config(site: Record<string, unknown> = {}, more: Record<string, unknown> = {}): Config {
  const values = configSchema.parse({
    site: { product_url: 'https://shop.example/item/{id}', mapping: {}, user_agent: LINKED, ...site },
    products: { query: 'select 1 as id' },
    database: { url: 'sqlite:/x.db' },
    run: { deadline: '4h' },
    ...more,
  });
  return { values, mapping: structuredClone(aRun().settings.mapping), file: '/fleet.yaml' };
}

const products = (count: number): ProductList => ({
  ids: Array.from({ length: count }, (_, i) => `p${i + 1}`),
  duplicates: 0,
});

const plan = (robots: RobotsPolicy, site = {}, count = 2_000) =>
  makePlan(config(site), TARGET, products(count), { robots });

describe('the plan and the browser', () => {
  it('counts the boot that installs Chromium, and names the remedy', () => {
    const target: Target = { ...TARGET, kind: 'aws', dryRun: false };
    const make = (browser: 'ready' | 'installed') =>
      makePlan(config(), target, products(2_000), { robots: ALLOW_ALL, browser });
    expect(make('ready').warnings).toEqual([]);
    expect(make('installed').warnings.join()).toContain('orchestrator image');
    expect(make('installed').bootP95Ms).toBeGreaterThan(make('ready').bootP95Ms);
  });
});

describe('the plan and robots.txt', () => {
  it('says nothing when everything is allowed', () => {
    expect(plan(ALLOW_ALL).warnings).toEqual([]);
  });

  it('keeps a longer Crawl-delay and says so, and no shorter one', () => {
    const slow = plan({ ...ALLOW_ALL, access: 'rules', crawlDelayMs: 30_000 });
    expect(slow.intervalMs).toBe(30_000);
    expect(slow.warnings.join()).toMatch(/robots.txt asks for 30 ?s.*wins over site.interval \(10 ?s\)/);
    expect(slow.instances).toBeGreaterThan(plan(ALLOW_ALL).instances);
    expect(plan({ ...ALLOW_ALL, crawlDelayMs: 1_000 })).toMatchObject({ intervalMs: 10_000, warnings: [] });
  });

  it('warns when robots.txt cannot be read, and goes on', () => {
    const none = plan({ ...ALLOW_ALL, access: 'none', source: 'HTTP 503' });
    expect(none.verdict).toBe('feasible');
    expect(none.warnings.join()).toContain('nothing may be crawled at present: HTTP 503');
  });

  it('counts the products it forbids among the first 1,000', () => {
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
    expect(() => refuseInfeasible(all)).toThrow(/robots\.txt forbids all/);
  });

  it('says when it is ignored', () => {
    expect(plan(IGNORED_ROBOTS, { robots: 'ignore' }).warnings).toEqual([expect.stringContaining('is ignored')]);
  });
});

describe('the plan and the site', () => {
  it('counts the further pages of a product', () => {
    const one = plan(ALLOW_ALL);
    const three = plan(ALLOW_ALL, { pages_per_product: 3 });
    expect(three.paceMs).toBeCloseTo(3 * one.paceMs);
    expect(three.lowerBoundInstances).toBeGreaterThanOrEqual(3 * one.lowerBoundInstances - 3);
    expect(three.instances).toBeGreaterThan(2 * one.instances);
  });

  it('warns when the mapping finds further pages that the plan does not count', () => {
    const chained = config();
    chained.mapping.pages[0]!.urlParsers = [
      { description: 'next page', steps: [{ type: 'css', selector: 'a.next', attribute: 'href' }] },
    ];
    expect(makePlan(chained, TARGET, products(5), { robots: ALLOW_ALL }).warnings.join()).toContain(
      'site.pages_per_product is 1',
    );
    chained.values.site.pages_per_product = 2;
    expect(makePlan(chained, TARGET, products(5), { robots: ALLOW_ALL }).warnings).toEqual([]);
  });

  it('takes a type with 2 GB for a browser, and warns when there is none', () => {
    expect(plan(ALLOW_ALL).instanceType).toBe('t4g.nano');
    expect(plan(ALLOW_ALL, { render: 'browser' }).instanceType).toBe('t4g.small');
    expect(plan(ALLOW_ALL, { render: 'auto' }).instanceType).toBe('t4g.small');
    const small = config({ render: 'browser' }, { aws: { instance_types: ['t4g.nano'] } });
    expect(makePlan(small, TARGET, products(5), { robots: ALLOW_ALL }).warnings.join()).toContain(
      't4g.nano has 0.5 GB',
    );
  });
});

describe('the User-Agent', () => {
  const aws = {
    aws: { region: 'eu-west-1', bucket: 'b', instance_profile: 'p' },
    server: { url: 'http://10.0.0.1:8700' },
  };

  it.each([null, 'examplebot/1.0', 'Mozilla/5.0 https://example.com'])('%s is refused on AWS', (agent) => {
    expect(() => chooseTarget(config({ user_agent: agent }, aws), false, {})).toThrow(/site\.user_agent with a link/);
  });

  it('without a link is told together with what else is missing', () => {
    const both = { aws: { ...aws.aws, bucket: null }, server: aws.server };
    expect(() => chooseTarget(config({ user_agent: 'bot' }, both), false, {})).toThrow(
      /needs aws\.bucket in .*site\.user_agent with a link/,
    );
  });

  it('with a link is taken on AWS; without one a dry run warns', () => {
    expect(chooseTarget(config({}, aws), false, {})).toMatchObject({ kind: 'aws' });
    expect(chooseTarget(config({ user_agent: null }), true, {})).toMatchObject({ kind: 'sandbox' });
    expect(plan(ALLOW_ALL, { user_agent: 'bot/1' }).warnings.join()).toContain('site.user_agent has no link');
    expect(plan(ALLOW_ALL, { user_agent: null }).warnings.join()).toContain('site.user_agent is not set');
  });

  it('says that a mapping without a required field cannot tell a ban page from a product', () => {
    const loose = config();
    loose.mapping.pages[0]!.name = 'mapping';
    loose.mapping.pages[0]!.fields.forEach((field) => (field.required = false));
    expect(makePlan(loose, TARGET, products(5), { robots: ALLOW_ALL }).warnings.join()).toMatch(
      /^the mapping has no required field/,
    );
  });
});

describe('settingsOf', () => {
  it('keeps how the site is crawled, with units', () => {
    const full = config({
      render: 'auto',
      robots: 'ignore',
      on_ban: 'stop',
      ban: { statuses: [403], cool_down: '5m' },
      canaries: [{ id: 'P1', fields: { title: 'x' } }],
    });
    const settings = settingsOf(full, TARGET, makePlan(full, TARGET, products(5), { robots: IGNORED_ROBOTS }), '1.0.0');
    expect(settings.site).toMatchObject({
      render: 'auto',
      robots: 'ignore',
      onBan: 'stop',
      ban: { statuses: [403], redirects: [], patterns: [], coolDownMs: 300_000 },
      canaries: [{ id: 'P1', fields: { title: 'x' } }],
    });
  });
});

describe('aws.recycle_every', () => {
  const rotated = (every: string, target: Target) =>
    makePlan(config({}, { aws: { recycle_every: every } }), target, products(3_000), { robots: ALLOW_ALL });

  it('is refused where a fleet could not boot so fast, with the shortest that is allowed', () => {
    const aws: Target = { ...TARGET, dryRun: false, kind: 'aws' };
    expect(() => rotated('10m', aws)).toThrow(
      expect.objectContaining({ code: 'config-invalid', hint: expect.stringContaining('15m') }),
    );
    expect(rotated('15m', aws)).toMatchObject({ verdict: 'feasible', renewals: { everyMs: 900_000, costMs: 180_000 } });
    expect(() => rotated('20s', TARGET)).toThrow(expect.objectContaining({ code: 'config-invalid' }));
    expect(rotated('25s', TARGET).verdict).toBe('feasible');
  });

  it('is measured by the boot that a browser takes, where instances install one', () => {
    const aws: Target = { ...TARGET, dryRun: false, kind: 'aws' };
    const full = config({}, { aws: { recycle_every: '29m' } });
    const planned = (browser: 'ready' | 'installed') =>
      makePlan(full, aws, products(3_000), { robots: ALLOW_ALL, browser });
    expect(planned('ready').verdict).toBe('feasible');
    expect(() => planned('installed')).toThrow(
      expect.objectContaining({ code: 'config-invalid', hint: expect.stringContaining('30m') }),
    );
  });

  it('comes into the settings of the run, and costs instances', () => {
    const full = config({}, { aws: { recycle_every: '1h' } });
    const planned = makePlan(full, TARGET, products(5), { robots: IGNORED_ROBOTS });
    expect(settingsOf(full, TARGET, planned, '1.0.0').aws.recycleEveryMs).toBe(3_600_000);
    const aws: Target = { ...TARGET, dryRun: false, kind: 'aws' };
    const often = makePlan(config({}, { aws: { recycle_every: '15m' } }), aws, products(30_000), { robots: ALLOW_ALL });
    expect(often.instances).toBeGreaterThan(makePlan(config(), aws, products(30_000), { robots: ALLOW_ALL }).instances);
  });
});

describe('the vCPU quota of the plan', () => {
  it('is what is left of it, with a note', () => {
    const quota = { vcpus: 4, note: 'Of 64 vCPUs 60 run already' };
    const tight = makePlan(config(), TARGET, products(30_000), { robots: ALLOW_ALL, quota });
    expect(tight).toMatchObject({ verdict: 'over-quota', vcpuQuota: 4 });
    expect(tight.warnings).toContain(quota.note);
  });
});

describe('a real run', () => {
  it('takes the endpoint of its configuration for AWS: its machines are like those of AWS, and so are its times', () => {
    const real = { region: 'ap-northeast-1', bucket: 'b', instance_profile: 'p', endpoint: 'https://vpce.example' };
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
  ])('takes no keys in the URL of its endpoint, and does not repeat them: %s', (endpoint) => {
    expect(at(endpoint)).toThrow(expect.objectContaining({ code: 'endpoint-refused' }) as Error);
    expect(at(endpoint)).not.toThrow(/EXAMPLE|secret/);
  });

  it('may go to an endpoint on this machine', () => {
    expect(at('http://127.0.0.1:4566')()).toMatchObject({ kind: 'emulator', endpoint: 'http://127.0.0.1:4566' });
  });

  it('may not leave this machine', () => {
    expect(at('https://ec2.us-east-1.amazonaws.com')).toThrow(/endpoint on this machine/);
  });
});
