/* oxlint-disable unicorn/no-thenable -- `then` is an option of the short form; here it is data and never called */
import { describe, expect, it } from 'vitest';
import { readMapping } from '../../../../orchestrator/core/config/read-mapping.ts';

const faultsOf = (value: unknown): string[] =>
  readMapping(value).faults.map((f) => `${f.path.join('.')}: ${f.message}`);
const field = (options: unknown) => ({ fields: { a: options } });
const chain = (...processors: unknown[]) => ({ fields: [{ name: 'a', processors }] });
const CSS = { type: 'css', parameters: { selector: 'p' } };

describe('readMapping refuses', () => {
  it.each<[unknown, string]>([
    [null, ': must be a mapping with `fields`'],
    ['h1', ': must be a mapping with `fields`'],
    [[], ': must have at least one mapping'],
    [['h1'], '0: must be a mapping with `fields`'],
    [{ mappings: {} }, 'mappings: must be a list of mappings'],
    [{ mappings: [field('p')], name: 'x' }, 'name: unknown key beside `mappings`'],
    [{}, 'fields: must have at least one field'],
    [{ fields: {} }, 'fields: must have at least one field'],
    [{ fields: [] }, 'fields: must have at least one field'],
    [{ ...field('p'), row: {} }, 'row: unknown key; did you mean rows?'],
    [field(5), 'fields.a: must be a CSS selector or an object'],
    [field({ css: 'p', requird: true }), 'fields.a.requird: unknown key; did you mean required?'],
    [field({ css: 'p', xpath: '//p' }), 'fields.a.xpath: cannot be combined with css'],
    [field({ integer: true }), 'fields.a: must have one of css, xpath, jsonpath, json_ld, microdata and regex'],
    [field([]), 'fields.a: must be a CSS selector or an object'],
    [field(['p', 5]), 'fields.a: must be a CSS selector or an object'],
    [field(['p', { css: 'b', attrs: 'x' }]), 'fields.a.1.attrs: unknown key; did you mean attr?'],
    [field(['p', { css: 'b', required: true, default: 1 }]), 'fields.a.1.required: a field with a default'],
    [
      field([
        { css: 'p', number: true },
        { css: 'b', date: true },
      ]),
      'fields.a.1.date: number and date exclude each other',
    ],
    [field(''), 'fields.a.css: must not be empty'],
    [field({ css: 'p', assert: 5 }), 'fields.a.assert: must have min, max, matches, one_of or max_change'],
    [field({ css: 'p', assert: { else: 'hold' } }), 'fields.a.assert: must have min, max, matches'],
    [field({ css: 'p', assert: { matchs: 'x' } }), 'fields.a.assert.matchs: unknown key'],
    [field({ css: 'p', assert: { min: 1 } }), 'fields.a.assert.min: is for numbers, and the column is text'],
    [field({ css: 'p', all: true, assert: { max: 1 } }), 'fields.a.assert.max: is for numbers, and the column is json'],
    [field({ css: 'p', assert: { max_change: '80%' } }), 'fields.a.assert.max_change: is for numbers'],
    [field({ css: 'p', number: true, assert: { max_change: 'a lot' } }), 'fields.a.assert.max_change: must be a share'],
    [field({ css: 'p', number: true, assert: { max_change: 0 } }), 'fields.a.assert.max_change: must be a share'],
    [field({ css: 'p', number: true, assert: { min: 2, max: 1 } }), 'fields.a.assert.min: is greater than max'],
    [field({ css: 'p', number: true, assert: { matches: 'x' } }), 'fields.a.assert.matches: is for text, and the'],
    [field({ css: 'p', assert: { matches: '(' } }), 'fields.a.assert.matches: the pattern "("'],
    [field({ css: 'p', assert: { one_of: [] } }), 'fields.a.assert.one_of: must not be empty'],
    [
      field({ css: 'p', number: true, assert: { min: 1, else: 'null' } }),
      'fields.a.assert.else: must be empty, fail or',
    ],
    [
      {
        mappings: [
          { name: 'x', url_patterns: ['x'], fields: { a: { css: 'p', number: true, assert: { min: 1 } } } },
          { name: 'y', fields: { a: { css: 'p', number: true } } },
        ],
      },
      'mappings.1.fields.a: asserts something else in x; a column has one assert',
    ],
    [field({ xpath: '//p', attr: 'x' }), 'fields.a.attr: works only with css'],
    [field({ css: 'p', node: 'Book' }), 'fields.a.node: works only with json_ld and microdata'],
    [field({ microdata: 'a..b' }), 'fields.a.microdata: the path "a..b" has an empty name'],
    [field({ css: 'p', integer: 'yes' }), 'fields.a.integer: must be true or false'],
    [field({ css: 'p', number: true, date: true }), 'fields.a.date: number and date exclude each other'],
    [field({ css: 'p', lower: true, upper: true }), 'fields.a.upper: lower and upper exclude each other'],
    [field({ css: 'p', all: true, join: ',' }), 'fields.a.join: all and join exclude each other'],
    [field({ css: 'p', default: [] }), 'fields.a.default: must be a text, a number, true or false'],
    [field({ css: 'p', replace: { find: 'a' } }), 'fields.a.replace: must be { find: "…", with: "…" }'],
    [field({ css: 'p', required: true, default: 1 }), 'fields.a.required: a field with a default'],
    [field({ css: 'p', integer: true, then: ['trim'] }), 'fields.a.integer: with `then` it is one of its steps'],
    [field({ css: 'p', then: [] }), 'fields.a.then: must not be empty'],
    [field({ css: 'p', then: ['trin'] }), 'fields.a.then.0: there is no processor "trin"; there are css, xpath'],
    [field({ css: 'p', then: ['split'] }), 'fields.a.then.0: split needs by'],
    [field({ css: 'p', then: [{ trim: { by: ',' } }] }), 'fields.a.then.0.trim.by: unknown key'],
    [field({ css: 'p', then: [{ split: 5 }] }), 'fields.a.then.0.split: must be a text'],
    [field({ css: 'p', then: [{ trim: true, lower: true }] }), 'fields.a.then.0: must be one step'],
    [field('p[['), 'fields.a.css: '],
    [field({ xpath: '//p[' }), 'fields.a.xpath: '],
    [field({ jsonpath: '$.[' }), 'fields.a.jsonpath: '],
    [field({ regex: '(' }), 'fields.a.regex: '],
    [field({ regex: 'a(?=b)' }), 'fields.a.regex: '],
    [field({ regex: { pattern: '(a)', group: 2 } }), 'fields.a.regex: '],
    [field({ css: 'p', integer: true, default: 'none' }), 'fields.a'],
    [{ fields: { 'a-b': 'p' } }, 'fields.a-b: a field name is a letter'],
    [{ fields: { Run_ID: 'p' } }, 'fields.Run_ID: the name is taken'],
    [{ fields: { a: 'p', A: 'p' } }, 'fields.A: another field has this name'],
    [{ fields: JSON.parse('{"__proto__": "p"}') as unknown }, 'fields.__proto__: a field name is a letter'],
    [chain({ type: 'constructor' }), 'fields.0.processors.0.type: there is no processor "constructor"'],
    [{ ...field('p'), url_patterns: '/a' }, 'url_patterns: must be a list of patterns'],
    [{ ...field('p'), url_patterns: ['/a', '('] }, 'url_patterns.1: '],
    [{ ...field('p'), url_parsers: [1] }, 'url_parsers.0: must be a CSS selector for links'],
    [{ ...field('p'), url_parsers: [{ css: 'a', required: true }] }, 'url_parsers.0.required: unknown key'],
    [{ ...field('p'), rows: { key: 'a' } }, 'rows.each: missing'],
    [{ ...field('p'), rows: { each: 'li' } }, 'rows.key: missing'],
    [{ ...field('p'), rows: { each: 'li', key: 'b' } }, 'rows.key: must be one of the fields: a'],
    [{ ...field({ css: 'p', all: true }), rows: { each: 'li', key: 'a' } }, 'rows.key: a is a list'],
    [{ ...field('p'), rows: { each: { regex: 'a' }, key: 'a' } }, 'rows.each.regex: unknown key'],
    [{ ...field('p'), rows: { each: { css: 'a', xpath: '//a' }, key: 'a' } }, 'rows.each: must be a CSS selector, or'],
    [
      { ...chain(CSS), rows: { each: { type: 'css', parameters: { selector: 'a', attribute: 'b' } }, key: 'a' } },
      'rows.each: selects elements',
    ],
    [
      { ...chain(CSS), rows: { each: { type: 'json_ld', parameters: { path: 'a' } }, key: 'a' } },
      'rows.each: must be css, xpath or jsonpath',
    ],
    [{ fields: [{ processors: [CSS] }] }, 'fields.0.name: missing'],
    [{ fields: [{ name: 'a' }] }, 'fields.0.processors: missing'],
    [{ fields: [{ name: 'a', processors: 'trim' }] }, 'fields.0.processors: must be a list'],
    [chain(), 'fields.0.processors: must have at least one processor'],
    [chain({ type: 'cssx' }), 'fields.0.processors.0.type: there is no processor "cssx"; there are css, xpath'],
    [chain('trim'), 'fields.0.processors.0: must be a processor such as'],
    [chain({ parameters: {} }), 'fields.0.processors.0.type: must name a processor'],
    [
      chain({ type: 'css', parameters: { selector: 'p', attr: 'x' } }),
      'fields.0.processors.0.parameters.attr: unknown key; known are selector, attribute',
    ],
    [chain({ type: 'css' }), 'fields.0.processors.0.parameters.selector: missing'],
    [
      chain({ ...CSS, selector: 'p' }),
      'fields.0.processors.0.selector: unknown key; a processor has type and parameters',
    ],
    [chain({ type: 'trim' }), 'fields.0.processors.0: '],
    [{ ...chain(CSS), url_patterns: [{ type: 'glob', pattern: '*' }] }, 'url_patterns.0.type: must be regex'],
    [
      { ...field('p'), rows: { each: { jsonpath: '$.a[*]' }, key: 'a' } },
      ': field a: css finds nothing in records that are JSON',
    ],
    [
      [
        { ...field('p'), name: 'x', url_patterns: ['/a'] },
        { ...field('p'), name: 'x' },
      ],
      '1.name: another mapping is called x',
    ],
    [
      {
        fields: [
          { name: 'a', processors: [CSS] },
          { name: 'a', processors: [CSS] },
        ],
      },
      'fields.1.name: another field has this name',
    ],
    [
      [{ ...field('p'), url_patterns: ['/a'], rows: { each: 'li', key: 'a' } }, field('p')],
      '1: must have rows, as mapping 1 has',
    ],
    [[field('p'), { ...field('p'), url_patterns: ['/a'] }], '1: is never used: mapping 1'],
    [
      [{ ...field('p'), url_patterns: ['/a'] }, field({ css: 'p', integer: true })],
      '1.fields.a: gives integer, but in mapping 1 it gives text',
    ],
    [[{ ...field('p'), url_patterns: ['/a'] }, { fields: { A: 'p' } }], '1.fields.A: is written a in mapping 1'],
  ])('%j: %s', (value, expected) => {
    expect(faultsOf(value).join('\n')).toContain(expected);
    expect(faultsOf(value).some((fault) => fault.startsWith(expected))).toBe(true);
  });

  it('names both places of an option that two sources of a field have with different values', () => {
    const currencies = [
      { css: 'p', price: { currency: 'EUR' } },
      { css: 'b', price: true },
      { css: 'i', price: true },
    ];
    expect(faultsOf(field(currencies))).toEqual(
      [0, 1, 2].map((i) => `fields.a.${i}.price: has two values: the sources of a field have their options in common`),
    );
    expect(
      faultsOf(
        field([
          { css: 'p', number: true },
          { css: 'b', number: true },
        ]),
      ),
    ).toEqual([]);
  });

  it('sources of different types, and a default before the last source, in the JSON form', () => {
    expect(faultsOf(chain([CSS, { type: 'number' }], [CSS]))).toEqual([
      'fields.0.name: its sources give number and text; a column has one type',
    ]);
    const early = { type: 'default', parameters: { value: 'x' } };
    expect(faultsOf(chain([CSS, early], [CSS])).join()).toContain('fields.0.processors.0.1: a default belongs in');
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
