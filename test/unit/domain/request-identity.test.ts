import { describe, expect, it } from 'vitest';
import { identityOf } from '../../../shared/adapters/requests/page-requests.ts';
import { requestIdentity } from '../../../shared/domain/request-identity.ts';

const url = 'https://shop.example/api';

describe('the identity of a request', () => {
  it('is the plain URL for GET without a body', () => {
    expect(requestIdentity({ url })).toBe(url);
    expect(identityOf({ url })).toBe(url);
  });

  it('has no fragment: it is never sent', () => {
    expect(requestIdentity({ url: `${url}?a=1#reviews` })).toBe(`${url}?a=1`);
  });

  it('has the method and the hash of the body of a POST', () => {
    // As `printf '{"id":"P1"}' | sha256sum` prints it.
    const hash = '7f5afda4cf6e8892d22c7f1a8bfd8580';
    expect(identityOf({ url, post: { body: '{"id":"P1"}' } })).toBe(`POST ${url} sha256:${hash}`);
  });

  it('differs for another body, another URL, and between an empty POST and a GET', () => {
    const all = [
      { url },
      { url, post: { body: '' } },
      { url, post: { body: 'a' } },
      { url, post: { body: 'b' } },
      { url: `${url}2`, post: { body: 'a' } },
    ].map(identityOf);
    expect(new Set(all).size).toBe(all.length);
  });
});
