/** `site.follow` in a discovery, and the keys of `discover` that earlier versions had for it. */
import { writeFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { discoveryConfig } from '../../../../orchestrator/features/discovery/discovery-config.ts';
import { denyOf } from '../../../../orchestrator/core/config/follow-section.ts';
import { siteSettingsOf } from '../../../../orchestrator/core/config/site-section.ts';
import type { Config } from '../../../../orchestrator/core/config/load-config.ts';
import { readConfig } from '../../../support/features.ts';
import { type TempDir, tempDir } from '../../../support/temp-dir.ts';

let folder: TempDir;
beforeEach(() => (folder = tempDir('crawlfleet-follow-')));
afterEach(() => folder.remove());

function read({ follow = '{}', old = '' }: { follow?: string; old?: string }, environment = {}): Config {
  const file = folder.file('fleet.yaml');
  writeFileSync(
    file,
    `site: { product_url: "https://shop.example/{id}", mapping: { fields: { title: h1 } }, follow: ${follow} }
products: { query: "select id from products" }
database: { url: "sqlite:./data/fleet.db" }
discover: { sitemaps: auto, into: { table: found }, ${old} }
`,
  );
  return readConfig(file, environment);
}

/** What a discovery goes by, and what further pages of a run go by. */
const rulesOf = (config: Config) => {
  const discovery = discoveryConfig(config);
  const { depth, allow } = discovery.discovery!;
  return {
    discovery: { depth, allow, deny: denyOf(discovery), follow: siteSettingsOf(discovery.values.site).follow },
    run: { follow: siteSettingsOf(config.values.site).follow, deny: denyOf(config) },
  };
};

describe('site.follow', () => {
  it('is two links deep in a discovery, and of any depth for further pages, by default', () => {
    expect(rulesOf(read({}))).toEqual({
      discovery: { depth: 2, allow: [], deny: [], follow: undefined },
      run: { follow: undefined, deny: [] },
    });
  });

  it('holds for both', () => {
    writeFileSync(folder.file('deny.txt'), '\uFEFF# not ours\n/admin\n\nhttps://www.shop.example/ads?b=2&a=1\r\n');
    const deny = ['/admin', '/ads?a=1&b=2'];
    const rules = { depth: 5, allow: ['^/item/'] };
    expect(rulesOf(read({ follow: '{ depth: 5, allow: ["^/item/"], deny: deny.txt }' }))).toEqual({
      discovery: { ...rules, deny, follow: undefined },
      run: { follow: rules, deny },
    });
    expect(rulesOf(read({ follow: '{ deny: [/admin, "/ads?b=2&a=1"] }' })).run.deny).toEqual(deny);
  });

  it('is that of the first of site.hosts, with its canaries', () => {
    const own = read({}, {});
    const urls = ['https://shop.example', 'https://b.example'].map((host) => ({ url: `${host}/{url}`, weight: 1 }));
    const canaries = ['https://b.example/b', 'https://shop.example/a?x=1'].map((id) => ({ id, fields: {} }));
    const site = { ...own.values.site, product_url: urls, canaries };
    const { values, discovery } = discoveryConfig({ ...own, values: { ...own.values, site } });
    expect(values.site).toMatchObject({ product_url: 'https://shop.example/{path}', hosts: null });
    expect(values.site.canaries).toEqual([{ id: '/a?x=1', fields: {} }]);
    expect(discovery!.origin).toBe('https://shop.example');
  });

  it('has further hosts for further pages only', () => {
    const follow = '{ hosts: ["https://reviews.example/"], deny: [/admin, reviews.example] }';
    const { run, discovery } = rulesOf(read({ follow }));
    expect(run).toEqual({
      follow: { hosts: ['https://reviews.example'] },
      deny: ['/admin', 'https://reviews.example/'],
    });
    expect(discovery).toMatchObject({ deny: ['/admin'], follow: undefined });
  });

  it('obeys nofollow on instances, and leaves out links that are marked so', () => {
    const discovery = discoveryConfig(read({ follow: '{ nofollow: obey }' }));
    expect(siteSettingsOf(discovery.values.site).follow).toEqual({ nofollow: 'obey' });
    expect(discovery.mapping.pages[0]!.urlParsers[0]!.steps[0]).toMatchObject({
      selector: 'a:not([rel~="nofollow" i])',
    });
  });

  it('comes from the environment', () => {
    const environment = { FLEET_SITE_FOLLOW: '{ depth: 1, deny: [/admin] }' };
    expect(rulesOf(read({}, environment)).run).toEqual({ follow: { depth: 1 }, deny: ['/admin'] });
  });
});

describe('discover.depth, allow and deny of earlier versions', () => {
  const note = (place: string, names: string): string =>
    `${place} is read as site.follow.${place.split('.')[1] ?? 'depth'}, for discover alone, but not from version 0.2 on: move ${names} from discover to site: { follow: { … } }, which holds for further pages, too`;

  it('hold for the discovery alone, with a note', () => {
    writeFileSync(folder.file('deny.txt'), '/admin\n');
    const config = read({ follow: '{ allow: ["^/p"] }', old: 'depth: 3, deny: deny.txt' });
    expect(rulesOf(config)).toEqual({
      discovery: { depth: 3, allow: ['^/p'], deny: ['/admin'], follow: undefined },
      run: { follow: { allow: ['^/p'] }, deny: [] },
    });
    expect(config.notes).toEqual([note('line 4: discover.depth', 'depth, deny')]);
    expect(read({}).notes).toBeUndefined();
  });

  it('come from the environment', () => {
    const config = read({}, { FLEET_DISCOVER_ALLOW: '[^/item/]', FLEET_DISCOVER_DEPTH: '7' });
    expect(rulesOf(config).discovery).toMatchObject({ depth: 7, allow: ['^/item/'] });
    expect(config.notes![0]).toMatch(/^environment FLEET_DISCOVER_(ALLOW|DEPTH) is read as site\.follow\./);
  });

  it.each([
    ['depth: -1', '{}', 'line 4: discover.depth: '],
    ['allow: ["("]', '{}', 'line 4: discover.allow.0: the pattern'],
    ['depth: 3', '{ depth: 4 }', 'line 4: discover.depth: is in site.follow, too: remove it here'],
  ])('with %s beside %s are refused', (old, follow, fault) => {
    expect(() => read({ follow, old })).toThrow(fault);
  });

  it('name the deny file that is missing', () => {
    expect(() => discoveryConfig(read({ old: 'deny: no-such.txt' }))).toThrow('cannot read discover.deny, no-such.txt');
  });
});

it.each([
  ['site.request', { request: { method: 'POST', reads_only: true, body: '{"id":"{id}"}' } }],
  ['a request of its mapping', { mapping: { fields: { a: 'h1' }, request: { method: 'POST', reads_only: true } } }],
] as const)('a discovery is refused with %s by POST', (_what, site) => {
  const file = folder.file('fleet.yaml');
  writeFileSync(
    file,
    JSON.stringify({
      site: { product_url: 'https://shop.example/{id}', mapping: { fields: { title: 'h1' } }, ...site },
      products: { query: 'select id from products' },
      database: { url: 'sqlite:./data/fleet.db' },
      discover: { sitemaps: 'auto', into: { table: 'found' } },
    }),
  );
  expect(() => discoveryConfig(readConfig(file, {}))).toThrow('requests pages by POST, and a discovery follows links');
});
