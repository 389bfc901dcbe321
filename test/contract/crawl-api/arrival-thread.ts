/* oxlint-disable unicorn/require-post-message-target-origin -- threads have no origin */
/** The thread of an arrival relay: forwards all bytes, and adds the arrival time to the head of each request. */
import net, { type AddressInfo, type Socket } from 'node:net';
import { parentPort, workerData } from 'node:worker_threads';

const { address, port, header } = workerData as { address: string; port: number; header: string };

const server = net.createServer({ allowHalfOpen: true, noDelay: true }, (client) => {
  const stub = net.connect({
    host: address,
    port,
    // The stub must see the client's address.
    localAddress: client.remoteAddress!,
    allowHalfOpen: true,
    noDelay: true,
  });
  // Pages are requested with GET, one after the other, and a head arrives in one piece.
  client.on('data', (bytes) => stub.write(withArrival(bytes)));
  client.on('end', () => stub.end());
  stub.pipe(client);
  resetWith(stub, client);
  resetWith(client, stub);
});
server.listen(0, address, () => parentPort!.postMessage((server.address() as AddressInfo).port));

function withArrival(head: Buffer): Buffer {
  const atMs = performance.now();
  const [line, ...fields] = head.toString('latin1').split('\r\n');
  return Buffer.from([line, `${header}: ${atMs}`, ...fields].join('\r\n'), 'latin1');
}

/** A connection that breaks on one side breaks on the other. */
function resetWith(broken: Socket, other: Socket): void {
  broken.on('error', () => other.resetAndDestroy());
  broken.on('close', () => other.destroySoon());
}
