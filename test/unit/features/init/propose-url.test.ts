import { describe, expect, it } from 'vitest';
import { distinctPages, proposeHosts, proposeProductUrl } from '../../../../orchestrator/features/init/propose-url.ts';

describe('the URL of a product page', () => {
  it.each([
    [['https://s.example/item/P1'], 'https://s.example/item/{id}', ['P1']],
    [['https://s.example/item/P11', 'https://s.example/item/P12'], 'https://s.example/item/{id}', ['P11', 'P12']],
    [['https://s.example/dp/B0012.html?ref=x'], 'https://s.example/dp/{id}.html?ref=x', ['B0012']],
    [
      ['https://s.example/p?id=77&x=1', 'https://s.example/p?id=78&x=1'],
      'https://s.example/p?id={id}&x=1',
      ['77', '78'],
    ],
    [
      ['https://s.example/blue-chair/p', 'https://s.example/blue-lamp/p'],
      'https://s.example/{id}/p',
      ['blue-chair', 'blue-lamp'],
    ],
    [['https://s.example/item/a%2Fb', 'https://s.example/item/c'], 'https://s.example/item/{id}', ['a/b', 'c']],
    [
      ['https://s.example/item/7?utm_source=mail&utm_medium=x&gclid=1', 'https://s.example/item/8?fbclid=2#reviews'],
      'https://s.example/item/{id}',
      ['7', '8'],
    ],
    [
      ['https://s.example/p?sku=7&mc_eid=abc', 'https://s.example/p?gad_source=1&sku=8'],
      'https://s.example/p?sku={id}',
      ['7', '8'],
    ],
    [['https://s.example/{a}/7?b=${c}'], 'https://s.example/%7Ba%7D/{id}?b=$%7Bc%7D', ['7']],
    [['https://s.example/p/$7', 'https://s.example/p/$8'], 'https://s.example/p/${id}', ['7', '8']],
    [
      ['https://s.example/store/122?page=2&pid=77&lang=e5'],
      'https://s.example/store/122?page=2&pid={id}&lang=e5',
      ['77'],
    ],
    [['https://s.example/p/robot/db35?cat=27'], 'https://s.example/p/robot/{id}?cat=27', ['db35']],
    [['https://s.example/blue-chair?x=y'], 'https://s.example/{id}?x=y', ['blue-chair']],
    [['https://s.example/p?utm=7&ref=mail'], 'https://s.example/p?utm={id}&ref=mail', ['7']],
  ])('of %j is %s', (urls, template, ids) => {
    expect(proposeProductUrl(urls)).toEqual({ template, ids });
  });

  it.each([
    [['https://s.example/']],
    [['https://s.example/a/b/c', 'https://s.example/x/y/z']],
    [['https://a.example/1', 'https://b.example/1']],
  ])('of %j is unknown', (urls) => {
    expect(proposeProductUrl(urls)).toBeNull();
  });
});

describe('the pages of several addresses', () => {
  it.each([
    ['equal ones', 'https://s.example/item/1'],
    ['tracking parameters', 'https://s.example/item/1?utm_source=mail'],
    ['a fragment', 'https://s.example/item/1#reviews'],
    ['the case of the host, and its port', 'https://S.example:443/item/1'],
    ['encoded letters', 'https://s.example/item/%31'],
  ])('are one with %s', (_, other) => {
    expect(distinctPages(['https://s.example/item/1', other])).toEqual(['https://s.example/item/1']);
  });

  it('are those of different products, as they were given', () => {
    const urls = [
      'https://s.example/item/a%2Fb?utm_source=x',
      'https://s.example/item/a/b',
      'https://s.example/item/A/b',
    ];
    expect(distinctPages(urls)).toEqual(urls);
  });
});

describe('products with URLs of their own', () => {
  it('are proposed where no part of their URLs can be an ID', () => {
    const urls = ['https://www.shop.example/tea/red-pot.html?utm_source=x#a', 'https://b.example/cups/mug/'];
    expect(proposeProductUrl(urls)).toBeNull();
    expect(proposeHosts(urls)).toEqual({
      hosts: ['https://www.shop.example', 'https://b.example'],
      ids: ['red-pot', 'mug'],
      urls: ['https://www.shop.example/tea/red-pot.html', 'https://b.example/cups/mug/'],
    });
  });

  it('have the whole URL for an ID where its last part names several', () => {
    const urls = ['https://shop.example/a/item.html?x=1', 'http://shop.example/b/item.html'];
    expect(proposeHosts(urls)).toMatchObject({
      hosts: ['https://shop.example'],
      ids: ['shop.example/a/item.html?x=1', 'shop.example/b/item.html'],
    });
  });
});
