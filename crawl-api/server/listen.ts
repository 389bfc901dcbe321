/** Starts a listener with the timeouts that a load balancer in front of it needs. */
import http, { type RequestListener, type Server } from 'node:http';
import { limitConnections } from '../../shared/adapters/http/connection-limit.ts';
import { limitRequests } from '../../shared/adapters/http/request-limit.ts';
import { listen as bind } from '../../shared/adapters/http/listening.ts';
import { AppError } from '../../shared/domain/errors.ts';

/** Maximum unauthenticated connections: a load balancer needs a few per node; it bounds strangers' memory. */
export const MAX_CONNECTIONS = 512;

/**
 * Resolves when the server listens. Idle connections outlive the load balancer's 60 s. Otherwise the server could close
 * one just as the balancer sends an offer on it, and the sender would get a 502 for an offer that was delivered.
 */
export async function listen(app: RequestListener, address: string, port: number): Promise<Server> {
  const server = http.createServer({ keepAliveTimeout: 65_000, headersTimeout: 66_000, requestTimeout: 70_000 }, app);
  limitConnections(server, { ofAll: MAX_CONNECTIONS });
  limitRequests(server);
  await bind(server, { host: address, port, exclusive: true }).catch((cause: NodeJS.ErrnoException) => {
    const code = cause.code === 'EADDRINUSE' ? 'port-taken' : 'platform';
    throw new AppError(code, `cannot listen on ${address}:${port}: ${cause.message}`, { cause });
  });
  return server;
}
