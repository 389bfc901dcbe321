/** Serves twenty product pages of our own and logs every request: a site that a fleet may crawl without permission. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface Arrival {
  /** On this process's monotonic clock, as Unix time with fractions. */
  atMs: number;
  address: string;
  path: string;
}

export interface PageServer {
  port: number;
  arrivals(): readonly Arrival[];
  close(): Promise<void>;
}

export interface CanaryRow {
  title: string;
  price: number;
}

/** The row that the fleet must extract from a page. */
export const rowOf = (id: string): CanaryRow => ({ title: `Canary ${id}`, price: 100 + Number(id.slice(1)) });

export const MAPPING = {
  fields: { title: { css: 'h1', required: true }, price: { css: '.price', integer: true, required: true } },
};

/** `C01` … */
export const canaryIds = (count: number): string[] =>
  Array.from({ length: count }, (_, i) => `C${String(i + 1).padStart(2, '0')}`);

/** Listens at once. All other paths return 404; that includes robots.txt, so everything is allowed. */
export async function servePages(ids: readonly string[], host: string, port: number): Promise<PageServer> {
  const known = new Set(ids.map((id) => `/p/${id}`));
  const arrivals: Arrival[] = [];
  const server = createServer((request, response) => {
    const path = request.url ?? '';
    const address = request.socket.remoteAddress?.replace(/^::ffff:/, '') ?? '';
    arrivals.push({ atMs: performance.timeOrigin + performance.now(), address, path });
    const found = request.method === 'GET' && known.has(path);
    response.writeHead(found ? 200 : 404, { 'content-type': 'text/html; charset=utf-8' });
    response.end(found ? pageOf(path.slice('/p/'.length)) : 'not found');
  });
  server.listen(port, host);
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    arrivals: () => arrivals,
    async close() {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}

function pageOf(id: string): string {
  const { title, price } = rowOf(id);
  return `<!doctype html><html lang="en"><head><title>${title}</title></head><body><h1>${title}</h1><p class="price">${price}</p></body></html>`;
}
