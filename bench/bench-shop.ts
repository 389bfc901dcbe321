/** A shop whose pages are the same for every product: a bench measures crawlfleet, not the shop. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface BenchShop {
  url: string;
  productUrl: string;
  stop(): void;
}

/** @param handle answers some requests itself, and returns true for these */
export async function startBenchShop(
  page: string,
  handle: (request: IncomingMessage, response: ServerResponse) => boolean = () => false,
): Promise<BenchShop> {
  const shop = createServer((request, response) => {
    if (!handle(request, response)) response.setHeader('content-type', 'text/html').end(page);
  });
  shop.keepAliveTimeout = 65_000;
  shop.listen({ port: 0, host: '127.0.0.1', backlog: 1_024 });
  await once(shop, 'listening');
  const url = `http://127.0.0.1:${(shop.address() as AddressInfo).port}`;
  return {
    url,
    productUrl: `${url}/{id}`,
    stop() {
      shop.closeAllConnections();
      shop.close();
    },
  };
}

/** For pages of one line, which are almost no work for the instances. */
export const ONE_LINE_PAGE = '<h1>x</h1>';
/** The `site` section of a configuration that crawls them. */
export const oneLineSite = (interval: string) => ({ interval, mapping: { fields: { title: 'h1' } } });
