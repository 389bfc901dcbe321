/** What a page says about its links, to all robots or to one. */
import { describe, expect, it } from 'vitest';
import { headerForbids, metaForbids } from '../../../shared/domain/nofollow.ts';

describe('a meta tag', () => {
  it.each([
    ['nofollow', true],
    ['index, NOFOLLOW ', true],
    ['none', true],
    ['noindex,follow', false],
    ['', false],
  ])('%j forbids following: %s', (content, expected) => {
    expect(metaForbids(content)).toBe(expected);
  });
});

describe('X-Robots-Tag', () => {
  it.each([
    ['nofollow', true],
    ['noindex, none', true],
    ['otherbot: noindex, nofollow', false],
    ['noindex, ExampleBot: noindex, nofollow', true],
    ['examplebot: none', true],
    ['unavailable_after: 25 Jun 2010 15:00:00 PST, nofollow', true],
    ['max-snippet: 20, otherbot: nofollow', false],
    ['*: nofollow', true],
    ['noindex', false],
    ['', false],
  ])('%j forbids following: %s', (header, expected) => {
    expect(headerForbids(header, 'examplebot')).toBe(expected);
  });
});
