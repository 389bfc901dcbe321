import { describe, expect, it } from 'vitest';
import { isSameSite, sharesRobots } from '../../../shared/domain/same-site.ts';

describe('isSameSite', () => {
  it.each([
    ['https://shop.example/1', 'https://shop.example/2'],
    ['http://shop.example/1', 'https://shop.example/1'],
    ['https://shop.example/1', 'https://www.shop.example/1'],
    ['https://www.shop.example/1', 'https://shop.example/1'],
    ['https://www.shop.example/1', 'https://m.shop.example/1'],
    ['https://m.shop.example/1', 'https://www.shop.example/1'],
    ['https://a.b.shop.example/', 'https://shop.example/'],
    ['https://SHOP.example./', 'https://shop.EXAMPLE/'],
    ['https://shop.example:8443/', 'https://shop.example/'],
    ['http://127.1.2.3:8000/a', 'http://127.1.2.3:8000/b'],
    ['http://127.1:80/a', 'http://127.0.0.1/b'],
    ['http://[::1]:80/', 'http://[0:0::1]/'],
    ['http://localhost:8000/', 'http://localhost:8000/x'],
    ['https://www.com/', 'https://shop.www.com/'],
    ['https://商店.example/', 'https://xn--czrs0t.example/'],
  ])('%s and %s are', (from, to) => {
    expect(isSameSite(from, to)).toBe(true);
    expect(isSameSite(to, from)).toBe(true);
  });

  it.each([
    ['https://shop.example/', 'https://other.example/'],
    ['https://shop.example/', 'https://evilshop.example/'],
    ['https://shop.example/', 'https://shop.example.evil.example/'],
    ['https://a.shop.example/', 'https://b.shop.example/'],
    ['https://shop.example/', 'ftp://shop.example/'],
    ['https://shop.example/', 'javascript:alert(1)'],
    ['https://shop.example/', 'data:text/html,x'],
    ['https://shop.example/', 'shop.example/2'],
    ['https://shop.example/', ''],
    ['http://127.0.0.1:8000/', 'http://127.0.0.1:8001/'],
    ['http://127.0.0.1/', 'https://127.0.0.1/'],
    ['http://127.0.0.1/', 'http://www.127.0.0.1.example/'],
    ['http://10.0.0.1/', 'http://10.0.0.2/'],
    ['http://[::1]/', 'http://[::2]/'],
    ['http://localhost:8000/', 'http://localhost:8001/'],
    ['http://localhost/', 'http://www.localhost/'],
    ['http://localhost/', 'http://shop.localhost/'],
    ['https://www.com/', 'https://shop.com/'],
    ['https://shop.example/', 'https://example/'],
  ])('%s and %s are not', (from, to) => {
    expect(isSameSite(from, to)).toBe(false);
    expect(isSameSite(to, from)).toBe(false);
  });
});

describe('sharesRobots', () => {
  it.each([
    ['https://shop.example/1', 'https://shop.example/2?x'],
    ['http://shop.example/', 'https://www.shop.example/'],
    ['https://shop.example:443/', 'http://SHOP.example.:80/'],
    ['https://shop.example:8443/', 'https://www.shop.example:8443/'],
    ['http://127.1:8000/', 'http://127.0.0.1:8000/'],
    ['http://localhost/', 'http://localhost:80/'],
  ])('%s and %s do', (from, to) => {
    expect(sharesRobots(from, to)).toBe(true);
    expect(sharesRobots(to, from)).toBe(true);
  });

  it.each([
    ['https://shop.example/', 'https://reviews.shop.example/'],
    ['https://www.shop.example/', 'https://m.shop.example/'],
    ['https://shop.example/', 'https://www.reviews.shop.example/'],
    ['https://shop.example/', 'https://shop.example:8443/'],
    ['http://127.0.0.1:8000/', 'http://127.0.0.1:8001/'],
    ['https://www.com/', 'https://com/'],
    ['https://shop.example/', 'https://other.example/'],
    ['https://shop.example/', 'ftp://shop.example/'],
    ['https://shop.example/', ''],
  ])('%s and %s do not', (from, to) => {
    expect(sharesRobots(from, to)).toBe(false);
    expect(sharesRobots(to, from)).toBe(false);
  });
});
