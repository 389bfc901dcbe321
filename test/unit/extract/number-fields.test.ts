/* oxlint-disable unicorn/no-thenable -- `then` is an option of the short form; here it is data and never called */
/** Fields that read numbers, on whole pages: the value in the row, and whether it is present. */
import { describe, expect, it } from 'vitest';
import { readMapping } from '../../../orchestrator/core/config/read-mapping.ts';
import { hasValues } from '../../../crawl-api/extract/page-extractor.ts';
import { extractBy } from '../crawl-api/extract-page.ts';

const extract = (fields: object, page: string) => extractBy(readMapping({ fields }).mapping, page);

describe('A field that reads a number', () => {
  it('has a value for every rule when its text is ambiguous, and is marked as such', async () => {
    const page = await extract({ price: { css: 'b', number: true, required: true } }, '<b>1.234</b>');
    const row = { price: { text: '1.234', point: 1.234, comma: 1234 } };
    expect(page).toEqual({ rows: [{ key: null, row }], missing: null, links: [] });
    expect(hasValues(page)).toBe(true);
  });

  it('reports the decimal mark of its text, separately for each record of a page', async () => {
    const fields = { id: 'i', price: { css: 'b', number: true } };
    const { mapping } = readMapping({ rows: { each: 'li', key: 'id' }, fields });
    const page = '<li><i>a</i><b>12,50 €</b></li><li><i>b</i><b>7</b></li>';
    expect((await extractBy(mapping, page)).rows).toEqual([
      { key: 'a', row: { id: 'a', price: 12.5 }, marks: { price: ',' } },
      { key: 'b', row: { id: 'b', price: 7 } },
    ]);
  });

  it.each([
    ['an attribute', { css: 'b', attr: 'data-p', number: true }],
    ['an attribute by XPath', { xpath: '//b/@data-p', number: true }],
    ['JSON-LD', { json_ld: 'offers.price', number: true }],
    ['JSON in a script', { css: 'script', then: [{ jsonpath: '$.offers.price' }, 'number'] }],
  ])('treats the point of %s as the decimal mark', async (_, price) => {
    const html = '<script type="application/ld+json">{"offers":{"price":"1.234"}}</script><b data-p="1.234">x</b>';
    expect((await extract({ price }, html)).rows?.[0]?.row).toEqual({ price: 1.234 });
  });

  it('takes the whole number of two readings for an integer column', async () => {
    const row = async (text: string) =>
      (await extract({ n: { css: 'b', integer: true } }, `<b>${text}</b>`)).rows?.[0]?.row.n;
    expect(await row('1.250 g')).toBe(1250);
    expect(await row('1.000')).toEqual({ text: '1.000', point: 1, comma: 1000 });
    expect(await row('12,5')).toBeNull();
  });
});

describe('A price field', () => {
  it('gives amount and currency, also from JSON-LD', async () => {
    const html =
      '<script type="application/ld+json">{"offers":{"price":"9.50","priceCurrency":"CHF"}}</script><b>1.299 €</b>';
    const fields = { cost: { css: 'b', price: true }, offer: { json_ld: 'offers.price', price: true } };
    expect((await extract(fields, html)).rows?.[0]?.row).toEqual({
      cost: 1299,
      cost_currency: 'EUR',
      offer: 9.5,
      offer_currency: 'CHF',
    });
  });

  it('has no currency without a price', async () => {
    const page = await extract({ t: 'i', cost: { css: 'b', price: { currency: 'CAD' } } }, '<i>x</i><b>sold out</b>');
    expect(page.rows?.[0]?.row).toEqual({ t: 'x', cost: null, cost_currency: null });
  });
});
