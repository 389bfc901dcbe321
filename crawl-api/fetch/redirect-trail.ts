/**
 * Which requests one page takes: the redirects that may be followed, and whether its own URL is requested once more
 * with the cookies that came on the way, as a person would after a consent page. A browser's cookies count like those
 * of HTTP.
 */
import type { CookieJar, JarContents, ReplyCookies } from '../../shared/adapters/http/cookie-jar.ts';
import { MAX_REDIRECTS } from '../../shared/domain/same-site.ts';

/** 307 and 308 ask for the same request at another URL (RFC 9110, 15.4.8); after others clients send a GET. */
export const keepsMethod = (status: number): boolean => status === 307 || status === 308;

/** Maximum times that a page's own URL is requested: a site may ask for consent, and then for a country. */
const MAX_ROUNDS = 3;

const MAX_NAME_CHARS = 100;

export class RedirectTrail {
  readonly #url: string;
  /** The jar of the page's domain; null when no cookies are kept. */
  readonly #cookies: CookieJar | null;
  /** The requests of this round: a request with other cookies is another one. */
  readonly #sent = new Set<string>();
  #rounds = 1;
  #lastSet: ReplyCookies | null = null;
  /** Names of the cookies that the latest request for the page's own URL sent. */
  #names: readonly string[] = [];
  /** The cookies before the first reply that set any; null when none did. */
  #before: JarContents | null = null;

  constructor(url: string, cookies: CookieJar | null) {
    this.#url = url;
    this.#cookies = cookies;
  }

  /** Notes a request; to be called before each. */
  note(url: string): void {
    this.#sent.add(this.#requestOf(url));
    if (url === this.#url) this.#names = this.#cookies?.names(url) ?? [];
  }

  /** Keeps the cookies of a reply for the requests after it. */
  keep(set: ReplyCookies | undefined): void {
    if (set === undefined) return;
    this.#lastSet = set;
    if (this.#cookies === null) return;
    this.#before ??= this.#cookies.contents();
    set.keep();
  }

  /** Name of a cookie that the last replies set, in case it is why they led nowhere; null when they set none. */
  cookie(): string | null {
    return this.#lastSet?.names()[0]?.slice(0, MAX_NAME_CHARS) || null;
  }

  /** False for a redirect in a circle, and after MAX_REDIRECTS of them. */
  mayFollow(to: string): boolean {
    return this.#sent.size <= MAX_REDIRECTS && !this.#sent.has(this.#requestOf(to));
  }

  /**
   * Begins another round, at the page's own URL; false unless the replies set a cookie for it whose name its latest
   * request lacked. For a page that did not end at its own URL.
   */
  beginsAgain(): boolean {
    if (this.#before === null || this.#cookies === null || this.#rounds === MAX_ROUNDS) return false;
    const fresh = this.#cookies.names(this.#url).filter((name) => !this.#names.includes(name));
    if (!this.#cookies.tryNames(fresh)) return false;
    this.#rounds++;
    this.#sent.clear();
    return true;
  }

  /** The replies were those of a ban: none of their cookies stays. */
  forget(): void {
    if (this.#before !== null) this.#cookies?.restore(this.#before);
  }

  #requestOf(url: string): string {
    return `${this.#cookies?.header(url) ?? ''}\n${url}`;
  }
}
