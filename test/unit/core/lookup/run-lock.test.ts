import { expect, it } from 'vitest';
import { lockNamesOf } from '../../../../orchestrator/core/lookup/run-lock.ts';

it.each([
  ['https://www.shop.example/p/{id}', ['host:shop.example', 'table:products']],
  ['https://shop.example./p/{id}', ['host:shop.example', 'table:products']],
  ['http://127.0.0.1:8080/{id}', ['host:127.0.0.1', 'table:products']],
  [
    [
      { url: 'https://shop.example/{id}', weight: 1 },
      { url: 'https://shop.test/{id}', weight: 3 },
    ],
    ['host:shop.example', 'host:shop.test', 'table:products'],
  ],
  [
    [
      { url: 'https://shop.example/de/{id}', weight: 1 },
      { url: 'https://www.shop.example/en/{id}', weight: 1 },
    ],
    ['host:shop.example', 'table:products'],
  ],
])('a run of %j locks its hosts and its table', (productUrl, names) => {
  expect(lockNamesOf({ productUrl, table: 'Products' })).toEqual(names);
});

it('a run locks the further hosts that it follows links to', () => {
  const further = ['https://www.reviews.example', 'http://shop.example:8080'];
  const names = ['host:shop.example', 'host:reviews.example', 'table:products'];
  expect(lockNamesOf({ productUrl: 'https://shop.example/{id}', further, table: 'products' })).toEqual(names);
});
