/** A port for a program that must be told one before it listens. */
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:net';

/**
 * For programs whose port must still be free when they have started, or be theirs again after they were killed: any
 * connection may take a port of 127.0.0.1 meanwhile, none takes one of this address. Only Linux has it without set-up.
 */
export const QUIET_ADDRESS = process.platform === 'linux' ? '127.0.9.1' : '127.0.0.1';

/** One that is free on this address now; nobody keeps it. Where a program can take port 0 by itself, that is better. */
export async function freePort(address = '127.0.0.1'): Promise<number> {
  const probe = createServer();
  probe.listen(0, address);
  await once(probe, 'listening');
  const { port } = probe.address() as AddressInfo;
  probe.close();
  await once(probe, 'close');
  return port;
}
