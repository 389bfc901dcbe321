/** Answers 200 with something other than the requested page, or with the product in another form. */
import { z } from 'zod';
import { escapeHtml, renderPage } from '../page.ts';
import type { ShopProduct } from '../languages.ts';
import { rowOf } from '../product.ts';
import { type Answers, sendHtml } from './behaviour.ts';

export const contentShapes = [
  z.strictObject({ type: z.literal('missing-field'), fields: z.array(z.enum(['title', 'price', 'json-ld'])).min(1) }),
  /** The page with another content type; null: without one. */
  z.strictObject({ type: z.literal('content-type'), value: z.string().nullable() }),
  /** The product as JSON or XML; JSON_MAPPING and XML_MAPPING read the expected row from it. */
  z.strictObject({ type: z.literal('data'), format: z.enum(['json', 'xml']) }),
  /** The page without its JSON-LD (brand and rating), which is on a second page: `a[rel=next]` leads there. */
  z.strictObject({ type: z.literal('two-pages') }),
] as const;

export const contentAnswers: Answers<z.output<(typeof contentShapes)[number]>> = {
  'missing-field': (exchange, { fields }) => exchange.sendPage(fields),
  'content-type'({ product, response }, { value }) {
    if (value !== null) response.setHeader('content-type', value);
    response.end(renderPage(product));
  },
  data({ product, response }, { format }) {
    response.setHeader('content-type', `application/${format}`);
    response.end(format === 'json' ? JSON.stringify(dataOf(product)) : xmlOf(product));
  },
  'two-pages'(exchange) {
    const { product, path, query } = exchange;
    if (query.get('part') === '2') return exchange.sendPage();
    const next = `<p><a rel="next" href="${path}?part=2">Brand and ratings</a></p>\n</main>`;
    sendHtml(exchange, renderPage(product, ['json-ld']).replace('</main>', next));
  },
};

/** The product in the form of the JSON responses. */
export function dataOf(product: ShopProduct): Record<string, unknown> {
  return { product: { id: product.id, ...rowOf(product) }, related: [] };
}

function xmlOf(product: ShopProduct): string {
  const row = rowOf(product);
  const crumbs = row.crumbs.map((crumb) => `<crumb>${escapeHtml(crumb)}</crumb>`).join('');
  return `<?xml version="1.0" encoding="UTF-8"?>
<product id="${escapeHtml(product.id)}"><title>${escapeHtml(row.title)}</title><price currency="JPY">${row.price}</price>
<brand>${escapeHtml(row.brand)}</brand><rating>${row.rating}</rating><crumbs>${crumbs}</crumbs></product>\n`;
}
