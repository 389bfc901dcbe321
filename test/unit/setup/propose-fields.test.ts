import { describe, expect, it } from 'vitest';
import { probeMapping, proposeFields, proposeProductUrl } from '../../../orchestrator/app/setup/propose-fields.ts';
import type { PageReading } from '../../../orchestrator/app/trial/ask-crawl-api.ts';
import type { FieldValue } from '../../../shared/domain/mapping.ts';

/** A page on which these places of the probe gave a value. */
const page = (row: Record<string, FieldValue>): PageReading => ({
  outcome: 'read',
  requests: [],
  kind: 'html',
  mapping: 'mapping',
  rows: [{ key: null, row }],
  missing: null,
  links: [],
  trace: [],
});

describe('fields proposed from pages', () => {
  it('come from data for machines before what the page shows', () => {
    const fields = proposeFields([page({ title__0: 'Teapot', title__4: 'TEAPOT – buy now' })]);
    expect(fields).toEqual([{ name: 'title', source: { json_ld: 'name' }, values: ['Teapot'] }]);
  });

  it('come from the place that most pages have', () => {
    const pages = [page({ price__0: 5, price__5: 5 }), page({ price__5: 7 }), page({ price__5: 9 })];
    expect(proposeFields(pages)).toEqual([
      { name: 'price', source: { css: '.price', number: true }, values: [5, 7, 9] },
    ]);
  });

  it('are none for an empty value, or a page that was not read', () => {
    const failed: PageReading = { outcome: 'failed', requests: [], reason: 'http-status', detail: 'HTTP 500' };
    expect(proposeFields([page({ title__0: '', sku__0: null }), failed])).toEqual([]);
  });

  it('are each a valid field of a mapping', () => {
    expect(probeMapping().pages[0]!.fields.length).toBeGreaterThan(40);
  });
});

describe('the URL of a product page', () => {
  it.each([
    [['https://s.example/item/P1'], 'https://s.example/item/{id}', ['P1']],
    [['https://s.example/item/P11', 'https://s.example/item/P12'], 'https://s.example/item/{id}', ['P11', 'P12']],
    [['https://s.example/dp/B0012.html?ref=x'], 'https://s.example/dp/{id}.html?ref=x', ['B0012']],
    [
      ['https://s.example/p?id=77&x=1', 'https://s.example/p?id=78&x=1'],
      'https://s.example/p?id={id}&x=1',
      ['77', '78'],
    ],
    [
      ['https://s.example/blue-chair/p', 'https://s.example/blue-lamp/p'],
      'https://s.example/{id}/p',
      ['blue-chair', 'blue-lamp'],
    ],
    [['https://s.example/item/a%2Fb', 'https://s.example/item/c'], 'https://s.example/item/{id}', ['a/b', 'c']],
  ])('of %j is %s', (urls, template, ids) => {
    expect(proposeProductUrl(urls)).toEqual({ template, ids });
  });

  it.each([
    [['https://s.example/']],
    [['https://s.example/a/b/c', 'https://s.example/x/y/z']],
    [['https://a.example/1', 'https://b.example/1']],
  ])('of %j is unknown', (urls) => {
    expect(proposeProductUrl(urls)).toBeNull();
  });
});
