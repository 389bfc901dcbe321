/** `/healthz` on the operator's listener, for a monitor on this machine. */
import { hostname } from 'node:os';
import { isIP } from 'node:net';
import express, { type Express, type NextFunction, type Request, type Response } from 'express';

/**
 * 200 when `ok`, else 503. Callers on this machine get the whole answer as JSON; other, unauthenticated callers get
 * only `ok`, because the rest reveals runs, times and faults. `listenHost` is a name by which callers may address it.
 */
export function createHealthApp(
  health: () => { ok: boolean },
  listenHost: string,
  isNear: (address: string | undefined) => boolean = isLoopbackAddress,
): Express {
  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  app.use(refuseWebPages(listenHost));
  app.get('/healthz', (request, response) => {
    const answer = health();
    const { ok } = answer;
    response
      .set('cache-control', 'no-store')
      .status(ok ? 200 : 503)
      .json(isNear(request.socket.remoteAddress) ? answer : { ok });
  });
  app.use((_request, response) => void response.status(404).json({ ok: false, error: 'no such route' }));
  return app;
}

/** Takes a socket's address; an IPv4 address may be written as an IPv6 one. */
export const isLoopbackAddress = (address: string | undefined): boolean =>
  /^(::1|(::ffff:)?127\.\d+\.\d+\.\d+)$/.test(address ?? '');

/**
 * The web page of another site can make a browser request this address: directly, and then its Origin is another, or
 * Sec-Fetch-Site says so, as for images, which have no Origin; or by DNS rebinding, and then its own name is the Host.
 * A browser cannot use an address as such a name. A link to the page from another site is followed, one to its data is
 * not.
 */
export function refuseWebPages(listenHost: string): (request: Request, response: Response, next: NextFunction) => void {
  const names = new Set(['localhost', hostname().toLowerCase(), listenHost.toLowerCase()]);
  return (request, response, next) => {
    const host = /^(?:\[([^\]]+)\]|([^:[\]]+))(?::\d{1,5})?$/.exec(request.headers.host ?? '');
    const name = (host?.[1] ?? host?.[2] ?? '').toLowerCase();
    const { origin } = request.headers;
    const isForeign = origin !== undefined && origin.replace(/^https?:\/\//, '') !== request.headers.host;
    if (!isForeign && !isFetchedByOthers(request) && (isIP(name) > 0 || names.has(name))) return next();
    response.status(403).json({ ok: false, error: 'not for web pages' });
  };
}

/** Programs send no such header. Pages on other ports of this machine are `same-site`. */
function isFetchedByOthers({ headers, method, path }: Request): boolean {
  const site = headers['sec-fetch-site'];
  if (site === undefined || site === 'same-origin' || site === 'none') return false;
  const isLink =
    method === 'GET' && headers['sec-fetch-mode'] === 'navigate' && headers['sec-fetch-dest'] === 'document';
  return !isLink || path.startsWith('/api/') || path === '/metrics';
}
