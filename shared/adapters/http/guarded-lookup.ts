/**
 * A DNS lookup that returns only addresses which the guard allows, so that the checked address is the one connected to.
 */
import type { LookupAddress, LookupAllOptions, LookupOptions } from 'node:dns';
import type { AddressGuard } from './address-guard.ts';

/** The guard's refusal; its message names the address and the reason. */
export class AddressRefusedError extends Error {}

/** `dns.lookup` with all addresses. */
export type Lookup = (
  hostname: string,
  options: LookupAllOptions,
  callback: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void;

type LookupCallback = (error: NodeJS.ErrnoException | null, address: string | LookupAddress[], family?: number) => void;

export type GuardedLookup = (hostname: string, options: LookupOptions, callback: LookupCallback) => void;

/** The site has no address that a socket bound to an address of this family, 4 or 6, can reach. */
export const familyError = (family: number): Error =>
  new Error(`the site has only IPv${family === 4 ? 6 : 4} addresses, and the crawl uses IPv${family}`);

/**
 * Creates the `lookup` option of a socket: it drops refused addresses, and fails with an AddressRefusedError when none
 * is left.
 * @param family 4 or 6, because a socket bound to an address can reach only its own family; 0 for both
 */
export function createGuardedLookup(lookup: Lookup, guard: AddressGuard, family: number): GuardedLookup {
  return (hostname, options, callback) => {
    lookup(hostname, { ...options, family, all: true }, (error, addresses) => {
      if (error?.code === 'ENOTFOUND' && family !== 0) {
        // It may have addresses of the other family, which the socket cannot reach.
        lookup(hostname, { ...options, family: 0, all: true }, (none) => callback(none ?? familyError(family), ''));
        return;
      }
      if (error) return callback(error, '');
      const refusals = addresses.map(({ address }) => guard.checkResolved(address));
      const allowed = addresses.filter((_, i) => refusals[i] === null);
      const first = allowed[0];
      if (!first) {
        const why = refusals[0] ?? null;
        return callback(why === null ? new Error('the name has no address') : new AddressRefusedError(why), '');
      }
      if (options.all === true) return callback(null, allowed);
      return callback(null, first.address, first.family);
    });
  };
}
