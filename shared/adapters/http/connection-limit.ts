/**
 * Limits a listener's unauthenticated connections, per remote address and in total. Honest callers may share an address
 * (NAT, a load balancer) and must always get in: the oldest unauthenticated connection is closed for the newest.
 */
import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { Server as TlsServer } from 'node:tls';

/**
 * Enough for every instance of a large fleet to send its hello at once from one address; few enough for our file
 * descriptors.
 */
const MAX_OF_ONE_ADDRESS = 256;

/** Connections that have carried a correctly signed message: they are never closed. */
const proved = new WeakSet<Socket>();

/** The connection that carries an encrypted one: requests come from the latter, crowds consist of the former. */
const carriers = new WeakMap<Socket, Socket>();

const carrierOf = (socket: Socket): Socket => carriers.get(socket) ?? socket;

/** Marks this connection as authenticated. */
export function markProved(socket: Socket): void {
  proved.add(carrierOf(socket));
}

/** True when this connection is authenticated. */
export const isProved = (socket: Socket): boolean => proved.has(carrierOf(socket));

/** Ends the connection at once. An encrypted one cannot be reset itself: Node throws. */
export function resetConnection(socket: Socket): void {
  carrierOf(socket).resetAndDestroy();
}

/**
 * Beyond `ofOne` unauthenticated connections of one address, or `ofAll` in total, the oldest of them is reset. A
 * connection with an unfinished request took 27 kB in a measurement (8,000 of them, docs/decisions/0023-callbacks.md).
 */
export function limitConnections(
  server: Server,
  { ofOne = MAX_OF_ONE_ADDRESS, ofAll }: { ofOne?: number; ofAll: number },
): void {
  /** Oldest first, each with its address; and the same by address. */
  const all = new Map<Socket, string>();
  const byAddress = new Map<string, Map<Socket, string>>();
  const forget = (socket: Socket, address: string): void => {
    const theirs = byAddress.get(address);
    all.delete(socket);
    theirs?.delete(socket);
    if (theirs?.size === 0) byAddress.delete(address);
  };
  const makeRoom = (crowd: ReadonlyMap<Socket, string>, max: number): void => {
    for (const [oldest, address] of crowd) {
      if (crowd.size <= max) return;
      forget(oldest, address);
      if (!proved.has(oldest)) oldest.resetAndDestroy();
    }
  };
  server.on('connection', (socket) => {
    const address = socket.remoteAddress;
    // Already closed.
    if (address === undefined) return void socket.destroy();
    const theirs = byAddress.get(address) ?? new Map<Socket, string>();
    byAddress.set(address, theirs.set(socket, address));
    all.set(socket, address);
    socket.once('close', () => forget(socket, address));
    makeRoom(theirs, ofOne);
    makeRoom(all, ofAll);
  });
  if (!(server instanceof TlsServer)) return;
  server.on('secureConnection', (socket: Socket) => {
    const theirs = byAddress.get(socket.remoteAddress ?? '')?.keys() ?? [];
    for (const carrier of theirs)
      if (carrier.remotePort === socket.remotePort && carrier.localAddress === socket.localAddress)
        carriers.set(socket, carrier);
  });
}
