import { describe, expect, it } from 'vitest';
import { hostGroupOf } from '../../../shared/domain/host-key.ts';

describe('what hosts are paced together by', () => {
  it.each([
    ['https://www.shop.example.co.uk/p/1', 'example.co.uk'],
    ['https://example.co.uk:8443/', 'example.co.uk'],
    ['http://SHOP.Example.ORG./', 'example.org'],
    ['https://b\u00fccher.example.org/', 'example.org'],
    ['https://b\u00fccher.de/', 'xn--bcher-kva.de'],
    ['https://one.blogspot.com/', 'blogspot.com'],
    ['http://127.0.0.1:8080/', '127.0.0.1'],
    ['http://[::1]/', '[::1]'],
    ['http://localhost:3000/', 'localhost'],
    ['http://intranet/', 'intranet'],
    ['http://intranet./', 'intranet'],
    ['http://0x7f.1/', '127.0.0.1'],
    ['http://2130706433./', '127.0.0.1'],
    ['http://-a-.shop.example.org/', 'example.org'],
    ['http://a$b.example.org/', 'example.org'],
    ['http://*.example.org/', 'example.org'],
    [`http://${'a'.repeat(64)}.example.org/`, 'example.org'],
    ['https://co.uk/', 'co.uk'],
  ])('%s: %s', (url, key) => {
    expect(hostGroupOf(new URL(url))).toBe(key);
  });

  it.each([
    ['https://www.shop.example.co.uk/p/1', 'shop.example.co.uk'],
    ['https://WWW.Example.co.uk.:8443/', 'example.co.uk'],
    ['https://one.blogspot.com/', 'one.blogspot.com'],
    ['https://blogspot.com/', 'blogspot.com'],
    ['https://www.co.uk/', 'www.co.uk'],
    ['http://127.0.0.1:8080/', '127.0.0.1'],
    ['http://[::1]/', '[::1]'],
    ['http://localhost.:3000/', 'localhost'],
  ])('each name by itself: %s: %s', (url, key) => {
    const host = hostGroupOf(new URL(url), 'host');
    expect(host).toBe(key);
    // The domain of the key is that of the URL.
    expect(hostGroupOf({ hostname: host })).toBe(hostGroupOf(new URL(url)));
  });
});
