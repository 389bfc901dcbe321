/**
 * The addresses that a crawl may connect to: public ones, and a private one only if the user named it. No page and no
 * DNS record can lead a request to the metadata service, the private network or our own listeners.
 */
import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';
import { bareHostOf, portOf } from '../../domain/same-site.ts';
import { type ProductUrl, templatesOf } from '../../domain/domains.ts';

export interface GuardOptions {
  /** A literal private ip:port in it is allowed, and only that one. */
  productUrl: ProductUrl;
  /** The same is true of these origins. */
  further?: readonly string[] | undefined;
  /** Host names may resolve to private addresses. */
  allowPrivate: boolean;
  /** Addresses that are never allowed: this instance's own listeners and its metadata service. */
  forbidden: readonly { address: string; port: number }[];
}

export interface AddressGuard {
  /** Why a connection to this host and port is refused, or null. A name passes: it is checked when it is resolved. */
  checkHost(host: string, port: number): string | null;
  /** Why a name that resolves to this address is refused, or null. */
  checkResolved(address: string): string | null;
}

type Kind = 'public' | 'private' | 'never';

export function createAddressGuard(options: GuardOptions): AddressGuard {
  const named = [...templatesOf(options.productUrl), ...(options.further ?? [])].map(literalTarget);
  const forbidden = options.forbidden.map(({ address, port }) => ({ address: normalise(address), port }));
  return {
    checkHost(address, port) {
      if (isIP(address) === 0) return null;
      const plain = normalise(address);
      if (forbidden.some((f) => f.address === plain && f.port === port))
        return `${address}:${port} is this instance's own`;
      const kind = classifyAddress(address);
      if (kind === 'public') return null;
      if (kind === 'private' && named.some((n) => n?.address === plain && n.port === port)) return null;
      return `${address}:${port} is not a public address`;
    },
    checkResolved(address) {
      const plain = normalise(address);
      if (forbidden.some((f) => f.address === plain)) return `the name resolves to this instance's own ${address}`;
      const kind = classifyAddress(address);
      if (kind === 'public' || (kind === 'private' && options.allowPrivate)) return null;
      return `the name resolves to ${address}, which is not public${kind === 'private' ? ' (site.allow_private would allow it)' : ''}`;
    },
  };
}

const PRIVATE_RANGES = ['private', 'loopback', 'uniqueLocal', 'carrierGradeNat'];
/** AWS answers metadata and other link-local services here too. */
const AWS_LOCAL_V6 = ipaddr.IPv6.parseCIDR('fd00:ec2::/32');
/** Azure's endpoint for a VM's configuration and DNS; formally public, in fact local. */
const AZURE_LOCAL = '168.63.129.16';
/** The allocated public IPv6 range; the library also counts unallocated ranges and old forms of IPv4 as unicast. */
const PUBLIC_V6 = ipaddr.IPv6.parseCIDR('2000::/3');
/** Embeds an IPv4 address in its last four bytes; DNS servers return it in IPv6-only networks. */
const NAT64 = ipaddr.IPv6.parseCIDR('64:ff9b::/96');

function classifyAddress(text: string): Kind {
  const address = parse(text);
  if (!address) return 'never';
  if (address.kind() === 'ipv6' && address.match(AWS_LOCAL_V6)) return 'never';
  if (address.toString() === AZURE_LOCAL) return 'never';
  const range = address.range();
  if (range === 'unicast') return address.kind() === 'ipv4' || address.match(PUBLIC_V6) ? 'public' : 'never';
  return PRIVATE_RANGES.includes(range) ? 'private' : 'never';
}

/** The effective address: the IPv4 address where it is only embedded in IPv6. */
function parse(text: string): ipaddr.IPv4 | ipaddr.IPv6 | null {
  if (!ipaddr.isValid(text)) return null;
  const address = ipaddr.process(text);
  if (address.kind() === 'ipv4' || !address.match(NAT64)) return address;
  return ipaddr.fromByteArray(address.toByteArray().slice(12));
}

function normalise(address: string): string {
  return parse(address)?.toString() ?? address;
}

function literalTarget(template: string): { address: string; port: number } | null {
  const origin = /^https?:\/\/[^/?#]+/i.exec(template)?.[0];
  if (origin === undefined || origin.includes('{') || !URL.canParse(origin)) return null;
  const url = new URL(origin);
  const host = bareHostOf(url);
  if (!ipaddr.isValid(host)) return null;
  return { address: normalise(host), port: portOf(url) };
}
