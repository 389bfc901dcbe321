/** What one pace, one owner and one rest hold for where pages may be on any host. */
import { getDomain } from 'tldts';

/**
 * The registrable domain of a URL's host, such as `shop.example` of `www.shop.example`: its servers are one house. An
 * address, or a name that no registry gives out, is its own key. Names below a private suffix, such as `blogspot.com`,
 * are one key: whoever runs them pays for all requests.
 */
export const hostGroupOf = ({ hostname }: Pick<URL, 'hostname'>): string => getDomain(hostname) ?? hostname;
