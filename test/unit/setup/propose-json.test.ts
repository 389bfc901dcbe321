import { describe, expect, it } from 'vitest';
import { jsonPlaces } from '../../../orchestrator/app/setup/propose-json.ts';

const placesOf = (value: unknown) =>
  Object.fromEntries(jsonPlaces(JSON.stringify(value)).map(({ field, source }) => [field, source.jsonpath]));

describe('the places of a page that is JSON', () => {
  it('are those of its product, not of its shop', () => {
    const product = {
      productName: 'Teapot',
      SKU: 'T1',
      price: { value: 5, currency: 'EUR' },
      brand: { name: 'Kiln' },
      'in-stock': false,
      images: ['/a.jpg'],
    };
    expect(placesOf({ status: 'ok', shop: { name: 'Acme', url: '/' }, data: { product } })).toEqual({
      title: '$.data.product.productName',
      price: '$.data.product.price.value',
      currency: '$.data.product.price.currency',
      availability: "$.data.product['in-stock']",
      brand: '$.data.product.brand.name',
      sku: '$.data.product.SKU',
      image: '$.data.product.images[0]',
    });
  });

  it.each([
    ['no JSON', 'x'],
    ['no product', JSON.stringify({ status: 'ok', name: 'Acme' })],
    ['a list', JSON.stringify([{ name: 'A', price: 1 }])],
    ['values that are none', JSON.stringify({ name: null, price: {}, sku: [] })],
  ])('are none in %s', (_, text) => {
    expect(jsonPlaces(text)).toEqual([]);
  });
});
