/** Answers 200 with something other than the requested page, or with the product in another form. */
import { z } from 'zod';
import { escapeHtml, renderPage } from '../page.ts';
import type { ShopProduct } from '../languages.ts';
import { rowOf } from '../product.ts';
import { type Exchange, HTML, sendHtml } from './behaviour.ts';

export const contentShapes = [
  z.strictObject({
    type: z.literal('missing-field'),
    fields: z.array(z.enum(['title', 'price', 'json-ld'])).min(1),
    /** Length of inline style and script in the head, as large shops have. */
    headChars: z.int().nonnegative().default(0),
  }),
  /** The page with another content type; null: without one. */
  z.strictObject({ type: z.literal('content-type'), value: z.string().nullable() }),
  z.strictObject({ type: z.literal('empty') }),
  /** The product as JSON or XML; JSON_MAPPING and XML_MAPPING read the expected row from it. */
  z.strictObject({ type: z.literal('data'), format: z.enum(['json', 'xml']) }),
  /** The page without its JSON-LD (brand and rating), which is on a second page: `a[rel=next]` leads there. */
  z.strictObject({ type: z.literal('two-pages') }),
] as const;

export type ContentBehaviour = z.output<(typeof contentShapes)[number]>;

export function answerContent(exchange: Exchange, behaviour: ContentBehaviour): void {
  const { product, response, path, query } = exchange;
  switch (behaviour.type) {
    case 'missing-field':
      if (behaviour.headChars === 0) return exchange.sendPage(behaviour.fields);
      return sendHtml(
        exchange,
        renderPage(product, behaviour.fields).replace('</head>', `${heavyHead(behaviour.headChars)}</head>`),
      );
    case 'content-type':
      if (behaviour.value !== null) response.setHeader('content-type', behaviour.value);
      response.end(renderPage(product));
      return;
    case 'empty':
      response.writeHead(200, { 'content-type': HTML, 'content-length': 0 }).end();
      return;
    case 'data':
      response.setHeader('content-type', behaviour.format === 'json' ? 'application/json' : 'application/xml');
      response.end(behaviour.format === 'json' ? JSON.stringify(dataOf(product)) : xmlOf(product));
      return;
    case 'two-pages': {
      if (query.get('part') === '2') return exchange.sendPage();
      const next = `<p><a rel="next" href="${path}?part=2">Brand and ratings</a></p>\n</main>`;
      return sendHtml(exchange, renderPage(product, ['json-ld']).replace('</main>', next));
    }
  }
}

const heavyHead = (chars: number): string =>
  `<style>${'.a{color:red}'.repeat(Math.ceil(chars / 13))}</style><script>document.cookie="seen=1";if(/m=1/.test(document.cookie))location.href="/m"</script>`;

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
