/* oxlint-disable unicorn/no-thenable -- `then` is an option of the short form; here it is data and never called */
import { readFileSync, readdirSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { mappingJsonSchema } from '../../../../orchestrator/core/config/json-schema.ts';
import { readMapping } from '../../../../orchestrator/core/config/read-mapping.ts';
import { readYaml } from '../../../../orchestrator/core/config/yaml-source.ts';
import { MAPPING_TEMPLATE } from '../../../../orchestrator/features/init/templates.ts';

const EXAMPLES = new URL('../../../../examples/mappings/', import.meta.url);
const examples = readdirSync(EXAMPLES)
  .filter((name) => name.endsWith('.yaml') || name === 'product.json')
  .map((name) => [name, readFileSync(new URL(name, EXAMPLES), 'utf8')] as const);

/** Uncomments every example; prose stays commented out. */
const uncommented = MAPPING_TEMPLATE.replaceAll(
  /^( *)# ((?:  )?(?:[a-z_]+: *[{[]|[a-z_]+: +#|css: |then: ).*)$/gm,
  '$1$2',
);

function read(text: string) {
  const yaml = readYaml(text);
  return { value: yaml.value, faults: [...yaml.faults, ...readMapping(yaml.value).faults] };
}

describe('the mapping of `orchestrator init`', () => {
  it('is valid as it is', () => {
    const { value, faults } = read(MAPPING_TEMPLATE);
    expect(faults).toEqual([]);
    expect(Object.keys(readMapping(value).mapping.pages[0]!.fields)).toHaveLength(5);
  });

  it('is valid with every example enabled, except for a key, which none of them is', () => {
    const { value, faults } = read(uncommented);
    expect(faults).toEqual([
      { path: ['rows', 'key'], message: expect.stringContaining('must be one of the fields') as string },
    ]);
    expect(readMapping(value).mapping.pages[0]).toMatchObject({
      urlPatterns: ['/item/\\d+'],
      urlParsers: [{}],
      rows: { key: 'user' },
    });
    // 15 fields, and a price, which is two.
    expect(readMapping(value).mapping.pages[0]!.fields).toHaveLength(17);
  });
});

describe('docs/mapping.schema.json', () => {
  const schema = z.fromJSONSchema(mappingJsonSchema() as never);

  it.each([...examples, ['the template', MAPPING_TEMPLATE] as const])('accepts %s', (_name, text) => {
    const { value, faults } = read(text);
    expect(faults).toEqual([]);
    expect(schema.safeParse(value).error?.issues ?? []).toEqual([]);
  });

  it.each([
    ['an unknown option', { fields: { a: { css: 'p', requird: true } } }],
    ['an unknown processor', { fields: [{ name: 'a', processors: [{ type: 'cssx' }] }] }],
    ['an unknown step', { fields: { a: { css: 'p', then: ['trin'] } } }],
    ['a missing parameter', { fields: [{ name: 'a', processors: [{ type: 'css', parameters: {} }] }] }],
    ['no fields', { name: 'a' }],
    ['an invalid column name', { fields: { 'a-b': 'p' } }],
  ])('refuses %s', (_name, value) => {
    expect(schema.safeParse(value).success).toBe(false);
  });
});
