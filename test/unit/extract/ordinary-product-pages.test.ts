/** Ordinary product pages of many layouts give the product's own values, on every page of the shop. */
import { describe, expect, it } from 'vitest';
import { compileMapping } from '../../../crawl-api/extract/compile-mapping.ts';
import { PageExtractor } from '../../../crawl-api/extract/page-extractor.ts';
import { field, pageMapping, step } from '../crawl-api/extract-page.ts';

interface Item {
  name: string;
  price: string;
  sku: string;
  url: string;
}

const SITE = 'https://shop.example';
const IN = 'https://schema.org/InStock';
const block = (...json: unknown[]): string =>
  json.map((one) => `<script type="application/ld+json">${JSON.stringify(one)}</script>`).join('\n');
const offer = ({ price, url }: Item): object => ({
  '@type': 'Offer',
  price,
  priceCurrency: 'EUR',
  availability: IN,
  url,
});
const product = (item: Item, more = {}): object => ({
  '@type': 'Product',
  name: item.name,
  sku: item.sku,
  offers: offer(item),
  ...more,
});
const next = ({ name, price, sku, url }: Item, i = 1): Item => ({
  name: `${name} ${i}`,
  price: `${i}${price}`,
  sku: `${sku}-${i}`,
  url: `${url}-${i}`,
});
const crumbs = (item: Item): object => ({
  '@type': 'BreadcrumbList',
  itemListElement: ['Home', item.name].map((name, i) => ({
    '@type': 'ListItem',
    position: i + 1,
    item: { '@id': i === 0 ? SITE : item.url, name },
  })),
});
const shop = { '@type': 'Organization', '@id': `${SITE}/#organization`, name: 'Acme', url: SITE };
const site = {
  '@type': 'WebSite',
  name: 'Acme',
  url: SITE,
  potentialAction: { '@type': 'SearchAction', target: `${SITE}?q={q}` },
};

const LAYOUTS: Record<string, (item: Item) => string> = {
  'one block': (item) => block({ '@context': 'https://schema.org', ...product(item) }),
  'shop, site and breadcrumbs first': (item) => block(shop, site, crumbs(item), product(item)),
  'one graph with references': (item) =>
    block({
      '@graph': [
        {
          '@type': 'WebPage',
          '@id': item.url,
          name: `${item.name} | Acme`,
          isPartOf: { '@id': `${SITE}/#website` },
          breadcrumb: { '@id': '#b' },
        },
        shop,
        { ...crumbs(item), '@id': '#b' },
        product(item, { '@id': `${item.url}#product`, mainEntityOfPage: { '@id': item.url }, offers: { '@id': '#o' } }),
        { ...offer(item), '@id': '#o', seller: { '@id': `${SITE}/#organization` } },
      ],
    }),
  'the product within the page': (item) => block({ '@type': 'ItemPage', name: 'Acme', mainEntity: product(item) }),
  'a list of related products first': (item) =>
    block(
      {
        '@type': 'ItemList',
        itemListElement: [1, 2].map((i) => ({ '@type': 'ListItem', item: product(next(item, i)) })),
      },
      product(item),
    ),
  'related products within and beside it': (item) =>
    block({
      '@graph': [
        product(next(item), { url: next(item).url }),
        product(item, { url: item.url, isRelatedTo: [product(next(item, 2))] }),
      ],
    }),
  'a review widget first': (item) =>
    block({ '@type': 'Product', name: item.name, aggregateRating: { ratingValue: 4 } }, product(item)),
  'one node for each size': (item) =>
    block(
      ['S', 'M', 'L'].map((size) =>
        product(item, { size, offers: { ...offer(item), ...(size === 'S' ? { availability: 'OutOfStock' } : {}) } }),
      ),
    ),
  'a group with variants': (item) =>
    block({
      '@type': 'ProductGroup',
      name: item.name,
      sku: item.sku,
      hasVariant: [1, 2].map((i) =>
        product({ ...item, url: `${item.url}?v=${i}` }, { name: `${item.name} ${i}`, sku: `${item.sku}-${i}` }),
      ),
    }),
  'an aggregate of offers': (item) =>
    block(
      product(item, {
        offers: {
          '@type': 'AggregateOffer',
          lowPrice: 1,
          priceCurrency: 'EUR',
          offers: [offer(item), { ...offer(item), price: '99999' }],
        },
      }),
    ),
  'a price specification': ({ price, ...item }) =>
    block(
      product(
        { ...item, price },
        { offers: { availability: IN, priceSpecification: [{ price, priceCurrency: 'EUR' }, { price: '99999' }] } },
      ),
    ),
  'a used one beside the new one': (item) =>
    block(product(item, { offers: [{ ...offer(item), price: '0.50', itemCondition: 'UsedCondition' }, offer(item)] })),
};

const item = (type: string, inner: string, name = ''): string =>
  `<div ${name === '' ? '' : `itemprop="${name}" `}itemscope itemtype="http://schema.org/${type}">${inner}</div>`;
const MICRODATA: Record<string, (one: Item) => string> = {
  'attributes in meta': (one) =>
    item('Product', `<meta itemprop=name content="${one.name}"><meta itemprop=sku content=${one.sku}>${priced(one)}`),
  'shown text': (one) =>
    item('Product', `<h1 itemprop=name>${one.name}</h1>${priced(one)}<b itemprop=sku>${one.sku}</b>`),
  'a brand and reviews of their own': (one) =>
    item(
      'Product',
      `${item('Brand', '<b itemprop=name>Kiln</b>', 'brand')}${item('Review', '<b itemprop=name>Nice</b>', 'review')}
      <h1 itemprop=name>${one.name}</h1><b itemprop=sku>${one.sku}</b>${priced(one)}`,
    ),
  'shop and breadcrumbs around it': (one) =>
    item(
      'WebPage',
      `${item('Organization', '<b itemprop=name>Acme</b>', 'publisher')}${item('BreadcrumbList', item('ListItem', '<b itemprop=name>Home</b>', 'itemListElement'), 'breadcrumb')}
      ${item('Product', `<h1 itemprop=name>${one.name}</h1><b itemprop=sku>${one.sku}</b>${priced(one)}`, 'mainEntity')}`,
    ),
  'related products behind': (one) =>
    item('Product', `<h1 itemprop=name>${one.name}</h1><b itemprop=sku>${one.sku}</b>${priced(one)}`) +
    [1, 2].map((i) => item('Product', `<b itemprop=name>${next(one, i).name}</b>${priced(next(one, i))}`)).join(''),
};
function priced({ price, url }: Item): string {
  return item(
    'Offer',
    `<link itemprop=url href="${url}"><span itemprop=price content=${price}>${price} €</span>
    <meta itemprop=priceCurrency content=EUR><link itemprop=availability href=${IN}>`,
    'offers',
  );
}

const items = Array.from({ length: 5 }, (_, i): Item => ({
  name: `Teapot ${i}`,
  price: `${i + 1}9.50`,
  sku: `T${i}`,
  url: `${SITE}/p/${i}`,
}));
const mappingOf = (type: 'json_ld' | 'microdata'): Parameters<typeof compileMapping>[0] => {
  const paths = {
    title: 'name',
    price: 'offers.price',
    currency: 'offers.priceCurrency',
    stock: 'offers.availability',
    sku: 'sku',
  };
  return {
    pages: [
      pageMapping({
        fields: Object.entries(paths).map(([name, path]) => field([{ type, path }, step.trim], { name })),
      }),
    ],
  };
};

describe.each([
  ['json_ld', LAYOUTS],
  ['microdata', MICRODATA],
] as const)('%s', (type, layouts) => {
  it.each(Object.entries(layouts))('%s', async (_, layout) => {
    const mapping = await compileMapping(mappingOf(type));
    for (const one of items) {
      const extractor = new PageExtractor(mapping, 'html', `${one.url}?utm_source=mail`);
      extractor.write(`<html><body>${layout(one)}<h1>Else</h1></body></html>`);
      const { name: title, price, sku } = one;
      expect(extractor.end().rows?.[0]?.row).toEqual({ title, price, currency: 'EUR', stock: IN, sku });
    }
  });
});
