/** The parser opens and closes elements as in the tree of the standard, which parse5 builds for generated pages. */
import fc from 'fast-check';
import { type DefaultTreeAdapterTypes, parse } from 'parse5';
import { describe, expect, it } from 'vitest';
import { HtmlParser } from '../../../crawl-api/extract/markup/html-parser.ts';

/** The tree as text: `div(p(x))`, with the attribute k where there is one. White space between elements is dropped. */
function treeOf(page: string): string {
  let out = '';
  const parser = new HtmlParser({
    wantsText: true,
    wantsComments: false,
    open: (name, attributes) => void (out += `${name}${attributes.get('k') ?? ''}(`),
    close: () => void (out += ')'),
    text: (text) => void (out += text.replaceAll(' ', '')),
    comment: () => undefined,
  });
  for (let at = 0; at < page.length; at += 7) parser.write(page.slice(at, at + 7));
  parser.end();
  return out;
}

type Node = DefaultTreeAdapterTypes.ChildNode;

function referenceOf(page: string): string {
  const write = (node: Node): string => {
    if ('value' in node) return node.value.replaceAll(' ', '');
    if (!('childNodes' in node)) return '';
    const key = node.attrs.find((a) => a.name === 'k')?.value ?? '';
    return `${node.tagName}${key}(${node.childNodes.map(write).join('')})`;
  };
  return parse(page, { scriptingEnabled: false }).childNodes.map(write).join('');
}

const BLOCKS = 'p div section ul ol li dl dd dt h1 h2 h3 blockquote button address';
const INLINE = 'span label x-y';
const open = (names: string) => fc.constantFrom(...names.split(' ').map((name) => `<${name}>`));
const close = (names: string) => fc.constantFrom(...names.split(' ').map((name) => `</${name}>`));
const text = fc.constantFrom('x', 'y', ' ', 'z');
const empty = fc.constantFrom('<br>', '<hr>', '<img>', '<input>');

/** Elements that start and end in any order, many without an end. */
const flow = fc
  .array(
    fc.oneof(
      { weight: 5, arbitrary: open(`${BLOCKS} ${INLINE}`) },
      { weight: 3, arbitrary: close(`${BLOCKS} ${INLINE} em`) },
      { weight: 3, arbitrary: text },
      { weight: 1, arbitrary: empty },
    ),
    { maxLength: 14 },
  )
  .map((parts) => parts.join(''));

const maybe = (tag: string) => fc.constantFrom(tag, '');
const parts = (...of: fc.Arbitrary<string>[]) => fc.tuple(...of).map((all) => all.join(''));
const several = (of: fc.Arbitrary<string>) => fc.array(of, { maxLength: 3 }).map((all) => all.join(''));
/** Tables with or without their optional tags, with elements that start and end in any order in their cells. */
const cell = parts(fc.constantFrom('<td>', '<th>'), flow, maybe('</td>'), maybe('</tr>'));
const row = parts(maybe('<tr>'), cell, several(cell), maybe('</tr>'));
const rows = several(row);
const body = fc.oneof(
  rows,
  ...['tbody', 'thead', 'tfoot'].map((name) => parts(fc.constant(`<${name}>`), rows, maybe(`</${name}>`))),
);
const table = parts(
  fc.constant('<table>'),
  maybe('<caption>c</caption>'),
  maybe('<colgroup>'),
  fc.constantFrom('<col>', ''),
  several(body),
  fc.constant('</table>'),
);
/** The frame of a page, with or without its tags. */
const page = parts(
  maybe('<!doctype html>'),
  maybe('<html>'),
  maybe('<head>'),
  several(fc.constantFrom('<title>t</title>', '<meta>', '<link>', ' ', '<script>s</script>', '<style>c</style>')),
  maybe('</head>'),
  maybe(' '),
  maybe('<body>'),
  flow,
  several(parts(fc.oneof(table, flow), flow)),
  maybe('</body>'),
  maybe('</html>'),
  flow,
  // Without any text, the standard requires an empty body; this parser emits none.
  fc.constant('.'),
);

describe('the tree of a page', () => {
  it('is that of parse5, whatever tags are missing or stray', () => {
    fc.assert(
      fc.property(page, (source) => {
        expect(treeOf(source)).toBe(referenceOf(source));
      }),
      { numRuns: 600 },
    );
  });

  it.each([
    ['rows without a body', '<table><tr><td>x'],
    ['cells without a row', '<table><td>x<th>y</table>'],
    ['columns without a group', '<table><col><tr><td>x'],
    ['table parts without end tags', '<table><thead><tr><th>a<tbody><tr><td>b<td>c<tfoot><tr><td>d'],
    ['a paragraph around a link around a block', '<p><a k=1>x<div>y<h2>z</h2></div>w</a>v</p>u'],
    ['a bold start of a paragraph that never ends', '<p>x <b>y<div>z</div>w'],
    ['the end of a formatting element that has not opened again', '<i><p><i>x<hr></i>y'],
    ['the end of a list item in an inner list', '<ul><li>x<ul></li>y<li>z</ul>w</ul>'],
    ['a heading that ends as another', '<h1>x</h2>y<h3>z<h4>w'],
    ['a stray end in a cell', '<div><table><tr><td>x</div>y</td></tr></table>z'],
    ['no body', '<title>t</title><p>x'],
    ['only text', 'x'],
    ['content after the end of the page', '<body><div>x</body></html><p>y'],
    ['pixels in the head', '<head><noscript><link></noscript><meta></head><p>x'],
    ['an empty element in a template', '<template><br></p><hr></template>x'],
    ['a template that never ends', '<div>x<template>y<p>z</div>w'],
    ['templates in a table', '<table><template><tr><td>x</template><tr><td>y<template>z</template></table>w'],
    ['a template in a template', '<template><template>x</template>y</template>z'],
    ['a template in the head', '<head><template><p>x</template><title>t</title></head>y'],
    ['an element of svg named template', '<svg><template><g>x</g></template></svg>y'],
    ['a paragraph in a button', '<p>x<button><p>y</button>z'],
  ])('is that of parse5 with %s', (_, source) => {
    expect(treeOf(source)).toBe(referenceOf(source));
  });
});
