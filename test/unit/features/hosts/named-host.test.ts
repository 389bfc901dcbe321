import { describe, expect, it } from 'vitest';
import { namedHost, namedPace } from '../../../../orchestrator/features/hosts/named-host.ts';

describe('the host of a command', () => {
  it.each([
    ['shop.example', 'shop.example'],
    [' WWW.Shop.example ', 'shop.example'],
    ['www.shop.example:8443', 'shop.example'],
    ['https://a.b.shop.co.uk/item/1?x=2#y', 'shop.co.uk'],
    ['shop.example/item/1', 'shop.example'],
    ['shop.example.', 'shop.example'],
    ['bücher.example', 'xn--bcher-kva.example'],
    ['https://www.Bücher.example:8080/', 'xn--bcher-kva.example'],
    ['me.blogspot.com', 'blogspot.com'],
    ['192.0.2.7', '192.0.2.7'],
    ['http://192.0.2.7:81/', '192.0.2.7'],
    ['2001:db8::7', '[2001:db8::7]'],
    ['[2001:db8::7]:81', '[2001:db8::7]'],
    ['http://[2001:db8::7]/a', '[2001:db8::7]'],
    ['localhost', 'localhost'],
  ])('%s is %s', (given, host) => {
    expect(namedHost(given)).toBe(host);
  });

  it.each([
    '',
    '  ',
    'http://',
    'two words',
    'abuse@shop.example',
    'https://me:secret@shop.example/',
    'ftp://shop.example/',
    'mailto:abuse@shop.example',
    '*.shop.example',
    'shop..example',
    'com',
    'co.uk',
    'http://co.uk./',
    'shop.example:99999',
    `${'a.'.repeat(130)}example`,
  ])('refuses %j', (given) => {
    expect(() => namedHost(given)).toThrow(expect.objectContaining({ code: 'usage', hint: expect.any(String) }));
  });
});

describe('the pace of a command', () => {
  it('is a duration from a second to a day', () => {
    expect([namedPace('1s'), namedPace('1m30s'), namedPace('24h')]).toEqual([1_000, 90_000, 86_400_000]);
  });

  it.each(['999ms', '0s', '25h', '60', 'slow', '-5s', ''])('refuses %j', (given) => {
    expect(() => namedPace(given)).toThrow(expect.objectContaining({ code: 'usage', hint: expect.any(String) }));
  });
});
