import { describe, expect, it } from 'vitest';
import type { Field } from '../../../shared/domain/mapping.ts';
import type { SharedPage, SharedRow } from '../../../orchestrator/core/model/stores.ts';
import {
  commonFrom,
  failureOf,
  judgeShared,
  tellsApart,
  titleFields,
} from '../../../orchestrator/core/decide/end/shared-results.ts';

const page = (products: number, more: Partial<SharedPage> = {}): SharedPage => {
  return {
    page: 'shop.example/consent',
    products,
    examples: ['p1', 'p2'],
    ownerId: null,
    lacks: [],
    titles: 1,
    ...more,
  };
};
const row = (products: number, before = 0): SharedRow => ({ products, examples: ['p1', 'p2', 'p3'], before });

describe('A page or row is common', () => {
  it.each([
    [2, 3],
    [6, 3],
    [12, 6],
    [40, 10],
    [999, 10],
    [1_000, 11],
    [30_000, 301],
  ])('in a run of %i products from %i on', (planned, least) => expect(commonFrom(planned, false)).toBe(least));

  it.each([
    [40, 10],
    [1_000, 11],
    [1_000_000, 20],
  ])('in a run of %i products at many hosts from %i on', (planned, least) =>
    expect(commonFrom(planned, true)).toBe(least),
  );
});

describe('Products that ended on one page', () => {
  it('fail from that number on, and are listed below it', () => {
    expect(judgeShared({ pages: [page(10)], rows: [] }, 10, 'fail')).toEqual({
      fails: [page(10)],
      holds: null,
      notes: [],
    });
    expect(judgeShared({ pages: [page(9)], rows: [] }, 10, 'fail')).toEqual({
      fails: [],
      holds: null,
      notes: ['9 products ended on shop.example/consent: p1, p2 …'],
    });
  });

  it('are stored where it is the page of another product, unless it lacks what pages usually have', () => {
    const successor = page(50, { ownerId: 'p9' });
    expect(judgeShared({ pages: [successor], rows: [] }, 10, 'fail').fails).toEqual([]);
    const empty = page(50, { ownerId: 'p9', lacks: ['price'] });
    expect(judgeShared({ pages: [empty], rows: [] }, 10, 'fail').fails).toEqual([empty]);
    expect(failureOf(empty)).toBe(
      'the requests of 50 products ended on shop.example/consent, the page of p9, without price',
    );
  });

  it('are stored and listed where the user says so', () => {
    const verdict = judgeShared({ pages: [page(50)], rows: [row(50)] }, 10, 'store');
    expect(verdict).toMatchObject({ fails: [], holds: null });
    expect(verdict.notes).toHaveLength(2);
  });
});

it('Pages whose titles differ are not one page, whatever their address is', () => {
  expect(judgeShared({ pages: [page(50, { titles: 48 })], rows: [] }, 10, 'fail').fails).toEqual([]);
  expect(judgeShared({ pages: [page(50, { titles: 2 })], rows: [] }, 10, 'fail').fails).toHaveLength(1);
});

describe('One row under many IDs', () => {
  it('holds the run, unless the result table had it before', () => {
    expect(judgeShared({ pages: [], rows: [row(10)] }, 10, 'fail').holds).toContain(
      '10 products have one and the same row',
    );
    expect(judgeShared({ pages: [], rows: [row(10, 9)] }, 10, 'fail').holds).toBeNull();
    expect(judgeShared({ pages: [], rows: [row(9)] }, 10, 'fail')).toMatchObject({
      holds: null,
      notes: [expect.stringMatching(/^9 products/)],
    });
  });

  it('is looked at only where it has a title or an ID, and three values', () => {
    const field = (name: string, selector: string) => ({
      name,
      steps: [{ type: 'css' as const, selector }],
      required: false,
    });
    const listed: Field = { ...field('heading', '.x'), fallbacks: [[{ type: 'microdata', path: 'name' }]] };
    const brand: Field = { name: 'maker', steps: [{ type: 'json_ld', path: 'brand.name' }], required: false };
    const others = {
      name: 'n',
      urlPatterns: [],
      urlParsers: [],
      rows: null,
      fields: [listed, brand, field('productName', '.y')],
    };
    expect([...titleFields({ pages: [others] })]).toEqual(['heading', 'productName']);
    const fields = [field('label', 'h1'), field('product_sku', '.s'), field('price', '.p'), field('stock', '.st')];
    const titles = titleFields({ pages: [{ name: 'm', urlPatterns: [], urlParsers: [], rows: null, fields }] });
    expect([...titles]).toEqual(['label', 'product_sku']);
    expect(tellsApart({ label: 'Teapot', product_sku: null, price: 1, stock: true }, titles)).toBe(true);
    expect(tellsApart({ label: 'Teapot', product_sku: null, price: 1, stock: '' }, titles)).toBe(false);
    expect(tellsApart({ label: null, price: 1, stock: true, more: 'x' }, titles)).toBe(false);
  });
});
