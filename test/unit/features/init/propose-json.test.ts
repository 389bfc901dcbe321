import { describe, expect, it } from 'vitest';
import { jsonPlaces } from '../../../../orchestrator/features/init/propose-json.ts';

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

  const shop = { name: 'Acme', image: '/l.png', description: 'd', rating: 4.8, reviewCount: 1000 };
  const other = { name: 'Cup', price: 3, sku: 'C1', brand: 'Kiln', category: 'Cups', image: '/c.png', rating: 4 };

  it.each([
    ['a shop with more fields', { product: { name: 'A', price: 5 }, shop }, '$.product.name'],
    ['a shop around it', { ...shop, product: { name: 'A', price: 5 } }, '$.product.name'],
    ['a product without a price', { product: { name: 'A', sku: '1' }, shop }, '$.product.name'],
    [
      'its delivery',
      { product: { name: 'A', sku: '1', brand: 'K' }, shipping: { name: 'Post', price: 4 } },
      '$.product.name',
    ],
    ['its seller', { name: 'A', sku: '1', brand: 'K', seller: { name: 'Acme', price: 4 } }, '$.name'],
    ['a related product', { data: { product: { name: 'A', price: 5 }, related: other } }, '$.data.product.name'],
    ['two alike', { first: { name: 'A', price: 5 }, second: { name: 'B', price: 6 } }, '$.first.name'],
    ...['relatedProducts', 'similar_item', 'youMayAlsoLike', 'crossSells', 'Recommended', 'recommendations'].map(
      (key): [string, object, undefined] => [`only ${key}`, { [key]: { item: other } }, undefined],
    ),
  ])('beside %s are those of the product', (_, value, title) => {
    expect(placesOf(value).title).toBe(title);
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
