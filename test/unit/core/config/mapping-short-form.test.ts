/* oxlint-disable unicorn/no-thenable -- `then` is an option of the short form; here it is data and never called */
import { describe, expect, it } from 'vitest';
import { readMapping } from '../../../../orchestrator/core/config/read-mapping.ts';
import type { Step } from '../../../../shared/domain/mapping.ts';

/** The steps that this field is parsed into; throws when the field has faults. */
function chainOf(field: unknown): Step[] {
  const { mapping, faults } = readMapping({ fields: { value: field } });
  if (faults.length > 0) throw new Error(faults.map((f) => `${f.path.join('.')}: ${f.message}`).join('\n'));
  return mapping.pages[0]!.fields[0]!.steps;
}

const TRIM: Step = { type: 'trim' };

describe('an assertion', () => {
  const assertOf = (value: unknown) => {
    const { mapping, faults } = readMapping(value);
    expect(faults).toEqual([]);
    return mapping.pages[0]!.fields.map(({ name, assert }) => [name, assert]);
  };
  const own = { min: 0.01, max: 9, max_change: '80%', else: 'hold' };
  const read = { min: 0.01, max: 9, maxChange: 0.8, else: 'hold' };

  it('is that of the amount of a price, in either form, and of all sources', () => {
    const price = { css: '.price', price: true, assert: own };
    expect(assertOf({ fields: { price } })).toEqual([
      ['price', read],
      ['price_currency', undefined],
    ]);
    expect(assertOf({ fields: { price: ['.new', price] } })).toEqual([
      ['price', read],
      ['price_currency', undefined],
    ]);
    const processors = [{ type: 'css', parameters: { selector: 'b' } }, { type: 'number' }];
    expect(assertOf({ fields: [{ name: 'price', processors, assert: own }] })).toEqual([['price', read]]);
  });

  it('leaves the value out unless it says otherwise', () => {
    expect(assertOf({ fields: { state: { css: 'b', assert: { one_of: ['new', 'used'], matches: 'e' } } } })).toEqual([
      ['state', { oneOf: ['new', 'used'], matches: 'e', else: 'empty' }],
    ]);
    expect(assertOf({ fields: { n: { css: 'b', integer: true, assert: { max_change: 2.5 } } } })).toEqual([
      ['n', { maxChange: 2.5, else: 'empty' }],
    ]);
  });
});

describe('a field in the short form', () => {
  it.each<[unknown, Step[]]>([
    ['h1', [{ type: 'css', selector: 'h1' }, TRIM]],
    [{ css: 'h1' }, [{ type: 'css', selector: 'h1' }, TRIM]],
    [{ css: 'a', attr: 'href' }, [{ type: 'css', selector: 'a', attribute: 'href' }, TRIM]],
    [{ xpath: '//h1' }, [{ type: 'xpath', expression: '//h1' }, TRIM]],
    [{ jsonpath: '$.a' }, [{ type: 'jsonpath', expression: '$.a' }, TRIM]],
    [{ json_ld: 'offers.price' }, [{ type: 'json_ld', path: 'offers.price' }, TRIM]],
    [{ json_ld: 'name', node: 'Book' }, [{ type: 'json_ld', path: 'name', node: 'Book' }, TRIM]],
    [{ microdata: 'name', node: 'Book' }, [{ type: 'microdata', path: 'name', node: 'Book' }, TRIM]],
    [{ regex: 'a+' }, [{ type: 'regex', pattern: 'a+', group: 0 }, TRIM]],
    [{ regex: 'a(b)' }, [{ type: 'regex', pattern: 'a(b)', group: 1 }, TRIM]],
    [{ regex: 'a(?:b)' }, [{ type: 'regex', pattern: 'a(?:b)', group: 0 }, TRIM]],
    [{ regex: { pattern: '(a)(b)', group: 2 } }, [{ type: 'regex', pattern: '(a)(b)', group: 2 }, TRIM]],
    [{ css: 'h1', trim: false }, [{ type: 'css', selector: 'h1' }]],
    [{ css: 'h1', number: false, all: false }, [{ type: 'css', selector: 'h1' }, TRIM]],
    [{ css: 'b', integer: true }, [{ type: 'css', selector: 'b' }, TRIM, { type: 'integer' }]],
    [{ css: 'b', number: { decimal: ',' } }, [{ type: 'css', selector: 'b' }, TRIM, { type: 'number', decimal: ',' }]],
    [{ css: 'b', number: { decimal: 'auto' } }, [{ type: 'css', selector: 'b' }, TRIM, { type: 'number' }]],
    [
      { css: 'b', then: ['trim', { number: { decimal: '.' } }, { price: true }] },
      [{ type: 'css', selector: 'b' }, TRIM, { type: 'number', decimal: '.' }, { type: 'price' }],
    ],
    [{ css: 'b', all: true }, [{ type: 'css', selector: 'b' }, TRIM, { type: 'all' }]],
    [{ css: 'b', date: true }, [{ type: 'css', selector: 'b' }, TRIM, { type: 'date', format: null, locale: null }]],
    [
      { css: 'b', date: 'yyyy-MM-dd' },
      [{ type: 'css', selector: 'b' }, TRIM, { type: 'date', format: 'yyyy-MM-dd', locale: null }],
    ],
    [
      { css: 'b', date: { format: 'd MMMM yyyy', locale: 'fr' } },
      [{ type: 'css', selector: 'b' }, TRIM, { type: 'date', format: 'd MMMM yyyy', locale: 'fr' }],
    ],
    [{ css: 'b', default: '' }, [{ type: 'css', selector: 'b' }, TRIM, { type: 'default', value: '' }]],
    [
      {
        css: 'b',
        replace: [
          { find: 'x', with: 'y' },
          { find: 'z', with: '' },
        ],
      },
      [
        { type: 'css', selector: 'b' },
        TRIM,
        { type: 'replace', find: 'x', with: 'y' },
        { type: 'replace', find: 'z', with: '' },
        TRIM,
      ],
    ],
  ])('reads %j', (field, steps) => {
    expect(chainOf(field)).toEqual(steps);
  });

  it('orders the options the same way whatever their order in the file', () => {
    const field = {
      default: 'none',
      join: '/',
      lower: true,
      split: ',',
      replace: { find: 'x', with: '' },
      regex: 'a.*',
      css: 'p',
    };
    const types = chainOf(field).map((step) => step.type);
    expect(types.join(' ')).toBe('css regex trim replace split trim lower join default');
  });

  it('takes `then` unchanged, without adding a trim', () => {
    const then = [
      'trim',
      { split: ',' },
      { replace: { find: 'a', with: 'b' } },
      { date: 'yyyy' },
      { regex: '(.)' },
      'all',
    ];
    expect(chainOf({ css: 'p', attr: 'title', then })).toEqual([
      { type: 'css', selector: 'p', attribute: 'title' },
      TRIM,
      { type: 'split', by: ',' },
      { type: 'replace', find: 'a', with: 'b' },
      { type: 'date', format: 'yyyy', locale: null },
      { type: 'regex', pattern: '(.)', group: 1 },
      { type: 'all' },
    ]);
  });

  it('allows the selector in `then`', () => {
    expect(chainOf({ then: [{ css: { selector: 'a', attribute: 'href' } }, 'url'] })).toEqual([
      { type: 'css', selector: 'a', attribute: 'href' },
      { type: 'url' },
    ]);
  });

  it('reads steps of `then` with the value true', () => {
    expect(chainOf({ css: 'p', then: [{ trim: true }, { date: true }] }).slice(1)).toEqual([
      TRIM,
      { type: 'date', format: null, locale: null },
    ]);
  });
});

describe('the parts other than the fields', () => {
  it('are read', () => {
    const { mapping, faults } = readMapping({
      name: 'reviews',
      url_patterns: ['/item/\\d+'],
      url_parsers: ['a.next', { description: 'by number', css: '.pages a', attr: 'href', all: true }],
      rows: { each: 'li.review', key: 'user', empty: { xpath: '//p[@class="none"]' } },
      fields: { user: { css: '.user', required: true } },
    });
    expect(faults).toEqual([]);
    expect(mapping.pages).toEqual([
      {
        name: 'reviews',
        urlPatterns: ['/item/\\d+'],
        urlParsers: [
          { description: '', steps: [{ type: 'css', selector: 'a.next', attribute: 'href' }, TRIM] },
          {
            description: 'by number',
            steps: [{ type: 'css', selector: '.pages a', attribute: 'href' }, TRIM, { type: 'all' }],
          },
        ],
        rows: {
          each: { type: 'css', selector: 'li.review' },
          key: 'user',
          empty: { type: 'xpath', expression: '//p[@class="none"]' },
        },
        fields: [{ name: 'user', steps: [{ type: 'css', selector: '.user' }, TRIM], required: true }],
      },
    ]);
  });

  it('have defaults', () => {
    expect(readMapping({ fields: { a: 'b' } }).mapping.pages[0]).toMatchObject({
      name: 'mapping',
      urlPatterns: [],
      urlParsers: [],
      rows: null,
    });
  });
});

describe('a price in the short form', () => {
  const fieldsOf = (price: object) => {
    const { mapping, faults } = readMapping({ fields: { cost: price } });
    expect(faults).toEqual([]);
    return mapping.pages[0]!.fields;
  };

  it('becomes two fields: the amount, and its currency as a three-letter code', () => {
    const select: Step = { type: 'css', selector: 'b' };
    const options = { currency: 'CAD', decimal: '.' };
    expect(fieldsOf({ css: 'b', price: options, required: true })).toEqual([
      { name: 'cost', required: true, steps: [select, TRIM, { type: 'price', decimal: '.', currency: 'CAD' }] },
      { name: 'cost_currency', required: false, steps: [select, TRIM, { type: 'currency', currency: 'CAD' }] },
    ]);
  });

  it.each(['json_ld', 'microdata'])('takes the currency next to it in %s', (type) => {
    const paths = fieldsOf({ [type]: 'offers.price', price: true }).map(({ steps }) => steps[0]);
    expect(paths).toEqual([
      { type, path: 'offers.price' },
      { type, path: 'offers.priceCurrency' },
    ]);
  });

  it.each([
    [{ cost: { css: 'p[[', price: true } }, ['fields.cost.css']],
    [{ cost: { css: 'p', price: { currency: 'XYZ' } } }, ['fields.cost.price']],
    [{ cost: { css: 'p', price: true }, cost_currency: 'i' }, ['fields.cost_currency']],
  ])('has each fault reported once: %j', (fields, paths) => {
    expect(readMapping({ fields }).faults.map(({ path }) => path.join('.'))).toEqual(paths);
  });
});
