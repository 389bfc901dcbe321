/** Microdata by the rules of the HTML standard, searched like JSON-LD. */
import { describe, expect, it } from 'vitest';
import type { Field, FieldValue } from '../../../shared/domain/mapping.ts';
import { PageLimitError } from '../../../crawl-api/extract/page-limits.ts';
import { extract, field, step, valueOf } from '../crawl-api/extract-page.ts';

const at = (path: string, ...rest: Field['steps']): Field => field([{ type: 'microdata', path }, ...rest]);
const item = (type: string, inner: string, more = ''): string =>
  `<div itemscope itemtype="https://schema.org/${type}"${more}>${inner}</div>`;
const PRODUCT = item(
  'Product',
  `<div itemprop=brand itemscope><meta itemprop=name content=Kiln></div><h1 itemprop="name alternateName">Blue <b>teapot</b></h1>
   <div itemprop=offers itemscope itemtype=https://schema.org/Offer><link itemprop=availability href=//schema.org/InStock>
     <span itemprop=price content=12.50>12,50 €</span><meta itemprop=priceCurrency content=EUR></div>
   <img itemprop=image src="img/1.jpg"><time itemprop=releaseDate datetime=2026-03-05>March</time>
   <data itemprop=sku value=0042>No. 42</data><p itemprop=description>A pot <script>var x</script>of tea</p>`,
);

/** The value in one piece, letter by letter, and on a page that needs a tree. */
async function read(one: Field, page: string): Promise<FieldValue | undefined> {
  const value = await valueOf(one, page);
  expect(await valueOf(one, page, { piece: 1 })).toEqual(value);
  expect(
    (await extract([one, field([{ type: 'xpath', expression: '//p' }], { name: 'x' })], page)).rows?.[0]?.row.value,
  ).toEqual(value);
  return value;
}

describe('values', () => {
  it.each<[string, unknown]>([
    ['name', 'Blue teapot'],
    ['alternateName', 'Blue teapot'],
    ['brand.name', 'Kiln'],
    ['offers.price', '12.50'],
    ['offers.priceCurrency', 'EUR'],
    ['offers.availability', 'https://schema.org/InStock'],
    ['image', 'https://shop.example/p/img/1.jpg'],
    ['releaseDate', '2026-03-05'],
    ['sku', '0042'],
    ['description', 'A pot of tea'],
    ['offers', null],
    ['gtin', null],
    ['constructor.name', null],
    ['toString', null],
  ])('%s', async (path, expected) => {
    const shop = item('Organization', '<b itemprop=name>Acme</b>');
    expect(await read(at(path, step.trim), shop + PRODUCT + '<b itemprop=gtin>of nothing</b>')).toBe(expected);
  });

  it('makes links absolute by the base of the page', async () => {
    expect(await read(at('image'), `<base href="//cdn.example/a/">${PRODUCT}`)).toBe('https://cdn.example/a/img/1.jpg');
    expect(await read(at('url'), item('Product', '<a itemprop=url href="">x</a>'))).toBe(
      'https://shop.example/p/1?x=1',
    );
  });

  it('reads plain numbers of attributes with the point, those of text by the column', async () => {
    const price = (html: string): Promise<unknown> => read(at('price', step.number), item('Thing', html));
    expect(await price('<b itemprop=price content=1.299>1.299</b>')).toBe(1.299);
    expect(await price('<b itemprop=price>1.299</b>')).toEqual({ text: '1.299', point: 1.299, comma: 1299 });
  });
});

describe('scope', () => {
  it('is that of the item: nested ones keep their own', async () => {
    const related = item('Product', '<b itemprop=name>Cup</b><b itemprop=sku>C</b>', ' itemprop=isRelatedTo');
    expect(await read(at('sku'), item('Product', `<b itemprop=name>Teapot</b>${related}`))).toBeNull();
    expect(await read(at('name'), item('Product', `${related}<b itemprop=name>Teapot</b>`))).toBe('Teapot');
    expect(await read(at('name'), item('ItemList', related.replace('isRelatedTo', 'itemListElement')))).toBeNull();
  });

  it('takes in what itemref names, before and behind, also several times', async () => {
    const page = `<i id=n itemprop=name>Teapot</i>${item('Product', '', ' itemref="n o n none"')}
      <p id=o><span itemprop=offers itemscope itemref=p></span></p><b id=p><i itemprop=price>5</i></b>`;
    expect(await read(at('name'), page)).toBe('Teapot');
    expect(await read(at('offers.price'), page)).toBe('5');
  });

  it('fails as too deep, not on the stack, where items far inside each other refer to each other', async () => {
    const inside = (html: string): string => '<div itemprop=x>'.repeat(100) + html + '</div>'.repeat(100);
    const items = Array.from({ length: 100 }, (_, i) =>
      inside(`<div id=i${i} itemprop=y itemscope itemref=j${i + 1}></div>`).replace('<div', `<div id=j${i}`),
    );
    await expect(read(at('y'), items.join('') + item('Product', '', ' itemref=j0'))).rejects.toThrow(PageLimitError);
  });

  it('ends where items refer to each other', async () => {
    const page = `<div id=a itemprop=x itemscope itemref=b></div><div id=b itemprop=x itemscope itemref=a></div>
      ${item('Product', '<b itemprop=name>T</b>', ' itemref=a')}`;
    expect(await read(at('name'), page)).toBe('T');
    expect(await read(at('x.x.x.name'), page)).toBeNull();
  });

  it('reads an item that is a property of nothing', async () => {
    expect(await read(at('name'), item('Product', '<b itemprop=name>T</b>', ' itemprop=mainEntity'))).toBe('T');
    expect(await read(at('name'), item('Product', '<b itemprop=name>T</b>', ' itemprop=isSimilarTo'))).toBeNull();
  });

  it('a mapping can name another type', async () => {
    const page = PRODUCT + item('Organization', '<b itemprop=name>Acme</b>');
    expect(await read(field([{ type: 'microdata', path: 'name', node: 'organization' }]), page)).toBe('Acme');
  });
});

it('reads the microdata in a value', async () => {
  const page = `<template-box html="${PRODUCT.replaceAll('"', '&quot;')}"></template-box>`;
  const steps = [
    { type: 'css', selector: 'template-box', attribute: 'html' } as const,
    { type: 'microdata', path: 'offers.price' } as const,
  ];
  expect(await valueOf(field([...steps, step.number]), page)).toBe(12.5);
});
