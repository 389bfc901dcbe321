/** A page with JSON that would fill memory or block the event loop is abandoned before the JSON is parsed. */
import { describe, expect, it } from 'vitest';
import { parseBounded } from '../../../crawl-api/extract/linked-data/json-text.ts';
import { PageExtractor, type PageKind } from '../../../crawl-api/extract/page-extractor.ts';
import { compileMapping } from '../../../crawl-api/extract/compile-mapping.ts';
import { MAX_JSON_BLOCKS, PageLimitError } from '../../../crawl-api/extract/page-limits.ts';
import { jsonField, PAGE_URL, pageMapping, valueOf } from '../crawl-api/extract-page.ts';
import { cpuMs } from '../../support/cpu-ms.ts';

const mapping = await compileMapping({ pages: [pageMapping({ fields: [jsonField('name')] })] });
const block = (json: string): string => `<script type="application/ld+json">${json}</script>`;
const brackets = (count: number): string => '['.repeat(count);

/** Feeds the page as it would arrive, and returns the longest event loop turn. */
function read(page: string, kind: PageKind): { error: unknown; longestMs: number } {
  const extractor = new PageExtractor(mapping, kind, PAGE_URL);
  const errors: unknown[] = [];
  let longestMs = 0;
  const turn = (work: () => unknown): void => {
    const ms = cpuMs(() => {
      try {
        work();
      } catch (thrown) {
        errors.push(thrown);
      }
    });
    longestMs = Math.max(longestMs, ms);
  };
  for (let at = 0; at < page.length && errors.length === 0; at += 65_536)
    turn(() => extractor.write(page.slice(at, at + 65_536)));
  if (errors.length === 0) turn(() => extractor.end());
  return { error: errors[0] ?? null, longestMs };
}

it('a page whose tree, JSON-LD and microdata are too much together is abandoned, each alone is read', async () => {
  const title = { ...jsonField('name'), name: 'title', steps: [{ type: 'xpath' as const, expression: '//h1' }] };
  const micro = { ...jsonField('name'), name: 'micro', steps: [{ type: 'microdata' as const, path: 'name' }] };
  const all = await compileMapping({ pages: [pageMapping({ fields: [title, jsonField('name'), micro] })] });
  const parts = [
    '<p id=1 title=x>a</p>'.repeat(60_000),
    block(`[${Array.from({ length: 60_000 }, () => '{"name":"N"}').join()}]`),
    '<i itemscope><b itemprop=name>N</b></i>'.repeat(15_000),
  ];
  const extract = (html: string): unknown => {
    const extractor = new PageExtractor(all, 'html', PAGE_URL);
    extractor.write(`<h1>x</h1>${html}`);
    return extractor.end().rows?.[0]?.row.title;
  };
  for (const part of parts) expect(extract(part)).toBe('x');
  expect(() => extract(parts.join(''))).toThrow(/take too much memory together/);
});

describe('JSON without bounds', () => {
  it.each<[string, PageKind, string, RegExp]>([
    ['4.9 MB of brackets as a JSON page', 'json', brackets(4_900_000), /nests deeper than 1000 levels/],
    ['3 MB of brackets in JSON-LD', 'html', block(brackets(3_000_000)), /nests deeper/],
    ['4.9 MB of empty arrays', 'json', `[${'[],'.repeat(1_600_000)}[]]`, /more than 200000 arrays and objects/],
    [
      'the same in many blocks',
      'html',
      block(`[${'[],'.repeat(9_999)}[]]`).repeat(100),
      /JSON-LD and microdata of the page take too much memory/,
    ],
    [
      'an object of 200,000 properties',
      'json',
      `{${Array.from({ length: 200_000 }, (_, i) => `"k${i}":1`).join()}}`,
      /an object with more than 100000 properties/,
    ],
    ['100,000 blocks', 'html', block('{}').repeat(100_000), new RegExp(`more than ${MAX_JSON_BLOCKS} blocks`)],
    ['100,000 broken blocks', 'html', block('{').repeat(100_000), new RegExp(`more than ${MAX_JSON_BLOCKS} blocks`)],
  ])('abandons the page within one turn: %s', (_, kind, page, reason) => {
    const { error, longestMs } = read(page, kind);
    expect(error).toBeInstanceOf(PageLimitError);
    expect((error as Error).message).toMatch(reason);
    expect(longestMs).toBeLessThan(500);
  });

  it('accepts a page of many products, and treats brackets in strings as text', async () => {
    const one = `{"name":"${'[{\\\\\\"'.repeat(500)}","offers":{"price":1}}`;
    expect(await valueOf(jsonField('offers.price'), block(`[${one}${`,${one}`.repeat(200)}]`))).toBe('1');
    expect(await valueOf(jsonField('name'), block('{"name":"N"}').repeat(MAX_JSON_BLOCKS))).toBe('N');
  });

  it('parses as JSON.parse does', () => {
    for (const text of ['1', '"a\\"[["', '[{"a":[]},"]"]']) expect(parseBounded(text)).toEqual(JSON.parse(text));
    for (const text of ['', '"', '"\\', '[}', ']]]', '{"a"']) expect(() => parseBounded(text)).toThrow(SyntaxError);
  });
});
