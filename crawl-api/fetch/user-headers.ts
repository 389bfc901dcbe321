/**
 * The headers and cookies of the user: which of them a request gets, and the secrets among them, which come with a
 * heartbeat's reply and are kept in memory alone.
 */
import type { Secrets } from '../../shared/wire/secrets.ts';
import { secretsIn, type SiteSettings, type UserHeadersOf } from '../../shared/wire/site-settings.ts';
import { splitUrl } from './split-url.ts';

interface GivenCookie {
  name: string;
  value: string;
  /** No script of a page may read it. */
  isSecret: boolean;
}

/** What a request to one authority sends for the user. */
export interface Sends {
  origin: string;
  /** Names in lower case. */
  headers: Readonly<Record<string, string>>;
  cookies: readonly GivenCookie[];
}

/** A shorter value is no secret worth the name, and would mask what only looks like it. */
const MIN_MASKED_CHARS = 6;
const MASK = '***';

export class UserHeaders {
  readonly #given: readonly UserHeadersOf[];
  readonly needsSecrets: boolean;
  /** Of the secrets; null before the first. */
  version: string | null = null;
  #values: ReadonlyMap<string, string> = new Map();
  #masked: readonly string[] = [];
  #sends = new Map<string, Sends>();

  constructor(site: Pick<SiteSettings, 'userHeaders'>) {
    this.#given = site.userHeaders ?? [];
    this.needsSecrets = secretsIn(site).length > 0;
  }

  /** False while secrets are missing: without them no request may be sent. */
  get isComplete(): boolean {
    return !this.needsSecrets || this.version !== null;
  }

  /** Takes the secrets from now on. */
  take(version: string, { values, masked }: Secrets): void {
    this.version = version;
    this.#values = new Map(Object.entries(values));
    // What was sent under an earlier secret may still come back.
    this.#masked = [...new Set([...this.#masked, ...masked.flatMap(spellings)])].toSorted(
      (a, b) => b.length - a.length,
    );
    this.#sends = new Map();
  }

  /** What a request for this URL sends; undefined unless its scheme, host and port are those that it was given for. */
  at(url: string): Sends | undefined {
    if (this.#given.length === 0) return undefined;
    const origin = splitUrl(url)?.origin;
    const given = this.#given.find((one) => one.origin === origin);
    if (given === undefined) return undefined;
    let sends = this.#sends.get(given.origin);
    if (sends === undefined) this.#sends.set(given.origin, (sends = this.#fill(given)));
    return sends;
  }

  /** The text without the secrets, however an address or a page may spell them. */
  readonly mask = (text: string): string =>
    this.#masked.reduce((masked, secret) => masked.replaceAll(secret, MASK), text);

  /**
   * A copy of what is to be recorded, each text in it masked, but for what stands under these keys of its own; the
   * value itself where there are no secrets.
   */
  maskAll<T extends object>(value: T, kept: readonly string[] = []): T {
    if (this.#masked.length === 0) return value;
    const entries = Object.entries(value) as [string, unknown][];
    return Object.fromEntries(
      entries.map(([key, inner]) => [key, kept.includes(key) ? inner : maskTexts(inner, this.mask)]),
    ) as T;
  }

  #fill({ origin, headers, cookies }: UserHeadersOf): Sends {
    const valueOf = (value: UserHeadersOf['headers'][string]): string =>
      typeof value === 'string' ? value : (this.#values.get(value.secret) ?? '');
    return {
      origin,
      headers: Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, valueOf(value)])),
      cookies: Object.entries(cookies).map(([name, value]) => ({
        name,
        value: valueOf(value),
        isSecret: typeof value !== 'string',
      })),
    };
  }
}

function maskTexts(value: unknown, mask: (text: string) => string): unknown {
  if (typeof value === 'string') return mask(value);
  if (Array.isArray(value)) return value.map((one) => maskTexts(one, mask));
  if (typeof value !== 'object' || value === null || value instanceof Error) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, maskTexts(inner, mask)]));
}

const HTML: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };

/** A secret as it is, in an address, in a form, in HTML and in JSON. */
function spellings(secret: string): string[] {
  if (secret.length < MIN_MASKED_CHARS) return [];
  const encoded = encodeURIComponent(secret);
  return [
    secret,
    encoded,
    encoded.replaceAll(/%../g, (octet) => octet.toLowerCase()),
    encodeURI(secret),
    new URLSearchParams([['', secret]]).toString().slice(1),
    secret.replaceAll(/[&<>"']/g, (sign) => HTML[sign]!),
    JSON.stringify(secret).slice(1, -1),
    Buffer.from(secret).toString('base64'),
  ];
}
