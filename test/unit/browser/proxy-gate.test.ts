import { describe, expect, it } from 'vitest';
import { ProxyGate, firstRequestOf } from '../../../crawl-api/fetch/browser/proxy-gate.ts';

const FIRST = { authority: 'shop.example:80', path: '/item/1?a=b' };

function gateAt(first = FIRST) {
  const starts: string[] = [];
  const gate = new ProxyGate();
  const hooks = { onStart: () => void starts.push('start'), onFirstByte: () => void starts.push('first byte') };
  return { gate, starts, open: () => gate.open(first, hooks, 100) };
}

describe('the gate of the filter proxy', () => {
  it('does not start a product with a request that was admitted for the previous one', () => {
    const { gate, starts, open } = gateAt();
    const last = open();
    expect(gate.start(last)).toBe(true);
    gate.shut();
    expect(gate.start(last)).toBe(false);
    const next = open();
    expect(gate.start(last)).toBe(false);
    expect(gate.receive(1, last)).toBe(false);
    expect(starts).toEqual(['start']);
    expect(gate.start(next)).toBe(true);
    expect(gate.receive(1, next)).toBe(true);
    expect(next).toMatchObject({ receivedBytes: 1 });
    expect(last).toMatchObject({ receivedBytes: 0 });
  });

  it.each([
    ['shop.example:80', '/item/1?a=b', true],
    ['shop.example:80', '/item/%31?a=b', true],
    ['shop.example:80', '/item/2', false],
    ['shop.example:8080', '/item/1?a=b', false],
    ['shop.example:443', null, true],
    ['other.example:443', null, false],
  ])('before the page itself, admits to %s for %s: %s', (authority, path, admitted) => {
    const { gate, open } = gateAt();
    expect(gate.admits(authority, path)).toBe(false);
    const report = open();
    expect(gate.admits(authority, path)).toBe(admitted);
    gate.start(report);
    expect(gate.admits(authority, path)).toBe(true);
  });
});

describe('the first request of a product', () => {
  it.each([
    ['https://shop.example/a?b#c', { authority: 'shop.example:443', path: '/a?b' }],
    ['HTTP://[2001:db8::1]:8080', { authority: '2001:db8::1:8080', path: '/' }],
    ['ftp://shop.example/', null],
    ['shop', null],
  ])('of %s', (url, expected) => expect(firstRequestOf(url)).toEqual(expected));
});
