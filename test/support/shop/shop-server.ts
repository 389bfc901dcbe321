/**
 * The demo shop's HTTP side. Product pages are at `/item/:id`; what tests ask and tell the shop is below `/_shop/` and
 * counts for nothing: GET log (NDJSON), GET stats, POST rules, POST products (more IDs to sell), POST reset.
 */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { createServer } from 'node:http';
import { text } from 'node:stream/consumers';
import { z } from 'zod';
import { Arrivals } from './arrivals.ts';
import { renderPage } from './page.ts';
import { STRANGE_IDS, expectedProduct, productIds } from './product.ts';
import { Rules, behaviourOfPrefix, misbehave } from './rules.ts';

export interface ShopSettings {
  seed: number;
  /** How many numbered products there are, beside STRANGE_IDS and IDs with a misbehaving prefix. */
  products: number;
}

/** A shop that does not listen yet. */
export function createShopServer({ seed, products }: ShopSettings): Server {
  const arrivals = new Arrivals();
  const rules = new Rules();
  const sold = new Set([...productIds(products), ...STRANGE_IDS]);

  const server = createServer((request, response) => {
    // First of all, before any work that could delay it: this number is what politeness is judged by.
    const atMs = performance.now();
    const path = request.url ?? '/';
    if (path.startsWith('/_shop/')) {
      control(request, response).catch((error: unknown) => {
        response.writeHead(400, { 'content-type': 'text/plain; charset=utf-8' }).end(String(error));
      });
      return;
    }
    const id = productIdOf(path);
    const entry = arrivals.add({
      address: (request.socket.remoteAddress ?? '').replace(/^::ffff:/, ''),
      method: request.method ?? '',
      path,
      id,
      userAgent: request.headers['user-agent'] ?? '',
      atMs,
      wallMs: Date.now(),
    });
    response.on('close', () => arrivals.end(entry, response.headersSent ? response.statusCode : 0));
    request.resume();
    serve(request, response, id);
  });
  // As long as common front servers keep idle connections, so that a crawl at 10 s a page can keep its own.
  server.keepAliveTimeout = 75_000;
  return server;

  function serve(request: IncomingMessage, response: ServerResponse, id: string | null): void {
    if (request.method !== 'GET' && request.method !== 'HEAD') return sendNote(response, 405, 'method not allowed');
    if (id === null || !(sold.has(id) || behaviourOfPrefix(id))) return sendNote(response, 404, 'no such page');
    const product = expectedProduct(seed, id);
    const sendPage = (without: Parameters<typeof renderPage>[1] = []): void => {
      const page = Buffer.from(renderPage(product, without));
      response.writeHead(200, { 'content-type': 'text/html; charset=utf-8', 'content-length': page.length }).end(page);
    };
    const behaviour = rules.take(id);
    if (!behaviour) return sendPage();
    const later = (ms: number, then: () => void): void => {
      const timer = setTimeout(then, ms);
      response.on('close', () => clearTimeout(timer));
    };
    misbehave({ product, response, sendPage, later }, behaviour);
  }

  async function control(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const route = `${request.method} ${(request.url ?? '').slice('/_shop/'.length)}`;
    switch (route) {
      case 'GET log':
        response.writeHead(200, { 'content-type': 'application/x-ndjson' });
        response.end(
          arrivals
            .list()
            .map((entry) => `${JSON.stringify(entry)}\n`)
            .join(''),
        );
        return;
      case 'GET stats':
        response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(arrivals.stats()));
        return;
      case 'POST rules':
        rules.set(JSON.parse(await text(request)));
        break;
      case 'POST products':
        for (const id of z.array(z.string().min(1)).parse(JSON.parse(await text(request)))) sold.add(id);
        break;
      case 'POST reset':
        arrivals.clear();
        rules.clear();
        break;
      default:
        return sendNote(response, 404, 'no such control');
    }
    response.writeHead(204).end();
  }
}

/** The decoded ID of a product page; null for every other path. A slash that is part of an ID comes as %2F. */
export function productIdOf(path: string): string | null {
  const encoded = /^\/item\/([^/?#]+)$/.exec(path)?.[1];
  if (encoded === undefined) return null;
  try {
    return decodeURIComponent(encoded);
  } catch {
    return null;
  }
}

function sendNote(response: ServerResponse, status: number, note: string): void {
  response.writeHead(status, { 'content-type': 'text/html; charset=utf-8' });
  response.end(`<!doctype html><title>${note}</title><h1>${note}</h1>`);
}
