/** The pages of a site that a discovery must not read: by the beginnings of their paths. Pure. */
import { canonicalPath } from './canonical-url.ts';
import { lastWhere } from './last-where.ts';

export class DenyList {
  /**
   * The prefixes, sorted; none begins with another one: the last one before a path is the only one that it may begin
   * with.
   */
  readonly #prefixes: readonly string[];
  readonly #base: URL;

  /** @param prefixes as `shortestPrefixes` gives them @param base of the site: paths are relative to it */
  constructor(prefixes: readonly string[], base: URL) {
    this.#prefixes = prefixes;
    this.#base = base;
  }

  /** False for a URL of another host. */
  hasUrl(url: string): boolean {
    const path = canonicalPath(url, this.#base);
    return path !== null && this.has(path);
  }

  /** @param path canonical. Most servers read `//` in it as `/`: both count. */
  has(path: string): boolean {
    return (
      this.#hasPrefixOf(path) || this.#hasPrefixOf(path.replace(/^[^?]*/, (steps) => steps.replace(/\/{2,}/g, '/')))
    );
  }

  #hasPrefixOf(path: string): boolean {
    const last = lastWhere(this.#prefixes, (prefix) => prefix <= path);
    return last !== undefined && path.startsWith(last);
  }
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
