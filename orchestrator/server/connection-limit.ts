/**
 * A bound on the connections of one remote address. Instances may share an address (NAT, a balancer), so an honest caller
 * must get in however many others stand there: the oldest connection that has proved nothing makes room for the newest.
 */
import type { Server } from 'node:http';
import type { Socket } from 'node:net';

/** Room for every instance of a large fleet to say its first word at once from one address; few enough for our descriptors. */
export const MAX_UNPROVED = 256;

/** Connections on which a rightly signed call-back has come: they stay. */
const proved = new WeakSet<Socket>();

/** Says that who is on this connection is one of ours. */
export function markProved(socket: Socket): void {
  proved.add(socket);
}

/** Beyond `most` connections of one address that have proved nothing, the oldest of them is reset. */
export function limitConnections(server: Server, most: number = MAX_UNPROVED): void {
  /** By remote address, the oldest first. */
  const unproved = new Map<string, Set<Socket>>();
  server.on('connection', (socket) => {
    const address = socket.remoteAddress;
    // Gone before we came to it.
    if (address === undefined) return void socket.destroy();
    const theirs = unproved.get(address) ?? new Set();
    unproved.set(address, theirs.add(socket));
    socket.once('close', () => {
      theirs.delete(socket);
      if (theirs.size === 0 && unproved.get(address) === theirs) unproved.delete(address);
    });
    for (const oldest of theirs) {
      if (theirs.size <= most) break;
      theirs.delete(oldest);
      if (!proved.has(oldest)) oldest.resetAndDestroy();
    }
  });
}
