import { describe, expect, it } from 'vitest';
import type { Field, PageMapping, Step } from '../../../shared/domain/mapping.ts';
import { compileMapping } from '../../../crawl-api/extract/compile-mapping.ts';
import { expectBy, expectOf } from '../../../crawl-api/fetch/browser/expected-elements.ts';

const css = (selector: string, attribute?: string): Step => ({
  type: 'css',
  selector,
  ...(attribute ? { attribute } : {}),
});
const field = (steps: Step[], required = true): Field => ({ name: 'f', steps, required });
const page = (fields: Field[], rows: PageMapping['rows'] = null): PageMapping => ({
  name: 'p',
  urlPatterns: [],
  urlParsers: [],
  rows,
  fields,
});

describe('the elements to wait for', () => {
  it('are those of every field, and a page needs those of the required ones', () => {
    const fields = [field([css('h1'), { type: 'trim' }]), field([css('.p', 'content')]), field([css('.x')], false)];
    expect(expectOf(page(fields))).toMatchObject({
      signs: [
        { selector: 'h1', required: true },
        { selector: '.p', attribute: 'content', required: true },
        { selector: '.x', required: false },
      ],
      required: true,
    });
  });

  it('do not decide for other steps and for a field with a default', () => {
    const fields = [
      field([{ type: 'json_ld', path: 'name' }]),
      field([{ type: 'json_ld', path: 'sku' }]),
      field([{ type: 'xpath', expression: '//h1' }]),
      field([{ type: 'regex', pattern: 'sku=([0-9]+)', group: 1 }]),
      field([css('.a'), { type: 'default', value: 0 }]),
    ];
    expect(expectOf(page(fields))).toMatchObject({
      signs: [
        { selector: 'script[type*="ld+json" i]', required: false },
        { xpath: '//h1', required: false },
        { selector: '.a', required: false },
      ],
      required: true,
    });
  });

  it('need not be there when nothing is required: only the end of loading counts', () => {
    const signs = [{ selector: 'h1', required: false }];
    expect(expectOf(page([field([css('h1')], false)]))).toMatchObject({ signs, required: false });
    expect(expectOf(null)).toMatchObject({ signs: [], required: false });
  });

  it('are a record, or the element that says there is none', () => {
    const each = { type: 'css', selector: 'li.review' } as const;
    const empty = { type: 'css', selector: '.none' } as const;
    expect(expectOf(page([], { each, key: 'id', empty }))).toMatchObject({
      signs: [{ selector: 'li.review, .none', required: true }],
      required: true,
    });
    expect(expectOf(page([], { each, key: 'id', empty: { type: 'xpath', expression: '//p' } })).signs).toEqual([]);
  });
});

it('waits for what the mapping of the URL needs, even when all mappings have the same name', async () => {
  const pageOf = (pattern: string, selector: string): PageMapping => ({
    name: 'page',
    urlPatterns: [pattern],
    urlParsers: [],
    rows: null,
    fields: [{ name: 'title', required: true, steps: [{ type: 'css', selector }] }],
  });
  const expectFor = expectBy(await compileMapping({ pages: [pageOf('/item/', 'h1'), pageOf('/reviews/', '.review')] }));
  expect(expectFor('https://shop.example/item/1').signs).toEqual([{ selector: 'h1', required: true }]);
  expect(expectFor('https://shop.example/item/2')).toBe(expectFor('https://shop.example/item/1'));
  expect(expectFor('https://shop.example/reviews/1').signs).toEqual([{ selector: '.review', required: true }]);
  expect(expectFor('https://shop.example/about')).toMatchObject({ signs: [], required: false });
});
