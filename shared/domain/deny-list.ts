/** The pages of a site that a crawl must not read: by the beginnings of their paths. Pure. */
import { canonicalPath } from './canonical-url.ts';
import { lastWhere } from './last-where.ts';
import { hostKeyOf, siteHostOf } from './same-site.ts';

export class DenyList {
  /**
   * The prefixes of each host, sorted; none begins with another one: the last one before a path is the only one that it
   * may begin with.
   */
  readonly #prefixes = new Map<string, string[]>();
  readonly #base: URL | null;

  /**
   * @param prefixes of paths of the site, and of further hosts behind their origins; those of each host as
   *   `shortestPrefixes` gives them
   * @param base of the site: paths are relative to it. Null: pages may be on any host. Then a path is one of each host,
   *   and an origin stands for its name and all names below it, whatever the port
   */
  constructor(prefixes: readonly string[], base: URL | null) {
    this.#base = base;
    for (const prefix of prefixes) {
      const origin = /^https?:\/\/[^/]+/.exec(prefix)?.[0] ?? '';
      const key = this.#keyOf(origin);
      const known = this.#prefixes.get(key);
      if (known === undefined) this.#prefixes.set(key, [prefix.slice(origin.length)]);
      else known.push(prefix.slice(origin.length));
    }
  }

  /** False for a URL of a host that is not named. */
  hasUrl(url: string): boolean {
    const parsed = this.#prefixes.size === 0 ? null : URL.parse(url);
    if (parsed === null) return false;
    const keys = this.#base === null ? namesAbove(siteHostOf(parsed)) : [hostKeyOf(parsed)];
    const known = keys.flatMap((key) => (this.#prefixes.has(key) ? [this.#prefixes.get(key)!] : []));
    const path = known.length === 0 ? null : canonicalPath(url, parsed);
    return path !== null && known.some((prefixes) => isIn(prefixes, path));
  }

  /** @param path canonical, of the site. Most servers read `//` in it as `/`: both count. */
  has(path: string): boolean {
    return isIn(this.#prefixes.get(this.#keyOf('')) ?? [], path);
  }

  /** @param origin '' for the site, or for any host */
  #keyOf(origin: string): string {
    if (this.#base === null) return origin === '' ? '' : siteHostOf(new URL(origin));
    return hostKeyOf(origin === '' ? this.#base : new URL(origin));
  }
}

/** The name itself, those above it, and '' at last: `a.b.c`, `b.c`, `c`, ``. */
function namesAbove(name: string): string[] {
  const labels = name.split('.');
  return [...labels.map((_, i) => labels.slice(i).join('.')), ''];
}

const isIn = (prefixes: readonly string[], path: string): boolean =>
  hasPrefixOf(prefixes, path) ||
  hasPrefixOf(
    prefixes,
    path.replace(/^[^?]*/, (steps) => steps.replace(/\/{2,}/g, '/')),
  );

function hasPrefixOf(prefixes: readonly string[], path: string): boolean {
  const last = lastWhere(prefixes, (prefix) => prefix <= path);
  return last !== undefined && path.startsWith(last);
}

/** The same prefixes, sorted and without those that begin with another one. */
export function shortestPrefixes(prefixes: readonly string[]): string[] {
  const shortest: string[] = [];
  for (const prefix of prefixes.toSorted()) {
    const last = shortest.at(-1);
    if (last === undefined || !prefix.startsWith(last)) shortest.push(prefix);
  }
  return shortest;
}
