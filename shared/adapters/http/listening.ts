/** Starting and ending servers. */
import type { Server as HttpServer } from 'node:http';
import type { ListenOptions, Server } from 'node:net';

/** Rejects when the address cannot be bound. */
export function listen(server: Server, options: ListenOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(options, () => {
      server.off('error', reject);
      resolve();
    });
  });
}

/** Closes a server and its open connections. */
export function closeServer(server: Server | HttpServer): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    if ('closeAllConnections' in server) server.closeAllConnections();
  });
}
