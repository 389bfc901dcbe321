/**
 * The only HTTP client for requests to the target: bound to the given address, one connection, and every address
 * checked at connect time, so that a DNS answer cannot change in between.
 */
import dns from 'node:dns';
import { isIP } from 'node:net';
import { Agent, buildConnector } from 'undici';
import { bareHostOf, portOf } from '../../domain/same-site.ts';
import type { AddressGuard } from './address-guard.ts';
import { AddressRefusedError, createGuardedLookup, familyError, type Lookup } from './guarded-lookup.ts';
import { MAX_HEAD_BYTES } from './reply-head.ts';
import { normaliseReplies } from './reply-normaliser.ts';

export interface TargetOptions {
  /** Source address of every connection; null lets the system choose. */
  localAddress: string | null;
  guard: AddressGuard;
  connectTimeoutMs: number;
  /** Queries DNS; tests replace it. */
  lookup?: Lookup;
  /** Called when a connection stands; throws when nothing may be sent any more. */
  onConnected?: (() => void) | undefined;
}

export function createTargetDispatcher(options: TargetOptions): Agent {
  const { guard, connectTimeoutMs, lookup = dns.lookup } = options;
  const ownFamily = isIP(options.localAddress ?? '');
  const bound = options.localAddress === null ? {} : { localAddress: options.localAddress };
  const connect = buildConnector({
    timeout: connectTimeoutMs,
    // Politeness needs one request at a time and its start on the wire; HTTP/2 would hide both.
    allowH2: false,
    lookup: createGuardedLookup(lookup, guard, ownFamily),
  });
  return new Agent({
    connections: 1,
    pipelining: 1,
    // The normaliser limits the head; the parser only counts the same bytes again.
    maxHeaderSize: 2 * MAX_HEAD_BYTES,
    ...bound,
    connect(target, callback) {
      const fault = guard.checkHost(bareHostOf(target), portOf(target));
      if (fault !== null) return callback(new AddressRefusedError(fault), null);
      const family = isIP(target.hostname);
      if (family !== 0 && ownFamily !== 0 && family !== ownFamily) return callback(familyError(ownFamily), null);
      connect({ ...target, ...bound }, (...[error, socket]) => {
        if (error) return callback(error, null);
        try {
          options.onConnected?.();
        } catch (fault) {
          socket.destroy();
          return callback(fault as Error, null);
        }
        normaliseReplies(socket);
        callback(null, socket);
      });
    },
  });
}
