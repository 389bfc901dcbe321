import { describe, expect, it } from 'vitest';
import { createAddressGuard } from '../../../shared/adapters/http/address-guard.ts';
import { splitUrl } from '../../../crawl-api/fetch/split-url.ts';
import { parseRetryAfter } from '../../../shared/domain/reply-fields.ts';
import { productUrl } from '../../../shared/domain/product.ts';

describe('the address guard', () => {
  const forbidden = [
    { address: '10.0.0.9', port: 8080 },
    { address: '127.9.9.9', port: 81 },
  ];
  const guard = (url: string, allowPrivate = false) => createAddressGuard({ productUrl: url, allowPrivate, forbidden });
  it('allows the private address of a further host that the user names, and no other one', () => {
    const further = ['http://10.0.0.5:8080'];
    const named = createAddressGuard({
      productUrl: 'https://shop.example/{id}',
      further,
      allowPrivate: false,
      forbidden,
    });
    expect(named.checkHost('10.0.0.5', 8080)).toBeNull();
    expect(named.checkHost('10.0.0.5', 80)).toContain('not a public address');
    expect(named.checkHost('10.0.0.6', 8080)).toContain('not a public address');
  });

  const shop = 'https://shop.example/{id}';

  it.each(['93.184.216.34', '2606:2800:220:1:248:1893:25c8:1946', '::ffff:93.184.216.34', '64:ff9b::5db8:d822'])(
    'allows the public address %s',
    (address) => {
      expect(guard(shop).checkHost(address, 443)).toBeNull();
      expect(guard(shop).checkResolved(address)).toBeNull();
    },
  );

  it.each(
    (
      '10.0.0.1 172.16.3.4 192.168.1.1 127.0.0.1 ::1 fd12::1 100.64.0.1 ::ffff:10.0.0.1 64:ff9b::a00:1 ' +
      '::ffff:7f00:1'
    ).split(' '),
  )('allows the private address %s only with site.allow_private', (address) => {
    expect(guard(shop).checkHost(address, 80)).not.toBeNull();
    expect(guard(shop).checkResolved(address)).toContain('site.allow_private');
    expect(guard(shop, true).checkResolved(address)).toBeNull();
  });

  it.each(
    (
      '169.254.169.254 168.63.129.16 169.254.1.1 fe80::1 fd00:ec2::254 0.0.0.0 224.0.0.1 255.255.255.255 :: ' +
      '::ffff:169.254.169.254 64:ff9b::a9fe:a9fe 64:ff9b:1::a00:1 ::7f00:1 ::ffff:0:127.0.0.1 ' +
      '2002:7f00:1:: 2001::1 fec0::1 fe80::1%eth0 4000::1'
    ).split(' '),
  )('never allows %s', (address) => {
    expect(guard(shop, true).checkHost(address, 80)).not.toBeNull();
    expect(guard(shop, true).checkResolved(address)).not.toBeNull();
    expect(
      guard(`http://${address.includes(':') ? `[${address}]` : address}/{id}`, true).checkHost(address, 80),
    ).not.toBeNull();
  });

  it('leaves a name to the check of its addresses, and resolves it to nothing but addresses', () => {
    expect(guard(shop).checkHost('localhost', 80)).toBeNull();
    expect(guard(shop, true).checkResolved('localhost')).not.toBeNull();
  });

  it('allows exactly the private address and port in product_url', () => {
    const exact = guard('http://10.1.2.3:8000/item/{id}');
    expect(exact.checkHost('10.1.2.3', 8_000)).toBeNull();
    expect(exact.checkHost('::ffff:10.1.2.3', 8_000)).toBeNull();
    expect(exact.checkHost('10.1.2.3', 80)).not.toBeNull();
    expect(exact.checkHost('10.1.2.4', 8_000)).not.toBeNull();
    expect(exact.checkResolved('10.1.2.3')).not.toBeNull();
    for (const host of ['127.1', '0177.0.0.1', '0x7f.1', '2130706433'])
      expect(guard(`http://${host}/{id}`).checkHost('127.0.0.1', 80)).toBeNull();
    expect(guard('http://[::1]:99/{id}').checkHost('::1', 99)).toBeNull();
  });

  it("never allows a request to the instance's own listeners", () => {
    expect(guard('http://10.0.0.9:8080/{id}', true).checkHost('10.0.0.9', 8_080)).toContain('own');
    expect(guard(shop, true).checkResolved('127.9.9.9')).toContain('own');
    expect(guard(shop, true).checkResolved('::ffff:127.9.9.9')).toContain('own');
    expect(guard(shop, true).checkResolved('64:ff9b::7f09:909')).toContain('own');
  });
});

describe('splitUrl', () => {
  it.each([
    ['https://shop.example/item/1?x=%20#top', 'https://shop.example', '/item/1?x=%20'],
    ['http://shop.example', 'http://shop.example', '/'],
    ['http://shop.example?id=1', 'http://shop.example', '/?id=1'],
    ['http://[::1]:8080/a', 'http://[::1]:8080', '/a'],
    ['https://shop.example/商品/1', 'https://shop.example', '/%E5%95%86%E5%93%81/1'],
    ['https://ショップ.example/1', new URL('https://ショップ.example').origin, '/1'],
  ])('%s', (url, origin, path) => {
    expect(splitUrl(url)).toEqual({ origin, path });
  });

  it.each(['.', '..', 'a/b', 'a b', "it's", '日本語', '%2e%2e', '?x', '#'])(
    'keeps the ID %s in one path segment',
    (id) => {
      const path = splitUrl(productUrl('https://shop.example/item/{id}', id))!.path;
      expect(path.startsWith('/item/')).toBe(true);
      expect(path.slice('/item/'.length)).not.toMatch(/[/?# ]/);
      expect(decodeURIComponent(path.slice('/item/'.length))).toBe(id);
    },
  );

  it.each(['ftp://x/1', 'file:///etc/passwd', 'shop.example/1', 'http://', 'data:text/html,x', 'http://a b/'])(
    'refuses %s',
    (url) => {
      expect(splitUrl(url)).toBeNull();
    },
  );
});

describe('Retry-After', () => {
  const NOW = Date.UTC(2026, 10, 21, 12);

  it.each<[string, number | null]>([
    ['0', 0],
    ['5', 5_000],
    [' 120 ', 120_000],
    ['36000', 36_000_000],
    ['Sat, 21 Nov 2026 12:00:30 GMT', 30_000],
    ['Saturday, 21-Nov-26 12:00:30 GMT', 30_000],
    ['Sat Nov 21 12:00:30 2026 GMT', 30_000],
    ['Sat, 21 Nov 2026 11:00:00 GMT', 0],
    ['', null],
    ['soon', null],
    ['-5', null],
    ['1.5', null],
    ['5, 5', null],
    ['99999999999', null],
    ['2026-11-21', null],
    ['Sat, 41 Nov 2026 12:00:30 GMT', null],
  ])('%s', (value, expected) => {
    expect(parseRetryAfter(value, NOW)).toBe(expected);
  });
});
