/** A TCP link that keeps every byte of both directions: what the network between two processes would show. */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

export interface RecordingLink {
  /** Listens on 127.0.0.1. */
  port: number;
  /** Everything that has passed so far. */
  recorded(): Buffer;
  close(): Promise<void>;
}

/** @param targetPort on 127.0.0.1 */
export async function startRecordingLink(targetPort: number): Promise<RecordingLink> {
  const pieces: Buffer[] = [];
  const sockets = new Set<Socket>();
  const pass = (from: Socket, to: Socket): void => {
    sockets.add(from);
    from.on('data', (piece: Buffer) => {
      pieces.push(piece);
      to.write(piece);
    });
    from.on('error', () => undefined);
    from.once('close', () => {
      sockets.delete(from);
      to.destroy();
    });
  };
  const server = createServer((client) => {
    const target = connect(targetPort, '127.0.0.1');
    pass(client, target);
    pass(target, client);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    recorded: () => Buffer.concat(pieces),
    async close() {
      server.close();
      for (const socket of sockets) socket.destroy();
      await once(server, 'close');
    },
  };
}
