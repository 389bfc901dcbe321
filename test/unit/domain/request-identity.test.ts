import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { requestIdentity } from '../../../shared/domain/request-identity.ts';
import { sha256Of } from '../../../shared/domain/sha256.ts';

const url = 'https://shop.example/graphql';

describe('the identity of a request', () => {
  it('is the plain URL of a GET', () => {
    expect(requestIdentity({ url })).toBe(url);
    expect(requestIdentity({ url, method: 'GET' })).toBe(url);
  });

  it('has the method and the hash of the body of a POST', () => {
    const hash = createHash('sha256').update('{"id":"P1"}').digest('hex').slice(0, 32);
    expect(requestIdentity({ url, method: 'POST', body: '{"id":"P1"}' })).toBe(`POST ${url} sha256:${hash}`);
  });

  it('differs for another body, another URL, and between an empty POST and a GET', () => {
    const all = [
      { url },
      { url, method: 'POST' },
      { url, method: 'POST', body: 'a' },
      { url, method: 'POST', body: 'b' },
      { url: `${url}2`, method: 'POST', body: 'a' },
    ].map(requestIdentity);
    expect(new Set(all).size).toBe(all.length);
  });
});

it('hashes as SHA-256 does, any text of any length', () => {
  const node = (text: string): string => createHash('sha256').update(text).digest('hex');
  for (let length = 0; length < 200; length++) expect(sha256Of('é'.repeat(length))).toBe(node('é'.repeat(length)));
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (text) => sha256Of(text.toWellFormed()) === node(text.toWellFormed())),
  );
});
