/** `site.headers`, `site.cookies` and `site.language`, of the site or of one domain: their form, and what is sent. */
import { z } from 'zod';
import type { ProductUrl } from '../../../shared/domain/domains.ts';
import { productUrl } from '../../../shared/domain/product.ts';
import { whyRefused } from '../../../shared/domain/refused-headers.ts';
import { AppError } from '../../../shared/domain/errors.ts';
import type { Secrets } from '../../../shared/wire/secrets.ts';
import { secretsIn, type SiteSettings, type UserHeadersOf } from '../../../shared/wire/site-settings.ts';
import type { MappingFault } from './faults.ts';
import { orNull, text } from './forms.ts';
import { hasVariable, readSecrets, unescaped, variablesIn, type VariableSources } from './variables.ts';

/** Much more than a request needs; servers refuse heads of more than 8 KB. */
const MAX_ENTRIES = 50;
const MAX_NAME_CHARS = 100;
const MAX_VALUE_CHARS = 4_000;

/** RFC 9110, 5.6.2. */
const TOKEN = /^[!#$%&'*+.^_`|~\w-]+$/;
const LANGUAGES =
  /^(\*|[A-Za-z]{1,8}(-[A-Za-z0-9]{1,8})*)(\s*;\s*q=[01](\.\d{1,3})?)?(\s*,\s*(\*|[A-Za-z]{1,8}(-[A-Za-z0-9]{1,8})*)(\s*;\s*q=[01](\.\d{1,3})?)?)*$/;

function findNameFault(name: string): string | null {
  if (!TOKEN.test(name) || name.length > MAX_NAME_CHARS) return 'is no name: letters, digits and - only';
  return null;
}

function findHeaderFault(name: string): string | null {
  const why = whyRefused(name);
  return findNameFault(name) ?? (why === null ? null : `is refused: ${why}`);
}

const entries = (findFault: (name: string) => string | null, nameOf: (key: string) => string) =>
  z.record(z.string(), z.string({ error: 'must be a text, in quotes' })).superRefine((all, context) => {
    const fault = (path: string[], message: string): void => context.addIssue({ code: 'custom', path, message });
    const names = Object.keys(all);
    for (const [i, name] of names.entries()) {
      const found = findFault(name);
      if (found !== null) fault([name], found);
      if (names.slice(0, i).some((other) => nameOf(other) === nameOf(name))) fault([name], 'is named twice');
    }
    if (names.length > MAX_ENTRIES) fault([], `has more than ${MAX_ENTRIES} entries`);
  });

const lower = (name: string): string => name.toLowerCase();
const headers = () => entries(findHeaderFault, lower);
const cookies = () => entries(findNameFault, (name) => name);
const language = () => text().regex(LANGUAGES, 'must be languages such as "de" or "de-CH, de;q=0.8"');

/** The keys of `site`. */
export const USER_HEADER_KEYS = {
  headers: headers()
    .default({})
    .describe(
      'Headers of each request for a page, to the hosts in `product_url` and nowhere else: `{ X-Currency: JPY, X-Api-Key: "${SHOP_KEY}" }`. A value with a variable is a secret. See [headers.md](headers.md).',
    ),
  cookies: cookies()
    .default({})
    .describe(
      'Cookies of each request for a page, likewise: `{ currency: JPY }`. A cookie that the site sets under one of these names does not replace it.',
    ),
  language: orNull(language()).describe(
    'Accept-Language of each request for a page: `"de-CH, de;q=0.8"`; none by default.',
  ),
};

/** The same keys of one domain: they win over those of the site. */
export const DOMAIN_HEADER_KEYS = {
  headers: headers().exactOptional(),
  cookies: cookies().exactOptional(),
  language: language().exactOptional(),
};

interface Sent {
  headers: Readonly<Record<string, string>>;
  cookies: Readonly<Record<string, string>>;
  language: string | null;
}

/** What of a section `site` decides what is sent. */
export interface SendingSite extends Sent {
  product_url: string | readonly ({ url: string; weight: number } & { [K in keyof Sent]?: Sent[K] & {} })[];
}

/** The URLs alone, as everything else takes them. */
export const plainProductUrl = (given: SendingSite['product_url']): ProductUrl =>
  typeof given === 'string' ? given : given.map(({ url, weight }) => ({ url, weight }));

const lowerNames = (given: Readonly<Record<string, string>>): Record<string, string> =>
  Object.fromEntries(Object.entries(given).map(([name, value]) => [lower(name), value]));

/** What is sent at one domain of a site, as it is written. */
export function sentAt({ product_url: given, ...site }: SendingSite, domain: number): Sent {
  const own: Partial<Sent> = typeof given === 'string' ? {} : (given[domain] ?? {});
  return {
    headers: { ...lowerNames(site.headers), ...lowerNames(own.headers ?? {}) },
    cookies: { ...site.cookies, ...own.cookies },
    language: own.language ?? site.language,
  };
}

const ACCEPT_LANGUAGE = 'accept-language';

const toWire = (given: Readonly<Record<string, string>>): UserHeadersOf['headers'] =>
  Object.fromEntries(
    Object.entries(given).map(([name, value]) => [name, hasVariable(value) ? { secret: value } : unescaped(value)]),
  );

/** What instances send beside what is usual; nothing where nothing is configured. */
export function userHeadersOf(site: SendingSite): Pick<SiteSettings, 'userHeaders'> {
  const templates = typeof site.product_url === 'string' ? [site.product_url] : site.product_url.map(({ url }) => url);
  const userHeaders = templates.flatMap((template, domain): UserHeadersOf[] => {
    const { headers: given, cookies: own, language: languages } = sentAt(site, domain);
    const all = { ...toWire(given), ...(languages === null ? {} : { [ACCEPT_LANGUAGE]: languages }) };
    if (Object.keys(all).length + Object.keys(own).length === 0) return [];
    return [{ origin: new URL(productUrl(template, 'x')).origin, headers: all, cookies: toWire(own) }];
  });
  return userHeaders.length === 0 ? {} : { userHeaders };
}

/** What is wrong with a value as it would be sent; null when nothing is. It never quotes the value. */
function findSentFault(kind: 'headers' | 'cookies', value: string): string | null {
  if (value.length > MAX_VALUE_CHARS) return `is longer than ${MAX_VALUE_CHARS} characters`;
  if (value.trim() === '') return 'is empty';
  if (value !== value.trim()) return 'begins or ends with a blank';
  if (!/^[\x20-\x7e]*$/.test(value)) return 'may have letters, digits and signs of ASCII only';
  return kind === 'cookies' && /[;\s]/.test(value) ? 'may have neither a blank nor a ;' : null;
}

/** Faults of the values, and of keys that say the same. @param fill what a text with variables becomes */
export function findUserHeaderFaults(site: SendingSite, fill: (text: string) => string): MappingFault[] {
  const places = [
    { path: ['site'], sent: site as Partial<Sent> },
    ...(typeof site.product_url === 'string'
      ? []
      : site.product_url.map((own, i) => ({ path: ['site', 'product_url', i], sent: own as Partial<Sent> }))),
  ];
  return places.flatMap(({ path, sent }) => [
    ...(['headers', 'cookies'] as const).flatMap((kind) =>
      Object.entries(sent[kind] ?? {}).flatMap(([name, value]) => {
        const message = findSentFault(kind, fill(value));
        return message === null ? [] : [{ path: [...path, kind, name], message }];
      }),
    ),
    ...Object.keys(sent.headers ?? {}).flatMap((name) =>
      lower(name) === ACCEPT_LANGUAGE && (sent.language ?? site.language) !== null
        ? [{ path: [...path, 'headers', name], message: 'says the same as site.language: keep one of them' }]
        : [],
    ),
  ]);
}

/**
 * The secrets that instances need, as they are now. Throws `config-invalid` when one has no value, or none that can be
 * sent; the message does not quote it.
 */
export function readSiteSecrets(site: Pick<SiteSettings, 'userHeaders'>, place: VariableSources): Secrets {
  const secrets = readSecrets(secretsIn(site), place);
  for (const { headers: sent, cookies: own } of site.userHeaders ?? [])
    for (const [kind, all] of [['headers', sent] as const, ['cookies', own] as const])
      for (const [name, value] of Object.entries(all)) {
        if (typeof value === 'string') continue;
        const fault = findSentFault(kind, secrets.values[value.secret] ?? '');
        if (fault !== null) throw new AppError('config-invalid', `site.${kind}.${name} ${fault}`);
      }
  return secrets;
}

/**
 * The environment for programs on this machine that outlive the main server, such as a dry run's machines: without the
 * secrets of the site. Nothing where there are none.
 */
export function withoutSecrets(
  site: Pick<SiteSettings, 'userHeaders'>,
  environment: VariableSources['environment'],
): { environment?: Record<string, string> } {
  const names = new Set(variablesIn(secretsIn(site)));
  if (names.size === 0) return {};
  const rest = Object.entries(environment).flatMap(([name, value]): [string, string][] =>
    value === undefined || names.has(name) ? [] : [[name, value]],
  );
  return { environment: Object.fromEntries(rest) };
}
