import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { findIdFault, productUrl } from '../../../shared/domain/product.ts';

const TEMPLATE = 'https://shop.example/item/{id}?ref={id}';

describe('productUrl', () => {
  it.each([
    ['A-1', 'A-1'],
    ['a b', 'a%20b'],
    ['a/b', 'a%2Fb'],
    [`"it's"`, '%22it%27s%22'],
    ['日本語', '%E6%97%A5%E6%9C%AC%E8%AA%9E'],
    ['../x?y#z', '..%2Fx%3Fy%23z'],
    ['{id}', '%7Bid%7D'],
    ['$&', '%24%26'],
  ])('encodes %j as %s in every place', (id, encoded) => {
    expect(productUrl(TEMPLATE, id)).toBe(`https://shop.example/item/${encoded}?ref=${encoded}`);
  });

  it('returns a path from which the target decodes the same ID, and never leaves the host', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', minLength: 1, maxLength: 50 }), (id) => {
        fc.pre(findIdFault(id) === null);
        const url = new URL(productUrl('https://shop.example/item/{id}', id));
        expect(url.host).toBe('shop.example');
        expect(decodeURIComponent(url.pathname.slice('/item/'.length))).toBe(id);
      }),
    );
  });
});

describe('findIdFault', () => {
  it.each([
    ['x', null],
    ['日'.repeat(500), null],
    ['x'.repeat(768), null],
    ['', 'is empty'],
    ['..', 'is a dot segment, which no URL can carry'],
    ['a\0b', 'contains a NUL character'],
    ['\ud800', 'is not valid Unicode text'],
    ['x'.repeat(769), 'is longer than 768 characters'],
    ['日'.repeat(667), 'is longer than 2000 bytes'],
  ])('%#: finds the fault or none', (id, fault) => expect(findIdFault(id)).toBe(fault));
});
