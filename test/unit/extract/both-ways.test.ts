/** For any page and selectors, matching while streaming, in pieces of any size, gives the same result as the tree. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type CompiledMapping,
  compileMapping,
  type CompileOptions,
} from '../../../crawl-api/extract/compile-mapping.ts';
import { type Extraction, PageExtractor, type PageKind } from '../../../crawl-api/extract/page-extractor.ts';
import type { Field, Mapping, PageMapping, Step } from '../../../shared/domain/mapping.ts';
import { findSelectorFault } from '../../../shared/adapters/selector-check.ts';
import { PAGE_URL, pageMapping } from '../crawl-api/extract-page.ts';

const NAMES = [
  'div',
  'p',
  'li',
  'ul',
  'b',
  'table',
  'tr',
  'td',
  'svg',
  'section',
  'template',
  'a',
  'form',
  'option',
  'sup',
];
const VOID = ['br', 'img', 'base', 'input', 'wbr'];
const CLASSES = ['x', 'y', 'x y', 'review', 'X'];

const name = fc.constantFrom(...NAMES);
const word = fc.constantFrom(
  'a',
  'b c',
  ' ',
  '&amp;',
  '&yen;1',
  '&#x65E5;',
  '<',
  '\n',
  '日本',
  '&',
  '&notin',
  'z>',
  '1',
  '23',
  '4,5',
);
const attributes = fc
  .array(
    fc.oneof(
      fc.constantFrom(...CLASSES).map((c) => ` class="${c}"`),
      fc.constantFrom(
        ' id=i',
        ' HREF="/x?a=1&amp;b"',
        ' data-k',
        ' type=Text',
        ' lang="en-GB"',
        ' title="x>y"',
        ' constructor=1',
      ),
    ),
    { maxLength: 3 },
  )
  .map((list) => list.join(''));

interface Tree {
  node: string;
}
const { node } = fc.letrec<Tree>((tie) => ({
  node: fc.oneof(
    { depthSize: 'medium', withCrossShrink: true },
    word,
    fc.tuple(fc.constantFrom(...VOID), attributes).map(([n, a]) => `<${n}${a}>`),
    fc.constantFrom('<!-- c -->', '<!doctype html>', '</div>', '</p>', '</b>', '<![CDATA[<p>]]>', '<p', '<b x="', '</'),
    fc.constantFrom('script', 'style').map((n) => `<${n}>var p = "<p class=x>";</${n}>`),
    fc.constant('<script type="application/ld+json">{"name":"N"}</script>'),
    fc
      .tuple(name, attributes, fc.array(tie('node'), { maxLength: 5 }), fc.integer({ min: 0, max: 9 }))
      // One in ten is never closed.
      .map(([n, a, inner, luck]) => `<${n}${a}>${inner.join('')}${luck === 0 ? '' : `</${n}>`}`),
  ),
}));
const page = fc.array(node, { minLength: 1, maxLength: 8 }).map((nodes) => nodes.join(''));

const condition = fc.constantFrom(
  '.x',
  '.y',
  '.review',
  '#i',
  '[href]',
  '[data-k]',
  '[type=text]',
  '[lang|=en]',
  '[class~=x]',
  '[title^="x"]',
  '[class*="e"]',
  '[constructor]',
  ':first-child',
  ':first-of-type',
  ':nth-child(2)',
  ':nth-child(2n+1)',
  ':nth-of-type(-n+2)',
  ':root',
  ':not(.x)',
  ':is(p, .y)',
  ':not(:first-child, b)',
);
const LATER = fc.constantFrom(
  ':last-child',
  ':has(b)',
  ':has(> .x)',
  ':only-child',
  ':not(div p)',
  ':nth-last-of-type(1)',
  ':empty',
);
const compound = fc
  .tuple(fc.option(fc.constantFrom(...NAMES, '*', 'script'), { nil: '' }), fc.array(condition, { maxLength: 2 }))
  .map(([tag, conditions]) => (tag === '' && conditions.length === 0 ? '*' : tag + conditions.join('')));
const complex = fc
  .tuple(compound, fc.array(fc.tuple(fc.constantFrom(' ', ' > ', ' + ', ' ~ '), compound), { maxLength: 2 }))
  .map(([first, rest]) => first + rest.map(([combinator, next]) => combinator + next).join(''));
const selector = fc.array(complex, { minLength: 1, maxLength: 2 }).map((list) => list.join(', '));
const anySelector = fc.oneof(
  { weight: 3, arbitrary: selector },
  fc.tuple(complex, LATER).map((parts) => parts.join('')),
);
const inRecord = fc.oneof(
  anySelector,
  complex.map((inner) => `:scope > ${inner}`),
  complex.map((inner) => `:scope ${inner}`),
  fc.constantFrom(':scope', ':scope.x, b'),
);

const chain = (from: fc.Arbitrary<string>): fc.Arbitrary<Step[]> =>
  fc
    .tuple(from, fc.constantFrom(undefined, 'class', 'href'), fc.constantFrom(null, 'number', 'price'), fc.boolean())
    .map(([selector, attribute, number, all]) => [
      { type: 'css', selector, ...(attribute === undefined ? {} : { attribute }) },
      // Reads the breaks of the text.
      ...(number === null ? [] : [{ type: number } as const]),
      ...(all ? [{ type: 'all' } as const] : []),
    ]);
const fieldsOf = (from: fc.Arbitrary<string>): fc.Arbitrary<Field[]> =>
  fc
    .array(chain(from), { minLength: 1, maxLength: 4 })
    .map((chains) => chains.map((steps, i) => ({ name: `f${i}`, required: false, steps })));

const plain = fieldsOf(anySelector).map((fields): PageMapping => pageMapping({ fields }));
const many = fc
  .tuple(fc.oneof(anySelector, fc.constantFrom('.review', 'li')), fieldsOf(inRecord))
  .map(([each, fields]): PageMapping =>
    pageMapping({
      fields: [
        ...fields,
        {
          name: 'key',
          required: false,
          steps: [
            { type: 'css', selector: ':scope' },
            { type: 'default', value: 'k' },
          ],
        },
      ],
      rows: { each: { type: 'css', selector: each }, key: 'key', empty: { type: 'css', selector: 'td' } },
    }),
  );

/** Both may find a page too costly, but only for the same reason. */
function run(mapping: CompiledMapping, text: string, kind: PageKind, piece: number): Extraction | string {
  try {
    const extractor = new PageExtractor(mapping, kind, PAGE_URL);
    for (let at = 0; at < text.length; at += piece) extractor.write(text.slice(at, at + piece));
    return extractor.end();
  } catch (error) {
    return String(error);
  }
}

async function agree(pageMapping: PageMapping, text: string, kind: PageKind, piece: number): Promise<void> {
  const mapping: Mapping = { pages: [pageMapping] };
  const compile = (options: CompileOptions): Promise<CompiledMapping> => compileMapping(mapping, options);
  const streaming = await compile({});
  const whole = run(streaming, text, kind, text.length);
  expect(run(streaming, text, kind, piece)).toEqual(whole);
  expect(run(await compile({ allByTree: true }), text, kind, piece)).toEqual(whole);
}

describe('the streaming matcher and the tree', () => {
  it('are tested with supported selectors', () => {
    expect(findSelectorFault('::x')).not.toBeNull();
    fc.assert(fc.property(anySelector, (text) => findSelectorFault(text) === null));
    fc.assert(fc.property(inRecord, (text) => findSelectorFault(text, true) === null));
  });

  it.each<[string, fc.Arbitrary<PageMapping>]>([
    ['fields', plain],
    ['records', many],
  ])('agree on %s', async (_name, mappings) => {
    await fc.assert(
      fc.asyncProperty(
        mappings,
        page,
        fc.constantFrom<PageKind>('html', 'html', 'xml'),
        fc.integer({ min: 1, max: 40 }),
        agree,
      ),
      { numRuns: 150 },
    );
  });
});
