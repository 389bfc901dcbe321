import { describe, expect, it } from 'vitest';
import { landingOf, namesProduct, productAt, repeatsRequest } from '../../../shared/domain/landing.ts';

const SHOP = 'https://shop.example';
const item = (id: string) => ({ id, url: `${SHOP}/item/${encodeURIComponent(id)}` });

describe('An address names a product', () => {
  it.each([
    ['its ID in the path', '/book/41/sorry'],
    ['its ID at the end of a name', '/teapots/blue-teapot-41'],
    ['its ID in another case', '/P/41.HTML'],
    ['its ID in a parameter', '/index.php?route=product&product_id=41'],
    ['its own path below another one', '/de/item/41'],
    ['its own path with a final slash and a parameter', '/item/41/?lang=de'],
    ['its ID beside an echo of the request', '/p/41?from=%2Fitem%2F41'],
  ])('by %s', (_, path) => {
    expect(namesProduct(SHOP + path, item('41'))).toBe(true);
    expect(landingOf(SHOP + path, item('41'))).toBeNull();
  });

  it.each([
    ['an echo of its path', '/consent?return=/item/41'],
    ['an encoded echo', '/consent?return=%2Fitem%2F41'],
    ['an echo that was encoded twice', '/consent?return=https%253A%252F%252Fshop.example%252Fitem%252F41'],
    ['an echo in Base64', `/consent?r=${Buffer.from(`${SHOP}/item/41`).toString('base64')}`],
    ['an echo in Base64 for URLs', `/consent?r=${Buffer.from(`${SHOP}/item/41?ö`).toString('base64url')}`],
    ['an echo in the path', '/consent/https%3A%2F%2Fshop.example%2Fitem%2F41/show'],
    ['a longer number', '/teapots/141'],
    ['a name without its ID', '/teapots/blue'],
  ])('but not by %s', (_, path) => {
    expect(namesProduct(SHOP + path, item('41'))).toBe(false);
    expect(landingOf(SHOP + path, item('41'))).not.toBeNull();
  });

  it('by a path that is its ID, as in a discovery', () => {
    const product = { id: '/pots/blue?size=2', url: `${SHOP}/pots/blue?size=2` };
    expect(namesProduct(`${SHOP}/de/pots/blue?size=2`, product)).toBe(false);
    expect(namesProduct(`${SHOP}/de/pots/blue`, { id: '/pots/blue', url: `${SHOP}/pots/blue` })).toBe(true);
  });

  it('by a path that does not contain the ID, where the URL is the product’s own', () => {
    expect(namesProduct(`${SHOP}/de/teapots/blue/`, { id: '8812', url: `${SHOP}/teapots/blue` })).toBe(true);
  });
});

describe('Two products end on one page', () => {
  it('whatever repeats the request in its address', () => {
    const forms = (id: string) => [
      `${SHOP}/consent?return=/item/${id}`,
      `http://www.shop.example/consent?return=${encodeURIComponent(`${SHOP}/item/${id}`)}`,
      `${SHOP}/consent?return=${Buffer.from(`/item/${id}`).toString('base64')}#top`,
    ];
    const pages = [...forms('41'), ...forms('42')].map((url, i) => landingOf(url, item(i < 3 ? '41' : '42')));
    expect(new Set(pages)).toEqual(new Set(['shop.example/consent?return=']));
  });

  it.each([
    ['another spelling of the request', `${SHOP}/item/{id}`, '/consent?return=%2Fteapots%2Fblue-41'],
    ['the request without its query', `${SHOP}/item/{id}?lang=de`, '/consent?return=%2Fitem%2F41'],
    ['the request without its final slash', `${SHOP}/item/{id}/`, '/consent?return=%2Fitem%2F41'],
    ['an address that is not encoded', `${SHOP}/item.php?id={id}&l=de`, '/consent?return=/item.php?id=41&l=de'],
    ['an address that is only a query', `${SHOP}/item?id={id}`, '/consent?return=%3Fid%3D41'],
    ['a URL without a path', `${SHOP}/?p={id}`, '/consent?return=https%3A%2F%2Fshop.example%3Fp%3D41'],
    ['a session', `${SHOP}/item/{id}`, '/consent;jsessionid=9f8a7c?return=/item/41&utm_source=x'],
  ])('whose address has %s', (_, template, path) => {
    const [one, two] = ['41', '42'].map((id) =>
      landingOf(SHOP + path.replaceAll('41', id), { id, url: template.replace('{id}', id) }),
    );
    expect(one).not.toBeNull();
    expect(two).toBe(one);
  });

  it('but not on pages that differ in a parameter of their own', () => {
    const [a, b] = ['1001', '1002'].map((own) => landingOf(`${SHOP}/show.php?article=${own}`, item('41')));
    expect(a).not.toBe(b);
  });

  it('never on the page that was requested, in any spelling', () => {
    for (const url of ['/item/41', '/item/41/', '/item/41#a'])
      expect(landingOf(`http://www.shop.example${url}`, item('41'))).toBeNull();
    const byQuery = { id: 'x', url: `${SHOP}/show?a=x` };
    expect(landingOf(`${SHOP}/show?a=x`, byQuery)).toBeNull();
    expect(landingOf(`${SHOP}/show?a=error`, byQuery)).toBe('shop.example/show?a=error');
  });
});

describe('The product whose own page this is', () => {
  it.each([
    [`${SHOP}/item/{id}`, 'shop.example/item/41', '41'],
    [`${SHOP}/item/{id}`, 'shop.example/item/A%2F1', 'A/1'],
    [`${SHOP}/item/{id}.html?lang=de`, 'shop.example/item/41.html?lang=de', '41'],
    [`${SHOP}/show?id={id}`, 'shop.example/show?id=41', '41'],
    [`${SHOP}/{path}`, 'shop.example/pots/blue', '/pots/blue'],
    [`${SHOP}/item/{id}`, 'shop.example/item/41/', '41'],
    [`${SHOP}/{path}`, 'shop.example/product/blue-teapot/', '/product/blue-teapot/'],
    [`${SHOP}/item/{id}`, 'shop.example/item/', null],
    // The body of a POST names the product.
    [`${SHOP}/graphql`, 'shop.example/graphql', null],
    [`${SHOP}/graphql`, 'shop.example/graphql2', null],
    [`${SHOP}/item/{id}`, 'shop.example/item/41/reviews', null],
    [`${SHOP}/item/{id}`, 'other.example/item/41', null],
  ])('of %s at %s is %s', (template, page, id) => expect(productAt(template, page)).toBe(id));

  it('is found at each domain of a shop', () => {
    const both = [`${SHOP}/item/{id}`, 'https://shop.test/p/{id}'].map((url) => ({ url, weight: 1 }));
    expect(productAt(both, 'shop.test/p/41')).toBe('41');
  });
});

it('An address has one to return to only where a path or URL is in it', () => {
  expect(repeatsRequest(`${SHOP}/sorry?continue=${SHOP}/item/41`, `${SHOP}/item/41`)).toBe(true);
  expect(repeatsRequest(`${SHOP}/sorry?id=41`, `${SHOP}/item/41`)).toBe(false);
  expect(repeatsRequest(`${SHOP}/item/41`, `${SHOP}/item/41`)).toBe(false);
  expect(repeatsRequest(`${SHOP}/anything?x=y`, `${SHOP}/`)).toBe(false);
});
