import { describe, expect, it } from 'vitest';
import { requestIdentity } from '../../../shared/domain/request-identity.ts';

const url = 'https://shop.example/api';

describe('the identity of a request', () => {
  it('is the plain URL for GET without a body', () => {
    expect(requestIdentity({ url })).toBe(url);
    expect(requestIdentity({ url, method: 'get', body: '' })).toBe(url);
  });

  it('has no fragment: it is never sent', () => {
    expect(requestIdentity({ url: `${url}?a=1#reviews` })).toBe(`${url}?a=1`);
  });

  it.each([
    [{ url }, { url, method: 'POST' }],
    [
      { url, method: 'POST', body: '{"id":1}' },
      { url, method: 'POST', body: '{"id":2}' },
    ],
    [
      { url, method: 'POST', body: '{"id":1}' },
      { url: `${url}?a`, method: 'POST', body: '{"id":1}' },
    ],
    [
      { url, method: 'POST', body: 'a' },
      { url, method: 'PUT', body: 'a' },
    ],
  ])('differs: %j and %j', (a, b) => {
    expect(requestIdentity(a)).not.toBe(requestIdentity(b));
    expect(requestIdentity(a)).toBe(requestIdentity({ ...a }));
  });

  it('differs for 10,000 bodies that differ in a number', () => {
    const seen = new Set<string>();
    for (let i = 0; i < 10_000; i++) seen.add(requestIdentity({ url, method: 'POST', body: `{"id":${i}}` }));
    expect(seen.size).toBe(10_000);
  });
});
