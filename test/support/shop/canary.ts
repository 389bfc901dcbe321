/** A server that a crawl must never visit: it counts every connection, whatever is sent on it. */
import { once } from 'node:events';
import type { AddressInfo, Socket } from 'node:net';
import { createServer } from 'node:net';

export interface CanaryServer {
  /** Without a final slash. */
  url: string;
  port: number;
  /** Connections so far, with the first bytes received on each. */
  visits(): readonly { from: string; said: string }[];
  stop(): Promise<void>;
}

/** Listens on a free port of a loopback address. It answers like a web server, so that a visitor would return. */
export async function startCanary(address = '127.0.0.1'): Promise<CanaryServer> {
  const visits: { from: string; said: string }[] = [];
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    const visit = { from: socket.remoteAddress ?? '', said: '' };
    visits.push(visit);
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket)).on('error', () => undefined);
    socket.once('data', (data) => {
      visit.said = data.toString('latin1').slice(0, 200);
      const body = 'secret';
      socket.end(`HTTP/1.1 200 OK\r\naccess-control-allow-origin: *\r\ncontent-length: ${body.length}\r\n\r\n${body}`);
    });
  });
  server.listen(0, address);
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://${address}:${port}`,
    port,
    visits: () => visits,
    async stop() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}
