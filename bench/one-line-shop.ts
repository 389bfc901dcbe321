/** A shop whose pages are one line each: almost no work for the instances, so that a bench measures the main server. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface OneLineShop {
  productUrl: string;
  /** The rest of the `site` section of a configuration that crawls it. */
  site: Record<string, unknown>;
  stop(): void;
}

export async function startOneLineShop(interval: string): Promise<OneLineShop> {
  const shop = createServer((_request, response) => response.setHeader('content-type', 'text/html').end('<h1>x</h1>'));
  shop.keepAliveTimeout = 65_000;
  shop.listen(0, '127.0.0.1');
  await once(shop, 'listening');
  const { port } = shop.address() as AddressInfo;
  return {
    productUrl: `http://127.0.0.1:${port}/{id}`,
    site: { interval, mapping: { fields: { title: 'h1' } } },
    stop() {
      shop.closeAllConnections();
      shop.close();
    },
  };
}
