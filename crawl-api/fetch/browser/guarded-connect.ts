/**
 * TCP connections for the browser: from the instance's own address, to addresses that the guard allows, checked on
 * connecting.
 */
import { lookup } from 'node:dns';
import { connect, isIP, type Socket } from 'node:net';
import type { AddressGuard } from '../../../shared/adapters/http/address-guard.ts';
import { createGuardedLookup } from '../../../shared/adapters/http/guarded-lookup.ts';

export interface ConnectOptions {
  /** Source address of every connection; it can reach no other address family. */
  localAddress: string;
  guard: AddressGuard;
  timeoutMs: number;
}

/**
 * A socket that connects to the host; it fails with an AddressRefusedError when the guard allows none of its addresses.
 */
export function connectGuarded(host: string, port: number, options: ConnectOptions): Socket {
  const { localAddress, guard, timeoutMs } = options;
  const socket = connect({
    host,
    port,
    localAddress,
    noDelay: true,
    lookup: createGuardedLookup(lookup, guard, isIP(localAddress)),
    autoSelectFamily: false,
  });
  socket.setTimeout(timeoutMs, () => {
    if (socket.connecting) socket.destroy(new Error(`no connection to ${host}:${port} within ${timeoutMs} ms`));
  });
  socket.once('connect', () => socket.setTimeout(0));
  return socket;
}
