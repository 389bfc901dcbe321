/* oxlint-disable unicorn/no-thenable -- `then` is an option of the short form; here it is data and never called */
import { describe, expect, it } from 'vitest';
import { readMapping } from '../../../orchestrator/app/config/read-mapping.ts';

const faultsOf = (value: unknown): string[] =>
  readMapping(value).faults.map((f) => `${f.path.join('.')}: ${f.message}`);
const field = (options: unknown) => ({ fields: { a: options } });
const chain = (...processors: unknown[]) => ({ fields: [{ name: 'a', processors }] });
const CSS = { type: 'css', parameters: { selector: 'p' } };

describe('readMapping refuses', () => {
  it.each<[string, unknown, string]>([
    ['nothing', null, ': must be a mapping with `fields`'],
    ['a text', 'h1', ': must be a mapping with `fields`'],
    ['an empty list', [], ': must have at least one mapping'],
    ['a list of texts', ['h1'], '0: must be a mapping with `fields`'],
    ['mappings that are not a list', { mappings: {} }, 'mappings: must be a list of mappings'],
    ['a key beside mappings', { mappings: [field('p')], name: 'x' }, 'name: unknown key beside `mappings`'],
    ['no fields', {}, 'fields: must have at least one field'],
    ['empty fields', { fields: {} }, 'fields: must have at least one field'],
    ['an empty list of fields', { fields: [] }, 'fields: must have at least one field'],
    ['an unknown part', { ...field('p'), row: {} }, 'row: unknown key; did you mean rows?'],
    ['a number for a field', field(5), 'fields.a: must be a CSS selector or an object'],
    ['an unknown option', field({ css: 'p', requird: true }), 'fields.a.requird: unknown key; did you mean required?'],
    ['two selectors', field({ css: 'p', xpath: '//p' }), 'fields.a.xpath: cannot be combined with css'],
    ['no selector', field({ integer: true }), 'fields.a: must have one of css, xpath, jsonpath, json_ld and regex'],
    ['an empty selector', field(''), 'fields.a.css: must not be empty'],
    ['attr without css', field({ xpath: '//p', attr: 'x' }), 'fields.a.attr: works only with css'],
    ['a text for a boolean', field({ css: 'p', integer: 'yes' }), 'fields.a.integer: must be true or false'],
    ['two types', field({ css: 'p', number: true, date: true }), 'fields.a.date: number and date exclude each other'],
    [
      'lower and upper',
      field({ css: 'p', lower: true, upper: true }),
      'fields.a.upper: lower and upper exclude each other',
    ],
    ['all and join', field({ css: 'p', all: true, join: ',' }), 'fields.a.join: all and join exclude each other'],
    [
      'a default that is a list',
      field({ css: 'p', default: [] }),
      'fields.a.default: must be a text, a number, true or false',
    ],
    [
      'a replace without with',
      field({ css: 'p', replace: { find: 'a' } }),
      'fields.a.replace: must be { find: "…", with: "…" }',
    ],
    [
      'required with a default',
      field({ css: 'p', required: true, default: 1 }),
      'fields.a.required: a field with a default',
    ],
    [
      'an option next to then',
      field({ css: 'p', integer: true, then: ['trim'] }),
      'fields.a.integer: with `then` it is one of its steps',
    ],
    ['an empty then', field({ css: 'p', then: [] }), 'fields.a.then: must not be empty'],
    [
      'an unknown step',
      field({ css: 'p', then: ['trin'] }),
      'fields.a.then.0: there is no processor "trin"; there are css, xpath',
    ],
    ['a step without its parameter', field({ css: 'p', then: ['split'] }), 'fields.a.then.0: split needs by'],
    [
      'a step with an unknown parameter',
      field({ css: 'p', then: [{ trim: { by: ',' } }] }),
      'fields.a.then.0.trim.by: unknown key',
    ],
    ['a step with a wrong value', field({ css: 'p', then: [{ split: 5 }] }), 'fields.a.then.0.split: must be a text'],
    ['two steps in one', field({ css: 'p', then: [{ trim: true, lower: true }] }), 'fields.a.then.0: must be one step'],
    ['an invalid CSS selector', field('p[['), 'fields.a.css: '],
    ['an invalid XPath', field({ xpath: '//p[' }), 'fields.a.xpath: '],
    ['an invalid JSONPath', field({ jsonpath: '$.[' }), 'fields.a.jsonpath: '],
    ['an invalid pattern', field({ regex: '(' }), 'fields.a.regex: '],
    ['a look-ahead, which RE2 lacks', field({ regex: 'a(?=b)' }), 'fields.a.regex: '],
    ['a group that the pattern lacks', field({ regex: { pattern: '(a)', group: 2 } }), 'fields.a.regex: '],
    ['a default of another type', field({ css: 'p', integer: true, default: 'none' }), 'fields.a'],
    ['an invalid column name', { fields: { 'a-b': 'p' } }, 'fields.a-b: a field name is a letter'],
    ['a name that is taken', { fields: { Run_ID: 'p' } }, 'fields.Run_ID: the name is taken'],
    ['names that differ only in case', { fields: { a: 'p', A: 'p' } }, 'fields.A: another field has this name'],
    [
      'a key of the prototype',
      { fields: JSON.parse('{"__proto__": "p"}') as unknown },
      'fields.__proto__: a field name is a letter',
    ],
    [
      'a processor of the prototype',
      chain({ type: 'constructor' }),
      'fields.0.processors.0.type: there is no processor "constructor"',
    ],
    ['patterns that are not a list', { ...field('p'), url_patterns: '/a' }, 'url_patterns: must be a list of patterns'],
    ['an invalid URL pattern', { ...field('p'), url_patterns: ['/a', '('] }, 'url_patterns.1: '],
    [
      'a parser that is a number',
      { ...field('p'), url_parsers: [1] },
      'url_parsers.0: must be a CSS selector for links',
    ],
    [
      'a parser with an unknown option',
      { ...field('p'), url_parsers: [{ css: 'a', required: true }] },
      'url_parsers.0.required: unknown key',
    ],
    ['rows without each', { ...field('p'), rows: { key: 'a' } }, 'rows.each: missing'],
    ['rows without a key', { ...field('p'), rows: { each: 'li' } }, 'rows.key: missing'],
    [
      'a key that is not a field',
      { ...field('p'), rows: { each: 'li', key: 'b' } },
      'rows.key: must be one of the fields: a',
    ],
    [
      'a key that is a list',
      { ...field({ css: 'p', all: true }), rows: { each: 'li', key: 'a' } },
      'rows.key: a is a list',
    ],
    [
      'records by a pattern',
      { ...field('p'), rows: { each: { regex: 'a' }, key: 'a' } },
      'rows.each.regex: unknown key',
    ],
    [
      'records by two selectors',
      { ...field('p'), rows: { each: { css: 'a', xpath: '//a' }, key: 'a' } },
      'rows.each: must be a CSS selector, or',
    ],
    [
      'records by an attribute',
      { ...chain(CSS), rows: { each: { type: 'css', parameters: { selector: 'a', attribute: 'b' } }, key: 'a' } },
      'rows.each: selects elements',
    ],
    [
      'records by JSON-LD',
      { ...chain(CSS), rows: { each: { type: 'json_ld', parameters: { path: 'a' } }, key: 'a' } },
      'rows.each: must be css, xpath or jsonpath',
    ],
    ['a field without a name', { fields: [{ processors: [CSS] }] }, 'fields.0.name: missing'],
    ['a field without processors', { fields: [{ name: 'a' }] }, 'fields.0.processors: missing'],
    [
      'processors that are not a list',
      { fields: [{ name: 'a', processors: 'trim' }] },
      'fields.0.processors: must be a list',
    ],
    ['an empty chain', chain(), 'fields.0.processors: must have at least one processor'],
    [
      'an unknown processor',
      chain({ type: 'cssx' }),
      'fields.0.processors.0.type: there is no processor "cssx"; there are css, xpath',
    ],
    ['a processor that is a text', chain('trim'), 'fields.0.processors.0: must be a processor such as'],
    ['a processor without a type', chain({ parameters: {} }), 'fields.0.processors.0.type: must name a processor'],
    [
      'an unknown parameter',
      chain({ type: 'css', parameters: { selector: 'p', attr: 'x' } }),
      'fields.0.processors.0.parameters.attr: unknown key; known are selector, attribute',
    ],
    ['a missing parameter', chain({ type: 'css' }), 'fields.0.processors.0.parameters.selector: missing'],
    [
      'a key next to type',
      chain({ ...CSS, selector: 'p' }),
      'fields.0.processors.0.selector: unknown key; a processor has type and parameters',
    ],
    ['a chain that selects nothing', chain({ type: 'trim' }), 'fields.0.processors.0: '],
    [
      'a URL pattern of another type',
      { ...chain(CSS), url_patterns: [{ type: 'glob', pattern: '*' }] },
      'url_patterns.0.type: must be regex',
    ],
    [
      'CSS in records that are JSON',
      { ...field('p'), rows: { each: { jsonpath: '$.a[*]' }, key: 'a' } },
      ': field a: css finds nothing in records that are JSON',
    ],
    [
      'two mappings with the same name',
      [
        { ...field('p'), name: 'x', url_patterns: ['/a'] },
        { ...field('p'), name: 'x' },
      ],
      '1.name: another mapping is called x',
    ],
    [
      'two fields with the same name',
      {
        fields: [
          { name: 'a', processors: [CSS] },
          { name: 'a', processors: [CSS] },
        ],
      },
      'fields.1.name: another field has this name',
    ],
    [
      'one mapping with rows and one without',
      [{ ...field('p'), url_patterns: ['/a'], rows: { each: 'li', key: 'a' } }, field('p')],
      '1: must have rows, as mapping 1 has',
    ],
    [
      'a mapping that is never reached',
      [field('p'), { ...field('p'), url_patterns: ['/a'] }],
      '1: is never used: mapping 1',
    ],
    [
      'one column with two types',
      [{ ...field('p'), url_patterns: ['/a'] }, field({ css: 'p', integer: true })],
      '1.fields.a: gives integer, but in mapping 1 it gives text',
    ],
    [
      'one column with two spellings',
      [{ ...field('p'), url_patterns: ['/a'] }, { fields: { A: 'p' } }],
      '1.fields.A: is written a in mapping 1',
    ],
  ])('%s', (_name, value, expected) => {
    expect(faultsOf(value).join('\n')).toContain(expected);
    expect(faultsOf(value).some((fault) => fault.startsWith(expected))).toBe(true);
  });

  it('lists all faults of both forms together', () => {
    const faults = faultsOf([
      {
        url_patterns: ['('],
        fields: { a: { css: 'p[[', intger: true }, 'b-': 'p', c: { css: 'p', number: true, integer: true } },
      },
      {
        fields: [
          { name: 'a', processors: [{ type: 'x' }, { type: 'split' }] },
          { name: 'run_id', processors: [CSS] },
        ],
      },
    ]);
    expect(faults.map((fault) => fault.split(': ')[0])).toEqual([
      '0.fields.a.intger',
      '0.fields.c.integer',
      '0.fields.b-',
      '0.url_patterns.0',
      '1.fields.0.processors.0.type',
      '1.fields.0.processors.1.parameters.by',
      '1.fields.1.name',
    ]);
  });

  it('accepts a default of the right type', () => {
    const options = [
      { css: 'p', integer: true, default: 0 },
      { css: 'p', number: true, default: 0.5 },
      { css: 'p', boolean: true, default: false },
      { css: 'p', default: 'none' },
    ];
    expect(options.flatMap((option) => faultsOf(field(option)))).toEqual([]);
  });
});
