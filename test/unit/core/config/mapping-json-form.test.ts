import { describe, expect, it } from 'vitest';
import { readMapping } from '../../../../orchestrator/core/config/read-mapping.ts';
import type { Step } from '../../../../shared/domain/mapping.ts';

const CSS = { type: 'css', parameters: { selector: 'p' } };

describe('the JSON form', () => {
  const CHAIN: [processor: object, Step][] = [
    [
      { type: 'css', parameters: { selector: '.price', attribute: 'data-value' } },
      { type: 'css', selector: '.price', attribute: 'data-value' },
    ],
    [
      { type: 'xpath', parameters: { expression: '//b' } },
      { type: 'xpath', expression: '//b' },
    ],
    [
      { type: 'jsonpath', parameters: { expression: '$.a' } },
      { type: 'jsonpath', expression: '$.a' },
    ],
    [
      { type: 'json_ld', parameters: { path: 'a.b' } },
      { type: 'json_ld', path: 'a.b' },
    ],
    [
      { type: 'microdata', parameters: { path: 'a.b', node: 'Book' } },
      { type: 'microdata', path: 'a.b', node: 'Book' },
    ],
    [
      { type: 'regex', parameters: { pattern: 'a(b)', group: 0 } },
      { type: 'regex', pattern: 'a(b)', group: 0 },
    ],
    [
      { type: 'regex', parameters: { pattern: 'a(b)' } },
      { type: 'regex', pattern: 'a(b)', group: 1 },
    ],
    [
      { type: 'replace', parameters: { find: 'a', with: '' } },
      { type: 'replace', find: 'a', with: '' },
    ],
    [{ type: 'trim' }, { type: 'trim' }],
    [{ type: 'lower', parameters: {} }, { type: 'lower' }],
    [{ type: 'upper', parameters: null }, { type: 'upper' }],
    [
      { type: 'split', parameters: { by: ',' } },
      { type: 'split', by: ',' },
    ],
    [{ type: 'url' }, { type: 'url' }],
    [
      { type: 'date', parameters: { format: 'yyyy-MM-dd' } },
      { type: 'date', format: 'yyyy-MM-dd', locale: null },
    ],
    [{ type: 'first' }, { type: 'first' }],
    [
      { type: 'default', parameters: { value: '2026-01-01' } },
      { type: 'default', value: '2026-01-01' },
    ],
  ];

  it('reads every processor with its parameters, without additions', () => {
    const processors = CHAIN.map(([processor]) => processor);
    const { mapping, faults } = readMapping({ fields: [{ name: 'value', processors }] });
    expect(faults).toEqual([]);
    expect(mapping.pages[0]!.fields).toEqual([
      { name: 'value', required: false, steps: CHAIN.map(([, step]) => step) },
    ]);
  });

  it.each<[object, Step]>([
    [{ type: 'number' }, { type: 'number' }],
    [{ type: 'integer' }, { type: 'integer' }],
    [{ type: 'boolean' }, { type: 'boolean' }],
    [{ type: 'all' }, { type: 'all' }],
    [
      { type: 'join', parameters: { by: '' } },
      { type: 'join', by: '' },
    ],
  ])('reads %j', (processor, step) => {
    const { mapping, faults } = readMapping({ fields: [{ name: 'value', processors: [CSS, processor] }] });
    expect(faults).toEqual([]);
    expect(mapping.pages[0]!.fields[0]!.steps[1]).toEqual(step);
  });

  it('reads a chain for each source of a field', () => {
    const { mapping, faults } = readMapping({
      fields: [{ name: 'value', processors: [[CSS], [CSS, { type: 'trim' }]] }],
    });
    expect(faults).toEqual([]);
    const css = { type: 'css', selector: 'p' };
    expect(mapping.pages[0]!.fields).toEqual([
      { name: 'value', required: false, steps: [css], fallbacks: [[css, { type: 'trim' }]] },
    ]);
  });

  it('reads name, patterns, parsers and rows', () => {
    const { mapping, faults } = readMapping({
      name: 'reviews',
      url_patterns: [{ type: 'regex', pattern: '/reviews' }],
      url_parsers: [
        { description: 'next page', processors: [{ ...CSS, parameters: { selector: 'a', attribute: 'href' } }] },
      ],
      rows: { each: CSS, key: 'user', empty: { type: 'xpath', parameters: { expression: '//i' } } },
      fields: [{ name: 'user', processors: [CSS], required: true }],
    });
    expect(faults).toEqual([]);
    expect(mapping.pages[0]).toMatchObject({
      name: 'reviews',
      urlPatterns: ['/reviews'],
      urlParsers: [{ description: 'next page', steps: [{ type: 'css', selector: 'a', attribute: 'href' }] }],
      rows: { each: { type: 'css', selector: 'p' }, key: 'user', empty: { type: 'xpath', expression: '//i' } },
      fields: [{ name: 'user', required: true }],
    });
  });
});

describe('a file', () => {
  const short = { name: 'a', url_patterns: ['/a'], fields: { title: 'h1' } };
  const long = { name: 'b', fields: [{ name: 'title', processors: [CSS] }] };

  it.each([
    ['a list', [short, long]],
    ['mappings:', { mappings: [short, long] }],
  ])('may contain several mappings as %s, in both forms', (_name, file) => {
    const { mapping, faults } = readMapping(file);
    expect(faults).toEqual([]);
    expect(mapping.pages.map((page) => page.name)).toEqual(['a', 'b']);
  });

  it('numbers mappings without a name', () => {
    const { mapping } = readMapping([{ url_patterns: ['/a'], fields: { a: 'b' } }, { fields: { a: 'b' } }]);
    expect(mapping.pages.map((page) => page.name)).toEqual(['mapping 1', 'mapping 2']);
  });
});
