/** The command that advice names, by how pages are requested. */
import { describe, expect, it } from 'vitest';
import { extractCommandOf } from '../../../orchestrator/core/model/extract-command.ts';
import { oneTitle } from '../../support/one-title.ts';

const { site, mapping } = oneTitle('https://shop.example/{id}');
const request = { method: 'POST', body: '{"id":"{id}"}', contentType: 'application/json' } as const;
const [page] = mapping.pages;

describe('the command that shows a page', () => {
  it.each([
    ['names the URL where products are requested by GET', { site, mapping }, "--url 'https://shop.example/a b'"],
    ['names the product where it is requested by POST', { site: { ...site, request }, mapping }, "--id 'a b'"],
    [
      'names the product where a section is requested by POST',
      { site, mapping: { pages: [{ ...page!, request }] } },
      "--id 'a b'",
    ],
  ])('%s', (_what, settings, flag) => {
    expect(extractCommandOf(settings, { url: 'https://shop.example/a b', id: 'a b' })).toBe(
      `orchestrator extract ${flag}`,
    );
  });

  it('leaves a place for what is not known', () => {
    expect(extractCommandOf({ site, mapping })).toBe('orchestrator extract --url URL');
    expect(extractCommandOf({ site: { ...site, request }, mapping })).toBe('orchestrator extract --id ID');
  });
});
