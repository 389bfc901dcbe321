import { describe, expect, it } from 'vitest';
import { domainOf, domainPaces, hasOwnUrls } from '../../../shared/domain/domains.ts';
import { findUrlFault, needsUrlCheck, NO_URL, readOwnUrl } from '../../../shared/domain/own-url.ts';
import { fillTemplate, productUrl, siteOrigins } from '../../../shared/domain/product.ts';

const HOSTS = [
  { url: 'https://shop.example/{url}', weight: 3 },
  { url: 'http://127.0.0.2:8080/{url}', weight: 1 },
];

describe('a product with its own URL', () => {
  it.each([
    ['https://shop.example/tea/red-pot?x=1#top', 'https://shop.example/tea/red-pot?x=1'],
    [' https://SHOP.example/a b ', 'https://shop.example/a%20b'],
    ['http://www.shop.example/a', 'http://www.shop.example/a'],
    ['http://127.0.0.2:8080/é', 'http://127.0.0.2:8080/%C3%A9'],
  ])('%j is requested as %s', (given, url) => {
    expect(readOwnUrl(HOSTS, given)).toEqual({ url, fault: null });
    expect(findUrlFault(HOSTS, url)).toBeNull();
    expect(productUrl(HOSTS, url)).toBe(url);
  });

  it.each<[string | null, string, string]>([
    [null, NO_URL, 'it has no URL'],
    ['  ', NO_URL, 'it has no URL'],
    ['/tea/red-pot', NO_URL, 'its URL is no http or https URL'],
    ['ftp://shop.example/a', NO_URL, 'its URL is no http or https URL'],
    ['javascript:alert(1)', NO_URL, 'its URL is no http or https URL'],
    ['https://me:secret@shop.example/a', NO_URL, 'its URL contains a user or a password'],
    [`https://shop.example/${'a'.repeat(2_000)}`, NO_URL, 'its URL is longer than 2000 bytes'],
    ['https://other.example/a', 'https://other.example/a', 'other.example is none of site.hosts'],
    ['https://shop.example:444/a', 'https://shop.example:444/a', 'shop.example:444 is none of site.hosts'],
    ['http://127.0.0.2/a', 'http://127.0.0.2/a', '127.0.0.2 is none of site.hosts'],
  ])('%j is not requested', (given, url, fault) => {
    expect(readOwnUrl(HOSTS, given)).toEqual({ url, fault });
    expect(findUrlFault(HOSTS, url)).not.toBeNull();
  });

  it('is read at the host of its URL, whose weight counts', () => {
    expect(domainOf(HOSTS, 'http://127.0.0.2:8080/x')).toBe(1);
    expect(domainOf(HOSTS, 'https://www.shop.example/x')).toBe(0);
    expect(domainOf(HOSTS, NO_URL)).toBe(0);
    expect(domainPaces(HOSTS, null).map(({ share }) => share)).toEqual([0.75, 0.25]);
    expect(siteOrigins(HOSTS)).toEqual(['https://shop.example', 'http://127.0.0.2:8080']);
  });

  it('is only one with site.hosts', () => {
    expect(hasOwnUrls(HOSTS)).toBe(true);
    expect(hasOwnUrls('https://shop.example/{path}')).toBe(false);
    expect(hasOwnUrls([{ url: 'https://shop.example/{id}', weight: 1 }])).toBe(false);
  });
});

describe('an ID as segments of a path', () => {
  const template = 'https://shop.example/p/{segments}.html?a=1';

  it.each([
    ['tea/red-pot', 'https://shop.example/p/tea/red-pot.html?a=1'],
    ['a b/é?#', 'https://shop.example/p/a%20b/%C3%A9%3F%23.html?a=1'],
    ['/a//b', 'https://shop.example/p//a//b.html?a=1'],
    ['%2e%2e/x', 'https://shop.example/p/%252e%252e/x.html?a=1'],
  ])('%s', (id, url) => {
    expect(fillTemplate(template, id)).toBe(url);
    expect(findUrlFault(template, id)).toBeNull();
  });

  it.each(['../x', 'a/../../x', './x', 'a/..'])('does not leave the beginning: %s', (id) => {
    expect(findUrlFault(template, id)).not.toBeNull();
  });

  it('is looked at only where there are such products', () => {
    expect(needsUrlCheck(template)).toBe(true);
    expect(needsUrlCheck(HOSTS)).toBe(true);
    expect(needsUrlCheck('https://shop.example/{id}')).toBe(false);
    expect(needsUrlCheck('https://shop.example/{path}')).toBe(false);
    expect(findUrlFault('https://shop.example/{id}', '..')).toBeNull();
  });
});
