/** Starts an app on an address, with a clear error when the port is taken. */
import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { AppError, describeError } from '../../../shared/domain/errors.ts';
import { limitConnections } from '../../../shared/adapters/http/connection-limit.ts';
import { limitRequests } from '../../../shared/adapters/http/request-limit.ts';
import { closeServer } from '../../../shared/adapters/http/listening.ts';
import { findPortHolder } from './port-holder.ts';

/** Maximum unauthenticated connections: twice what the largest fleet opens at startup. */
const MAX_CONNECTIONS = 4_096;

export interface Listener extends AsyncDisposable {
  host: string;
  port: number;
  close(): Promise<void>;
}

/** A certificate and its key, as PEM. */
export interface Tls {
  cert: Buffer;
  key: Buffer;
}

/** The parts of `host:port`; an IPv6 host loses its brackets. */
export function splitAddress(address: string): { host: string; port: number } {
  const colon = address.lastIndexOf(':');
  return { host: address.slice(0, colon).replace(/^\[|\]$/g, ''), port: Number(address.slice(colon + 1)) };
}

/** `address` is `host:port`; port 0 binds a free one. Throws `port-taken`. */
export async function listen(app: RequestListener, address: string, setting: string, tls?: Tls): Promise<Listener> {
  const { host, port } = splitAddress(address);
  const server = tls ? createTlsServer(tls, app) : createServer(app);
  // Slow senders must not hold sockets: a callback is a few kilobytes.
  server.headersTimeout = 70_000;
  server.keepAliveTimeout = 65_000;
  server.requestTimeout = 30_000;
  limitConnections(server, { ofAll: MAX_CONNECTIONS });
  limitRequests(server);
  try {
    server.listen(port, host);
    await once(server, 'listening');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EADDRINUSE') {
      const holder = findPortHolder(port);
      const who = holder ? `process ${holder.pid} (${holder.command})` : 'another program';
      throw new AppError('port-taken', `port ${port} on ${host} is used by ${who}`, {
        hint: `Choose another with ${setting}.`,
        cause: error,
      });
    }
    throw new AppError('config-invalid', `cannot listen on ${address}: ${describeError(error)}`, {
      hint: `It comes from ${setting}.`,
      cause: error,
    });
  }
  const close = (): Promise<void> => closeServer(server);
  return { host, port: (server.address() as AddressInfo).port, close, [Symbol.asyncDispose]: close };
}
