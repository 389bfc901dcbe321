import { describe, expect, it } from 'vitest';
import type { Field, PageMapping, Step } from '../../../shared/domain/mapping.ts';
import { compileMapping } from '../../../crawl-api/extract/compile-mapping.ts';
import { expectBy, signsOf } from '../../../crawl-api/fetch/browser/expected-elements.ts';

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
  it('are those of every required field that starts with a selector', () => {
    const fields = [field([css('h1'), { type: 'trim' }]), field([css('.p', 'content')]), field([css('.x')], false)];
    expect(signsOf(page(fields))).toEqual({
      signs: [{ selector: 'h1' }, { selector: '.p', attribute: 'content' }],
      required: true,
    });
  });

  it('are unknown for other steps and for a field with a default', () => {
    const fields = [field([{ type: 'json_ld', path: 'name' }]), field([css('.a'), { type: 'default', value: 0 }])];
    expect(signsOf(page(fields))).toEqual({ signs: [], required: true });
  });

  it('are none when nothing is required: only the end of loading counts', () => {
    expect(signsOf(page([field([css('h1')], false)]))).toEqual({ signs: [], required: false });
    expect(signsOf(null)).toEqual({ signs: [], required: false });
  });

  it('are a record, or the element that says there is none', () => {
    const each = { type: 'css', selector: 'li.review' } as const;
    const empty = { type: 'css', selector: '.none' } as const;
    expect(signsOf(page([], { each, key: 'id', empty }))).toEqual({
      signs: [{ selector: 'li.review, .none' }],
      required: true,
    });
    expect(signsOf(page([], { each, key: 'id', empty: { type: 'xpath', expression: '//p' } })).signs).toEqual([]);
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
  expect(expectFor('https://shop.example/item/1')).toEqual({ signs: [{ selector: 'h1' }], required: true });
  expect(expectFor('https://shop.example/reviews/1')).toEqual({ signs: [{ selector: '.review' }], required: true });
  expect(expectFor('https://shop.example/about')).toEqual({ signs: [], required: false });
});
