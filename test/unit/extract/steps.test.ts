import { afterEach, describe, expect, it, vi } from 'vitest';
import { MAX_LINKS, type PageMapping, type Step } from '../../../shared/domain/mapping.ts';
import { findChainFault, findMappingFaults, findStepFault, needsDom } from '../../../shared/adapters/step-check.ts';
import { compileMapping } from '../../../crawl-api/extract/compile-mapping.ts';
import { PageExtractor } from '../../../crawl-api/extract/page-extractor.ts';
import { MAX_SOURCE_CHARS, PageLimitError } from '../../../crawl-api/extract/page-limits.ts';
import {
  css,
  cssField,
  extract,
  extractBy,
  field,
  jsonField,
  jsonpath,
  PAGE_URL,
  pageMapping,
  regex,
  step,
  valueBy,
  valueOf,
  xpath,
} from '../crawl-api/extract-page.ts';

const h1: Step = css('h1');

describe('faults of chains', () => {
  it.each<[Step[], string]>([
    [[], 'the chain is empty'],
    [[step.trim], 'must select'],
    [[css('p::before')], '::before'],
    [[css(':scope > b')], ':scope is the record'],
    [[xpath('//p[')], 'XPath'],
    [[jsonpath('$.a[')], 'JSONPath'],
    [[jsonpath('$[?nope(@.a)]')], 'JSONPath'],
    [[{ type: 'json_ld', path: 'a..b' }], 'empty name'],
    [[regex('(', 0)], 'RE2'],
    [[regex('(a)\\1', 0)], 'RE2'],
    [[regex('(?=a)', 0)], 'RE2'],
    [[regex('(a)', 2)], 'only one group, but group 2'],
    [[h1, regex('a', 1)], 'no groups'],
    [[h1, { type: 'date', format: 'Q', locale: null }], 'date format'],
    [[h1, { type: 'date', format: 'd MMM', locale: null }], 'no year'],
    [[h1, { type: 'date', format: 'YYYY-MM-DD', locale: null }], 'yyyy-MM-dd'],
    [[h1, { type: 'date', format: 'hello', locale: null }], 'date format'],
    [[h1, { type: 'date', format: 'yyyy yyyy', locale: null }], 'twice'],
    [[h1, { type: 'date', format: 'yyyy'.repeat(20), locale: null }], 'longer than'],
    [[h1, { type: 'date', format: 'yyyy', locale: 'no such' }], 'locale'],
    [[h1, step.integer, { type: 'default', value: 'none' }], 'a whole number'],
    [[h1, step.number, step.all, { type: 'default', value: 'none' }], 'needs a number'],
    [[h1, { type: 'date', format: null, locale: null }, { type: 'default', value: 'today' }], 'needs a date'],
    [[h1, { type: 'default', value: 5 }], 'in quotes'],
  ])('%j: %s', (steps, fault) => {
    expect(findChainFault(steps)).toContain(fault);
    expect(findChainFault(steps)).not.toContain('\n');
  });

  it.each<[Step[]]>([
    [[h1]],
    [[css('tr:has(th)'), css('td')]],
    [[h1, { type: 'date', format: 'd. MMMM yyyy', locale: 'de' }]],
    [[h1, { type: 'date', format: "yyyy-MM-dd'T'HH:mm:ssZZ", locale: null }]],
    [[h1, { type: 'date', format: 'yy/M/d', locale: null }, { type: 'default', value: '2000-01-01' }]],
    [[h1, { type: 'default', value: 5 }, step.integer]],
    [[h1, step.number, { type: 'default', value: 0 }, step.all]],
    [[regex('(?P<a>x)', 1)]],
    [[jsonpath('$..[?search(@.a, "x+")].b')]],
  ])('%j is valid', (steps) => {
    expect(findChainFault(steps)).toBeNull();
  });

  it('allows :scope where a field selects within a record', () => {
    const scope: Step = css(':scope > b');
    expect(findStepFault(scope, { first: true, inRows: true })).toBeNull();
    expect(findStepFault(scope, { first: false, inRows: true })).toContain(':scope');
  });

  it('reports which steps need the tree', () => {
    expect(needsDom(xpath('//p'))).toBe('xpath');
    expect(needsDom(css('p:has(b)'))).toBe(':has()');
    expect(needsDom(h1)).toBeNull();
    expect(needsDom(step.trim)).toBeNull();
  });

  it.each<[string, Partial<PageMapping>, string]>([
    ['url patterns', { urlPatterns: ['('] }, 'url_patterns: the pattern'],
    ['url parsers', { urlParsers: [{ description: 'next', steps: [] }] }, 'url_parsers "next": the chain is empty'],
    ['records by regex', { rows: { each: regex('a', 0), key: 'value', empty: null } }, 'each must be'],
    ['attributes of records', { rows: { each: css('li', 'id'), key: 'value', empty: null } }, 'no meaning'],
    [
      'a key that is not a field',
      { rows: { each: h1 as never, key: 'no', empty: null } },
      'rows: key names the field "no"',
    ],
    [
      'JSON in element records',
      {
        rows: { each: h1 as never, key: 'value', empty: null },
        fields: [field([jsonpath('$')])],
      },
      'jsonpath finds nothing',
    ],
    ['elements in JSON records', { rows: { each: jsonpath('$[*]'), key: 'value', empty: null } }, 'css finds nothing'],
  ])('%s', async (_name, changes, fault) => {
    const mapping = { pages: [pageMapping({ fields: [cssField('p')], ...changes })] };
    expect(findMappingFaults(mapping).join('\n')).toContain(fault);
    await expect(compileMapping(mapping)).rejects.toThrow(findMappingFaults(mapping)[0]!);
  });
});

describe('selecting from values', () => {
  const state =
    '<script>window.__STATE__ = {"p":{"n":"N","html":"<i>a</i><i>b</i>","d":[1,2]}};</script><p title="2 of 5">x</p>';
  const fromState: Step[] = [css('script'), regex('__STATE__ = (.*)', 1)];

  it.each<[string, Step[], unknown]>([
    ['jsonpath in script text', [...fromState, jsonpath('$.p.n')], 'N'],
    ['an object as JSON text', [...fromState, jsonpath('$.p.d')], '[1,2]'],
    ['json_ld in a value', [...fromState, { type: 'json_ld', path: 'p.n' }], 'N'],
    ['css in a value', [...fromState, jsonpath('$.p.html'), css('i'), step.all], ['a', 'b']],
    ['css that needs the tree in a value', [...fromState, jsonpath('$.p.html'), css('i:last-child')], 'b'],
    ['xpath in a value', [...fromState, jsonpath('$.p.html'), xpath('//i[2]')], 'b'],
    ['regex in an attribute', [css('p', 'title'), regex('of (\\d+)', 1), step.integer], 5],
    ['regex in the source', [regex('title="(\\d)', 1)], '2'],
    ['jsonpath on HTML', [jsonpath('$')], null],
  ])('%s', async (_name, steps, expected) => {
    expect(await valueBy(steps, state)).toEqual(expected);
    expect(await valueBy(steps, state, { piece: 1 })).toEqual(expected);
  });

  it('matches no line end with a dot in match(), and an escaped dot or one in a class literally', async () => {
    const page = JSON.stringify({ items: ['a\rb', 'a\nb', 'a.b', 'axb'] });
    const found = (pattern: string): Promise<unknown> =>
      valueBy([jsonpath(`$.items[?match(@, "${pattern}")]`), step.all], page, {
        kind: 'json',
      });
    expect(await found('a.b')).toEqual(['a.b', 'axb']);
    expect(await found('a[.]b')).toEqual(['a.b']);
    expect(await found(String.raw`a\\.b`)).toEqual(['a.b']);
  });

  it.each<[string, Step[], unknown]>([
    ['a filter', [jsonpath('$.items[?@.price > 5].name')], 'b'],
    ['search() by RE2', [jsonpath('$.items[?search(@.name, "^(b+)+$")].price'), step.integer], 9],
    ['match() of the whole text', [jsonpath('$.items[?match(@.name, "[ab]")].name'), step.all], ['a', 'b']],
    ['everything by name', [jsonpath('$..price'), step.all], [5, 9]],
    ['null is no value', [jsonpath('$.none')], null],
    ['inherited names', [jsonpath('$.constructor')], null],
    ['css on JSON', [css('p')], null],
    ['xpath on JSON', [xpath('//p')], null],
    ['regex on JSON', [regex('"name":"(\\w)"', 1)], 'a'],
  ])('on a JSON page: %s', async (_name, steps, expected) => {
    const page = '{"items":[{"name":"a","price":5},{"name":"b","price":9}],"none":null,"html":"<p>x</p>"}';
    expect(await valueBy(steps, page, { kind: 'json', piece: 7 })).toEqual(expected);
  });

  it('never runs a pattern of the page in a backtracking engine', async () => {
    const page = JSON.stringify({ text: `${'a'.repeat(5_000)}!`, pattern: '^(a+)+$' });
    const expression = '$[?search($.text, $.pattern)]';
    expect(await valueBy([jsonpath(expression)], page, { kind: 'json' })).toBeNull();
  });

  it('refuses JSON that is too large or too deep', async () => {
    const steps: Step[] = [jsonpath('$..x')];
    await expect(valueBy(steps, '['.repeat(5_000) + ']'.repeat(5_000), { kind: 'json' })).rejects.toThrow(
      PageLimitError,
    );
    await expect(valueBy(steps, ' '.repeat(MAX_SOURCE_CHARS + 1), { kind: 'json' })).rejects.toThrow(PageLimitError);
    const long = JSON.stringify(Array.from({ length: 200_000 }, (_, i) => i));
    expect(await valueBy([jsonpath('$[*]')], long, { kind: 'json' })).toBe('0');
  });

  it('reads endless white space in linear time', async () => {
    const page = `<script type="application/ld+json">{"name":${' '.repeat(1_000_000)}"N"${' '.repeat(500_000)}</script>`;
    expect(await valueBy(jsonField('name').steps, page)).toBeNull();
  });
});

describe('searches for a pattern', () => {
  /** Each search but the first scans to the end for a `b` that does not exist. */
  const searches = field([regex('a(?:.*b)?', 0), step.all]);

  const ofText = field([css('body'), ...searches.steps]);
  const TEXT = `<body>${'a'.repeat(2_000)}`;
  /** Each read of the CPU time advances it by this much. */
  const spend = (microseconds: number) => {
    let user = 0;
    vi.spyOn(process, 'cpuUsage').mockImplementation(() => ({ user: (user += microseconds), system: 0 }));
  };
  afterEach(() => vi.restoreAllMocks());

  it.each([
    ['in the source', searches],
    ['in a value', ofText],
  ])('that together take too long abandon the page: %s', async (_where, one) => {
    spend(10_000);
    await expect(valueOf(one, TEXT)).rejects.toThrow(PageLimitError);
  });

  it('may be many when each is short', async () => {
    spend(1_000);
    expect(await valueOf(searches, TEXT)).toHaveLength(1_000);
    expect(await valueOf(ofText, TEXT)).toHaveLength(1_000);
  });
});

describe('defaults', () => {
  const currency = cssField('.c', { name: 'c', process: [{ type: 'default', value: 'JPY' }] });

  it('do not count as values of the page', async () => {
    const fields = [cssField('h1', { name: 't' }), currency];
    expect(await extract(fields, '<p>Try later</p>')).toEqual({
      rows: [{ key: null, row: { t: null, c: 'JPY' } }],
      missing: null,
      links: [],
      onlyDefaults: true,
    });
    expect(await extract(fields, '<h1>Bag</h1>')).not.toHaveProperty('onlyDefaults');
    expect(await extract(fields, '<i class=c>EUR</i>')).not.toHaveProperty('onlyDefaults');
  });
});

describe('mappings of several pages', () => {
  const product = pageMapping({ name: 'product', urlPatterns: ['/p/\\d+'], fields: [cssField('h1')] });
  const other = pageMapping({ name: 'list', urlPatterns: ['/list', '/l/'], fields: [cssField('h2')] });
  const mapping = { pages: [product, other] };

  it.each([
    ['https://shop.example/p/12', 'one'],
    ['https://shop.example/l/x', 'two'],
    ['https://shop.example/list?p=/p/', 'two'],
  ])('%s is read by the first matching one', async (url, expected) => {
    const { rows } = await extractBy(mapping, '<h1>one</h1><h2>two</h2>', { url });
    expect(rows?.[0]?.row.value).toBe(expected);
  });

  it('finds none for other URLs', async () => {
    const extraction = await extractBy(mapping, '<h1>one</h1>', { url: 'https://shop.example/about' });
    expect(extraction).toEqual({ rows: null, missing: 'mapping', links: [] });
  });
});

describe('links', () => {
  const next: Step[] = [css('a', 'href'), step.all];
  const mapping = {
    pages: [pageMapping({ fields: [cssField('h1')], urlParsers: [{ description: 'next', steps: next }] })],
  };
  const links = async (page: string): Promise<string[]> => (await extractBy(mapping, page)).links;

  it('are absolute, unique, and only http or https', async () => {
    const page = '<a href="?page=2"></a><a href="/p/1?page=2"></a><a href="mailto:x"></a><a href="//[">';
    expect(await links(page)).toEqual(['https://shop.example/p/1?page=2']);
  });

  it('have no line ends inside, as in a browser', async () => {
    const parser = { description: 'next', steps: [css('a', 'href'), step.trim, step.all] };
    const page = '<a href="/p\n  \t/2"></a><a href=" \u0002/p/3\n">';
    const found = await extractBy({ pages: [pageMapping({ urlParsers: [parser], fields: [cssField('a')] })] }, page);
    expect(found.links).toEqual(['https://shop.example/p%20%20/2', 'https://shop.example/p/3']);
  });

  it('follow the first <base>', async () => {
    expect(await links('<base href="/b/"><base href="/c/"><a href="d">')).toEqual(['https://shop.example/b/d']);
    expect(await links('<base href="javascript:x"><a href="d">')).toEqual(['https://shop.example/p/d']);
  });

  it('are limited in number', async () => {
    const page = Array.from({ length: MAX_LINKS + 5 }, (_, i) => `<a href="/${i}">`).join('');
    expect(await links(page)).toHaveLength(MAX_LINKS);
  });

  it('are returned for a page whose required field is missing', async () => {
    const strict = { pages: [{ ...mapping.pages[0]!, fields: [cssField('h1', { required: true })] }] };
    expect(await extractBy(strict, '<a href="/x">')).toEqual({
      rows: null,
      missing: 'value',
      links: ['https://shop.example/x'],
    });
  });
});

describe('The content of a template', () => {
  const page =
    '<template><base href="/t/"><b>{{price}}</b><a href="/t">t</a><script type="application/ld+json">{"name":"T"}</script></template>' +
    '<b>12</b><a href="p">p</a><script type="application/ld+json">{"name":"N"}</script>';
  const fields = [cssField('b', { name: 'price' }), { ...jsonField('name'), name: 'name' }];
  const next = { description: 'links', steps: [css('a', 'href'), step.all] };

  it.each([{}, { piece: 5 }, { allByTree: true }])(
    'is no text, no link and no data of the page: %j',
    async (options) => {
      const read = await extractBy({ pages: [pageMapping({ fields, urlParsers: [next] })] }, page, options);
      expect(read.rows?.[0]?.row).toEqual({ price: '12', name: 'N' });
      expect(read.links).toEqual(['https://shop.example/p/p']);
      expect(await valueBy([css('template b')], page, options)).toBeNull();
      expect(await valueBy([xpath('count(//b)')], page, options)).toBe('1');
    },
  );

  it('is part of the page where it is a shadow root', async () => {
    const shadow =
      '<x-price><template shadowrootmode="open"><b>12</b><template><b>13</b></template></template></x-price>';
    expect(await valueBy([css('x-price b'), step.all], shadow)).toEqual(['12']);
    expect(await valueBy([css('b')], shadow.replace('open', 'none'))).toBeNull();
  });
});

describe('trace', () => {
  it('lists the result of every step', async () => {
    const one = cssField('b', { process: [step.trim, step.integer, step.all] });
    const compiled = await compileMapping({ pages: [pageMapping({ fields: [one] })] });
    const extractor = new PageExtractor(compiled, 'html', PAGE_URL, { trace: true });
    extractor.write(`<b> 1 </b><b>x</b><b>${'y'.repeat(300)}</b>`);
    extractor.end();
    const { steps, source } = extractor.trace().get('value')!;
    const [select, trim, integer, all] = steps;
    expect(source).toBe(0);
    expect(select).toEqual({ step: one.steps[0], source: 0, values: [' 1 ', 'x', `${'y'.repeat(200)}…`], count: 3 });
    expect(trim).toMatchObject({ step: step.trim, count: 3 });
    expect(integer).toMatchObject({ values: [1], count: 1 });
    expect(all).toMatchObject({ values: [1], count: 1 });
  });
});
