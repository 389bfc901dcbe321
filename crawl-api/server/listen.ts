/** Starts and stops a listener with the time limits that a balancer in front of it needs. */
import http from 'node:http';
import type { RequestListener, Server } from 'node:http';
import { limitConnections } from '../../shared/adapters/http/connection-limit.ts';
import { AppError } from '../../shared/domain/errors.ts';

/** Connections that have proved nothing, all together: a balancer needs a few for each of its nodes, strangers hold no more memory than these. */
export const MAX_CONNECTIONS = 512;

/**
 * Resolves when the server listens. Its idle connections live longer than the balancer's 60 s: otherwise it would close one just as the
 * balancer sends an offer on it, and the sender would see a 502 for something that was delivered.
 */
export function listen(app: RequestListener, address: string, port: number): Promise<Server> {
  const server = http.createServer({ keepAliveTimeout: 65_000, headersTimeout: 66_000, requestTimeout: 70_000 }, app);
  limitConnections(server, { ofAll: MAX_CONNECTIONS });
  return new Promise((resolve, reject) => {
    server.once('error', (cause: NodeJS.ErrnoException) => {
      const code = cause.code === 'EADDRINUSE' ? 'port-taken' : 'platform';
      reject(new AppError(code, `cannot listen on ${address}:${port}: ${cause.message}`, { cause }));
    });
    server.listen({ host: address, port, exclusive: true }, () => {
      server.removeAllListeners('error');
      resolve(server);
    });
  });
}

/** Closes the listener and every connection to it. */
export function stopListening(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}
