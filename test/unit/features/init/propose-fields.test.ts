import { describe, expect, it } from 'vitest';
import { readMapping } from '../../../../orchestrator/core/config/read-mapping.ts';
import {
  DATA_PLACES,
  formOf,
  LAST_PLACES,
  NO_PRICE,
  type Place,
  placeText,
  type ProbedPage,
  surveyMapping,
  proposeFields,
} from '../../../../orchestrator/features/init/propose-fields.ts';
import type { FieldValue } from '../../../../shared/domain/mapping.ts';

const HEADING: Place = { field: 'title', source: { css: 'h1' } };
const SHOWN: Place = { field: 'price', source: { css: '.price' } };
const PLACES = [...DATA_PLACES, HEADING, SHOWN, ...LAST_PLACES];
const META = 'css meta[property="og:title"] @content';

/** A page on which these places gave a value, by the text of the place. A price may have its currency behind it. */
function page(values: Record<string, FieldValue>, titles = ['Teapot - Acme']): ProbedPage {
  const known = new Set(PLACES.map(({ source }) => placeText(source)));
  expect(Object.keys(values).filter((place) => !known.has(place))).toEqual([]);
  return {
    titles,
    values: PLACES.map(({ source }) => {
      const value = values[placeText(source)] ?? null;
      return { value, currency: value !== null && placeText(source).endsWith('offers.price') ? 'EUR' : null };
    }),
  };
}

const propose = (...pages: ProbedPage[]) =>
  Object.fromEntries(proposeFields(PLACES, pages).map((field) => [field.name, field]));
const titleOf = (...pages: ProbedPage[]) => {
  const { title } = propose(...pages);
  return title && { from: title.sources.map(placeText), ...title };
};

describe('the places of a field', () => {
  it('are data for machines before what the page shows', () => {
    const { title } = propose(page({ 'json_ld name': 'Teapot', 'css h1': 'TEAPOT', [META]: 'Teapot' }));
    expect(title).toMatchObject({ sources: [{ json_ld: 'name' }], values: ['Teapot'], required: true, doubt: null });
  });

  it('are several where a page lacks the first one, and no more than needed', () => {
    const pages = [
      page({ 'json_ld name': 'Teapot', 'css h1': 'Teapot!' }),
      page({ 'css h1': 'Teapot 2', [META]: 'x' }),
    ];
    expect(titleOf(...pages)).toMatchObject({ from: ['json_ld name', 'css h1'], values: ['Teapot', 'Teapot 2'] });
  });

  it('do not begin with one that has the same title on all pages, if another has two', () => {
    const pages = ['1', '2'].map((n) => page({ 'json_ld name': 'Acme', 'css h1': `Teapot ${n}` }));
    expect(titleOf(...pages)).toMatchObject({ from: ['css h1'], doubt: null, required: true });
  });

  it('do not begin with a title that has no word of the title of the page', () => {
    const other = page({ 'json_ld name': 'Home', [META]: 'Teapot' });
    expect(titleOf(other)).toMatchObject({ from: [META], doubt: null });
    const japanese = page({ 'json_ld name': '青い急須', 'css h1': '急須' }, ['急須を買う']);
    expect(titleOf(japanese)).toMatchObject({ from: ['json_ld name'], doubt: null });
    expect(titleOf(page({ 'json_ld name': 'Home' }, []))).toMatchObject({ doubt: null });
  });

  it('have nothing of several prices, instead of a guess', () => {
    const several = { text: '10 € 12 €', point: null, comma: null };
    const meta = { 'css meta[property="product:price:amount"] @content': 9 };
    expect(propose(page({ 'microdata offers.price': several, ...meta })).price).toBeUndefined();
    const pages = [page({ 'microdata offers.price': several, ...meta }), page({ 'microdata offers.price': 5 })];
    expect(propose(...pages).price).toMatchObject({ sources: [{ microdata: 'offers.price' }], values: [several, 5] });
  });
});

describe('a doubt', () => {
  it.each<[string, string, FieldValue[], string]>([
    ['the same title', 'css h1', ['Teapot', 'Teapot'], 'the same on all pages'],
    ['a title without a word of <title>', 'css h1', ['Welcome', 'Teapot'], 'no word of it is in the <title>'],
    ['the same number', 'json_ld sku', ['1', '1'], 'the same on all pages'],
    ['the same image', 'json_ld image', ['/a', '/a'], 'the same on all pages'],
    ['the same price', 'css .price', [5, 5], 'the same on all pages'],
    ['a price of 0', 'css .price', [0, 5], NO_PRICE],
  ])('is shown for %s, and the field is not required', (_, place, values, doubt) => {
    const [field] = proposeFields(
      PLACES,
      values.map((value) => page({ [place]: value })),
    );
    expect(field).toMatchObject({ values, required: false, doubt: expect.stringContaining(doubt) });
  });

  it('is shown where two places for machines have two prices', () => {
    const values = { 'json_ld offers.price': 150, 'css meta[property="product:price:amount"] @content': 200 };
    expect(propose(page(values)).price).toMatchObject({
      values: [150],
      doubt: 'another place has 200: css meta[property="product:price:amount"] @content',
    });
    expect(propose(page({ 'json_ld offers.price': 150, 'css .price': 20 })).price!.doubt).toBeNull();
  });

  it('is none for what two products may have in common', () => {
    const fields = propose(page({ 'json_ld brand.name': 'K' }), page({ 'json_ld brand.name': 'K' }));
    expect(fields.brand).toMatchObject({ doubt: null, required: false });
  });
});

describe('a proposed field', () => {
  it('is required only if it is title or number, and on every page', () => {
    const one = page({ 'json_ld sku': '1', 'json_ld offers.price': 5, 'json_ld name': 'Teapot 1' });
    const two = page({ 'json_ld sku': '2', 'json_ld offers.price': 6, 'json_ld name': 'Teapot 2' });
    const required = (fields: ReturnType<typeof propose>) =>
      Object.values(fields).flatMap((field) => (field.required ? field.name : []));
    expect(required(propose(one, two))).toEqual(['title', 'sku']);
    expect(required(propose(one, page({ 'json_ld name': 'Teapot 2' })))).toEqual(['title']);
  });

  it('has the currency beside the amount, or else a column of its own', () => {
    const code = { 'css meta[property="product:price:currency"] @content': 'EUR' };
    expect(propose(page({ 'json_ld offers.price': 5, ...code }))).toMatchObject({
      price: { options: { price: true } },
    });
    expect(propose(page({ 'json_ld offers.price': 5, ...code })).currency).toBeUndefined();
    const meta = propose(page({ 'css meta[property="product:price:amount"] @content': 5, ...code }));
    expect(meta).toMatchObject({ price: { options: { number: true } }, currency: { values: ['EUR'] } });
    expect(propose(page(code))).toEqual({});
  });

  it('is written as a person would, and is valid', () => {
    const pages = [page({ 'json_ld offers.price': 5, 'json_ld sku': '1' }), page({ 'css .price': 6 })];
    const forms = Object.fromEntries(proposeFields(PLACES, pages).map((field) => [field.name, formOf(field)]));
    expect(forms).toEqual({ price: [{ json_ld: 'offers.price', price: true }, '.price'], sku: { json_ld: 'sku' } });
    expect(readMapping({ fields: forms }).faults).toEqual([]);
    expect(surveyMapping(PLACES).pages[0]!.fields.length).toBeGreaterThan(PLACES.length);
  });
});
