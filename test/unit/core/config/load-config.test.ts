import { readConfig } from '../../../support/features.ts';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { type FlagValue, refuseMisspelt } from '../../../../orchestrator/core/config/load-config.ts';
import { FLEET_TEMPLATE, MAPPING_TEMPLATE } from '../../../../orchestrator/features/init/templates.ts';
import { siteSettingsOf } from '../../../../orchestrator/core/config/site-section.ts';
import { AppError } from '../../../../shared/domain/errors.ts';
import { columnsOf } from '../../../../shared/domain/mapping.ts';

const folder = mkdtempSync(join(tmpdir(), 'crawlfleet-config-'));
afterAll(() => rmSync(folder, { recursive: true }));

let files = 0;
function write(text: string): string {
  const path = join(folder, `fleet-${++files}.yaml`);
  writeFileSync(path, text);
  return path;
}

const GOOD = `site:
  product_url: "https://shop.example/item/{id}"
  interval: 200ms
  mapping: { fields: { title: "h1" } }
products: { query: "select id from products" }
database: { url: "sqlite:./fleet.db" }
run: { deadline: 45s }
`;

const withDiscover = (keys: string): string => `${GOOD}discover: { ${keys} }\n`;
const withSite = (key: string): string => GOOD.replace('interval: 200ms', key);
const POST = 'method: POST, reads_only: true';
const withoutId = (key: string): string => withSite(key).replace('item/{id}', 'graphql');
const withSection = (request: string): string =>
  GOOD.replace('{ fields: { title: "h1" } }', `{ fields: { title: "h1" }, request: ${request} }`);
/** With `site.hosts` in place of `site.product_url`. */
const withHosts = (hosts: string): string => GOOD.replace(/product_url: .*/, `hosts: ${hosts}`);
const withDomains = (list: string): string => GOOD.replace('"https://shop.example/item/{id}"', list);

function faultsOf(text: string, environment: Record<string, string> = {}, flags: FlagValue[] = []): string {
  try {
    readConfig(write(text), environment, flags);
  } catch (error) {
    if (error instanceof AppError) return `${error.code} ${error.exitCode}\n${error.message}`;
    throw error;
  }
  return 'no fault';
}

describe('loadConfig', () => {
  it('reads a small file and fills in the defaults', () => {
    const { values, mapping } = readConfig(write(GOOD), {});
    expect(values.site.interval).toBe(200);
    expect(values.run).toMatchObject({ deadline: 45_000, max_failed: 0.05, grace: 600_000, max_instances: 100 });
    expect(values.results.table).toBe('product_snapshots');
    expect(mapping.pages).toHaveLength(1);
    expect(mapping.pages[0]!.fields.map((f) => [f.name, f.required])).toEqual([['title', false]]);
  });

  it('reads how pages are requested, and leaves the ID to the body', () => {
    const { values, mapping } = readConfig(write(withoutId(`request: { ${POST}, body: { id: "{id}" } }`)), {});
    expect(siteSettingsOf(values.site).request).toEqual({
      method: 'POST',
      body: '{"id":"{id}"}',
      contentType: 'application/json',
    });
    expect(mapping.pages[0]).not.toHaveProperty('request');
    const empty = readConfig(write(withSite(`request: { ${POST} }`)), {});
    expect(siteSettingsOf(empty.values.site).request).toEqual({ method: 'POST', body: '' });
    const section = withSection(`{ ${POST}, body: "id={id}", content_type: application/x-www-form-urlencoded }`);
    const own = readConfig(write(section.replace('item/{id}', 'search')), {});
    expect(siteSettingsOf(own.values.site)).not.toHaveProperty('request');
    expect(own.mapping.pages[0]!.request).toEqual({
      method: 'POST',
      body: 'id={id}',
      contentType: 'application/x-www-form-urlencoded',
    });
  });

  it.each(['request: { method: GET }', 'request: null', 'interval: 1s'])('requests pages by GET with %s', (key) => {
    expect(siteSettingsOf(readConfig(write(withSite(key)), {}).values.site)).not.toHaveProperty('request');
  });

  it('follows aliases, and merges by `<<`, in the configuration and in a mapping file; own keys win', () => {
    writeFileSync(
      join(folder, 'merged.yaml'),
      'fields:\n  title: &text { css: h1, required: true }\n  brand: { <<: *text, css: .brand }\n',
    );
    const aws =
      'aws:\n  regions:\n  - &base { region: eu-west-1, vcpu_quota: 8 }\n  - { <<: *base, region: us-east-1 }\n' +
      '  - { region: us-east-2, subnets: &own [subnet-1, "$${HOME}"] }\n  - { region: us-west-1, subnets: *own }\n';
    const { values, mapping } = readConfig(write(GOOD.replace('{ fields: { title: "h1" } }', 'merged.yaml') + aws), {});
    expect(values.aws.regions).toMatchObject([
      { region: 'eu-west-1', vcpu_quota: 8 },
      { region: 'us-east-1', vcpu_quota: 8 },
      { subnets: ['subnet-1', '${HOME}'] },
      { region: 'us-west-1', subnets: ['subnet-1', '${HOME}'] },
    ]);
    expect(mapping.pages[0]!.fields.map((f) => [f.name, f.required])).toEqual([
      ['title', true],
      ['brand', true],
    ]);
  });

  it('lets 1,000 mappings share what an anchor names', () => {
    const shared = Array.from({ length: 1_000 }, (_, i) => `  - { url_patterns: [/c${i}/], fields: *own }\n`);
    const first = '  - { url_patterns: [/first/], fields: &own { title: h1 } }\n';
    writeFileSync(join(folder, 'shared.yaml'), `mappings:\n${first}${shared.join('')}`);
    const { mapping } = readConfig(write(GOOD.replace('{ fields: { title: "h1" } }', 'shared.yaml')), {});
    expect(mapping.pages).toHaveLength(1_001);
  });

  it.each([
    ['a merge of a text', 'run: { <<: 45s }', '`<<`: Merge sources must be maps'],
    [
      'an alias without its anchor',
      'run: *absent',
      'Unresolved alias (the anchor must be set before the alias): absent',
    ],
    ['an alias inside its own anchor', 'run: &run { deadline: *run }', 'an alias or `<<`: '],
    ['a fault in what is merged', 'run: { <<: { colour: red }, deadline: 45s }', 'line 7: run.colour: unknown key'],
  ])('refuses %s', (_what, line, fault) => {
    const text = faultsOf(GOOD.replace('run: { deadline: 45s }', line));
    expect(text).toContain('config-invalid 4');
    expect(text).toContain(fault);
  });

  it('reads a path that finds nothing as a warning, which only some commands refuse', () => {
    const misspelt = readConfig(write(GOOD.replace('"h1"', '{ json_ld: "$.name" }')), {});
    expect(misspelt.misspelt).toEqual([
      expect.stringMatching(/^line 4: site\.mapping\.fields\.title\.json_ld: .*write name$/),
    ]);
    expect(() => refuseMisspelt(misspelt)).toThrow(/finds nothing/);
    expect(() => refuseMisspelt(readConfig(write(GOOD), {}))).not.toThrow();
  });

  it('reads the settings of the crawl and of ban detection', () => {
    const text = GOOD.replace(
      'interval: 200ms',
      'render: auto\n  on_ban: replace\n  ban: { statuses: [403], redirects: ["/verify"], patterns: ["captcha"], cool_down: 5m }\n  canaries: [{ id: P1, fields: { title: Teapot } }]',
    );
    expect(readConfig(write(text), {}).values.site).toMatchObject({
      render: 'auto',
      robots: 'respect',
      on_ban: 'replace',
      ban: { statuses: [403], redirects: ['/verify'], patterns: ['captcha'], cool_down: 300_000 },
      canaries: [{ id: 'P1', fields: { title: 'Teapot' } }],
      pages_per_product: 1,
    });
    expect(readConfig(write(GOOD), {}).values.site).toMatchObject({
      on_ban: 'cool-down',
      ban: { statuses: [], redirects: [], patterns: [], cool_down: 1_800_000 },
    });
  });

  it.each<[string, number | undefined]>([
    ['1', undefined],
    ['10', undefined],
    ['10.5', 21],
    ['36', 72],
    ['{ mean: 36, max: 200 }', 200],
    ['{ mean: 1, max: 5 }', 5],
    ['{ mean: 3, max: 20 }', undefined],
  ])('pages_per_product: %s limits a product to %s pages', (value, limit) => {
    const fromFile = readConfig(write(GOOD.replace('site:', `site:\n  pages_per_product: ${value}`)), {});
    const fromEnvironment = readConfig(write(GOOD), { FLEET_SITE_PAGES_PER_PRODUCT: value });
    for (const { values } of [fromFile, fromEnvironment]) expect(siteSettingsOf(values.site).maxPages).toBe(limit);
  });

  it.each<[string, number | undefined]>([
    ['1', undefined],
    ['8', 8],
  ])('pages_at_once: %s is %s in the settings of the run', (value, pagesAtOnce) => {
    const { values } = readConfig(write(GOOD.replace('site:', `site:\n  pages_at_once: ${value}`)), {});
    expect(siteSettingsOf(values.site).pagesAtOnce).toBe(pagesAtOnce);
  });

  it('prefers flags over the environment, and the environment over the file', () => {
    const path = write(GOOD);
    const flag = { path: ['run', 'deadline'], flag: '--deadline', value: '2h' };
    expect(readConfig(path, { FLEET_RUN_DEADLINE: '1h' }).values.run.deadline).toBe(3_600_000);
    expect(readConfig(path, { FLEET_RUN_DEADLINE: '1h' }, [flag]).values.run.deadline).toBe(7_200_000);
    expect(
      readConfig(path, { FLEET_AWS_INSTANCE_TYPES: '[t3.nano]', FLEET_RUN_MAX_INSTANCES: '7' }).values,
    ).toMatchObject({
      aws: { instance_types: ['t3.nano'] },
      run: { max_instances: 7 },
    });
  });

  it('takes an empty variable as unset, and says so', () => {
    const path = write(GOOD.replace('run: { deadline: 45s }', 'run: { deadline: 45s, max_cost: 5 }'));
    const empty = { FLEET_RUN_MAX_COST: '', FLEET_RESULTS_GUARD: '  ', FLEET_SITE_BAN: '\uFEFF' };
    const { values, notes } = readConfig(path, empty);
    expect(values).toEqual(readConfig(path, {}).values);
    expect(notes).toEqual([
      'FLEET_RUN_MAX_COST, FLEET_RESULTS_GUARD, FLEET_SITE_BAN are empty, which counts as unset; the text null clears a setting that may be null',
    ]);
    expect(readConfig(path, {}).notes).toBeUndefined();
    expect(faultsOf(GOOD.replace(/database.*/, ''), { FLEET_DATABASE_URL: '' })).toMatch(
      /line 1: database: .*\n.*note: FLEET_DATABASE_URL is empty/,
    );
    expect(faultsOf(GOOD, { FLEET_RUN_DEDLINE: '' })).toContain('environment FLEET_RUN_DEDLINE: no such setting');
  });

  it('clears a setting that may be null by the exact text null, and no other', () => {
    const path = write(GOOD.replace('run: { deadline: 45s }', 'run: { deadline: 45s, max_cost: 5 }'));
    const cleared = { FLEET_RUN_MAX_COST: 'null', FLEET_RESULTS_GUARD: 'null', FLEET_RUN_DEADLINE: 'null' };
    expect(readConfig(path, cleared).values).toMatchObject({
      run: { max_cost: null, deadline: null },
      results: { guard: null },
    });
    for (const other of ['~', 'Null', 'NULL', '# none', 'none'])
      expect(faultsOf(GOOD, { FLEET_RUN_MAX_COST: other })).toContain('environment FLEET_RUN_MAX_COST: must be');
    expect(faultsOf(GOOD, { FLEET_RUN_MAX_INSTANCES: 'null' })).toContain(
      'environment FLEET_RUN_MAX_INSTANCES: must be',
    );
    expect(readConfig(path, { FLEET_RESULTS_TABLE: 'null' }).values.results.table).toBe('null');
  });

  it.each([
    'Tr0ub4dor-and-more #3',
    "'quoted secret of mine'",
    '00123456789012345',
    '[a, b] and so on',
    '{ a: 1 } x y z z',
    'true: or false or so',
    'pa$${ss ${NONE} ${ word',
    '- - - - - - - - -',
  ])('takes a text whole: %s', (secret) => {
    const { values } = readConfig(write(GOOD), {
      FLEET_SERVER_OPERATOR_TOKEN: `\uFEFF${secret}`,
      FLEET_PRODUCTS_QUERY: secret,
    });
    expect(values.server.operator_token).toBe(secret);
    expect(values.products.query).toBe(secret);
  });

  it('reads everything else as YAML, and what may be text or a list as either', () => {
    const { values, mapping } = readConfig(write(GOOD), {
      FLEET_SITE_PRODUCT_URL: '[{ url: "https://a.example/{id}" }, { url: "https://b.example/{id}", weight: 2 }]',
      FLEET_SITE_MAPPING: '{ fields: { name: h2 } }',
      FLEET_SITE_CONDITIONAL: 'true',
      FLEET_SITE_COUNTRIES: '[JP, ap-northeast-1]',
      FLEET_SITE_MAX_RATE: '5/s',
      FLEET_RUN_MAX_FAILED: '0.1',
      FLEET_RETENTION: '90d',
      FLEET_NOTIFY: '[{ slack: "https://hooks.slack.example/x" }]',
      FLEET_SERVER_OPERATOR_TLS: 'proxy',
      FLEET_SERVER_OPERATOR_TOKEN: 'sixteen characters: or more',
    });
    expect(values.site).toMatchObject({ conditional: true, countries: ['JP', 'ap-northeast-1'], max_rate: 5 });
    expect(values.site.product_url).toHaveLength(2);
    expect(values).toMatchObject({ run: { max_failed: 0.1 }, retention: 90 * 86_400_000, notify: [{}] });
    expect(values.server.operator_tls).toBe('proxy');
    expect(columnsOf(mapping).map((c) => c.name)).toEqual(['name']);
    expect(
      readConfig(write(GOOD), { FLEET_SITE_PRODUCT_URL: 'http://a.example/{id}?x=#1' }).values.site.product_url,
    ).toBe('http://a.example/{id}?x=#1');
  });

  it('reads site.hosts: any as a site without domains', () => {
    const { site } = readConfig(write(withHosts('any')), {}).values;
    expect([site.product_url, site.hosts]).toEqual([[], 'any']);
  });

  it('reads follow.hosts: own as no further host, beside site.hosts: any too', () => {
    const text = withSite('follow: { hosts: own, depth: 1 }');
    for (const own of [text, text.replace(/product_url: .*/, 'hosts: any')])
      expect(readConfig(write(own), {}).values.site.follow).toMatchObject({ hosts: [], depth: 1 });
    expect(faultsOf(withSite('follow: { hosts: other }'))).toContain('site.follow.hosts: must be own, or a list');
  });

  it.each([
    ['site.max_rate', 'max_rate: 1/s'],
    ['site.conditional', 'conditional: true'],
    ['site.headers', 'headers: { X-A: b }'],
    ['site.cookies', 'cookies: { a: b }'],
    ['site.follow', 'follow: { hosts: ["https://r.example"] }'],
    ['site.render', 'render: browser'],
  ])('refuses what is about one site beside site.hosts: any: %s', (key, line) => {
    const text = withSite(line).replace(/product_url: .*/, 'hosts: any');
    expect(faultsOf(text)).toContain(`${key}: goes not with hosts: any`);
  });

  it('reads site.host_key beside site.hosts: any alone', () => {
    const text = withSite('host_key: host');
    expect(faultsOf(text)).toContain('site.host_key: needs hosts: any');
    const { site } = readConfig(write(text.replace(/product_url: .*/, 'hosts: any'))).values;
    expect(siteSettingsOf(site).hostKey).toBe('host');
    expect(faultsOf(withSite('host_key: name').replace(/product_url: .*/, 'hosts: any'))).toContain('site.host_key');
  });

  it('reads site.hosts as domains whose products have URLs of their own', () => {
    const canary = 'canaries: [{ id: "https://b.example/x#y", fields: { title: x } }]';
    const { site } = readConfig(write(withHosts(`["https://a.example/", "http://b.example"]\n  ${canary}`))).values;
    expect(site.product_url).toEqual([
      { url: 'https://a.example/{url}', weight: 1 },
      { url: 'http://b.example/{url}', weight: 1 },
    ]);
    expect(site.canaries).toEqual([{ id: 'https://b.example/x', fields: { title: 'x' } }]);
  });

  it('reads {path} as segments of an ID, which are no path of a discovery', () => {
    const { site } = readConfig(write(GOOD.replace('{id}', '{path}.html?a=1'))).values;
    expect(site.product_url).toBe('https://shop.example/item/{segments}.html?a=1');
  });

  it('lists all faults together, each with its line', () => {
    const text = faultsOf(`site:
  product_url: "https://shop.example/item"
  interval: 10
  colour: red
  mapping: { fields: { title: "h1", price: { css: ".p", attr: x, number: true, integer: true }, url: "a" } }
products: { sql: "select 1" }
database: { url: "postgres://x" }
`);
    expect(text).toContain('config-invalid 4');
    expect(text).toContain('line 2: site.product_url: must contain {id}');
    expect(text).toContain('line 3: site.interval: must be a duration such as 200ms, 10s, 4h or 1h30m, not 10');
    expect(text).toContain('line 4: site.colour: unknown key');
    expect(text).toContain('line 5: site.mapping.fields.price.integer: number and integer exclude each other');
    expect(text).toContain('line 5: site.mapping.fields.url: the name is taken');
    expect(text).toContain('line 6: products.query: missing');
    expect(text).toContain('line 6: products.sql: unknown key');
    expect(text).toContain('line 7: database.url: must begin with mysql://');
  });

  it.each([
    ['site: missing', ''],
    ['must be a mapping with site', '- a\n'],
    ['line 2', 'site: [\n'],
    ['line 8', `${GOOD}run: { deadline: 1h }\n`],
    ['not in the host', GOOD.replace('shop.example', '{id}.shop.example')],
    ['is not a URL', GOOD.replace('https://shop.example', '')],
    ['must begin with http', GOOD.replace('https:', 'ftp:')],
    ['line 2: site.product_url: must be a URL, or a list', GOOD.replace('"https://shop.example/item/{id}"', '7')],
    ['site.product_url.0.url: must contain {id}', withDomains('[{ url: "https://a.example/" }]')],
    ['site.product_url.1.url: missing', withDomains('[{ url: "https://a.example/{id}" }, { weight: 1 }]')],
    ['site.product_url.0.wieght: unknown key', withDomains('[{ url: "https://a.example/{id}", wieght: 1 }]')],
    ['site.product_url.0.weight: must be', withDomains('[{ url: "https://a.example/{id}", weight: 0 }]')],
    ['site.product_url: must be at least 1 entries', withDomains('[]')],
    [
      'site.product_url.1.url: must be on a host of its own',
      withDomains('[{ url: "https://a.example/{id}" }, { url: "http://www.a.example:8080/{id}" }]'),
    ],
    [
      'line 1: site.product_url: missing; or site.hosts',
      GOOD.replace(/product_url.*/, 'interval: 1s').replace('  interval: 200ms\n', ''),
    ],
    ['site.hosts: takes the place of site.product_url', withSite('hosts: ["https://a.example"]')],
    ['site.hosts: must name at least one host', withHosts('[]')],
    ['site.hosts.0: must be a host alone, such as https://a.example', withHosts('["https://a.example/shop"]')],
    ['site.hosts.0: must be a host alone', withHosts('["https://me:pw@a.example"]')],
    ['site.hosts.0: must begin with http', withHosts('["a.example"]')],
    [
      'site.hosts: go with a request body without {id}',
      withHosts(`["https://a.example"]\n  request: { ${POST}, body: { id: "{id}" } }`),
    ],
    ['site.hosts.1: is named before', withHosts('["https://a.example", "http://www.a.example:8080"]')],
    [
      'site.canaries.0.id: must be the URL of a product on one of site.hosts',
      withHosts('["https://a.example"]\n  canaries: [{ id: P1, fields: { title: x } }]'),
    ],
    ['may contain no other placeholder than {id}', GOOD.replace('{id}', '{id}/{path}')],
    ['must have {path} once, in the path, after a slash', GOOD.replace('item/{id}', 'item?p={path}')],
    ['must have {path} once, in the path, after a slash', GOOD.replace('item/{id}', 'item-{path}')],
    ['must be longer than zero', GOOD.replace('200ms', '0s')],
    ['cannot read the mapping none.yaml', GOOD.replace('{ fields: { title: "h1" } }', 'none.yaml')],
    ['site.mapping.fields.title', GOOD.replace('"h1"', '"h1[["')],
    ['a field name is a letter', GOOD.replace('title:', '"a-b":')],
    ['another field has this name', GOOD.replace('title: "h1"', 'title: "h1", Title: "h2"')],
    [
      'line 3: site.ban.patterns.1: the pattern "(?<=x)y" cannot be used',
      withSite('ban: { patterns: ["captcha", "(?<=x)y"] }'),
    ],
    ['site.ban.patterns.0: fits every page', withSite('ban: { patterns: ["<"] }')],
    ['site.ban.statuses.0: is the status of good pages', withSite('ban: { statuses: [200] }')],
    ['site.ban.redirects.0: is part of site.product_url', withSite('ban: { redirects: ["/"] }')],
    [
      'site.user_agent: may have letters, digits and signs of ASCII only',
      withSite('user_agent: "ボット/1.0 (+https://example.jp)"'),
    ],
    ['site.timeout: must be at most 1h', withSite('timeout: 30d')],
    ['site.ban.patterns.0: fits every page', withSite('ban: { patterns: [".*"] }')],
    ['site.canaries.0.id: the product ID is a dot segment', withSite('canaries: [{ id: "..", fields: {} }]')],
    [
      'site.canaries.0.fields.titel: the mapping has no field of this name',
      withSite('canaries: [{ id: P1, fields: { titel: Teapot } }]'),
    ],
    ...[
      's3://crawl/x',
      'https://crawl.s3.amazonaws.com',
      'arn:aws:s3:::crawl',
      'crawl/x',
      'Crawl',
      'a_b',
      'ab',
      '10.0.0.1',
      'a..b',
    ].map((bucket): [string, string] => [
      'aws.bucket: must be the name of a bucket, without s3://',
      `${GOOD}aws: { bucket: "${bucket}" }\n`,
    ]),
    ['aws.tags.CostCenter: must be a text, in quotes', `${GOOD}aws: { tags: { CostCenter: 4711 } }\n`],
    ['aws.tags.crawlfleet:owner: is set by AWS or by crawlfleet', `${GOOD}aws: { tags: { "crawlfleet:owner": me } }\n`],
    [
      'aws.certificate: is for a load balancer, and aws.load_balancer is none',
      `${GOOD}aws: { load_balancer: none, certificate: { arn: "arn:aws:iam::1:server-certificate/c", name: a.example } }\n`,
    ],
    ['aws.tags.a: may have letters, digits, blanks', `${GOOD}aws: { tags: { a: "$(rm)" } }\n`],
    ['site.pages_per_product', withSite('pages_per_product: 0.5')],
    ['site.pages_at_once', withSite('pages_at_once: 0')],
    ['site.pages_at_once', withSite('pages_at_once: 65')],
    ['site.pages_at_once', withSite('pages_at_once: 1.5')],
    ['site.pages_at_once: needs render: http', withSite('pages_at_once: 2\n  render: auto')],
    ['site.pages_per_product: must have a max that is not below', withSite('pages_per_product: { mean: 36, max: 20 }')],
    ['site.pages_per_product', withSite('pages_per_product: { mean: 36 }')],
    ['site.pages_per_product', withSite('pages_per_product: { mean: 36, max: 200, min: 1 }')],
    [
      'is more than run.max_instances',
      GOOD.replace('deadline: 45s', 'deadline: 45s, min_instances: 5, max_instances: 2'),
    ],
    [
      'run.max_instances: must be at most 1000, 1000 in each region',
      GOOD.replace('deadline: 45s', 'deadline: 45s, max_instances: 1001'),
    ],
    [
      'run.max_instances: must be at most 2000',
      `${GOOD.replace('deadline: 45s', 'deadline: 45s, max_instances: 2001')}aws: { regions: [{ region: eu-west-1 }, { region: us-east-1 }] }\n`,
    ],
    [
      'aws.regions.1.region: is listed twice',
      `${GOOD}aws: { regions: [{ region: eu-west-1 }, { region: eu-west-1 }] }\n`,
    ],
    [
      'aws.subnets: goes into the entries of aws.regions',
      `${GOOD}aws: { regions: [{ region: eu-west-1 }], subnets: [subnet-1] }\n`,
    ],
    ['aws.regions: must', `${GOOD}aws: { regions: [] }\n`],
    ['results.table: is too long', `${GOOD}results: { table: ${'t'.repeat(60)}, history: changes }\n`],
    [
      'discover.into.table: is too long',
      withDiscover(`seeds: ["https://shop.example/"], into: { table: ${'t'.repeat(60)} }`),
    ],
    [
      'discover.seeds.0: must be on the host',
      withDiscover('seeds: ["https://other.example/"], into: { table: found }'),
    ],
    ['site.follow.deny: must be a file of lines, or a list', withSite('follow: { deny: 7 }')],
    ['site.follow.hosts.0: must begin with http', withSite('follow: { hosts: [reviews.example] }')],
    [
      'site.follow.hosts.1: is the site itself, or named before',
      withSite('follow: { hosts: ["https://r.example/x", "https://r.example"] }'),
    ],
    [
      'site.follow.hosts.0: goes with one domain in site.product_url',
      withSite('follow: { hosts: ["https://r.example"] }').replace(
        '"https://shop.example/item/{id}"',
        '[{ url: "https://a.example/{id}" }, { url: "https://b.example/{id}" }]',
      ),
    ],
    ['site.product_url: must contain {id}, where the product ID goes', withoutId('interval: 1s')],
    ['site.request.reads_only: must be true for POST', withSite('request: { method: POST, body: "{}" }')],
    ['site.request.body: goes with method: POST', withSite('request: { body: "{}" }')],
    ['site.request.body: is no JSON', withSite(`request: { ${POST}, body: "id={id}" }`)],
    [
      'site.request.body: has a GraphQL mutation',
      withSite(`request: { ${POST}, body: { query: "mutation { buy }" } }`),
    ],
    ['site.request.content_type: must be', withSite(`request: { ${POST}, body: "<a/>", content_type: text/xml }`)],
    ['site.request.method: must be one of GET, POST', withSite('request: { method: PUT }')],
    ['site.request.bodys: unknown key; did you mean body?', withSite(`request: { ${POST}, bodys: x }`)],
    ['site.product_url: must contain {id}, where', withoutId(`request: { ${POST}, body: { id: {id} } }`)],
    ['or the body of the request, in quotes', withoutId(`request: { ${POST}, body: '{"query": "{ shop {id} }"}' }`)],
    ['site.render: must be http', withSite(`request: { ${POST} }\n  render: browser`)],
    ['site.render: must be http', withSite(`request: { ${POST} }\n  render: auto`)],
    ['site.mapping.request.reads_only: must be true', withSection('{ method: POST, body: "{}" }')],
    [
      'site.mapping.request.body: has a GraphQL subscription',
      withSection(`{ ${POST}, body: { query: "subscription { a }" } }`),
    ],
    [
      'site.product_url.1.url: must contain {id}',
      withDomains('[{ url: "https://shop.example/{id}" }, { url: "https://shop.test/api" }]'),
    ],
    ['site.render: must be http', withSection(`{ ${POST}, body: "{}" }`).replace('interval: 200ms', 'render: auto')],
    [
      'site.product_url: has a GraphQL mutation',
      GOOD.replace('item/{id}', 'graphql?query=mutation%20%7Bbuy%7D&id={id}'),
    ],
    ['site.follow.allow.0: the pattern', withSite('follow: { allow: ["("] }')],
    ['site.follow.depths: unknown key; did you mean depth?', withSite('follow: { depths: 1 }')],
    ['cannot read site.follow.deny, no-such.txt', withSite('follow: { deny: no-such.txt }')],
    ['discover.seeds: must name a page', withDiscover('into: { table: found }')],
    ['discover.order: needs discover.scores', withDiscover('sitemaps: auto, order: score, into: { table: found }')],
    ['discover.into.id: the pattern', withDiscover('sitemaps: auto, into: { table: found, id: "(" }')],
    [
      'discover.search.url: must contain {term}',
      withDiscover('search: { url: "https://shop.example/s", terms: t }, into: { table: t }'),
    ],
  ])('says what is wrong: %s', (expected, text) => {
    expect(faultsOf(text)).toContain(expected);
  });

  it('names the flag or the variable that is invalid', () => {
    expect(faultsOf(GOOD, { FLEET_RUN_DEADLINE: 'soon' })).toContain(
      'environment FLEET_RUN_DEADLINE: must be a duration',
    );
    expect(faultsOf(GOOD, { FLEET_RUN_DEDLINE: '1h' })).toContain('environment FLEET_RUN_DEDLINE: no such setting');
    expect(faultsOf(GOOD, {}, [{ path: ['run', 'deadline'], flag: '--deadline', value: 'soon' }])).toContain(
      'flag --deadline: must be a duration',
    );
  });

  it('names the path of a missing file', () => {
    expect(() => readConfig(join(folder, 'nowhere.yaml'), {})).toThrow(/cannot read the configuration .*nowhere\.yaml/);
  });

  it('accepts the file that `orchestrator init` writes', () => {
    writeFileSync(join(folder, 'mapping.yaml'), MAPPING_TEMPLATE);
    const { mapping } = readConfig(write(FLEET_TEMPLATE), {});
    expect(columnsOf(mapping).map((c) => c.name)).toEqual(['title', 'price', 'brand', 'image', 'tags']);
  });
});
