import { describe, expect, it } from 'vitest';
import { createAddressGuard } from '../../../crawl-api/fetch/address-guard.ts';
import { TextReader } from '../../../crawl-api/fetch/charset.ts';
import { splitUrl } from '../../../crawl-api/fetch/page-fetcher.ts';
import { productUrl } from '../../../shared/domain/product.ts';

describe('the address guard', () => {
  const forbidden = [
    { address: '10.0.0.9', port: 8080 },
    { address: '127.9.9.9', port: 81 },
  ];
  const guard = (url: string, allowPrivate = false) => createAddressGuard({ productUrl: url, allowPrivate, forbidden });
  const shop = 'https://shop.example/{id}';

  it.each(['93.184.216.34', '2606:2800:220:1:248:1893:25c8:1946', '::ffff:93.184.216.34'])(
    'lets the public address %s through',
    (address) => {
      expect(guard(shop).checkLiteral(address, 443)).toBeNull();
      expect(guard(shop).checkResolved(address)).toBeNull();
    },
  );

  it.each(['10.0.0.1', '172.16.3.4', '192.168.1.1', '127.0.0.1', '::1', 'fd12::1', '100.64.0.1', '::ffff:10.0.0.1'])(
    'lets the private address %s through only where the user allows it',
    (address) => {
      expect(guard(shop).checkLiteral(address, 80)).not.toBeNull();
      expect(guard(shop).checkResolved(address)).toContain('site.allow_private');
      expect(guard(shop, true).checkResolved(address)).toBeNull();
    },
  );

  it.each([
    '169.254.169.254',
    '169.254.1.1',
    'fe80::1',
    'fd00:ec2::254',
    '0.0.0.0',
    '224.0.0.1',
    '255.255.255.255',
    '::',
    'nonsense',
    '::ffff:169.254.169.254',
  ])('never lets %s through', (address) => {
    expect(guard(shop, true).checkLiteral(address, 80)).not.toBeNull();
    expect(guard(shop, true).checkResolved(address)).not.toBeNull();
    expect(
      guard(`http://${address.includes(':') ? `[${address}]` : address}/{id}`, true).checkLiteral(address, 80),
    ).not.toBeNull();
  });

  it('allows exactly the private address and port that product_url names', () => {
    const exact = guard('http://10.1.2.3:8000/item/{id}');
    expect(exact.checkLiteral('10.1.2.3', 8_000)).toBeNull();
    expect(exact.checkLiteral('::ffff:10.1.2.3', 8_000)).toBeNull();
    expect(exact.checkLiteral('10.1.2.3', 80)).not.toBeNull();
    expect(exact.checkLiteral('10.1.2.4', 8_000)).not.toBeNull();
    expect(exact.checkResolved('10.1.2.3')).not.toBeNull();
    expect(guard('http://127.1/{id}').checkLiteral('127.0.0.1', 80)).toBeNull();
    expect(guard('http://[::1]:99/{id}').checkLiteral('::1', 99)).toBeNull();
  });

  it("never lets a request to the instance's own listeners through", () => {
    expect(guard('http://10.0.0.9:8080/{id}', true).checkLiteral('10.0.0.9', 8_080)).toContain('own');
    expect(guard(shop, true).checkResolved('127.9.9.9')).toContain('own');
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
    'keeps the ID %s one path segment',
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

describe('the charset of a page', () => {
  const sjis = Buffer.from([0x93, 0xfa, 0x96, 0x7b]);
  const euc = Buffer.from([0xc6, 0xfc, 0xcb, 0xdc]);

  function read(contentType: string | undefined, bytes: Buffer, piece = 1_000_000): string {
    let text = '';
    const reader = new TextReader(contentType, (t) => (text += t));
    for (let at = 0; at < bytes.length; at += piece) reader.push(bytes.subarray(at, at + piece));
    reader.end();
    return text;
  }
  const join = (...parts: (string | Buffer)[]): Buffer => Buffer.concat(parts.map((p) => Buffer.from(p as string)));

  it.each<[string, string | undefined, Buffer, string]>([
    ['UTF-8 when nothing says otherwise', 'text/html', join('<p>日本'), '<p>日本'],
    ['the header', 'text/html; charset=Shift_JIS', join('<p>', sjis), '<p>日本'],
    ['the header in quotes', 'text/html; x=y; charset="EUC-JP"', join('<p>', euc), '<p>日本'],
    ['meta charset', undefined, join('<meta charset="shift_jis"><p>', sjis), '<meta charset="shift_jis"><p>日本'],
    [
      'meta http-equiv',
      'text/html',
      join('<meta http-equiv=Content-Type content="text/html; charset=euc-jp"><p>', euc),
      '<meta http-equiv=Content-Type content="text/html; charset=euc-jp"><p>日本',
    ],
    [
      'the XML declaration',
      'text/xml',
      join('<?xml version="1.0" encoding="Shift_JIS"?><p>', sjis),
      '<?xml version="1.0" encoding="Shift_JIS"?><p>日本',
    ],
    [
      'not a meta in a comment',
      'text/html',
      join('<!-- <meta charset=shift_jis> --><p>日本'),
      '<!-- <meta charset=shift_jis> --><p>日本',
    ],
    [
      'the header before meta',
      'text/html; charset=utf-8',
      join('<meta charset=shift_jis>日本'),
      '<meta charset=shift_jis>日本',
    ],
    ['a mark before the header', 'text/html; charset=shift_jis', join('\uFEFF日本'), '日本'],
    ['UTF-16 by its mark', 'text/html', Buffer.from('\uFEFF日本', 'utf16le'), '日本'],
    ['an unknown label is none', 'text/html; charset=klingon', join('日本'), '日本'],
    [
      'a meta that says UTF-16 means UTF-8',
      'text/html',
      join('<meta charset=utf-16>日本'),
      '<meta charset=utf-16>日本',
    ],
    ['broken bytes', 'text/html; charset=utf-8', Buffer.from([0x61, 0xff, 0x62]), 'a\uFFFDb'],
    ['nothing', 'text/html', Buffer.alloc(0), ''],
  ])('%s', (_name, contentType, bytes, expected) => {
    expect(read(contentType, bytes)).toBe(expected);
    expect(read(contentType, bytes, 1)).toBe(expected);
  });

  it('looks for meta in the first 1,024 bytes only', () => {
    const late = join('<p>'.padEnd(1_100, ' '), '<meta charset=shift_jis>', sjis);
    expect(read('text/html', late)).toContain('\uFFFD');
  });
});
