/**
 * The one HTTP client for everything that goes to the target: bound to the address given, one connection, and every
 * address checked at the moment of connecting, so that no answer of a DNS server can change in between.
 */
import dns from 'node:dns';
import { isIP } from 'node:net';
import { Agent, buildConnector } from 'undici';
import type { AddressGuard } from './address-guard.ts';
import { portOf } from './address-guard.ts';
import type { Lookup } from './guarded-lookup.ts';
import { AddressRefusedError, createGuardedLookup } from './guarded-lookup.ts';

export interface TargetOptions {
  /** Source address of every connection; null leaves it to the system. */
  localAddress: string | null;
  guard: AddressGuard;
  connectTimeoutMs: number;
  /** Asks the name servers; tests put another in its place. */
  lookup?: Lookup;
}

export function createTargetDispatcher(options: TargetOptions): Agent {
  const { guard, connectTimeoutMs, lookup = dns.lookup } = options;
  const bound = options.localAddress === null ? {} : { localAddress: options.localAddress };
  const connect = buildConnector({
    timeout: connectTimeoutMs,
    // One request at a time and its start on the wire is all that politeness needs; HTTP/2 would hide both.
    allowH2: false,
    lookup: createGuardedLookup(lookup, guard, isIP(options.localAddress ?? '')),
  });
  return new Agent({
    connections: 1,
    pipelining: 1,
    ...bound,
    connect(target, callback) {
      const host = target.hostname.replace(/^\[|\]$/g, '');
      const port = portOf(target.protocol, target.port);
      const fault = isIP(host) === 0 ? null : guard.checkLiteral(host, port);
      if (fault !== null) callback(new AddressRefusedError(fault), null);
      else connect({ ...target, ...bound }, callback);
    },
  });
}
