/**
 * A TCP link to MySQL that can lose the connection in a COMMIT: just before the packet gets through, or after the
 * server has executed it while its answer is on the way. The client cannot tell the two cases apart.
 */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

export type CutAt = 'before' | 'after';

export interface CommitCutter {
  /** The given URL, through this link. */
  url: string;
  /** Called at each COMMIT: returns where to cut, or null to let it pass. */
  onCommit: () => CutAt | null;
  /** Number of connections cut. */
  cuts(): number;
  close(): Promise<void>;
}

/** 4 bytes of length and number, COM_QUERY, the text: a statement of its own, so always a packet of its own. */
function isCommit(chunk: Buffer): boolean {
  return chunk.length <= 16 && chunk[4] === 3 && /^commit;?$/i.test(chunk.toString('latin1', 5));
}

/** Passes everything until `onCommit` is set. */
export async function startCommitCutter(url: string): Promise<CommitCutter> {
  const target = new URL(url);
  const sockets = new Set<Socket>();
  let cuts = 0;
  const listener = createServer({ noDelay: true }, (client) => {
    const server = connect({ port: Number(target.port), host: target.hostname, noDelay: true });
    const reset = (): void => [client, server].forEach((s) => s.resetAndDestroy());
    let swallowing = false;
    for (const socket of [client, server]) {
      sockets.add(socket);
      socket.on('error', reset).on('close', () => {
        sockets.delete(socket);
        reset();
      });
    }
    client.on('data', (chunk) => {
      const at = isCommit(chunk) ? cutter.onCommit() : null;
      if (at !== null) cuts++;
      if (at === 'before') return reset();
      swallowing = at === 'after';
      server.write(chunk);
    });
    server.on('data', (chunk) => (swallowing ? reset() : client.write(chunk)));
  });
  listener.listen(0, '127.0.0.1');
  await once(listener, 'listening');
  const by = new URL(url);
  by.hostname = '127.0.0.1';
  by.port = String((listener.address() as AddressInfo).port);
  const cutter: CommitCutter = {
    url: by.href,
    onCommit: () => null,
    cuts: () => cuts,
    async close() {
      for (const socket of sockets) socket.destroy();
      listener.close();
      await once(listener, 'close');
    },
  };
  return cutter;
}
