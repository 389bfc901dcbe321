/** One spelling per page: the rules one by one, and what holds for every link; shapes and faults of paths. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { MAX_PATH_CHARS, canonicalPath, findPathFault, patternOf } from '../../../shared/domain/canonical-url.ts';

const BASE = new URL('https://www.shop.example/shoes/list?page=2#top');
const HASH = '0123456789abcdef0123456789ABCDEF';

describe('a canonical path', () => {
  it.each([
    ['of a relative link', 'item/1', '/shoes/item/1'],
    ['of a query alone', '?page=3', '/shoes/list?page=3'],
    ['of a fragment alone', '#reviews', '/shoes/list?page=2'],
    ['of the host alone', 'https://www.shop.example', '/'],
    ['without www.', 'https://shop.example/a', '/a'],
    ['over http', 'http://www.shop.example/a', '/a'],
    ['without a scheme', '//SHOP.example./a', '/a'],
    ['with white space', ' \n/a\t/b ', '/a/b'],
    ['without fragment', '/a#b?c', '/a'],
    ['with dot segments', '/a/./b/../c/%2e%2E/d', '/a/d'],
    ['with backslashes', '\\a\\b', '/a/b'],
    ['with an empty step', '/a//b///', '/a//b///'],
    ['with an empty first step', 'https://shop.example//a/b', '//a/b'],
    ['with a final slash', '/a/', '/a/'],
    ['in its case', '/Item/A?Q=B', '/Item/A?Q=B'],
    ['with unneeded escapes', '/%7euser/%41%2d%5F?%61=%62', '/~user/A-_?a=b'],
    ['with escapes in lower case', '/%e5%95%86?q=%2f%26', '/%E5%95%86?q=%2F%26'],
    ['with letters of all kinds', '/商?q=é', '/%E5%95%86?q=%C3%A9'],
    ['with characters that need escapes', '/a b|c?d[]=^"', '/a%20b%7Cc?d%5B%5D=%5E%22'],
    ['with percent signs', '/100%?a=%zz%2', '/100%25?a=%25zz%252'],
    ['with escaped delimiters', '/a%2Fb%3Fc?d%3De=%2B+', '/a%2Fb%3Fc?d%3De=%2B+'],
    ['with an empty query', '/a?', '/a'],
    ['with empty parameters', '/a?&&b=1&', '/a?b=1'],
    ['with a parameter without value', '/a?c&b=', '/a?b=&c'],
    ['with parameters out of order', '/a?b=2&a=2&c=0&a=1&B=3', '/a?B=3&a=2&a=1&b=2&c=0'],
    ['with a question mark in the query', '/a?b=?&a=/', '/a?a=/&b=?'],
  ])('%s', (_, link, path) => {
    expect(canonicalPath(link, BASE)).toBe(path);
  });

  it.each([
    ['utm_source=x&utm_medium=y&UTM_Campaign=z&utm_=1'],
    ['gclid=1&fbclid=2&msclkid=3&mc_cid=4&mc_eid=5&_ga=6&yclid=7&dclid=8&igshid=9&ref_src=10'],
    ['utm%5Fsource=x&%67clid=1'],
    [`PHPSESSID=abc&jsessionid=1&ASPSESSIONIDABCDEFGH=X&sid=${HASH}&SessionID=${HASH}`],
  ])('drops %s', (query) => {
    expect(canonicalPath(`/a?${query}`, BASE)).toBe('/a');
    expect(canonicalPath(`/a?q=1&${query}&b`, BASE)).toBe('/a?b&q=1');
  });

  it.each(['sid=12', 'session=summer', `id=${HASH}`, 'ref=home', 'source=x', 'utm=1', 'gclid2=1', 'q=utm_source'])(
    'keeps %s',
    (query) => {
      expect(canonicalPath(`/a?${query}`, BASE)).toBe(`/a?${query}`);
    },
  );

  it.each([
    ['/a;jsessionid=1F.node2/b', '/a/b'],
    ['/a;JSESSIONID=1F?b=1', '/a?b=1'],
    [`/a;sid=${HASH};color=red`, '/a;color=red'],
    ['/a;color=red', '/a;color=red'],
    ['/(S(lit3py55t21z5v55vlm25s55))/a', '/a'],
    ['/(S(lit3py55t21z5v55vlm25s55))', '/'],
    ['/size/(S)/a', '/size/(S)/a'],
    ['/a/..;jsessionid=1/b', '/b'],
    [`/a;sid;sid=${HASH};sid=${HASH}/b`, '/a;sid/b'],
  ])('drops the session of %s', (link, path) => {
    expect(canonicalPath(link, BASE)).toBe(path);
  });

  it.each([
    ['another host', 'https://other.example/a'],
    ['a subdomain', 'https://blog.shop.example/a'],
    ['another port', 'https://www.shop.example:8443/a'],
    ['a link without scheme to another host', '//other.example/a'],
    ['mail', 'mailto:info@shop.example'],
    ['script', 'javascript:void(0)'],
    ['data', 'data:text/html,a'],
    ['a telephone number', 'tel:+81312345678'],
    ['another protocol', 'ftp://www.shop.example/a'],
    ['a user', 'https://user@www.shop.example/a'],
    ['a password', 'https://:secret@www.shop.example/a'],
    ['NUL', '/a\0b'],
    ['an escaped NUL', '/a%00b'],
    ['no URL', 'https://'],
  ])('does not exist for %s', (_, link) => {
    expect(canonicalPath(link, BASE)).toBeNull();
  });

  it('has at most 768 characters, escaped and without what is dropped', () => {
    const longest = `/${'x'.repeat(MAX_PATH_CHARS - 1)}`;
    expect(canonicalPath(longest, BASE)).toBe(longest);
    expect(canonicalPath(`${longest}x`, BASE)).toBeNull();
    expect(canonicalPath(`${longest}?utm_source=x#y`, BASE)).toBe(longest);
    expect(canonicalPath(`/${'é'.repeat(200)}`, BASE)).toBeNull();
    expect(canonicalPath(`/${'x'.repeat(9_000)}`, BASE)).toBeNull();
  });

  it('works on an address with a port', () => {
    const base = new URL('http://127.0.0.1:8080/');
    expect(canonicalPath('/a?b=1&a=2', base)).toBe('/a?a=2&b=1');
    expect(canonicalPath('http://127.0.0.1:8081/a', base)).toBeNull();
  });
});

describe('for every link', () => {
  const piece = fc.oneof(
    fc.constantFrom('/', '//', '.', '..', '%2e', '%', '%4', '%41', '%25', '%c3%a9', '?', '&', '=', ';', '#', '+', '[]'),
    fc.constantFrom('a', 'B', '1', 'é', ' ', '|', '^', "'", '\\', '~', 'utm_x=1', 'sid=', HASH, ';jsessionid=1'),
    fc.constantFrom('(S(lit3py55t21z5v55vlm25s55))', ';sid=', 'PHPSESSID=2', 'q=1', 'p[a]=2', '\uD800'),
    fc.string({ maxLength: 5 }),
  );
  const link = fc.array(piece, { maxLength: 30 }).map((pieces) => `/${pieces.join('')}`);
  const origin = BASE.origin;

  it('the canonical path is canonical', () => {
    let paths = 0;
    fc.assert(
      fc.property(link, (link) => {
        const path = canonicalPath(origin + link, BASE);
        if (path === null) return;
        paths++;
        expect(path).toMatch(/^\/[\x21-\x7e]*$/);
        expect(canonicalPath(origin + path, BASE)).toBe(path);
        // The request's own URL does not change it either.
        const { pathname, search } = new URL(origin + path);
        expect(pathname + search).toBe(path);
      }),
      { numRuns: 1_000 },
    );
    expect(paths).toBeGreaterThan(400);
  });

  it('the order of parameters of different names does not matter', () => {
    const parameter = fc.tuple(fc.string({ minLength: 1, maxLength: 4 }), fc.string({ maxLength: 4 }));
    const parameters = fc.uniqueArray(parameter, { selector: ([name]) => name, maxLength: 8 });
    fc.assert(
      fc.property(
        parameters.chain((list) =>
          fc.tuple(fc.constant(list), fc.shuffledSubarray(list, { minLength: list.length, maxLength: list.length })),
        ),
        (orders) => {
          const [one, other] = orders.map((list) => {
            const texts = list.map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`);
            return canonicalPath(`/a?${texts.join('&')}`, BASE);
          });
          expect(other).toBe(one);
        },
      ),
    );
  });

  it('tracking parameters, sessions and fragments do not matter', () => {
    const added = fc.constantFrom('utm_source=x', 'gclid=1', 'PHPSESSID=2', `sid=${HASH}`, '');
    const path = fc.array(fc.constantFrom('/', '/a', '/..', ';x=1', '%7e', 'é')).map((pieces) => `/${pieces.join('')}`);
    const query = fc.array(fc.constantFrom('a=1', 'b', 'A=%2f', 'c[]=2', '')).map((parts) => parts.join('&'));
    fc.assert(
      fc.property(path, query, added, (path, query, added) => {
        const plain = canonicalPath(`${origin}${path}?${query}`, BASE);
        expect(canonicalPath(`${origin}${path}?${added}&${query}&${added}#x`, BASE)).toBe(plain);
      }),
    );
  });
});

describe('the pattern of a path', () => {
  it.each([
    ['/calendar/2026/11?view=day', '/calendar/#/#?view'],
    ['/', '/'],
    ['/item/abc', '/item/abc'],
    ['/item-17b.html', '/item-#b.html'],
    ['/a/0f8fad5b-d9cb-469f-a165-70867728950e/b', '/a/#/b'],
    ['/a/9f86d081884c7d65', '/a/#'],
    ['/img-9F86D081.jpg', '/img-#.jpg'],
    ['/a/deadbeef/facade', '/a/deadbeef/facade'],
    ['/a/feedback1234', '/a/feedback#'],
    ['/a/deadbeef1x', '/a/deadbeef#x'],
    ['/%E5%95%86/12', '/%E5%95%86/#'],
    ['/list?sort=1&filter=2&a', '/list?a&filter&sort'],
    ['/list?a=1&a=2', '/list?a'],
    ['/list?p1=a&p2=b&f%5B3%5D=c', '/list?f%5B#%5D&p#'],
    ['/list?', '/list'],
  ])('%s is %s', (path, pattern) => {
    expect(patternOf(path)).toBe(pattern);
  });

  it('is the same for all months of a calendar, and its own pattern', () => {
    fc.assert(
      fc.property(fc.nat(), fc.nat(), fc.uuid(), (year, month, id) => {
        const pattern = patternOf(`/calendar/${year}/${month}/${id}?day=${month}&view=${year}`);
        expect(pattern).toBe('/calendar/#/#/#?day&view');
        expect(patternOf(pattern)).toBe(pattern);
      }),
    );
  });
});

describe('the fault of a path', () => {
  const steps = (count: number): string => `/${Array.from({ length: count }, (_, i) => `s${i}`).join('/')}`;
  const parameters = (count: number): string => `/a?${Array.from({ length: count }, (_, i) => `p${i}=1`).join('&')}`;

  it.each([
    ['/x/a/a/a/y', 'a step repeats'],
    ['/a/a/a', 'a step repeats'],
    ['/a////b', 'a step repeats'],
    ['/a/b/a/b/a/b', 'a pair of steps repeats'],
    ['/x/a/b/a/b/a/b/y?q=1', 'a pair of steps repeats'],
    ['/b/a/b/a/b/a/', 'a pair of steps repeats'],
    [steps(17), 'too many steps'],
    [parameters(11), 'too many parameters'],
  ])('%s: %s', (path, fault) => {
    expect(findPathFault(path)).toBe(fault);
  });

  it.each([
    '/',
    '/a/a/b/a/a',
    '/a/b/a/b/a',
    '/a/b/a/b/b/a',
    '/2011/11/11',
    '/a//b',
    steps(16),
    `${steps(16)}/`,
    parameters(10),
    '/a?b=/x/x/x/x',
  ])('%s: none', (path) => {
    expect(findPathFault(path)).toBeNull();
  });
});
