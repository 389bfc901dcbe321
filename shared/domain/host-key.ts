/** What one pace, one owner and one rest hold for where pages may be on any host. */
import { getDomain, parse } from 'tldts';
import { siteHostOf } from './same-site.ts';

/** `site.host_key`. */
export type HostKey = 'domain' | 'host';

/**
 * What one pace holds for: by default the registrable domain of a URL's host, such as `shop.example` of
 * `www.shop.example`: one operator serves all of it. An IP address, or a name without a public suffix, is its own key.
 * All names below a private suffix, such as `blogspot.com`, share one key, because the same servers answer for them.
 * With `host` each name has its own key, `www.` and the bare name one in common; `domainOf` the key is the domain of
 * the URL.
 */
export function hostGroupOf(url: Pick<URL, 'hostname'>, key: HostKey = 'domain'): string {
  const domain = getDomain(url.hostname, ANY_LABELS) ?? url.hostname.replace(/\.$/, '');
  if (key === 'domain') return domain;
  const host = siteHostOf(url);
  // `www.co.uk` is a domain itself.
  return host.length < domain.length ? domain : host;
}

/** Wildcard DNS answers for labels that no registry would accept, such as `-a-` and `a$b`. */
const ANY_LABELS = { validateHostname: false };

/** True for a name such as `co.uk`, below which many operators have their domains: it is no host itself. */
export function isPublicSuffix({ hostname }: Pick<URL, 'hostname'>): boolean {
  const { domain, isIcann } = parse(hostname);
  return domain === null && isIcann === true;
}
