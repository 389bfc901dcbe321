/** The demo shop's HTTP server: notes each arrival, then lets the site or the controls answer. */
import type { Server } from 'node:http';
import { createServer } from 'node:http';
import { Arrivals } from './arrivals.ts';
import { Bans } from './bans.ts';
import { CONTROL_PATH, answerControl } from './control.ts';
import { RobotsFile } from './robots-file.ts';
import { Rules } from './rules.ts';
import type { ShopSettings } from './site.ts';
import { Site, placeOf } from './site.ts';

/** A shop that does not listen yet. */
export function createShopServer(settings: ShopSettings): Server {
  const arrivals = new Arrivals();
  const rules = new Rules();
  const bans = new Bans();
  const robots = new RobotsFile();
  const site = new Site(settings, { rules, bans, robots });

  const server = createServer((request, response) => {
    // First of all, before any work that could delay it: this number is what politeness is judged by.
    const atMs = performance.now();
    const url = request.url ?? '/';
    if (url.startsWith(CONTROL_PATH)) {
      void answerControl({ arrivals, rules, bans, robots, site }, request, response);
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
      atMs,
      wallMs: Date.now(),
    });
    response.on('close', () => arrivals.end(entry, response.headersSent ? response.statusCode : 0));
    request.resume();
    site.serve(request, response, place, { address, nowMs: atMs });
  });
  // As long as common front servers keep idle connections, so that a crawl at 10 s a page can keep its own.
  server.keepAliveTimeout = 75_000;
  return server;
}
