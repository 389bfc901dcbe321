import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compileMapping } from '../../../crawl-api/extract/compile-mapping.ts';
import { indexSections, requiredTexts } from '../../../shared/domain/url-patterns.ts';
import { compilePattern, findPatternFault } from '../../../shared/adapters/steps/regex.ts';
import type { PageMapping } from '../../../shared/domain/mapping.ts';

describe('the texts that a URL pattern requires', () => {
  it.each([
    ['/item/', ['/item/']],
    [String.raw`^https://shop\.example/item/\d+`, ['https://shop.example/item/']],
    [String.raw`^https?://(www\.)?shop\.example/p/[a-z]+\.html$`, ['http', '://', 'shop.example/p/', '.html']],
    ['colou+r', ['colou', 'r']],
    ['ab{2,3}c', ['a', 'c']],
    ['ab{2}?c', ['a', 'c']],
    ['[^]/]x[]a]y[[:alpha:]z]w', ['x', 'y', 'w']],
    [String.raw`(a(b|[)])\))c`, ['c']],
    ['(?P<kind>a|b)/(?:x|y)/', ['/', '/']],
    ['', []],
  ])('of %s', (pattern, texts) => {
    expect(requiredTexts(pattern)).toEqual(texts);
  });

  it.each(['/a/|/b/', '(?i)/ITEM/', String.raw`\QA.B\E`, String.raw`\x{41}`, String.raw`\p{Greek}`, 'a{b}', '/(?s)a/'])(
    'are none where %s leaves it open',
    (pattern) => {
      expect(requiredTexts(pattern)).toEqual([]);
    },
  );
});

describe('the section for a URL', () => {
  const sectionOf = (patterns: string[], value: number) => ({ patterns, value });

  it('is the first one of which a pattern matches, as without an index', () => {
    const atom = fc.constantFrom(
      'a',
      'b',
      '/',
      '/a/',
      '/b/',
      String.raw`\.`,
      '.',
      String.raw`\d`,
      '[ab]',
      '[^/]',
      '[]a]',
    );
    const more = fc.constantFrom(
      '(a|b)',
      '(?:ab)',
      '(a[)]|/)',
      '^',
      '$',
      '|',
      '(?i)',
      String.raw`\b`,
      'é',
      '😀',
      '[[:digit:]]',
    );
    const count = fc.constantFrom('', '', '', '*', '+', '?', '{2}', '{0,1}', '+?', '*?');
    const pattern = fc
      .array(fc.tuple(fc.oneof({ weight: 3, arbitrary: atom }, more), count), { maxLength: 6 })
      .map((parts) => parts.map(([one, many]) => one + many).join(''))
      .filter((text) => findPatternFault(text) === null);
    const url = fc.array(fc.constantFrom('a', 'b', 'A', '/', '.', '1', 'é', '😀', ')', ']'), { maxLength: 12 });
    fc.assert(
      fc.property(fc.array(fc.array(pattern, { maxLength: 2 }), { maxLength: 5 }), url, (all, chars) => {
        const [sections, on] = [all.map(sectionOf), chars.join('')];
        const matches = (patterns: string[]): boolean =>
          patterns.length === 0 || patterns.some((text) => compilePattern(text).isIn(on));
        const first = sections.find(({ patterns }) => matches(patterns))?.value ?? null;
        expect(indexSections(sections, compilePattern)(on)).toBe(first);
      }),
      { numRuns: 2_000 },
    );
  });

  it.each([
    ['host', (i: number) => String.raw`^https://shop${i}\.example/item/\d+`, 'https://shop700.example/item/1'],
    ['host behind a group', (i: number) => String.raw`^https?://(www\.)?shop${i}\.example`, 'https://shop700.example/'],
    ['end', (i: number) => String.raw`/cat${i}$`, 'https://shop.example/cat700'],
    ['folder', (i: number) => String.raw`^https?://shop\.example/[a-z]+/cat${i}/`, 'https://shop.example/en/cat700/1'],
    ['part of a word', (i: number) => String.raw`item-x${i}x\d`, 'https://shop.example/item-x700x1'],
  ])('is found among 1,000 by its %s: at most three patterns are evaluated', (_how, patternOf, url) => {
    let evaluated = 0;
    const compile = (pattern: string) => ({
      isIn: (text: string) => {
        evaluated++;
        return compilePattern(pattern).isIn(text);
      },
    });
    const choose = indexSections(
      Array.from({ length: 1_000 }, (_, i) => sectionOf([patternOf(i)], i)),
      compile,
    );
    expect(choose(url)).toBe(700);
    expect(evaluated).toBeLessThanOrEqual(3);
  });

  it('is that of a compiled mapping', async () => {
    const pageOf = (name: string, urlPatterns: string[]): PageMapping => ({
      name,
      urlPatterns,
      urlParsers: [],
      rows: null,
      fields: [{ name: 'title', steps: [{ type: 'css', selector: 'h1' }], required: true }],
    });
    const pages = Array.from({ length: 30 }, (_, i) => pageOf(`s${i}`, [`/c${i}/`, `/cat${i % 15}/`]));
    const mapping = await compileMapping({ pages });
    expect(mapping.forUrl('https://shop.example/c29/x')?.name).toBe('s29');
    expect(mapping.forUrl('https://shop.example/cat14/x')?.name).toBe('s14');
    expect(mapping.forUrl('https://shop.example/other/x')).toBeNull();
  });
});
