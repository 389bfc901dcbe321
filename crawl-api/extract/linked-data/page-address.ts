/** Whether links of nodes lead to the page itself. */
import { decodePercent } from '../../../shared/domain/percent.ts';

export class PageAddress {
  readonly #url: URL | null;
  readonly #base: string;

  /** `base`: what relative links are resolved against. */
  constructor(url: string, base = url) {
    this.#url = URL.parse(url);
    this.#base = base;
  }

  get isFrontPage(): boolean {
    return this.#url === null || (pathOf(this.#url) === '' && this.#url.search === '');
  }

  /**
   * How surely the link is the page's: 0 if it is another, else 1 and 1 more for each parameter of its query. Parameters
   * that only the page has do not count: they may be a visitor's. Nor do http and https, a leading `www.`, a slash at the
   * end of the path, or the fragment.
   */
  score(link: string): number {
    const target = this.#parse(link);
    if (target === null || pathOf(target) !== pathOf(this.#url!)) return 0;
    const { searchParams } = this.#url!;
    const parameters = [...target.searchParams];
    return parameters.every(([name, value]) => searchParams.getAll(name).includes(value)) ? 1 + parameters.length : 0;
  }

  /** Whether the link is certainly another page of the same site, other than its front page. */
  isElsewhere(link: string): boolean {
    const target = this.#parse(link);
    if (target === null || pathOf(target) === '') return false;
    if (pathOf(target) !== pathOf(this.#url!)) return true;
    const { searchParams } = this.#url!;
    return [...target.searchParams].some(
      ([name, value]) => searchParams.has(name) && !searchParams.getAll(name).includes(value),
    );
  }

  /** Null for links to another host and for what is no link. */
  #parse(link: string): URL | null {
    const target = link === '' ? null : URL.parse(link, this.#base);
    return target !== null && this.#url !== null && hostOf(target) === hostOf(this.#url) ? target : null;
  }
}

const hostOf = ({ host }: URL): string => host.replace(/^www\./, '');
const pathOf = ({ pathname }: URL): string => decodePercent(pathname).replace(/\/$/, '');
