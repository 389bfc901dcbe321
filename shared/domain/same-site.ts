/** Which redirects and links stay on the user's site and under the rules of its robots.txt. */

/** Maximum redirects followed for one page. */
export const MAX_REDIRECTS = 5;

/**
 * True when a redirect, or a link to a further page, from one absolute URL to the other stays on the site: both are
 * http or https, and the hosts are equal, differ by a leading `www.`, or one is a subdomain of the other. IP addresses
 * and names without a dot have no subdomains: their host and port must be equal. False for an invalid URL.
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
 * True when the robots.txt of one URL's host also applies to the other. RFC 9309: rules apply to the host and port they
 * were read from, so a subdomain has its own. A leading `www.`, or http instead of https on their default ports, is the
 * same shop.
 */
export function sharesRobots(from: string, to: string): boolean {
  return sharesHost(from, to) && new URL(from).port === new URL(to).port;
}

/** True when two URLs have the same host, whatever the port; a leading `www.` makes no difference. */
export function sharesHost(from: string, to: string): boolean {
  const a = parseHttp(from);
  const b = parseHttp(to);
  return a !== null && b !== null && siteHostOf(a) === siteHostOf(b);
}

function parseHttp(text: string): URL | null {
  const url = URL.parse(text);
  return url && (url.protocol === 'http:' || url.protocol === 'https:') ? url : null;
}

/** `shop.example.` is the same host as `shop.example`. */
const hostOf = (url: Pick<URL, 'hostname'>): string => url.hostname.replace(/\.$/, '');

/**
 * The name of a site: its host, without a leading `www.`. Two URLs have the same name if `sharesHost` is true of them.
 */
export const siteHostOf = (url: Pick<URL, 'hostname'>): string => withoutWww(hostOf(url));

/** The host and port that a robots.txt holds for: equal for two URLs of which `sharesRobots` is true. */
export const hostKeyOf = (url: URL): string => `${siteHostOf(url)}:${url.port}`;

/** The same as a name for users: without a colon where the port is the scheme's default. */
export const hostNameOf = (url: URL): string => hostKeyOf(url).replace(/:$/, '');

/** The port of a URL; the scheme's default where it names none. */
export const portOf = ({ protocol, port }: Pick<URL, 'protocol' | 'port'>): number =>
  port === '' ? (protocol === 'https:' ? 443 : 80) : Number(port);

/** The host without the brackets of an IPv6 address. */
export const bareHostOf = ({ hostname }: Pick<URL, 'hostname'>): string => hostname.replace(/^\[|\]$/g, '');

/**
 * An IP address, or a name such as `localhost`. URL has normalized every spelling of an IPv4 address to four numbers.
 */
const isExact = (host: string): boolean => host.startsWith('[') || !host.includes('.') || /^[\d.]+$/.test(host);

/** `www.com` stays unchanged: the rest must be a name with a dot. */
function withoutWww(host: string): string {
  const rest = host.startsWith('www.') ? host.slice(4) : host;
  return rest.includes('.') ? rest : host;
}
