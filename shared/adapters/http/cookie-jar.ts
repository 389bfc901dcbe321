/**
 * Cookies as a browser keeps them (RFC 6265), in memory and bounded: a jar serves one address at one domain of a shop.
 */
import { Cookie, CookieJar as Rfc6265Jar, getPublicSuffix, MemoryCookieStore } from 'tough-cookie';
import type { Clock } from '../../ports/clock.ts';

/** Maximum cookies of a jar, and maximum bytes of their names and values. Beyond that the oldest ones are dropped. */
const MAX_COOKIES = 50;
const MAX_BYTES = 20 * 1_024;
/** Maximum bytes of one cookie's name and value; a longer one is ignored, as by browsers. */
const MAX_COOKIE_BYTES = 4_096;

const NONE: ReadonlySet<string> = new Set();

/** A cookie in the form that a browser takes and gives. */
export interface BrowserCookie {
  name: string;
  value: string;
  /** The host that it is for, with a leading dot if it is for sub-domains, too. */
  domain: string;
  path: string;
  /** Seconds since 1970; -1 for one that ends with the browser. */
  expires: number;
  httpOnly: boolean;
  secure: boolean;
  sameSite?: 'Strict' | 'Lax' | 'None';
}

/** The cookies that one reply sets. */
export interface ReplyCookies {
  names(): string[];
  /** Puts them into the jar that the request was made with; without one it does nothing. */
  keep(): void;
}

/** What `CookieJar.restore` takes. */
export type JarContents = readonly Cookie[];

export class CookieJar {
  readonly #clock: Pick<Clock, 'now'>;
  /** Null while the jar is empty: the library takes time and memory to load, and many shops set no cookie. */
  #kept: { store: MemoryCookieStore; jar: Rfc6265Jar } | null = null;
  /** Names for which a page was requested once more. */
  readonly #tried = new Set<string>();

  constructor(clock: Pick<Clock, 'now'>) {
    this.#clock = clock;
  }

  /**
   * Value of the Cookie header of a request, each character a byte; '' when there are no cookies for this URL.
   * @param without names to leave out
   */
  header(url: string, without: ReadonlySet<string> = NONE): string {
    return this.#cookiesFor(url)
      .filter(({ key }) => !without.has(key))
      .map((cookie) => cookie.cookieString())
      .join('; ');
  }

  /** Names of the cookies that a request for this URL sends. */
  names(url: string): string[] {
    return this.#cookiesFor(url).map(({ key }) => key);
  }

  /**
   * @param lines Set-Cookie headers of a reply from this URL, each character a byte; those that are invalid are ignored
   */
  keep(url: string, lines: readonly string[]): void {
    const from = placeOf(url);
    if (from === null) return;
    for (const line of lines) {
      const cookie = parse(line);
      if (cookie) this.#set(cookie, from);
    }
    this.#prune();
  }

  /** All cookies, for a browser. */
  all(): BrowserCookie[] {
    this.#prune();
    return this.contents().map(toBrowser);
  }

  /** Replaces the contents by a browser's cookies. */
  replace(cookies: readonly BrowserCookie[]): void {
    this.restore(cookies.map(fromBrowser));
    this.#prune();
  }

  contents(): JarContents {
    let contents: Cookie[] = [];
    this.#kept?.store.getAllCookies((_error, cookies) => (contents = cookies ?? []));
    return contents;
  }

  restore(contents: JarContents): void {
    this.#kept = contents.length === 0 ? null : openStore();
    for (const cookie of contents) this.#kept?.store.putCookie(cookie, () => undefined);
  }

  /** Empties the jar: from now on it is like a new one. */
  clear(): void {
    this.restore([]);
    this.#tried.clear();
  }

  /** True when one of the names is new here: once for each name, for at most as many as the jar has room for. */
  tryNames(names: readonly string[]): boolean {
    const fresh = names.filter((name) => !this.#tried.has(name)).slice(0, MAX_COOKIES - this.#tried.size);
    for (const name of fresh) this.#tried.add(name);
    return fresh.length > 0;
  }

  #cookiesFor(url: string): Cookie[] {
    const to = this.#kept === null ? null : placeOf(url);
    if (this.#kept === null || to === null) return [];
    const nowMs = this.#clock.now();
    return this.#kept.jar.getCookiesSync(to, { expire: false, sort: true }).filter((cookie) => !isOver(cookie, nowMs));
  }

  #set(cookie: Cookie, from: URL): void {
    const size = sizeOf(cookie);
    if (size === 0 || size > MAX_COOKIE_BYTES || !IS_SENDABLE.test(cookie.cookieString())) return;
    const nowMs = this.#clock.now();
    // The library counts Max-Age from the last use of a cookie, and by its own clock.
    if (typeof cookie.maxAge === 'number')
      cookie.expires = new Date(cookie.maxAge > 0 ? Math.min(nowMs + cookie.maxAge * 1_000, LATEST_MS) : 0);
    cookie.maxAge = null;
    // A public suffix may name itself only, and so may a host without a dot (RFC 6265, 5.3).
    if (cookie.domain === from.hostname && getPublicSuffix(cookie.domain, SPECIAL) === undefined) cookie.domain = null;
    this.#kept ??= openStore();
    this.#kept.jar.setCookieSync(cookie, from, { now: new Date(nowMs), ignoreError: true });
  }

  /** Drops what is over, and what is beyond the limits. */
  #prune(): void {
    const nowMs = this.#clock.now();
    let [count, bytes] = [0, 0];
    for (const cookie of this.contents().toReversed()) {
      const fits = count < MAX_COOKIES && bytes + sizeOf(cookie) <= MAX_BYTES;
      if (!fits || isOver(cookie, nowMs))
        this.#kept?.store.removeCookie(cookie.domain!, cookie.path!, cookie.key, () => undefined);
      else [count, bytes] = [count + 1, bytes + sizeOf(cookie)];
    }
    if (count === 0) this.#kept = null;
  }
}

/** The cookies of a reply over HTTP; undefined when it sets none. `jar` is null where none are kept. */
export function cookiesOf(
  header: string | string[] | undefined,
  url: string,
  jar: CookieJar | null,
): ReplyCookies | undefined {
  if (header === undefined) return undefined;
  const lines = [header].flat();
  return {
    names: () => lines.flatMap((line) => parse(line)?.key ?? []),
    keep: () => jar?.keep(url, lines),
  };
}

/**
 * The cookies of a browser after a page: those of the page's own site are kept, with what its scripts have set and
 * deleted. Undefined when they are as `before`.
 */
export function cookiesInBrowser(
  { url, before, after }: Record<'before' | 'after', readonly BrowserCookie[]> & { url: string },
  jar: CookieJar | null,
): ReplyCookies | undefined {
  const site = siteOf(URL.parse(url)?.hostname ?? '');
  const own = after.filter(({ domain }) => siteOf(domain.replace(/^\./, '')) === site);
  const changed = own.filter((cookie) => !before.some((other) => isSame(cookie, other)));
  if (changed.length === 0 && own.length === before.length) return undefined;
  return { names: () => changed.map(({ name }) => name), keep: () => jar?.replace(own) };
}

/** The library's jar picks the cookies that match. Its own store splits host names first, and throws for some. */
function openStore(): { store: MemoryCookieStore; jar: Rfc6265Jar } {
  const store = new MemoryCookieStore();
  store.findCookies = (_domain: unknown, _path: unknown, ...rest: unknown[]) =>
    store.getAllCookies(rest.at(-1) as never) as unknown as Promise<Cookie[]>;
  return { store, jar: new Rfc6265Jar(store, { looseMode: true }) };
}

const isSame = (a: BrowserCookie, b: BrowserCookie): boolean =>
  a.name === b.name && a.value === b.value && a.domain === b.domain && a.path === b.path;

/** Reads a cookie, also one without a name, as browsers do. */
const parse = (line: string): Cookie | undefined => Cookie.parse(line, { loose: true });

const SPECIAL = { allowSpecialUseDomain: true, ignoreError: true };
/** The last moment of a Date. */
const LATEST_MS = 8.64e15;
/** What may stand in a header. */
const IS_SENDABLE = /^[\t\x20-\x7e\x80-\xff]*$/;

/**
 * The URL in which cookies are looked up; null for an invalid one. The library decodes the path, and browsers do not:
 * `%` stands for itself afterwards.
 */
function placeOf(url: string): URL | null {
  const place = URL.parse(url);
  if (place?.pathname.includes('%')) place.pathname = place.pathname.replaceAll('%', '%25');
  return place;
}

const sizeOf = ({ key, value }: Cookie): number => key.length + value.length;

function isOver(cookie: Cookie, nowMs: number): boolean {
  return (cookie.expiryTime() ?? Infinity) <= nowMs;
}

/** The domain that its owner has registered; the host itself where that is unknown. */
function siteOf(host: string): string {
  return getPublicSuffix(host, SPECIAL) ?? host;
}

const SAME_SITE = { strict: 'Strict', lax: 'Lax', none: 'None' } as const;

function toBrowser(cookie: Cookie): BrowserCookie {
  const { key, value, domain, path, hostOnly, httpOnly, secure, sameSite } = cookie;
  const endsAt = cookie.expiryTime() ?? Infinity;
  const level = Object.entries(SAME_SITE).find(([name]) => name === sameSite)?.[1];
  return {
    name: toText(key),
    value: toText(value),
    domain: hostOnly ? domain! : `.${domain}`,
    path: path!,
    expires: endsAt === Infinity ? -1 : endsAt / 1_000,
    httpOnly,
    secure,
    ...(level === undefined ? {} : { sameSite: level }),
  };
}

function fromBrowser({ name, value, domain, path, expires, httpOnly, secure, sameSite }: BrowserCookie): Cookie {
  return new Cookie({
    key: toBytes(name),
    value: toBytes(value),
    domain: domain.replace(/^\./, ''),
    hostOnly: !domain.startsWith('.'),
    path,
    expires: expires < 0 ? null : new Date(expires * 1_000),
    httpOnly,
    secure,
    ...(sameSite === undefined ? {} : { sameSite: sameSite.toLowerCase() }),
  });
}

const toText = (bytes: string): string => Buffer.from(bytes, 'latin1').toString('utf8');
const toBytes = (text: string): string => Buffer.from(text, 'utf8').toString('latin1');

/** A jar for one address at one domain; null where `site.keep_cookies` is false. */
export const openJar = (
  { keepCookies = true }: { keepCookies?: boolean },
  clock: Pick<Clock, 'now'>,
): CookieJar | null => (keepCookies ? new CookieJar(clock) : null);
