import { describe, expect, it } from 'vitest';
import { MAX_DEPTH, PageLimitError } from '../../../crawl-api/extract/page-limits.ts';
import { MAX_VALUES, MAX_VALUE_BYTES } from '../../../crawl-api/extract/values.ts';
import type { Step } from '../../../shared/domain/mapping.ts';
import {
  ALL,
  cssField,
  extract,
  extractBy,
  type ExtractOptions,
  integerStep,
  jsonField,
  numberStep,
  pageMapping,
  valueOf,
} from './extract-page.ts';

describe('text of an element', () => {
  it.each([
    ['text of all descendants', '<p>a <b>b<i>c</i></b> d</p>', 'p', 'a bc d'],
    ['entities decoded', '<p>&yen;1 &amp; &lt;b&gt; &#x65E5;</p>', 'p', '¥1 & <b> 日'],
    ['script and style left out', '<div>a<script>var x = "<p>";</script><style>p{}</style>b</div>', 'div', 'ab'],
    ['source of a matched script', '<script id="s">var x = 1;</script>', '#s', 'var x = 1;'],
    ['comments left out', '<p>a<!-- no -->b</p>', 'p', 'ab'],
    ['white space collapsed', '<p>\n a \t b\u00a0\u3000c </p>', 'p', 'a b c'],
    ['void elements', '<p>a<br>b<img src=x>c</p>', 'p', 'abc'],
    ['title', '<title>A &amp; B</title>', 'title', 'A & B'],
    ['nested matches', '<div>a<div>b</div></div>', 'div', 'ab'],
    ['NUL replaced', '<p>a\0b</p>', 'p', 'a\uFFFDb'],
  ])('%s', async (_name, page, selector, expected) => {
    expect(await valueOf(cssField(selector), page)).toBe(expected);
    expect(await valueOf(cssField(selector), page, { piece: 1 })).toBe(expected);
  });

  it('keeps white space unchanged without trim', async () => {
    expect(await valueOf(cssField('p', { process: [] }), '<p> a\n b </p>')).toBe(' a\n b ');
  });

  it('treats an empty text as no value', async () => {
    expect(await valueOf(cssField('p'), '<p> </p><p>x</p>')).toBeNull();
  });
});

describe('links of a page with meta tags for robots', () => {
  const urlParsers = [
    { description: 'next', steps: [{ type: 'css', selector: 'a', attribute: 'href' }, ...ALL] as Step[] },
  ];
  const mapping = { pages: [pageMapping({ urlParsers, fields: [cssField('h1')] })] };
  const linksOf = async (meta: string, options: ExtractOptions) =>
    (await extractBy(mapping, `<head>${meta}</head><h1>x</h1><a href="/2">2</a>`, options)).links;
  const links = ['https://shop.example/2'];

  it.each([
    ['<meta name="robots" content="noindex, nofollow">', []],
    ['<META NAME="ROBOTS" CONTENT="NONE">', []],
    ['<meta name="ExampleBot" content="nofollow">', []],
    ['<meta name="robots" content="noindex"><meta name="examplebot" content="nofollow">', []],
    ['<meta name="otherbot" content="nofollow">', links],
    ['<meta name="description" content="nofollow">', links],
    ['', links],
  ])('%s', async (meta, expected) => {
    expect(await linksOf(meta, { obeyedAs: 'examplebot' })).toEqual(expected);
    expect(await linksOf(meta, { obeyedAs: 'examplebot', allByTree: true })).toEqual(expected);
    expect(await linksOf(meta, {})).toEqual(links);
  });
});

describe('broken markup', () => {
  it.each([
    ['unclosed elements', '<div><p>a<p>b<span>c', 'p', ['a', 'bc']],
    ['stray end tags', '</div></p></span><h1>a</h1></div>', 'h1', ['a']],
    ['wrong nesting', '<b><i>a</b>c</i>', 'i', ['a']],
    ['unclosed attribute', '<p title="x>a</p><p>b</p>', 'p', null],
    ['no quotes', '<p class=note>a</p>', '.note', ['a']],
    ['attribute given twice keeps the first', '<p class=x class=y>a</p>', '.x', ['a']],
    ['lone angle brackets', '<p>a < b > c</p>', 'p', ['a < b > c']],
    ['unclosed comment', '<p>a</p><!-- <p>b</p>', 'p', ['a']],
    ['end in the middle of a tag', '<p>a</p><p cl', 'p', ['a']],
    ['table cells without end tags', '<table><tr><td>1<td>2<tr><td>3</table>', 'td', ['1', '2', '3']],
    ['nothing at all', '', 'p', null],
  ])('%s', async (_name, page, selector, expected) => {
    expect(await valueOf(cssField(selector, { process: ALL }), page)).toEqual(expected);
    expect(await valueOf(cssField(selector, { process: ALL }), page, { piece: 3 })).toEqual(expected);
  });

  it('refuses a page with unlimited nesting', async () => {
    const inside = MAX_DEPTH - ['html', 'body'].length;
    await expect(extract([cssField('p')], '<b>'.repeat(inside + 1))).rejects.toThrow(PageLimitError);
    await expect(extract([cssField('p')], '<b>'.repeat(inside))).resolves.toMatchObject({ missing: null });
  });
});

describe('values of a field', () => {
  it('takes the attribute from the first element that has it', async () => {
    const field = cssField('a', { attribute: 'HREF' });
    expect(await valueOf(field, '<a>x</a><a href="/1">y</a><a href="/2">z</a>')).toBe('/1');
    expect(
      await valueOf(cssField('a', { attribute: 'HREF', process: ALL }), '<a>x</a><a href="/1">y</a><a href="/2">z</a>'),
    ).toEqual(['/1', '/2']);
  });

  it('names the first required field without a value', async () => {
    const fields = [cssField('h1', { name: 'a', required: true }), cssField('h2', { name: 'b', required: true })];
    expect(await extract(fields, '<p>x</p>')).toEqual({ rows: null, missing: 'a', links: [] });
    expect(await extract(fields, '<h1>x</h1>')).toEqual({
      rows: null,
      missing: 'b',
      links: [],
      partial: { row: { a: 'x', b: null }, missing: ['b'] },
    });
    expect(await extract(fields, '<h1>x</h1><h2>y</h2>')).toEqual({
      rows: [{ key: null, row: { a: 'x', b: 'y' } }],
      missing: null,
      links: [],
    });
  });

  it('has no value where a required number is not a number', async () => {
    const field = cssField('p', { required: true, process: integerStep });
    expect((await extract([field], '<p>sold out</p>')).missing).toBe('value');
  });

  it('truncates a value at its limit in bytes without splitting a character', async () => {
    const value = (await valueOf(cssField('p'), `<p>${'日'.repeat(MAX_VALUE_BYTES)}</p>`)) as string;
    expect(Buffer.byteLength(value)).toBeLessThanOrEqual(MAX_VALUE_BYTES);
    expect(Buffer.byteLength(value)).toBeGreaterThan(MAX_VALUE_BYTES - 4);
    expect(value).toBe('日'.repeat(value.length));
  });

  it('limits the number and the bytes of list values', async () => {
    expect(await valueOf(cssField('b', { process: ALL }), '<b>x</b>'.repeat(MAX_VALUES + 5))).toHaveLength(MAX_VALUES);
    const long = (await valueOf(
      cssField('b', { process: ALL }),
      `<b>${'x'.repeat(1_000)}</b>`.repeat(100),
    )) as string[];
    expect(Buffer.byteLength(JSON.stringify(long))).toBeLessThanOrEqual(MAX_VALUE_BYTES);
  });

  it('reads XML names in any case', async () => {
    const page = '<?xml version="1.0"?><Item><Name>A &amp; B</Name><Empty/><Price cur="JPY">5</Price></Item>';
    expect(await valueOf(cssField('item > name'), page, { kind: 'xml' })).toBe('A & B');
    expect(await valueOf(cssField('Empty + Price', { attribute: 'cur' }), page, { kind: 'xml' })).toBe('JPY');
  });
});

describe('JSON-LD', () => {
  const block = (json: string): string => `<script type="application/ld+json">${json}</script>`;
  const product = block('{"@type":"Product","name":"N","offers":[{"price":"1,200"},{"price":980}],"image":["a","b"]}');

  it.each([
    ['a name', 'name', product, 'N'],
    ['through an array', 'offers.price', product, '1,200'],
    ['an element by number', 'offers.1.price', product, '980'],
    ['the first of an array', 'image', product, 'a'],
    ['in @graph', 'name', block('{"@graph":[{"@type":"WebPage"},{"name":"G"}]}'), 'G'],
    ['@graph named', '@graph.0.name', block('{"@graph":[{"name":"G"}]}'), 'G'],
    ['in a block that is an array', 'name', block('[{"x":1},{"name":"A"}]'), 'A'],
    ['in the second block', 'sku', product + block('{"@type":"Product","name":"N","sku":"S"}'), 'S'],
    ['after a broken block', 'name', block('{"name": broken') + product, 'N'],
    ['in a comment', 'name', block('<!-- {"name":"C"} -->'), 'C'],
    ['in CDATA', 'name', block('//<![CDATA[\n{"name":"D"}\n//]]>'), 'D'],
    ['with raw line ends in a string', 'name', block('{"name":"a\nb"}'), 'a b'],
    ['with a semicolon', 'name', block('{"name":"E"};'), 'E'],
    ['with a comma too many', 'name', block('{"name":"a,]","sizes":["S","M",],}'), 'a,]'],
    [
      'with comments',
      'name',
      block('{ // one\n"url":"https://x//y", /* two, */ "name":"/* T */" <!-- three -->}'),
      '/* T */',
    ],
    ['with a comma before a comment', 'name', block('{"name":"K", // the last\n}'), 'K'],
    ['in @graph as an object', 'name', block('{"@graph":{"name":"O"}}'), 'O'],
    ['in mainEntity', 'sku', block('{"@type":"WebPage","mainEntity":{"sku":"M"}}'), 'M'],
    ['in mainEntity of a member of @graph', 'sku', block('{"@graph":[{"mainEntity":{"sku":"M"}}]}'), 'M'],
    ['in the page before mainEntity', 'name', block('{"name":"W","mainEntity":{"name":"M"}}'), 'W'],
    [
      'in the first variant',
      'offers.price',
      block('{"name":"G","hasVariant":[{"offers":{"price":5}},{"offers":{"price":6}}]}'),
      '5',
    ],
    ['in variants of mainEntity', 'offers.price', block('{"mainEntity":{"hasVariant":[{"offers":{"price":7}}]}}'), '7'],
    [
      'of the group, not of a variant',
      'offers.price',
      block('{"offers":{"price":4},"hasVariant":[{"offers":{"price":5}}]}'),
      '4',
    ],
    [
      'in priceSpecification',
      'offers.price',
      block('{"offers":{"priceSpecification":[{"price":"8.50"},{"price":"9"}]}}'),
      '8.50',
    ],
    [
      'of the offer before its specification',
      'offers.price',
      block('{"offers":{"price":1,"priceSpecification":{"price":2}}}'),
      '1',
    ],
    ['@value', 'name', block('{"name":{"@value":"V","@language":"en"}}'), 'V'],
    ['a boolean', 'ok', block('{"ok":true}'), 'true'],
    ['null', 'name', block('{"name":null}'), null],
    ['an object', 'offers', block('{"offers":{"price":1}}'), null],
    ['nothing', 'no.such.path', product, null],
    ['inherited names', 'constructor.name', product, null],
    ['a type with parameters', 'name', '<SCRIPT TYPE="application/ld+json; charset=utf-8">{"name":"P"}</SCRIPT>', 'P'],
    ['not in other scripts', 'name', '<script>{"name":"X"}</script>', null],
    ['an unclosed block', 'name', '<script type="application/ld+json">{"name":"U"}', 'U'],
    ['a lone surrogate', 'name', block(String.raw`{"name":"a\ud800"}`), 'a\uFFFD'],
  ])('%s', async (_name, path, page, expected) => {
    expect(await valueOf(jsonField(path), page)).toBe(expected);
    expect(await valueOf(jsonField(path), page, { piece: 2 })).toBe(expected);
  });

  it('keeps numbers for a numeric column; anything but a plain number is treated as text', async () => {
    expect(await valueOf(jsonField('offers.1.price', { process: numberStep }), product)).toBe(980);
    expect(await valueOf(jsonField('offers.price', { process: [...numberStep, { type: 'all' }] }), product)).toEqual([
      { text: '1,200', point: 1200, comma: 1.2 },
      980,
    ]);
  });

  it('reads a JSON page as one block', async () => {
    expect(await valueOf(jsonField('data.title'), '{"data":{"title":"J"}}', { kind: 'json', piece: 4 })).toBe('J');
    expect(await valueOf(cssField('h1'), '{"data":"<h1>x</h1>"}', { kind: 'json' })).toBeNull();
  });
});
