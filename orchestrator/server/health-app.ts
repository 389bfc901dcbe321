/** `/healthz` on the operator's listener: for a monitor on this machine, and nothing else yet. */
import { hostname } from 'node:os';
import { isIP } from 'node:net';
import type { Express, NextFunction, Request, Response } from 'express';
import express from 'express';

/**
 * 200 when `ok`, else 503. Callers of this machine get the whole answer as JSON; others, of whom nothing is known, only `ok`: the rest
 * tells runs, times and faults. `listenHost` is a name by which callers may address it.
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

/** Of a socket; an IPv4 address may be written as an IPv6 one. */
export const isLoopbackAddress = (address: string | undefined): boolean =>
  /^(::1|(::ffff:)?127\.\d+\.\d+\.\d+)$/.test(address ?? '');

/**
 * A web page can make a browser ask this address: directly, then there is an Origin, or by a name of its own that it lets
 * resolve to us, then that name is the Host. An address cannot be such a name.
 */
function refuseWebPages(listenHost: string): (request: Request, response: Response, next: NextFunction) => void {
  const names = new Set(['localhost', hostname().toLowerCase(), listenHost.toLowerCase()]);
  return (request, response, next) => {
    const host = /^(?:\[([^\]]+)\]|([^:[\]]+))(?::\d{1,5})?$/.exec(request.headers.host ?? '');
    const name = (host?.[1] ?? host?.[2] ?? '').toLowerCase();
    if (request.headers.origin === undefined && (isIP(name) > 0 || names.has(name))) return next();
    response.status(403).json({ ok: false, error: 'not for web pages' });
  };
}
