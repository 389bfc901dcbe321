/** Whether links of nodes lead to the page itself. */
import { decodePercent } from '../../../shared/domain/percent.ts';

/** What identifies a page: http and https, a leading `www.`, a slash at the end of the path and the fragment do not. */
interface Address {
  host: string;
  path: string;
  parameters: URLSearchParams;
}

export class PageAddress {
  readonly #url: string;
  readonly #base: string;
  #page: Address | null = null;

  /** `base`: what relative links are resolved against. */
  constructor(url: string, base: string) {
    this.#url = url;
    this.#base = base;
  }

  get isFrontPage(): boolean {
    const { path, parameters } = this.#own();
    return path === '' && parameters.size === 0;
  }

  /**
   * How surely the link is the page's: 0 if it is another, else 1 and 1 more for each parameter of its query.
   * Parameters that only the page has do not count: they may be a visitor's.
   */
  score(link: string): number {
    const target = this.#read(link);
    const { path, parameters } = this.#own();
    if (target?.path !== path) return 0;
    const wanted = [...target.parameters];
    return wanted.every(([name, value]) => parameters.getAll(name).includes(value)) ? 1 + wanted.length : 0;
  }

  /** Whether the link is certainly another page of the same site, other than its front page. */
  isElsewhere(link: string): boolean {
    const target = this.#read(link);
    if (target === null || target.path === '') return false;
    const { path, parameters } = this.#own();
    if (target.path !== path) return true;
    return [...target.parameters].some(
      ([name, value]) => parameters.has(name) && !parameters.getAll(name).includes(value),
    );
  }

  /** Whether two links lead to the same page; a parameter that only one of them has does not count. */
  areSame(link: string, other: string): boolean {
    const [one, another] = [addressOf(link, this.#base), addressOf(other, this.#base)];
    if (one === null || another === null) return link === other;
    if (one.host !== another.host || one.path !== another.path) return false;
    return [...one.parameters].every(
      ([name, value]) => !another.parameters.has(name) || another.parameters.getAll(name).includes(value),
    );
  }

  #own(): Address {
    return (this.#page ??= addressOf(this.#url, this.#url) ?? {
      host: '',
      path: '',
      parameters: new URLSearchParams(),
    });
  }

  /** The address that a link leads to; null for links to another host and for what is no link. */
  #read(link: string): Address | null {
    const target = link === '' ? null : addressOf(link, this.#base);
    return target?.host === this.#own().host ? target : null;
  }
}

function addressOf(link: string, base: string): Address | null {
  const url = URL.parse(link, base);
  if (url === null) return null;
  const path = decodePercent(url.pathname).replace(/\/$/, '');
  return { host: url.host.replace(/^www\./, ''), path, parameters: url.searchParams };
}
