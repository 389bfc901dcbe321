/** Which cookies a request sends, by RFC 6265 as browsers follow it; and the limits of a jar. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CookieJar, cookiesInBrowser, cookiesOf } from '../../../shared/adapters/http/cookie-jar.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';

const SHOP = 'https://www.shop.example/item/1';

function jarOf(lines: string[], url = SHOP, clock = new VirtualClock(0)): CookieJar {
  const jar = new CookieJar(clock);
  jar.keep(url, lines);
  return jar;
}

describe('a cookie is sent', () => {
  it.each<[what: string, line: string, urls: [from: string, to: string], sent: string]>([
    ['to its own host', 's=1', [SHOP, 'https://www.shop.example/item/2'], 's=1'],
    ['below its own folder by default', 's=1', [SHOP, 'https://www.shop.example/'], ''],
    ['to no other host of the site', 's=1; Path=/', [SHOP, 'https://shop.example/'], ''],
    ['to sub-domains, if it says so', 's=1; Path=/; Domain=shop.example', [SHOP, 'https://m.shop.example/'], 's=1'],
    ['with a leading dot, too', 's=1; Path=/; Domain=.shop.example', [SHOP, 'https://m.shop.example/'], 's=1'],
    ['from no foreign domain', 's=1; Domain=other.example', [SHOP, 'https://other.example/'], ''],
    ['for no public suffix', 's=1; Path=/; Domain=co.uk', ['https://a.co.uk/', 'https://a.co.uk/'], ''],
    [
      'for no shared platform',
      's=1; Domain=myshopify.com',
      ['https://a.myshopify.com/', 'https://b.myshopify.com/'],
      '',
    ],
    ['to a platform itself', 's=1; Domain=myshopify.com', ['https://myshopify.com/', 'https://myshopify.com/'], 's=1'],
    ['to an IP address', 's=1; Path=/', ['http://127.0.0.1:8080/a', 'http://127.0.0.1:8081/b'], 's=1'],
    ['to an IP address that names itself', 's=1; Domain=192.0.2.1', ['http://192.0.2.1/', 'http://192.0.2.1/'], 's=1'],
    ['to a host whose name is reserved', 's=1', ['http://test:8080/', 'http://test:8080/'], 's=1'],
    ['below a folder as the URL spells it', 's=1', ['http://a.jp/caf%C3%A9/1', 'http://a.jp/caf%C3%A9/2'], 's=1'],
    ['below a path as the URL spells it', 's=1; Path=/%E3%81%82', [SHOP, 'https://www.shop.example/%E3%81%82/'], 's=1'],
    ['not without name and value', '=', [SHOP, SHOP], ''],
    ['until the end of time', 's=1; Max-Age=99999999999999999999', [SHOP, SHOP], 's=1'],
    ['to a host without a dot', 's=1; Domain=shop', ['http://shop/', 'http://shop/'], 's=1'],
    ['over TLS only, if it is Secure', 's=1; Path=/; Secure', [SHOP, 'http://www.shop.example/'], ''],
    [
      'never, if it is Secure and came without TLS',
      's=1; Secure',
      ['http://shop.example/', 'https://shop.example/'],
      '',
    ],
    ['whatever its SameSite says', 's=1; SameSite=Strict; HttpOnly', [SHOP, SHOP], 's=1'],
    ['below its path only', 's=1; Path=/item', [SHOP, 'https://www.shop.example/items'], ''],
    ['without a name', 'token', [SHOP, SHOP], 'token'],
    ['with an equals sign and quotes in its value', 's="a=b"', [SHOP, SHOP], 's="a=b"'],
    ['with bytes beyond ASCII', 's=caf\xc3\xa9', [SHOP, SHOP], 's=caf\xc3\xa9'],
    ['not with control characters', 's=a\x01b', [SHOP, SHOP], ''],
    ['not with a DEL, which no header may have', 's=a\x7fb', [SHOP, SHOP], ''],
    ['not if its prefix is a lie', '__Host-s=1; Path=/', [SHOP, SHOP], ''],
    ['not if it is over 4 KB', `s=${'x'.repeat(4_096)}`, [SHOP, SHOP], ''],
  ])('%s', (_what, line, [from, to], sent) => {
    expect(jarOf([line], from).header(to)).toBe(sent);
  });

  it('together with others, the longest path first', () => {
    const jar = jarOf(['a=1; Path=/', 'b=2; Path=/item', 'c=3; Path=/']);
    expect(jar.header(SHOP)).toBe('b=2; a=1; c=3');
    expect(jar.names(SHOP)).toEqual(['b', 'a', 'c']);
  });

  it('with its latest value', () => {
    expect(jarOf(['s=1; Path=/', 's=2; Path=/']).header(SHOP)).toBe('s=2');
  });
});

describe('a cookie ends', () => {
  it.each([
    ['at Max-Age', 's=1; Max-Age=60'],
    ['at Expires', `s=1; Expires=${new Date(60_000).toUTCString()}`],
    ['at Max-Age, whatever Expires says', 's=1; Max-Age=60; Expires=Fri, 01 Jan 2100 00:00:00 GMT'],
  ])('%s, however often it is sent', async (_what, line) => {
    const clock = new VirtualClock(0);
    const jar = jarOf([line], SHOP, clock);
    for (const second of [20, 40, 59]) {
      await clock.advance(second * 1_000 - clock.now());
      expect(jar.header(SHOP)).toBe('s=1');
    }
    await clock.advance(1_000);
    expect(jar.header(SHOP)).toBe('');
  });

  it.each(['s=; Max-Age=0', 's=gone; Expires=Thu, 01 Jan 1970 00:00:00 GMT'])(
    'when the site deletes it: %s',
    (line) => {
      const jar = jarOf(['s=1']);
      jar.keep(SHOP, [line]);
      expect(jar.header(SHOP)).toBe('');
      expect(jar.contents()).toEqual([]);
    },
  );

  it('with the jar', () => {
    const jar = jarOf(['s=1']);
    jar.clear();
    expect(jar.header(SHOP)).toBe('');
  });
});

describe('a jar', () => {
  it('holds 50 cookies, the latest ones', () => {
    const jar = jarOf(Array.from({ length: 70 }, (_, i) => `c${i}=1`));
    expect(jar.names(SHOP)).toHaveLength(50);
    expect(jar.names(SHOP)).toContain('c69');
    expect(jar.names(SHOP)).not.toContain('c19');
  });

  it('holds 20 KB of names and values', () => {
    const jar = jarOf(Array.from({ length: 10 }, (_, i) => `c${i}=${'x'.repeat(3_000)}`));
    expect(jar.names(SHOP)).toEqual(['c4', 'c5', 'c6', 'c7', 'c8', 'c9']);
  });

  it('reads whatever a site sends, and sends what may stand in a header', () => {
    const part = fc.constantFrom(
      's=1',
      '; ',
      'Domain=',
      'Path=',
      'Expires=',
      'Max-Age=',
      'test',
      'co.uk',
      '/',
      '=',
      ',',
    );
    const line = fc.array(fc.oneof(part, fc.string({ unit: fc.nat(255).map((n) => String.fromCharCode(n)) })));
    const hosts = ['a.test', 'test', 'local', 'localhost', 'co.uk', 'shop.example', '127.0.0.1', '[::1]', 'xn--p1ai'];
    const url = fc.tuple(fc.constantFrom(...hosts), fc.webPath()).map(([host, path]) => `http://${host}${path}`);
    fc.assert(
      fc.property(fc.array(line), url, url, (lines, from, to) => {
        const jar = jarOf(
          lines.map((parts) => parts.join('')),
          from,
        );
        expect(jar.header(to)).toMatch(/^[\t\x20-\x7e\x80-\xff]*$/);
        jar.replace(jar.all());
        jar.header(to);
      }),
      { numRuns: 500 },
    );
  });

  it('takes back what it had', () => {
    const jar = jarOf(['a=1; Path=/']);
    const before = jar.contents();
    jar.keep(SHOP, ['a=2; Path=/', 'b=1; Path=/']);
    jar.restore(before);
    expect(jar.header(SHOP)).toBe('a=1');
  });

  it('lets a name be tried once, and 50 of them', () => {
    const jar = new CookieJar(new VirtualClock(0));
    expect([jar.tryNames(['a']), jar.tryNames(['a', 'b']), jar.tryNames(['b']), jar.tryNames([])]).toEqual([
      true,
      true,
      false,
      false,
    ]);
    for (let i = 0; i < 48; i++) jar.tryNames([`n${i}`]);
    expect(jar.tryNames(['one more'])).toBe(false);
    jar.clear();
    expect(jar.tryNames(['a'])).toBe(true);
  });

  it('and a browser have the same cookies', () => {
    const lines = [
      's=caf\xc3\xa9; Path=/; HttpOnly',
      't=2; Domain=shop.example; Path=/item; Secure; SameSite=Lax; Max-Age=60',
    ];
    const given = jarOf(lines).all();
    expect(given).toEqual([
      { name: 's', value: 'café', domain: 'www.shop.example', path: '/', expires: -1, httpOnly: true, secure: false },
      {
        name: 't',
        value: '2',
        domain: '.shop.example',
        path: '/item',
        expires: 60,
        httpOnly: false,
        secure: true,
        sameSite: 'Lax',
      },
    ]);
    const other = new CookieJar(new VirtualClock(0));
    other.replace(given);
    expect(other.header(SHOP)).toBe('t=2; s=caf\xc3\xa9');
    expect(other.all()).toEqual(expect.arrayContaining(given));
  });
});

describe('the cookies of a reply', () => {
  it('are known by name, and kept only when that is asked for', () => {
    const jar = new CookieJar(new VirtualClock(0));
    const cookies = cookiesOf(['a=1', 'secret-without-a-name', 'b=2; Path=/'], SHOP, jar);
    expect(cookies?.names()).toEqual(['a', '', 'b']);
    expect(jar.header(SHOP)).toBe('');
    cookies?.keep();
    expect(jar.names(SHOP)).toEqual(['a', '', 'b']);
    expect(cookiesOf(undefined, SHOP, jar)).toBeUndefined();
  });

  it('in a browser are those of the page and its scripts, without other sites', () => {
    const jar = jarOf(['old=1; Path=/', 'deleted=1; Path=/']);
    const before = jar.all();
    const [old] = before as [(typeof before)[0]];
    const after = [
      { ...old, sameSite: 'Lax' as const },
      { ...old, name: 'fresh', domain: '.shop.example' },
      { ...old, name: 'tracker', domain: '.ads.test' },
    ];
    const cookies = cookiesInBrowser({ url: SHOP, before, after }, jar);
    expect(cookies?.names()).toEqual(['fresh']);
    cookies?.keep();
    expect(jar.names(SHOP).toSorted()).toEqual(['fresh', 'old']);
    expect(cookiesInBrowser({ url: SHOP, before, after: before }, jar)).toBeUndefined();
  });
});
