/**
 * Serves product pages (`/item/ID`, `/typical/ID`) as fast as it can, in its own process: `page-server.ts PAGES`.
 * Prints its origin; ends when stdin closes.
 */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { renderPage } from '../../test/support/shop/page.ts';
import { expectedProduct, productIds } from '../../test/support/shop/product.ts';
import { renderTypicalPage } from './typical-page.ts';

const pages = new Map(
  productIds(Number(process.argv[2])).flatMap((id) => {
    const product = expectedProduct(1, id);
    return [
      [`/item/${id}`, Buffer.from(renderPage(product))],
      [`/typical/${id}`, Buffer.from(renderTypicalPage(product))],
    ];
  }),
);
const server = createServer((request, response) => {
  const page = pages.get((request.url ?? '').split('?')[0]!);
  if (!page) return void response.writeHead(404).end();
  response.writeHead(200, { 'content-type': 'text/html; charset=utf-8', 'content-length': page.length }).end(page);
});
server.listen(0, '127.0.0.1', () => {
  process.stdout.write(`http://127.0.0.1:${(server.address() as AddressInfo).port}\n`);
});
process.stdin.once('close', () => process.exit(0)).resume();
