/**
 * The shop's products are derived from seed and ID, and its pages contain exactly what a crawl is expected to store.
 */
import { Parser } from 'htmlparser2';
import { describe, expect, it } from 'vitest';
import { readMapping } from '../../../orchestrator/core/config/read-mapping.ts';
import { findIdFault } from '../../../shared/domain/product.ts';
import { escapeHtml, renderPage } from '../../support/shop/page.ts';
import { SHOP_MAPPING, STRANGE_IDS, expectedProduct, expectedRow, productIds } from '../../support/shop/product.ts';

describe('expectedProduct', () => {
  it('gives the same product for the same seed and ID', () => {
    expect(expectedProduct(7, '日本語')).toEqual(expectedProduct(7, '日本語'));
  });

  it('gives different products for other seeds and IDs', () => {
    const prices = new Set(productIds(200).map((id) => expectedProduct(1, id).price));
    expect(prices.size).toBeGreaterThan(190);
    expect(expectedProduct(2, 'P00001').price).not.toBe(expectedProduct(1, 'P00001').price);
  });

  it('distinguishes IDs that differ in case or a trailing space', () => {
    const skus = ['CASE', 'case', 'trailing', 'trailing '].map((id) => expectedProduct(1, id).sku);
    expect(new Set(skus).size).toBe(4);
  });
});

describe('STRANGE_IDS', () => {
  it('are unique and valid', () => {
    expect(new Set(STRANGE_IDS).size).toBe(STRANGE_IDS.length);
    expect(STRANGE_IDS.map(findIdFault).filter((fault) => fault !== null)).toEqual([]);
  });
});

describe('SHOP_MAPPING', () => {
  it('is a valid mapping of the expected columns', () => {
    const { mapping, faults } = readMapping(SHOP_MAPPING);
    expect(faults).toEqual([]);
    expect(mapping.pages[0]!.fields.map((field) => field.name)).toEqual(Object.keys(expectedRow(1, 'P00001')));
  });
});

describe('renderPage', () => {
  it.each([...productIds(20), ...STRANGE_IDS])('shows title, price and brand of %j unchanged', (id) => {
    const product = expectedProduct(1, id);
    const read = readPage(renderPage(product));
    expect(read.title).toBe(product.title);
    expect(read.price).toBe(String(product.price));
    expect(read.json).toMatchObject({
      name: product.title,
      brand: { name: product.brand },
      offers: { price: product.price },
    });
  });

  it('is about 40 KB and the same bytes each time', () => {
    const page = renderPage(expectedProduct(1, 'P00001'));
    expect(Buffer.byteLength(page)).toBeGreaterThan(36_000);
    expect(Buffer.byteLength(page)).toBeLessThan(44_000);
    expect(renderPage(expectedProduct(1, 'P00001'))).toBe(page);
  });

  it.each([
    ['title', { title: '' }],
    ['price', { price: '' }],
    ['json-ld', { json: null }],
  ] as const)('omits only the %s on request', (field, missing) => {
    const product = expectedProduct(1, 'P00001');
    const whole = readPage(renderPage(product));
    expect(readPage(renderPage(product, [field]))).toEqual({ ...whole, ...missing });
  });

  it('escapes markup characters', () => {
    expect(escapeHtml(`<b> & "q"`)).toBe('&lt;b&gt; &amp; &quot;q&quot;');
  });
});

/** Reads the page with a plain parser, independent of the code under test. */
function readPage(html: string): { title: string; price: string; json: unknown } {
  const read = { title: '', price: '', json: null as unknown };
  let open = '';
  let inProduct = false;
  const parser = new Parser({
    onopentag(name, attributes) {
      if (name === 'article') inProduct = true;
      if (name === 'h1') open = 'title';
      else if (attributes.type === 'application/ld+json') open = 'json';
      else if (inProduct && attributes.class === 'price') read.price = attributes['data-value'] ?? '';
    },
    ontext(text) {
      if (open === 'title') read.title += text;
      else if (open === 'json') read.json = ((read.json as string | null) ?? '') + text;
    },
    onclosetag(name) {
      if (name === 'article') inProduct = false;
      if (name === 'h1' || name === 'script') open = '';
    },
  });
  parser.end(html);
  return {
    ...read,
    title: read.title.trim(),
    json: typeof read.json === 'string' ? (JSON.parse(read.json) as unknown) : null,
  };
}
