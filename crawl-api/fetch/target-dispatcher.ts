/**
 * The one HTTP client for everything that goes to the target: bound to the instance's own address, one connection, and
 * every address checked at the moment of connecting, so that no answer of a DNS server can change in between.
 */
import { lookup } from 'node:dns';
import type { LookupAddress, LookupOptions } from 'node:dns';
import { isIP } from 'node:net';
import { Agent, buildConnector } from 'undici';
import type { AddressGuard } from './address-guard.ts';
import { portOf } from './address-guard.ts';

/** The guard's refusal; its message says which address and why. */
export class AddressRefusedError extends Error {}

export interface TargetOptions {
  /** Source address of every connection. */
  localAddress: string;
  guard: AddressGuard;
  connectTimeoutMs: number;
}

export function createTargetDispatcher({ localAddress, guard, connectTimeoutMs }: TargetOptions): Agent {
  const connect = buildConnector({
    timeout: connectTimeoutMs,
    // One request at a time and its start on the wire is all that politeness needs; HTTP/2 would hide both.
    allowH2: false,
    lookup: createGuardedLookup(guard, isIP(localAddress)),
  });
  return new Agent({
    connections: 1,
    pipelining: 1,
    localAddress,
    connect(options, callback) {
      const host = options.hostname.replace(/^\[|\]$/g, '');
      const port = portOf(options.protocol, options.port);
      const fault = isIP(host) === 0 ? null : guard.checkLiteral(host, port);
      if (fault !== null) callback(new AddressRefusedError(fault), null);
      else connect({ ...options, localAddress }, callback);
    },
  });
}

type LookupCallback = (error: NodeJS.ErrnoException | null, address: string | LookupAddress[], family?: number) => void;

/** A look-up that leaves out refused addresses. A socket bound to an IPv4 address can reach no other family. */
function createGuardedLookup(guard: AddressGuard, family: number) {
  return (hostname: string, options: LookupOptions, callback: LookupCallback): void => {
    lookup(hostname, { ...options, family, all: true }, (error, addresses) => {
      if (error) return callback(error, '');
      const allowed = addresses.filter(({ address }) => guard.checkResolved(address) === null);
      const first = allowed[0];
      if (!first) {
        const fault = guard.checkResolved(addresses[0]?.address ?? '') ?? 'the name has no address';
        return callback(new AddressRefusedError(fault), '');
      }
      if (options.all === true) return callback(null, allowed);
      return callback(null, first.address, first.family);
    });
  };
}
