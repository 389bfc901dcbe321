import { readConfig } from '../../../support/features.ts';
import { writeFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type TempDir, tempDir } from '../../../support/temp-dir.ts';

let folder: TempDir;
beforeEach(() => (folder = tempDir('crawlfleet-variables-')));
afterEach(() => folder.remove());

/** The values of a configuration with these lines beside the necessary ones. */
function load(more: string, environment: Record<string, string> = {}) {
  const text = `site: { product_url: "https://s.example/{id}", mapping: { fields: { title: h1, cost: { css: ".p", replace: { find: "a", with: "\${x}" } } } } }
products: { query: select id from products }
${more}`;
  writeFileSync(folder.file('fleet.yaml'), text);
  return readConfig(folder.file('fleet.yaml'), environment);
}

describe('variables in fleet.yaml', () => {
  it('come from the environment, from .env, and from files, in that order of precedence', () => {
    writeFileSync(folder.file('.env'), 'PASSWORD=from-file\nHOST="db.example" # the replica\n');
    writeFileSync(folder.file('page'), 'https://fleet.example/x\n');
    const { values } = load(
      'database: { url: "mysql://shop:${PASSWORD}@${HOST}/shop" }\nserver: { page_url: "${file:page}" }',
      { PASSWORD: 'from-environment' },
    );
    expect(values.database.url).toBe('mysql://shop:from-environment@db.example/shop');
    expect(values.server.page_url).toBe('https://fleet.example/x');
  });

  it('have no byte order mark in them, wherever one was', () => {
    writeFileSync(folder.file('.env'), '\uFEFFA=/a\nB="\uFEFF/b"\n\uFEFFFLEET_RESULTS_TABLE=t\n');
    writeFileSync(folder.file('secret'), '\uFEFFhunter2-and-more-of-it\r\n');
    writeFileSync(folder.file('mapping.yaml'), '\uFEFFfields: { title: h1 }\n');
    const { values, mapping } = load(
      'database: { url: "sqlite:${A}${B}${C}" }\nserver: { operator_token: "${file:secret}" }',
      { C: '\uFEFF/c', FLEET_SITE_MAPPING: 'mapping.yaml' },
    );
    expect(values).toMatchObject({
      database: { url: 'sqlite:/a/b/c' },
      server: { operator_token: 'hunter2-and-more-of-it' },
      results: { table: 't' },
    });
    expect(mapping.pages[0]!.fields.map(({ name }) => name)).toEqual(['title']);
  });

  it('come from files in UTF-8 only: others are refused', () => {
    const utf16 = Buffer.from('\uFEFFA=1\r\n', 'utf16le');
    writeFileSync(folder.file('secret'), utf16);
    const more = 'database: { url: "sqlite:/x" }\nserver: { operator_token: "${file:secret}" }';
    expect(() => load(more)).toThrow(/line 4: server\.operator_token: .*secret is not a text file in UTF-8/);
    writeFileSync(folder.file('.env'), utf16);
    expect(() => load(more)).toThrow(/\.env is not a text file in UTF-8/);
    writeFileSync(folder.file('.env'), '');
    writeFileSync(folder.file('mapping.yaml'), utf16);
    expect(() => load('database: { url: "sqlite:/x" }', { FLEET_SITE_MAPPING: 'mapping.yaml' })).toThrow(
      /mapping\.yaml is not a text file in UTF-8/,
    );
  });

  it('cannot change the structure, and are not filled in twice', () => {
    const { values } = load('database: { url: "sqlite:${NAME}" }\nresults: { table: t }', {
      NAME: '/x/${OTHER}", evil: { a: 1',
    });
    expect(values.database.url).toBe('sqlite:/x/${OTHER}", evil: { a: 1');
  });

  it('leave $${ as ${, and the mapping as it is', () => {
    const { values, mapping } = load('database: { url: "sqlite:/x/$${NAME}" }');
    expect(values.database.url).toBe('sqlite:/x/${NAME}');
    expect(JSON.stringify(mapping)).toContain('${x}');
  });

  it('that are missing, unreadable or no variables are faults with their line, each once', () => {
    const more =
      'database: { url: "${NONE}" }\nnotify:\n  - { slack: "${file:none}" }\nserver: { operator_token: "${1}" }';
    expect(() => load(more)).toThrow(/3 faults:\n/);
    expect(() => load(more)).toThrow(
      /line 3: database\.url: the variable NONE is not set, neither in the environment nor in \.env/,
    );
    expect(() => load(more)).toThrow(/line 5: notify\.0\.slack: \$\{file:none\} cannot be read: .*ENOENT/);
    expect(() => load(more)).toThrow(/line 6: server\.operator_token: \$\{1\} is no variable/);
  });

  it('keep their values out of messages', () => {
    const secret = 'hunter2-and-more';
    const more = 'database: { url: "sqlite:/x" }\nrun: { deadline: "${SECRET}" }';
    expect(() => load(more, { SECRET: secret })).toThrow(/run\.deadline: must be a duration .*, not "\$\{SECRET\}"/);
    expect(() => load(more, { SECRET: secret })).not.toThrow(secret);
  });
});
