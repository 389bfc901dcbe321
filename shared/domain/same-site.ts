/** Which redirects and links stay on the site that the user asked us to crawl, and under the rules of its robots.txt. */

/** Hops in a row that are followed for one page. */
export const MAX_REDIRECTS = 5;

/**
 * True when a redirect, or a link to a further page, from one absolute URL to the other stays on the site: both are http or
 * https, and the hosts are equal, differ by a leading `www.`, or one is a sub-domain of the other. IP addresses and names
 * without a dot have no sub-domains: there the host and the port must be the same. False for what is no URL.
 */
export function isSameSite(from: string, to: string): boolean {
  const a = parseHttp(from);
  const b = parseHttp(to);
  if (!a || !b) return false;
  const hostA = hostOf(a);
  const hostB = hostOf(b);
  if (isExact(hostA) || isExact(hostB)) return hostA === hostB && portOf(a) === portOf(b);
  const siteA = withoutWww(hostA);
  const siteB = withoutWww(hostB);
  return siteA === siteB || hostA.endsWith(`.${siteB}`) || hostB.endsWith(`.${siteA}`);
}

/**
 * True when the robots.txt of one URL's host holds for the other, too. RFC 9309: rules hold for the host and port they were read from, so
 * those of a sub-domain are its own. A leading `www.`, and http instead of https on their usual ports, make no other shop.
 */
export function sharesRobots(from: string, to: string): boolean {
  const a = parseHttp(from);
  const b = parseHttp(to);
  return a !== null && b !== null && a.port === b.port && withoutWww(hostOf(a)) === withoutWww(hostOf(b));
}

function parseHttp(text: string): URL | null {
  const url = URL.parse(text);
  return url && (url.protocol === 'http:' || url.protocol === 'https:') ? url : null;
}

/** `shop.example.` is the same host as `shop.example`. */
const hostOf = (url: URL): string => url.hostname.replace(/\.$/, '');

const portOf = (url: URL): string => url.port || (url.protocol === 'https:' ? '443' : '80');

/** An address, or a name such as `localhost`. URL has turned every spelling of an IPv4 address into four numbers. */
const isExact = (host: string): boolean => host.startsWith('[') || !host.includes('.') || /^[\d.]+$/.test(host);

/** `www.com` stays what it is: what is left must be a name with a dot. */
function withoutWww(host: string): string {
  const rest = host.startsWith('www.') ? host.slice(4) : host;
  return rest.includes('.') ? rest : host;
}
