/** What one pace, one owner and one rest hold for where pages may be on any host. */
import { getDomain, parse } from 'tldts';

/**
 * The registrable domain of a URL's host, such as `shop.example` of `www.shop.example`: one operator serves all of it.
 * An IP address, or a name without a public suffix, is its own key. All names below a private suffix, such as
 * `blogspot.com`, share one key, because the same servers answer for them.
 */
export const hostGroupOf = ({ hostname }: Pick<URL, 'hostname'>): string => getDomain(hostname) ?? hostname;

/** True for a name such as `co.uk`, below which many operators have their domains: it is no host itself. */
export function isPublicSuffix({ hostname }: Pick<URL, 'hostname'>): boolean {
  const { domain, isIcann } = parse(hostname);
  return domain === null && isIcann === true;
}
