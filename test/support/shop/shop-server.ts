/** The demo shop's HTTP server: records each arrival, then passes the request to the site or the control API. */
import { createServer, type IncomingMessage, type Server } from 'node:http';
import { pipeline } from 'node:stream/promises';
import { Arrivals } from './arrivals.ts';
import { Bans } from './bans.ts';
import { CONTROL_PATH, answerControl } from './control.ts';
import { readApiRequest } from './post-api.ts';
import { Rules } from './rules.ts';
import { placeOf, type ShopSettings, Site } from './site.ts';

async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  // A client that has gone needs no answer.
  await pipeline(request, async (body: AsyncIterable<Buffer>) => {
    for await (const chunk of body) chunks.push(chunk);
  }).catch(() => undefined);
  return Buffer.concat(chunks).toString('utf8');
}

/** A shop that is not yet listening. */
export function createShopServer(settings: ShopSettings): Server {
  const arrivals = new Arrivals();
  const rules = new Rules();
  const bans = new Bans();
  const site = new Site(settings, { rules, bans });

  const server = createServer((request, response) => {
    // Taken before any other work, because tests judge politeness by this number.
    const atMs = performance.now();
    const url = request.url ?? '/';
    if (url.startsWith(CONTROL_PATH)) {
      void answerControl({ arrivals, rules, bans, site }, request, response);
      return;
    }
    const place = placeOf(url);
    const address = (request.socket.remoteAddress ?? '').replace(/^::ffff:/, '');
    const entry = arrivals.add({
      kind: place.kind,
      address,
      method: request.method ?? '',
      path: url,
      id: place.id,
      userAgent: request.headers['user-agent'] ?? '',
      headers: request.headers,
      atMs,
      wallMs: Date.now(),
    });
    response.on('close', () => arrivals.end(entry, response.headersSent ? response.statusCode : 0));
    if (request.method !== 'POST') {
      request.resume();
      site.serve(request, response, place, address);
      return;
    }
    const answerPost = async (): Promise<void> => {
      const body = await readBody(request);
      entry.body = body;
      const asked = readApiRequest(place.path, request.headers['content-type'] ?? '', body);
      if (asked) entry.id = asked.id;
      site.serve(request, response, { ...place, id: entry.id, ...(asked && { asked }) }, address);
    };
    void answerPost();
  });
  // As long as common front-end servers keep idle connections, so that a crawl at 10 s per page can keep its own.
  server.keepAliveTimeout = 75_000;
  return server;
}
