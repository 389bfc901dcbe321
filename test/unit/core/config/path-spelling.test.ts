import { describe, expect, it } from 'vitest';
import { misspelling, plainPath } from '../../../../orchestrator/core/config/path-spelling.ts';

describe('a path that finds nothing', () => {
  it.each([
    ['$', null],
    ['$.name', 'name'],
    ["$['offers'][0]['price']", 'offers.0.price'],
    ['offers[*].price', 'offers.price'],
    ['offers.*.price', 'offers.price'],
    ['offers[-1].price', null],
    ['@graph[?(@.sku)].name', null],
    ['Product.name', 'name'],
    ['@graph.Product.offers.Offer.price', '@graph.offers.price'],
  ])('%s is shown as it is meant: %s', (path, plain) => {
    expect(misspelling(path, true)).toContain('finds nothing');
    expect(plainPath(path)).toBe(plain);
  });

  it('names the type that another node than the product has', () => {
    expect(misspelling('ProductGroup.name', true)).toMatch(/write name$/);
    expect(misspelling('BreadcrumbList.itemListElement.name', true)).toMatch(/with node: BreadcrumbList/);
  });

  it.each([
    'name',
    'offers.0.price',
    '@graph.0.name',
    '@type',
    'a.$id',
    '$id',
    'Product',
    'Product.Name',
    'data.ID',
    'x*y',
    'Item.name',
    'Data.Result.title',
    'Data.Price.amount',
  ])('%s is none', (path) => {
    expect(misspelling(path, true)).toBeNull();
  });

  it('has no type in the JSON of an earlier step', () => {
    expect(misspelling('Product.name', false)).toBeNull();
    expect(misspelling('$.name', false)).not.toBeNull();
  });
});
