/** Two instances behind one egress address would crawl at twice the intended pace: only one may continue. Pure. */
import type { EpochId } from '../../../shared/domain/epoch-id.ts';
import type { FleetSnapshot } from '../model/fleet-snapshot.ts';
import type { InstanceRecord } from '../model/stores.ts';
import { isGivenUp } from '../model/instance-state.ts';

/** The instance that keeps the record's address; null when that is the record itself, or none shares the address. */
export function sharesAddressWith(fleet: FleetSnapshot, record: InstanceRecord): InstanceRecord | null {
  const owner = record.address === null ? undefined : fleet.addressOwners.get(record.address);
  return owner === undefined || owner === record || isGivenUp(record) ? null : owner;
}

/** What is known of an instance's address when it says hello. */
export interface Seen {
  source: string | undefined;
  ec2: string | null;
  own: string;
}

/**
 * The egress address of an instance, as far as the main server can tell: the public source of its hello (a NAT shows
 * there), else the public address from EC2, else the address it reported. A private source may be a proxy in front of
 * the main server and proves nothing; a reported loopback address is the one it is bound to.
 * @param direct it is known that no public proxy is in front of the main server; else EC2's address precedes the source
 */
export function egressAddress(seen: Seen, direct: boolean): string {
  if (seen.own.startsWith('127.')) return seen.own;
  const source = sourceOf(seen);
  const ec2 = seen.ec2 !== null && isPublic(seen.ec2) ? seen.ec2 : null;
  if (source !== null && (direct || ec2 === null)) return source;
  return ec2 ?? seen.own;
}

/**
 * The address a hello came from if EC2 shows another for its instance; null when it is one of those shown, or cannot be
 * judged: this machine's own, or a private one while only the public one is known. NATs and proxies are legitimate, so
 * this only raises an alarm.
 */
export function foreignSource(
  source: string | undefined,
  shown: { public: string | null; private: string | null },
): string | null {
  const plain = source?.replace(/^::ffff:/, '');
  if (plain === undefined || /^(127\.|::1$)/.test(plain)) return null;
  if (plain === shown.public || plain === shown.private) return null;
  if (shown.public === null && shown.private === null) return null;
  return !isPublic(plain) && shown.private === null ? null : plain;
}

/** The public address that a hello came from; null when the source proves nothing. */
function sourceOf({ source }: Seen): string | null {
  const plain = source?.replace(/^::ffff:/, '');
  return plain !== undefined && isPublic(plain) ? plain : null;
}

type Located = EpochId & { address: string };

/**
 * The hellos of one run, as this main server received them. Behind a public proxy all instances look alike; a hello
 * from the very address that EC2 shows proves that there is none.
 */
export class Sources {
  #direct = false;
  /** Instances recorded under EC2's address before that was known, with the source of their hello. */
  #doubtful: Located[] = [];

  /** The address of this instance, and corrected ones of others once a hello has shown that sources can be trusted. */
  hello({ slot, epoch }: EpochId, seen: Seen): { address: string; corrected: readonly Located[] } {
    const source = sourceOf(seen);
    this.#direct ||= source !== null && source === seen.ec2;
    const address = egressAddress(seen, this.#direct);
    const later = egressAddress(seen, true);
    if (later !== address) this.#doubtful.push({ slot, epoch, address: later });
    if (!this.#direct) return { address, corrected: [] };
    const corrected = this.#doubtful;
    this.#doubtful = [];
    return { address, corrected };
  }
}

/**
 * Private, shared, loopback and link-local ranges (RFC 1918, 6598, 1122, 3927); of IPv6 only 2000::/3 is in use for the
 * public.
 */
const NOT_PUBLIC = /^(0|10|127|169\.254|172\.(1[6-9]|2\d|3[01])|192\.168|100\.(6[4-9]|[7-9]\d|1[01]\d|12[0-7]))\./;

function isPublic(address: string): boolean {
  if (address.includes(':')) return /^[23]/.test(address);
  return /^\d+\.\d+\.\d+\.\d+$/.test(address) && !NOT_PUBLIC.test(address);
}
