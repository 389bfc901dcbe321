/** All `offers.…` fields of a mapping read one offer: a new one that is in stock, and the cheapest of these. */
import { describe, expect, it } from 'vitest';
import type { Row } from '../../../shared/domain/mapping.ts';
import { ALL, extract, jsonField, valueOf } from '../crawl-api/extract-page.ts';

const NONE = { price: null, currency: null, stock: null };
const block = (json: unknown): string => `<script type="application/ld+json">${JSON.stringify(json)}</script>`;
const product = (offers: unknown, more = {}): string => block({ '@type': 'Product', name: 'P', offers, ...more });

async function read(page: string, url = 'https://shop.example/p/1'): Promise<Row> {
  const paths = { price: 'offers.price', currency: 'offers.priceCurrency', stock: 'offers.availability' };
  const fields = Object.entries(paths).map(([name, path]) => jsonField(path, { name }));
  return (await extract(fields, page, { url })).rows![0]!.row;
}

const offer = (price: unknown, availability?: string, more = {}): object => ({
  '@type': 'Offer',
  price,
  priceCurrency: 'EUR',
  ...(availability === undefined ? {} : { availability: `https://schema.org/${availability}` }),
  ...more,
});
const IN = 'https://schema.org/InStock';
const OUT = 'https://schema.org/OutOfStock';
const USED = { itemCondition: 'http://schema.org/UsedCondition' };

describe('the offer', () => {
  it.each<[string, unknown, Partial<Row>]>([
    ['the cheapest', [offer(12), offer('9.50'), offer('1,100.00')], { price: '9.50', currency: 'EUR' }],
    [
      'in stock before others',
      [offer(5, 'OutOfStock'), offer(9, 'InStock'), offer(7, 'LimitedAvailability')],
      { price: '7', stock: 'https://schema.org/LimitedAvailability' },
    ],
    ['in stock before those that do not say it', [offer(5), offer(9, 'InStock')], { price: '9', stock: IN }],
    ['new before used', [offer(5, 'InStock', USED), offer(9, 'OutOfStock')], { price: '9', stock: OUT }],
    [
      'new as a word',
      [offer(5, 'InStock', { itemCondition: 'Refurbished' }), offer(9, 'InStock', { itemCondition: 'New' })],
      { price: '9' },
    ],
    ['used where none is new', [offer(5, 'InStock', USED), offer(4, 'InStock', USED)], { price: '4' }],
    [
      'in the currency of the first',
      [offer(12), offer(9, 'InStock', { priceCurrency: 'USD' })],
      { price: '12', currency: 'EUR', stock: IN },
    ],
    [
      'without a currency, if the first has none',
      [offer(10, undefined, { priceCurrency: undefined }), offer(20)],
      { price: '10', currency: null },
    ],
    ['one with a price', [offer(undefined, 'InStock'), offer(8, 'OutOfStock')], { price: '8', stock: IN }],
    ['the first where a price is unclear', [offer('12 - 14'), offer(9)], { price: '12 - 14' }],
    [
      'one of an aggregate',
      {
        '@type': 'AggregateOffer',
        priceCurrency: 'EUR',
        lowPrice: 1,
        offers: [offer(4, 'OutOfStock'), { price: 6, availability: IN }],
      },
      { price: '6', currency: 'EUR', stock: IN },
    ],
    [
      'its specification',
      {
        priceCurrency: 'USD',
        priceSpecification: [{ name: 'unit' }, { price: 8, priceCurrency: 'EUR' }, { price: 9 }],
      },
      { price: '8', currency: 'EUR' },
    ],
    ...['ListPrice', 'https://schema.org/StrikethroughPrice', 'schema:SRP', 'MSRP', 'https://schema.org/MSRP'].map(
      (priceType): [string, unknown, Partial<Row>] => [
        `not a price of the type ${priceType}`,
        {
          priceSpecification: [
            { price: 9, priceCurrency: 'USD', priceType },
            { price: 8, priceCurrency: 'EUR' },
          ],
        },
        { price: '8', currency: 'EUR' },
      ],
    ),
    [
      'not a price of a unit',
      { priceSpecification: [{ price: 2, referenceQuantity: { value: 100 } }, { price: 8 }] },
      { price: '8' },
    ],
    [
      'the sale price',
      {
        priceSpecification: [
          { price: 9, priceType: 'ListPrice' },
          { price: 8, priceType: 'SalePrice' },
        ],
      },
      { price: '8' },
    ],
    ['the list price without another', { priceSpecification: { price: 9, priceType: 'ListPrice' } }, { price: '9' }],
    ['nothing without offers', [], NONE],
  ])('is %s', async (_, offers, expected) => {
    expect(await read(product(offers))).toMatchObject(expected);
  });

  it('is the one whose url has the query of the page', async () => {
    const offers = [1, 2].map((id) =>
      offer(id * 10, id === 1 ? 'InStock' : 'OutOfStock', { url: `/p/1?variant=${id}` }),
    );
    expect(await read(product(offers), 'https://shop.example/p/1?variant=2&utm=x')).toMatchObject({
      price: '20',
      stock: OUT,
    });
    expect(await read(product(offers))).toMatchObject({ price: '10', stock: IN });
  });

  it('may be that of another size, but not of another product', async () => {
    const sizes = [offer(70, 'OutOfStock'), offer(70, 'InStock')].map((offers, i) => ({
      '@type': 'Product',
      name: 'Boot',
      sku: i,
      offers,
    }));
    expect(await read(block(sizes))).toMatchObject({ price: '70', stock: IN });
    expect(await read(block(sizes.map((one, i) => ({ ...one, name: `Boot ${i}` }))))).toMatchObject({ stock: OUT });
  });

  it('never lends its currency to the sums of an aggregate in another one', async () => {
    const sums = { '@type': 'AggregateOffer', lowPrice: 5, priceCurrency: 'EUR' };
    const low = (offers: unknown): Promise<unknown> => valueOf(jsonField('offers.lowPrice'), product(offers));
    expect(await low(sums)).toBe('5');
    expect(await low([sums, offer(6)])).toBe('5');
    expect(await low([sums, offer(10, 'InStock', { priceCurrency: 'USD' })])).toBeNull();
  });

  it('is not chosen for lists and numbered paths', async () => {
    const page = product([offer(12, 'OutOfStock'), offer(9, 'InStock')]);
    expect(await valueOf(jsonField('offers.price', { process: ALL }), page)).toEqual([12, 9]);
    expect(await valueOf(jsonField('offers.0.price'), page)).toBe('12');
    expect(await valueOf(jsonField('offers.1.availability'), page)).toBe(IN);
  });
});
