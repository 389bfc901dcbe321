/**
 * Bounds on a listener's connections that have proved nothing: of one remote address, and of all together. Honest callers may share an address with
 * others (NAT, a balancer) and must get in however many stand there: the oldest connection that has proved nothing makes room for the newest.
 */
import type { Server } from 'node:http';
import type { Socket } from 'node:net';

/** Room for every instance of a large fleet to say its first word at once from one address; few enough for our descriptors. */
const MAX_OF_ONE_ADDRESS = 256;

/** Connections on which a rightly signed message has come: they stay. */
const proved = new WeakSet<Socket>();

/** Says that who is on this connection is one of ours. */
export function markProved(socket: Socket): void {
  proved.add(socket);
}

/** True when this connection is one of ours. */
export const isProved = (socket: Socket): boolean => proved.has(socket);

/**
 * Beyond `ofOne` connections of one address that have proved nothing, or `ofAll` of all, the oldest of them is reset. A connection with an
 * unfinished request took 27 kB where it was measured (8,000 of them, docs/decisions/callbacks.md).
 */
export function limitConnections(
  server: Server,
  { ofOne = MAX_OF_ONE_ADDRESS, ofAll }: { ofOne?: number; ofAll: number },
): void {
  /** The oldest first, each with its address; and the same by address. */
  const all = new Map<Socket, string>();
  const byAddress = new Map<string, Map<Socket, string>>();
  const forget = (socket: Socket, address: string): void => {
    const theirs = byAddress.get(address);
    all.delete(socket);
    theirs?.delete(socket);
    if (theirs?.size === 0) byAddress.delete(address);
  };
  const makeRoom = (crowd: ReadonlyMap<Socket, string>, most: number): void => {
    for (const [oldest, address] of crowd) {
      if (crowd.size <= most) return;
      forget(oldest, address);
      if (!proved.has(oldest)) oldest.resetAndDestroy();
    }
  };
  server.on('connection', (socket) => {
    const address = socket.remoteAddress;
    // Gone before we came to it.
    if (address === undefined) return void socket.destroy();
    const theirs = byAddress.get(address) ?? new Map<Socket, string>();
    byAddress.set(address, theirs.set(socket, address));
    all.set(socket, address);
    socket.once('close', () => forget(socket, address));
    makeRoom(theirs, ofOne);
    makeRoom(all, ofAll);
  });
}
