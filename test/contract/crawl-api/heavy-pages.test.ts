/**
 * The memory of an instance while it reads pages as heavy as they may be, each kind in a row in a real process.
 *
 * @module-tag nightly
 */
import type { ServerResponse } from 'node:http';
import { gzipSync } from 'node:zlib';

import { describe, expect, it } from 'vitest';
import type { Field, Mapping, SelectStep } from '../../../shared/domain/mapping.ts';
import { oneTitle } from '../../support/one-title.ts';
import { readProcess } from '../../support/processes.ts';
import { startStub, until } from './http-stub.ts';
import { products, useStages } from './stage.ts';

const { startReady } = useStages();

const PAGES = 44;
const MAX_BYTES = 200e6;
/** The default of site.max_page_bytes. */
const PAGE_BYTES = 5_000_000;
const MINUTES = 10;

interface HeavyPage {
  body: string;
  contentType?: string;
  /** As sent: gzip. */
  isPacked?: boolean;
  maxPageBytes?: number;
}

const HEAD = '<!doctype html><html><head><meta charset="utf-8"><title>x</title></head><body><h1>Heavy</h1>';
const ROOM = PAGE_BYTES - HEAD.length - 1_000;
const repeat = (count: number, part: (i: number) => string): string =>
  Array.from({ length: count }, (_, i) => part(i)).join('');
/** As many of the parts as a page has room for, at most `count`. */
function fill(count: number, part: (i: number) => string, room = ROOM): string {
  const parts: string[] = [];
  for (let i = 0, bytes = 0; i < count; i++) {
    const next = part(i);
    bytes += Buffer.byteLength(next);
    if (bytes > room) break;
    parts.push(next);
  }
  return parts.join('');
}
const jsonLd = (value: string): string => `<script type="application/ld+json">${value}</script>`;
const item = (i: number, digits = ''): string =>
  `{"@type":"Product","name":"n${i}","sku":"s${i}","gtin":1${digits},"offers":{"@type":"Offer","price":${i}}}`;

/** Each within the limits of one page (crawl-api/extract/page-limits.ts), and close to one or two of them. */
const KINDS: Record<string, () => HeavyPage> = {
  '10 MB of text': () => ({ body: HEAD + 'word '.repeat(2_000_000 - 1_000), maxPageBytes: 10_000_000 }),
  'text of two-byte characters': () => ({ body: HEAD + '日本語'.repeat(Math.floor(ROOM / 9)) }),
  '198,000 nodes': () => ({ body: HEAD + '<p>abc</p>'.repeat(98_000) }),
  '156,000 nodes with attributes': () => ({
    body: HEAD + fill(78_000, (i) => `<p class="a b" id="x${i}" data-x="${i}">a</p>`),
  }),
  'nodes and JSON-LD': () => ({
    body:
      HEAD +
      jsonLd(`[${fill(100_000, (i) => `${i ? ',' : ''}${item(i, '2345678901234567')}`, 1_990_000)}]`) +
      fill(61_000, (i) => `<p class="a b" id="x${i}">a</p>`, ROOM - 2_000_000),
  }),
  '380,000 attributes': () => ({
    body: HEAD + fill(380_000, (i) => (i % 100 === 99 ? `a${i}>a<p ` : i ? `a${i} ` : '<p ')),
  }),
  'long values of attributes': () => ({
    body: HEAD + fill(100, () => `<p data-x="${'abcdefghi '.repeat(10_000)}">a</p>`),
  }),
  'one value of an attribute': () => ({ body: HEAD + `<p data-x="${'abcdefghi '.repeat(ROOM / 10 - 100)}">a</p>` }),
  'one block of JSON-LD': () => ({
    body: HEAD + jsonLd(`[${fill(100_000, (i) => `${i ? ',' : ''}${item(i)}`, 1_990_000)}]`),
  }),
  'one block of JSON-LD with long numbers': () => ({
    body: HEAD + jsonLd(`[${fill(100_000, (i) => `${i ? ',' : ''}${item(i, '2345678901234567')}`, 1_990_000)}]`),
  }),
  'one broken block of JSON-LD': () => ({ body: HEAD + jsonLd(`[${fill(100_000, (i) => `${item(i)},`, 1_990_000)}]`) }),
  '900 blocks of JSON-LD': () => ({
    body: HEAD + repeat(900, (n) => jsonLd(`[${fill(50, (i) => `${i ? ',' : ''}${item(n * 50 + i)}`)}]`)),
  }),
  'deep nesting': () => ({
    body: HEAD + fill(40, () => '<div class="a">'.repeat(3_900) + 'x' + '</div>'.repeat(3_900)),
  }),
  microdata: () => ({
    body:
      HEAD +
      fill(21_500, (i) => `<div itemscope itemtype="https://schema.org/Product"><i itemprop="name">N${i}</i></div>`),
  }),
  JSON: () => ({
    contentType: 'application/json',
    body: `{"title":"Heavy","items":[${fill(90_000, (i) => `${i ? ',' : ''}{"id":${i},"name":"Name ${i}","tags":["a","b"]}`)}]}`,
  }),
  'JSON with long numbers': () => ({
    contentType: 'application/json',
    body: `{"title":"Heavy","items":[${fill(90_000, (i) => `${i ? ',' : ''}{"id":1234567890123456789,"name":"Name ${i}","tags":["a","b"]}`)}]}`,
  }),
  'JSON of keys': () => ({
    contentType: 'application/json',
    body: `{"title":"Heavy"${fill(99_000, (i) => `,"k${i}":${i}`)}}`,
  }),
  XML: () => ({
    contentType: 'application/xml',
    body: `<?xml version="1.0"?><r><h1>Heavy</h1>${fill(78_000, (i) => `<p class="a b" id="x${i}" data-x="${i}">a</p>`)}</r>`,
  }),
  'gzip of 1,000 to 1': () => ({ body: HEAD + 'a'.repeat(ROOM), isPacked: true }),
  'gzip of nodes': () => ({ body: HEAD + '<p class="a b" id="x">a</p>'.repeat(98_000), isPacked: true }),
  'gzip bomb': () => ({ body: HEAD + '\0'.repeat(200_000_000), isPacked: true }),
};

/** A field for each thing that must be kept of a page. */
const FIELDS: [name: string, step: SelectStep][] = [
  ['title', { type: 'xpath', expression: '//h1' }],
  ['source', { type: 'regex', pattern: '(Heavy)', group: 1 }],
  ['linked', { type: 'json_ld', path: 'name' }],
  ['micro', { type: 'microdata', path: 'name' }],
  ['all', { type: 'css', selector: 'p' }],
];

const fields = FIELDS.map(([name, step]): Field => ({ name, steps: [step], required: false }));
const mappingOf = (all: Field[]): Mapping => ({ pages: [{ ...oneTitle('').mapping.pages[0]!, fields: all }] });
/** Pages of different kinds do not have the same fields: without a value for each, the instance would doubt them. */
const filled = fields.map((field): Field => ({ ...field, steps: [...field.steps, { type: 'default', value: '-' }] }));

/** A list of a shop, as dense as the web's pages are. */
const ordinary = (): HeavyPage => ({
  body:
    HEAD +
    fill(
      100_000,
      (i) =>
        `<div class="card item-${i % 7}"><a href="/item/${i}?from=list"><img src="/img/${i}.jpg" alt="A picture of item ${i}" width="200" height="200"></a><h3 class="title">The name of item ${i}, which is long enough</h3><span class="price">¥${i}</span><p class="text">Some words about this item, as shops write them: it is blue, it is new, and it is here.</p></div>\n`,
    ),
});
const atLimits = (): HeavyPage[] =>
  Object.values(KINDS).flatMap((make) => (make().maxPageBytes === undefined ? [make()] : []));

describe('an instance with eight places', () => {
  it.each<[string, () => HeavyPage[], number]>([
    ['ordinary pages of the largest size', () => [ordinary()], MAX_BYTES],
    // With one place, such pages in turn take 216 MB: what V8 keeps of one kind is of no use for the next.
    ['pages of all kinds', atLimits, 240e6],
  ])(
    'keeps its memory small while %s come at the same time',
    { timeout: MINUTES * 60_000 },
    async (_, make, maxBytes) => {
      const kinds = make().map(({ body, contentType = 'text/html', isPacked = false }) => ({
        sent: isPacked ? gzipSync(body) : Buffer.from(body),
        headers: { 'content-type': contentType, ...(isPacked && { 'content-encoding': 'gzip' }) },
      }));
      const [pages, places] = [160, 8];
      let next = 0;
      const answer = (response: ServerResponse): void => {
        const { headers, sent } = kinds[next++ % kinds.length]!;
        response.writeHead(200, headers).end(sent);
      };
      const shops = await Promise.all(
        Array.from({ length: places }, () => startStub((_request, _body, response) => answer(response))),
      );
      try {
        const endsAt = new Date(Date.now() + MINUTES * 60_000).toISOString();
        const productUrl = shops.map(({ url }) => ({ url: `${url}/{id}`, weight: 1 }));
        const stage = await startReady({
          site: { productUrl, pagesAtOnce: places, robots: 'ignore', maxPageBytes: PAGE_BYTES, timeoutMs: 60_000 },
          settings: { deadline: endsAt, powerOffAt: endsAt },
          crawl: { mapping: mappingOf(filled) },
        });
        await stage.offer('1-1', products(1, pages));
        stage.main.orders.sealed = true;
        await until('the completion callback', () => stage.main.completions.length > 0, MINUTES * 60_000);
        const peak = readProcess(stage.pid()).peakRssBytes;
        const failed = stage.results().filter((result) => result.outcome === 'failed' && result.reason !== 'too-large');
        expect([stage.results().length, failed]).toEqual([pages, []]);
        expect(peak).toBeLessThan(maxBytes);
      } finally {
        await Promise.all(shops.map(({ close }) => close()));
      }
    },
  );
});

describe(`an instance that reads ${PAGES} pages`, () => {
  it.each(Object.keys(KINDS))(
    `of the kind “%s” stays below ${MAX_BYTES / 1e6} MB`,
    { timeout: MINUTES * 60_000 },
    async (kind) => {
      const { body, contentType = 'text/html', isPacked = false, maxPageBytes = PAGE_BYTES } = KINDS[kind]!();
      const sent = isPacked ? gzipSync(body) : Buffer.from(body);
      const endsAt = new Date(Date.now() + MINUTES * 60_000).toISOString();
      const stage = await startReady({
        page: (_request, response) =>
          void response
            .writeHead(200, { 'content-type': contentType, ...(isPacked && { 'content-encoding': 'gzip' }) })
            .end(sent),
        site: { maxPageBytes, timeoutMs: 60_000 },
        settings: { deadline: endsAt, powerOffAt: endsAt },
        crawl: { mapping: mappingOf(fields) },
      });

      await stage.offer('1-1', products(1, PAGES));
      stage.main.orders.sealed = true;
      await until('the completion callback', () => stage.main.completions.length > 0, MINUTES * 60_000);
      const peak = readProcess(stage.pid()).peakRssBytes;
      expect(stage.results()).toHaveLength(PAGES);
      expect(peak).toBeLessThan(MAX_BYTES);
    },
  );
});
