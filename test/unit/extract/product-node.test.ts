/** Of several nodes in a page's JSON-LD, values are those of the product that the page is about. */
import { describe, expect, it } from 'vitest';
import { LinkedData, parsePath } from '../../../crawl-api/extract/linked-data/linked-data.ts';
import type { FieldValue, Step } from '../../../shared/domain/mapping.ts';
import { cpuMs } from '../../support/cpu-ms.ts';
import { jsonField, step, valueBy, valueOf } from '../crawl-api/extract-page.ts';

const PAGE = 'https://shop.example/p/1';
const block = (json: unknown): string => `<script type="application/ld+json">${JSON.stringify(json)}</script>`;
const read = (path: string, blocks: unknown[], url = PAGE): Promise<FieldValue | undefined> =>
  valueOf(jsonField(path), blocks.map(block).join(''), { url });
const readNode = (path: string, node: string, blocks: unknown[]): Promise<FieldValue | undefined> =>
  valueBy([{ type: 'json_ld', path, node }], blocks.map(block).join(''), { url: PAGE });

const shop = { '@type': 'Organization', name: 'Acme', aggregateRating: { ratingValue: 4.9 } };
const teapot = {
  '@type': 'Product',
  name: 'Teapot',
  offers: { '@type': 'Offer', price: '12.50', priceCurrency: 'EUR' },
};
const cup = { '@type': 'Product', name: 'Cup', offers: { '@type': 'Offer', price: '3.00', priceCurrency: 'EUR' } };

describe('the type of a node', () => {
  it.each<[string, unknown[]]>([
    ['an organization', [shop, teapot]],
    ['a local shop of a subtype', [{ '@type': ['LocalBusiness', 'ElectronicsStore'], name: 'Acme' }, teapot]],
    [
      'site, page and breadcrumbs in one graph',
      [
        {
          '@graph': [
            { '@type': 'WebSite', name: 'Acme' },
            { '@type': 'WebPage', name: 'Teapot | Acme' },
            { '@type': 'BreadcrumbList', name: 'Home', itemListElement: [{ '@type': 'ListItem', name: 'Pots' }] },
            teapot,
          ],
        },
      ],
    ],
    ['an article', [{ '@type': 'BlogPosting', name: 'News' }, teapot]],
    ['a node without a type', [{ name: 'Acme' }, teapot]],
    ['a type as URL', [shop, { ...teapot, '@type': 'http://schema.org/Product' }]],
    ['a type with prefix, in another case', [shop, { ...teapot, '@type': 'schema:product' }]],
    ['several types', [shop, { ...teapot, '@type': ['Thing', 'https://schema.org/Product/'] }]],
    ['a subtype', [shop, { ...teapot, '@type': 'Car' }]],
    ['a prefix of the keys', [shop, { '@type': 'schema:Product', 'schema:name': 'Teapot' }]],
    ['a page that is about a product', [shop, { '@type': 'WebPage', name: 'Page', about: teapot }]],
    [
      'the product of a review',
      [shop, { '@type': 'Review', name: 'Good', itemReviewed: { '@type': 'Product', name: 'Teapot' } }],
    ],
  ])('a product before %s', async (_, blocks) => {
    expect(await read('name', blocks)).toBe('Teapot');
  });

  it.each([
    'Organization',
    'OnlineStore',
    'Restaurant',
    'WebSite',
    'CollectionPage',
    'ItemList',
    'Person',
    'ImageObject',
  ])('without a product, %s gives nothing', async (type) => {
    expect(await read('name', [{ '@type': type, name: 'Acme', url: 'https://shop.example/' }])).toBeNull();
  });

  it.each(['Book', 'Event', 'Recipe', 'SoftwareApplication', 'RealEstateListing', 'JobPosting'])(
    'without a product, %s counts',
    async (type) => {
      expect(await read('name', [shop, { '@type': 'WebPage', name: 'P' }, { '@type': type, name: 'Tea' }])).toBe('Tea');
    },
  );

  it('a business counts on its own page in a directory, the shop itself on none', async () => {
    const hotel = { '@type': 'Hotel', name: 'Ritz', url: PAGE };
    expect(await read('name', [shop, hotel])).toBe('Ritz');
    expect(await read('name', [hotel], 'https://shop.example/p/2')).toBeNull();
    expect(await read('name', [{ ...shop, url: PAGE }])).toBeNull();
  });

  it('a mapping can name another type', async () => {
    const crumbs = { '@type': 'BreadcrumbList', itemListElement: [{ name: 'Home' }, { name: 'Pots' }] };
    expect(await readNode('name', 'Organization', [shop, teapot])).toBe('Acme');
    expect(await readNode('itemListElement.1.name', 'https://schema.org/breadcrumblist', [crumbs, teapot])).toBe(
      'Pots',
    );
    expect(await readNode('name', 'Product', [shop, { name: 'Untyped' }])).toBeNull();
    const all: Step[] = [{ type: 'json_ld', path: 'name', node: 'Person' }, step.all];
    const people = ['A', 'B'].map((name) => block({ '@type': 'Person', name }));
    expect(await valueBy(all, people.join('') + block(teapot))).toEqual(['A', 'B']);
  });
});

describe('the product of the page', () => {
  const other = { ...cup, url: '/p/2' };

  it.each<[string, unknown[]]>([
    ['its url, behind related ones', [{ '@graph': [other, cup, { ...teapot, url: `${PAGE}#top` }] }]],
    ['its @id', [cup, { ...teapot, '@id': `${PAGE}/#product` }]],
    [
      'its mainEntityOfPage',
      [cup, { ...teapot, mainEntityOfPage: { '@type': 'WebPage', '@id': 'http://www.shop.example/p/1' } }],
    ],
    ['its url, without offers', [cup, { '@type': 'Product', name: 'Teapot', url: PAGE }]],
    [
      'its url, in a list',
      [{ '@type': 'ItemList', itemListElement: [{ item: other }, { item: { ...teapot, url: PAGE } }] }],
    ],
  ])('is found by %s', async (_, blocks) => {
    expect(await read('name', blocks)).toBe('Teapot');
  });

  it.each<[string, unknown[]]>([
    ['the one with offers', [{ '@type': 'Product', name: 'Review' }, teapot]],
    [
      'the one whose offers name the page',
      [{ ...cup, offers: { price: 1, url: '/p/2' } }, cup, { ...teapot, offers: { price: 2, url: PAGE } }],
    ],
    ['not a related one', [{ '@type': 'Product', name: 'Teapot', isRelatedTo: [cup] }]],
    [
      'not one it belongs to',
      [{ '@type': 'Product', name: 'Teapot', isAccessoryOrSparePartFor: cup, isSimilarTo: cup }],
    ],
    [
      'not a related one by reference',
      [
        { ...cup, '@id': '#c' },
        { '@type': 'Product', name: 'Teapot', isSimilarTo: { '@id': '#c' } },
      ],
    ],
    ['not one of a list', [{ '@type': 'ItemList', itemListElement: [{ '@type': 'ListItem', item: cup }] }, teapot]],
    ['not what the shop advertises', [{ ...shop, makesOffer: [{ '@type': 'Offer', itemOffered: cup }] }, teapot]],
    ['not one whose url is another page, though only that has offers', [other, { '@type': 'Product', name: 'Teapot' }]],
    [
      'the first with offers where related ones refer to each other',
      [
        { ...teapot, '@id': '#a', isSimilarTo: { '@id': '#b' } },
        { ...cup, '@id': '#b', isSimilarTo: { '@id': '#a' } },
      ],
    ],
    [
      'the one that no list refers to, though a related one does',
      [
        { '@type': 'ItemList', itemListElement: [{ item: { '@id': '#b' } }] },
        { ...cup, '@id': '#b', isSimilarTo: { '@id': '#a' } },
        { ...teapot, '@id': '#a', isSimilarTo: { '@id': '#b' } },
      ],
    ],
    [
      'the only one, though a list refers to it',
      [
        { '@type': 'ItemList', itemListElement: [{ item: { '@id': '#a' } }] },
        { ...teapot, '@id': '#a' },
      ],
    ],
    ['not a part of it', [{ '@type': 'Product', name: 'Teapot', model: { ...cup, '@type': 'ProductModel' } }]],
  ])('is %s', async (_, blocks) => {
    expect(await read('name', blocks)).toBe('Teapot');
  });

  it.each<[string, unknown]>([
    [
      'a category',
      { '@type': 'CollectionPage', name: 'Pots', mainEntity: { '@type': 'ItemList', itemListElement: [teapot, cup] } },
    ],
    [
      'a page with related products only',
      { '@graph': [{ name: 'Untyped' }, { '@type': 'OfferCatalog', itemListElement: [cup] }] },
    ],
    [
      'a category whose list refers to its products',
      {
        '@graph': [
          { '@type': 'ItemList', itemListElement: [{ '@id': '#a' }, { '@id': '#b' }] },
          { ...teapot, '@id': '#a' },
          { ...cup, '@id': '#b' },
        ],
      },
    ],
    ['the shop', { ...shop, makesOffer: [{ itemOffered: cup }] }],
  ])('does not exist on %s', async (_, json) => {
    expect(await read('name', [json])).toBeNull();
    expect(await read('offers.price', [json])).toBeNull();
  });

  it('has the values of other nodes that name it, not of others', async () => {
    const rating = { '@type': 'Product', name: 'TEAPOT', aggregateRating: { ratingValue: 4.1 } };
    expect(await read('aggregateRating.ratingValue', [teapot, rating])).toBe('4.1');
    expect(await read('aggregateRating.ratingValue', [teapot, { ...rating, name: 'Cup' }])).toBeNull();
    expect(
      await read('aggregateRating.ratingValue', [
        { ...teapot, sku: 1 },
        { ...rating, sku: 2 },
      ]),
    ).toBeNull();
  });

  const rated = { '@type': 'Product', aggregateRating: { ratingValue: 4.1 } };
  const pot = { ...teapot, sku: 'TP1', url: PAGE };

  it.each<[string, object, object]>([
    ['its sku, under another name', pot, { ...rated, name: 'Tea pot, blue', sku: 'tp1' }],
    ['its GTIN under another key', { ...pot, gtin13: '4006381333931' }, { ...rated, gtin: 4006381333931, name: 'X' }],
    ['its escaped name', { ...teapot, name: 'Tea & Pot' }, { ...rated, name: 'Tea &amp; Pot' }],
    ['its name, and its url with a slash', pot, { ...rated, name: 'Teapot', url: `${PAGE}/` }],
    ['its name, and its @id as url', { ...teapot, '@id': '#x', url: '/p/1' }, { ...rated, name: 'Teapot', url: PAGE }],
    ['the page by its @id', pot, { ...rated, '@id': PAGE, name: 'Teapot by Acme' }],
    ['the page by its @id, without a name', pot, { ...rated, '@id': `${PAGE}#p` }],
  ])('has the values of a node with %s', async (_, main, widget) => {
    for (const blocks of [
      [main, widget],
      [widget, main],
    ]) {
      expect(await read('aggregateRating.ratingValue', blocks)).toBe('4.1');
      expect(await read('offers.price', blocks)).toBe('12.50');
    }
  });

  it.each<[string, object, object]>([
    ['another sku', pot, { ...rated, name: 'Teapot', url: PAGE, sku: 'TP2' }],
    ['another GTIN', { ...pot, gtin13: '111' }, { ...rated, name: 'Teapot', gtin: '222' }],
    ['another page', pot, { ...rated, name: 'Teapot', url: '/p/2' }],
    ['another name', teapot, { ...rated, name: 'Teapot blue' }],
  ])('does not have those of a node with %s', async (_, main, widget) => {
    expect(await read('aggregateRating.ratingValue', [main, widget])).toBeNull();
  });

  it('has its own offers where only a widget names the page', async () => {
    const widget = { ...rated, name: 'Teapot reviews', url: PAGE };
    expect(await read('offers.price', [teapot, widget])).toBe('12.50');
    expect(await read('offers.price', [widget, teapot])).toBe('12.50');
    expect(await read('offers.price', [widget, { ...cup, url: '/p/2' }])).toBeNull();
  });

  it('tells a query that names the product from one of the visitor', async () => {
    const [one, two] = ['1', '2'].map((id) => ({ ...teapot, name: id, url: `/item?id=${id}` }));
    expect(await read('name', [one, two], 'https://shop.example/item?id=2&ref=mail')).toBe('2');
    expect(await read('name', [one, two], 'https://shop.example/item?id=1')).toBe('1');
  });
});

describe('a product group', () => {
  const variant = (size: string, price: number, stock = 'InStock'): object => ({
    '@type': 'Product',
    name: `Shoe ${size}`,
    sku: `S-${size}`,
    offers: { price, availability: `https://schema.org/${stock}`, url: `${PAGE}?size=${size}` },
  });
  const variants = [variant('40', 70, 'OutOfStock'), variant('41', 90), variant('42', 80)];
  const group = { '@type': 'ProductGroup', name: 'Shoe', url: PAGE, brand: { name: 'Toe' }, hasVariant: variants };

  it.each<[string, string, unknown]>([
    ['its own name', 'name', 'Shoe'],
    ['the sku of the variant with this offer', 'sku', 'S-42'],
    ['the cheapest offer in stock of all variants', 'offers.price', '80'],
    ['in stock if a variant is', 'offers.availability', 'https://schema.org/InStock'],
  ])('gives %s', async (_, path, expected) => {
    expect(await read(path, [shop, group])).toBe(expected);
  });

  it.each<[string, string, unknown]>([
    ['the name of the variant', 'name', 'Shoe 41'],
    ['the offer of the variant', 'offers.price', '90'],
    ['what only the group has', 'brand.name', 'Toe'],
  ])('gives %s that the URL names', async (_, path, expected) => {
    expect(await read(path, [group], `${PAGE}?size=41`)).toBe(expected);
  });

  it('gives identifiers of the variant whose offer it gives', async () => {
    const one = (sku: string, gtin13: string | undefined, price: number): object => ({
      '@type': 'Product',
      sku,
      gtin13,
      offers: { price, availability: 'https://schema.org/InStock' },
    });
    const variants = [one('S', '111', 30), one('M', '222', 20), one('L', '333', 25)];
    const shoe = { '@type': 'ProductGroup', name: 'Shoe', hasVariant: variants };
    expect(await read('offers.price', [shoe])).toBe('20');
    expect(await read('sku', [shoe])).toBe('M');
    expect(await read('gtin13', [shoe])).toBe('222');
    const unnumbered = { ...shoe, hasVariant: [variants[0], one('M', undefined, 20)] };
    expect(await read('gtin13', [unnumbered])).toBeNull();
    expect(await read('sku', [{ ...shoe, sku: 'G' }])).toBe('G');
  });

  it('is also read where variants and group refer to each other', async () => {
    const graph = [
      ...variants.map((one, i) => ({ ...one, '@id': `#v${i}`, isVariantOf: { '@id': '#g' } })),
      { '@id': '#g', '@type': 'ProductGroup', name: 'Shoe' },
    ];
    expect(await read('name', [{ '@graph': graph }])).toBe('Shoe');
    expect(await read('offers.price', [{ '@graph': graph }])).toBe('80');
    const inline = [{ ...variants[0], isVariantOf: { '@type': 'ProductGroup', name: 'Shoe', brand: { name: 'Toe' } } }];
    expect(await read('sku', inline)).toBe('S-40');
    expect(await read('brand.name', inline)).toBe('Toe');
  });
});

describe('references', () => {
  it('are followed, also into another block', async () => {
    const product = {
      '@type': 'Product',
      name: 'Teapot',
      offers: { '@id': '#o' },
      brand: { '@id': 'https://b.example/#b' },
    };
    const offer = { '@id': '#o', '@type': 'Offer', price: '12.50' };
    const blocks = [{ '@graph': [product, offer] }, { '@id': 'https://b.example/#b', '@type': 'Brand', name: 'Kiln' }];
    expect(await read('offers.price', blocks)).toBe('12.50');
    expect(await read('brand.name', blocks)).toBe('Kiln');
  });

  it('end where they lead in a circle or nowhere', async () => {
    const circle = {
      '@graph': [{ '@id': '#a', '@type': 'Product', name: 'A', offers: { '@id': '#a' } }, { '@id': '#b' }],
    };
    expect(await read('name', [circle])).toBe('A');
    expect(await read('offers.offers.offers.price', [circle])).toBeNull();
    expect(await read('brand.name', [{ '@type': 'Product', name: 'A', brand: { '@id': '#none' } }])).toBeNull();
  });

  const many = (id: string): object[] => Array.from({ length: 1_500 }, () => ({ '@id': id }));
  const circle = { '@id': '#a', '@type': 'Product', name: 'A', hasPart: many('#a'), offers: many('#o') };
  const aggregate = { '@id': '#o', '@type': 'AggregateOffer', offers: many('#p') };
  const entity = { '@id': '#e', name: 'E', hasVariant: many('#v') };
  const variant = { '@id': '#v', name: 'V', x: {} };

  it.each<[string, { path: string; limit: number; graph: object[]; values: unknown[] }]>([
    [
      'the offers of an aggregate',
      { path: 'offers.price', limit: 1, graph: [circle, aggregate, { '@id': '#p', price: 3, sku: 1 }], values: [3] },
    ],
    ['the parts of a part', { path: 'hasPart.hasPart.hasPart.zzz', limit: 1, graph: [circle], values: [] }],
    ['all values of them', { path: 'hasPart.hasPart.name', limit: 9, graph: [circle], values: ['A'] }],
    [
      'variants of an entity',
      { path: 'z', limit: 1, graph: [{ '@type': 'WebPage', mainEntity: many('#e') }, entity, variant], values: [] },
    ],
  ])('take linear time, however often they name a node: %s', (_, { path, limit, graph, values }) => {
    const data = new LinkedData();
    data.add(graph);
    data.placeAt(PAGE, PAGE);
    const ms = cpuMs(() => {
      expect(data.read(parsePath({ path }), limit).values).toEqual(values);
      data.paths(null);
    });
    expect(ms).toBeLessThan(500);
  });

  it('of blank nodes hold within their block', async () => {
    const blocks = ['A', 'B'].map((name) => [
      { '@id': '_:b', '@type': 'Brand', name },
      { '@type': 'Product', sku: name, url: name === 'B' ? PAGE : '/p/2', brand: { '@id': '_:b' } },
    ]);
    expect(await read('brand.name', blocks)).toBe('B');
  });
});

it('leaves paths from the top of a block as they are', async () => {
  const graph = { '@graph': [shop, teapot, { '@type': 'WebPage', mainEntity: { name: 'M' } }] };
  expect(await read('@graph.0.name', [graph])).toBe('Acme');
  expect(await read('mainEntity.name', [graph])).toBe('M');
});
