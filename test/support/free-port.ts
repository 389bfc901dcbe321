/** A free port for a program that cannot choose one itself. */
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';

/**
 * For programs whose port must still be free when they start, or again after they were killed. Any outgoing connection
 * may take a port of 127.0.0.1; none takes a port of this address. Only Linux has the address without setup.
 */
export const QUIET_ADDRESS = process.platform === 'linux' ? '127.0.9.1' : '127.0.0.1';

/** A port that is free on this address now; it is not reserved. Prefer port 0 where the program supports it. */
export async function freePort(address = '127.0.0.1'): Promise<number> {
  const probe = createServer();
  probe.listen(0, address);
  await once(probe, 'listening');
  const { port } = probe.address() as AddressInfo;
  probe.close();
  await once(probe, 'close');
  return port;
}
