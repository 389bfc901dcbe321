import { describe, expect, it } from 'vitest';
import { compileMapping } from '../../../crawl-api/extract/compile-mapping.ts';
import { PageExtractor } from '../../../crawl-api/extract/page-extractor.ts';
import { readMapping } from '../../../orchestrator/core/config/read-mapping.ts';
import { mappingSchema } from '../../../shared/wire/mapping-schema.ts';
import type { Row } from '../../../shared/domain/mapping.ts';
import { PAGE_URL } from '../crawl-api/extract-page.ts';

/** The page's row by a mapping in the short form; the same while streaming and in a tree. */
async function rowOf(fields: Record<string, unknown>, html: string): Promise<Row> {
  const { mapping, faults } = readMapping({ fields });
  expect(faults).toEqual([]);
  const [streamed, tree] = await Promise.all(
    [false, true].map(async (allByTree) => {
      const page = new PageExtractor(
        await compileMapping(mappingSchema.parse(mapping), { allByTree }),
        'html',
        PAGE_URL,
      );
      page.write(html);
      return page.end();
    }),
  );
  expect(streamed).toEqual(tree);
  return streamed!.rows![0]!.row;
}

const valueOf = async (field: unknown, html: string) => (await rowOf({ value: field }, html)).value;

const ld = (value: object): string => `<script type="application/ld+json">${JSON.stringify(value)}</script>`;

describe('a field with several sources', () => {
  const title = [{ json_ld: 'name' }, '.name', 'h1'];

  it.each([
    [ld({ name: 'A' }) + '<h1>C</h1>', 'A'],
    ['<p class=name>B</p><h1>C</h1>', 'B'],
    ['<p class=name> \n </p><h1>C</h1>', 'C'],
    [ld({ name: '' }) + '<h1>C</h1>', 'C'],
    ['<p>nothing</p>', null],
  ])('has the value of the first one that yields something: %s', async (html, expected) => {
    expect(await valueOf(title, html)).toBe(expected);
  });

  it('takes white space for nothing, even where it is not trimmed', async () => {
    expect(await valueOf([{ css: 'b', trim: false }, 'i'], '<b> </b><i> C </i>')).toBe(' C ');
    expect(await valueOf([{ css: 'b', trim: false }, 'i'], '<b> </b>')).toBeNull();
  });

  it('takes zero and false for values', async () => {
    expect(await valueOf([{ css: 'b', number: true }, 'i'], '<b>0</b><i>5</i>')).toBe(0);
    expect(await valueOf([{ css: 'b', boolean: true }, 'i'], '<b>sold out</b><i>in stock</i>')).toBe(false);
  });

  it('passes over a number that only the column decides, and keeps the first one if no source has another', async () => {
    const price = [{ css: 'b', number: true }, 'i', 'u'];
    expect(await valueOf(price, '<b>1.299</b><i>1.299,00</i>')).toBe(1299);
    expect(await valueOf(price, '<b>none</b><i>1.299</i><u>1.300</u>')).toMatchObject({ text: '1.299' });
  });

  it('reads a plain number by its own source: with the point in JSON, ambiguous in text', async () => {
    const weight = [{ json_ld: 'weight', number: true }, '.weight'];
    expect(await valueOf(weight, ld({ weight: '1.250' }) + '<p class=weight>7</p>')).toBe(1.25);
    expect(await valueOf(weight, '<p class=weight>1.250</p>')).toMatchObject({ text: '1.250' });
  });

  it('has its default only where no source has a value', async () => {
    const maker = [{ css: 'b', default: 'none' }, 'i'];
    expect(await valueOf(maker, '<i>Kiln</i>')).toBe('Kiln');
    expect(await valueOf(maker, '<p></p>')).toBe('none');
    const price = [{ css: 'b', number: true, default: 0 }, 'i'];
    expect(await valueOf(price, '<b>1.299</b>')).toMatchObject({ text: '1.299' });
  });

  it('keeps whole lists', async () => {
    const tags = [{ css: 'b', all: true }, 'i'];
    expect(await valueOf(tags, '<b> </b><i>x</i><i>y</i>')).toEqual(['x', 'y']);
  });

  it('has its own pattern, attribute and steps of each source', async () => {
    const sku = [
      { css: 'b', attr: 'data-sku' },
      { css: 'i', regex: 'no\\. (\\d+)' },
      { regex: 'sku=(\\w+)', upper: true },
    ];
    expect(await valueOf(sku, '<b data-sku=a1>')).toBe('A1');
    expect(await valueOf(sku, '<i>Item no. 77</i>')).toBe('77');
    expect(await valueOf(sku, '<!-- sku=k9 -->')).toBe('K9');
  });

  it('counts as required only if no source has a value', async () => {
    const { mapping } = readMapping({ fields: { value: [{ css: 'b', required: true }, 'i'] } });
    const compiled = await compileMapping(mapping);
    const missingIn = (html: string) => {
      const page = new PageExtractor(compiled, 'html', PAGE_URL);
      page.write(html);
      return page.end().missing;
    };
    expect([missingIn('<i>x</i>'), missingIn('<b></b>')]).toEqual([null, 'value']);
  });

  it('searches each record', async () => {
    const { mapping } = readMapping({
      rows: { each: 'li', key: 'id' },
      fields: { id: [{ css: ':scope', attr: 'id' }, 'b'], price: [{ css: 'i', price: true }, 'u'] },
    });
    const page = new PageExtractor(await compileMapping(mapping), 'html', PAGE_URL);
    page.write('<li id=a><i>5 €</i><u>$6</u></li><li><b>b</b><i>?</i><u>7 zł</u></li>');
    expect(page.end().rows).toMatchObject([
      { key: 'a', row: { price: 5, price_currency: 'EUR' } },
      { key: 'b', row: { price: 7, price_currency: 'PLN' } },
    ]);
  });
});

describe('the currency beside a price with several sources', () => {
  const price = [{ json_ld: 'offers.price', price: true }, { css: '.price' }];
  const shown = '<p class=price>12,50 €</p>';

  it.each([
    [ld({ offers: { price: '9.90', priceCurrency: 'USD' } }) + shown, 9.9, 'USD'],
    [ld({ offers: { priceCurrency: 'USD' } }) + shown, 12.5, 'EUR'],
    [ld({ offers: { price: 9.9 } }) + shown, 9.9, null],
    ['<p></p>', null, null],
  ])('is that of the source that gave the amount: %s', async (html, amount, currency) => {
    expect(await rowOf({ price }, html)).toEqual({ price: amount, price_currency: currency });
  });
});

describe('the trace of a field with several sources', () => {
  it('has the steps of those that were tried, and says which one gave the value', async () => {
    const { mapping } = readMapping({ fields: { value: ['b', 'i', 'u'] } });
    const page = new PageExtractor(await compileMapping(mapping), 'html', PAGE_URL, { trace: true });
    page.write('<i>x</i><u>y</u>');
    page.end();
    const { source, steps } = page.trace().get('value')!;
    expect(source).toBe(1);
    expect(steps.map((one) => [one.source, one.step.type, one.count])).toEqual([
      [0, 'css', 0],
      [0, 'trim', 0],
      [1, 'css', 1],
      [1, 'trim', 1],
    ]);
  });
});
