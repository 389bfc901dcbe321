/**
 * One spelling for all links to a page, by fixed rules that keep what may matter to the site; and the shape of a path,
 * by which traps are noticed: pages without end that a site makes from their own links.
 */
import { textBefore } from './text-before.ts';
import { sharesRobots } from './same-site.ts';

/** What is wrong with a path by itself. */
export type PathFault = 'a step repeats' | 'a pair of steps repeats' | 'too many steps' | 'too many parameters';

/** Longest path with its query. */
export const MAX_PATH_CHARS = 768;

/** Longest link that is looked at: what is dropped from it may be long. */
const MAX_LINK_CHARS = 8_192;
/** Two are enough for what sites write. */
const MAX_ROUNDS = 5;
/** What `findPathFault` lets pass. */
const PATH_LIMITS = { steps: 16, parameters: 10, repeats: 3 };

/**
 * Parameters, in lower case, that say where a visitor comes from; also all that begin with `utm_` or `hsa_`.
 */
const TRACKING_BY_ORIGIN = {
  google: [
    'gclid',
    'gclsrc',
    'gbraid',
    'wbraid',
    'dclid',
    '_ga',
    '_gl',
    '_gac',
    'srsltid',
    'gad_source',
    'gad_campaignid',
  ],
  meta: ['fbclid', 'igshid', 'igsh'],
  x: ['ref_src', 'ref_url', 'twclid'],
  otherNetworks: ['ttclid', 'li_fat_id', 'epik', 'sccid', 'rdt_cid'],
  microsoft: ['msclkid'],
  yandex: ['yclid', 'ysclid', '_openstat'],
  yahooJapan: ['yjr_yjad'],
  mailchimp: ['mc_cid', 'mc_eid'],
  hubspot: ['_hsenc', '_hsmi', '__hssc', '__hstc', '__hsfp', 'hsctatracking'],
  otherMails: ['_kx', 'mkt_tok', 'vero_id', 'vero_conv', '__s', 's_cid', 'oly_enc_id', 'oly_anon_id'],
  matomo: [
    'mtm_campaign',
    'mtm_keyword',
    'mtm_source',
    'mtm_medium',
    'pk_campaign',
    'pk_kwd',
    'pk_source',
    'pk_medium',
  ],
  affiliates: ['_branch_match_id', 'irclickid', 'wickedid', 'cjevent'],
};
const TRACKING = new Set(Object.values(TRACKING_BY_ORIGIN).flat());

/** True for a parameter that says where a visitor comes from and never which page it is. */
export function isTracking(name: string): boolean {
  const key = name.toLowerCase();
  return key.startsWith('utm_') || key.startsWith('hsa_') || TRACKING.has(key);
}

/** Session ids by their name alone, in lower case. */
const SESSION = new Set(['jsessionid', 'phpsessid', 'aspsessionid', 'asp.net_sessionid', 'cfid', 'cftoken', 'oscsid']);
/** Session ids only when the value is one: a page's own parameter may have such a name. */
const SESSION_IF_HASH = new Set(['sid', 'sessid', 'sessionid', 'session_id', 'session', 'zenid', 'xtcsid']);

/**
 * Path and query of a link to the host of `base`, in one spelling; null for a link to another host or scheme, with
 * credentials or NUL, or longer than 768 characters.
 *
 * A leading `www.` and http instead of https are the same host. Dot segments are resolved; escapes are in upper case,
 * and only where needed; tracking parameters and session ids are dropped, parameters sorted by name, those of one name
 * in their order; an empty query and the fragment are dropped. Case, `//` and a final `/` stay, as they may matter.
 *
 * Append it to an origin; do not resolve it as a link, where `//a/b` would name a host.
 */
export function canonicalPath(link: string, base: URL): string | null {
  if (link.length > MAX_LINK_CHARS || link.includes('\0') || link.includes('%00')) return null;
  const url = URL.parse(link, base.href);
  if (!url || url.username !== '' || url.password !== '' || !sharesRobots(base.href, url.href)) return null;
  const path = canonicalForm(url);
  return path !== null && path.length <= MAX_PATH_CHARS ? path : null;
}

/** Path and query of a URL in the same spelling, of any length; null if none is found. */
export function canonicalForm(url: URL): string | null {
  let path = normalize(url);
  // What is dropped may leave a dot segment behind.
  for (let round = 0; round < MAX_ROUNDS; round++) {
    const again = normalize(new URL(url.origin + path));
    if (again === path) return path;
    path = again;
  }
  return null;
}

function normalize(url: URL): string {
  const path = dropPathSessions(normalizeEscapes(url.pathname));
  const query = normalizeQuery(url.search.slice(1));
  return query === '' ? path : `${path}?${query}`;
}

/**
 * RFC 3986, 6.2.2: escapes in upper case, unreserved characters as they are. Characters that a URL must not contain are
 * escaped, also a `%` that begins no escape.
 */
function normalizeEscapes(text: string): string {
  return text.replace(/%([\da-f]{2})|[^\w\-.~!$&'()*+,;=:@/?]/gi, (found, hex: string | undefined) => {
    if (hex === undefined) return encodeByte(found.charCodeAt(0));
    const byte = Number.parseInt(hex, 16);
    const character = String.fromCharCode(byte);
    return /[\w\-.~]/.test(character) ? character : encodeByte(byte);
  });
}

const encodeByte = (byte: number): string => `%${byte.toString(16).toUpperCase().padStart(2, '0')}`;

/** `/a;jsessionid=1F/b`, and the `/(S(…))/` of ASP.NET. */
function dropPathSessions(path: string): string {
  const kept = path.replace(/;([^/;=]*)=([^/;]*)/g, (parameter, name: string, value: string) =>
    isSession(name.toLowerCase(), value) ? '' : parameter,
  );
  return kept.replace(/\/\([AFS]\([\w-]{24,}\)\)(?=\/|$)/g, '') || '/';
}

function isSession(name: string, value: string): boolean {
  if (SESSION.has(name) || /^aspsessionid[a-z]{8}$/.test(name)) return true;
  return SESSION_IF_HASH.has(name) && /^[\da-f]{32}$/i.test(value);
}

function normalizeQuery(query: string): string {
  const parameters: { name: string; text: string }[] = [];
  for (const part of query.split('&')) {
    if (part === '') continue;
    const text = normalizeEscapes(part);
    const { name, value } = splitParameter(text);
    const key = name.toLowerCase();
    if (isTracking(key) || isSession(key, value)) continue;
    parameters.push({ name, text });
  }
  parameters.sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
  return parameters.map(({ text }) => text).join('&');
}

function splitParameter(text: string): { name: string; value: string } {
  const equals = text.indexOf('=');
  return equals === -1 ? { name: text, value: '' } : { name: text.slice(0, equals), value: text.slice(equals + 1) };
}

/**
 * The shape of a path: pages that differ only in numbers, dates, hashes or the values of parameters have the same.
 * `/calendar/2026/11?view=day` is `/calendar/#/#?view`.
 */
export function patternOf(path: string): string {
  const { steps, parameters } = splitPath(path);
  const shape = replaceNumbers(steps);
  const names = new Set(parameters.map((parameter) => replaceNumbers(textBefore(parameter, '='))));
  return names.size === 0 ? shape : `${shape}?${[...names].sort().join('&')}`;
}

/**
 * Why a path is probably a trap; null when it is not by itself: a step or a pair of steps three times in a row
 * (`/a/b/a/b/a/b`), more than 16 steps, or more than 10 parameters.
 */
export function findPathFault(path: string): PathFault | null {
  const { steps, parameters } = splitPath(path);
  const names = steps.replace(/^\/|\/$/g, '').split('/');
  if (repeatsInARow(names, 1)) return 'a step repeats';
  if (repeatsInARow(names, 2)) return 'a pair of steps repeats';
  if (names.length > PATH_LIMITS.steps) return 'too many steps';
  return parameters.length > PATH_LIMITS.parameters ? 'too many parameters' : null;
}

function splitPath(path: string): { steps: string; parameters: string[] } {
  const mark = path.indexOf('?');
  if (mark === -1) return { steps: path, parameters: [] };
  const parameters = path
    .slice(mark + 1)
    .split('&')
    .filter((parameter) => parameter !== '');
  return { steps: path.slice(0, mark), parameters };
}

/** An escape, which stays; a UUID; a hexadecimal word of 8 digits or more with a decimal one; a run of digits. */
const NUMBERS =
  /%[\da-f]{2}|[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}|(?<![\da-z])(?=[a-f]*\d)[\da-f]{8,}(?![\da-z])|\d+/gi;

const replaceNumbers = (text: string): string => text.replace(NUMBERS, (found) => (found[0] === '%' ? found : '#'));

/** True when `length` names in a row come three times one after the other. */
function repeatsInARow(names: readonly string[], length: number): boolean {
  let equal = 0;
  for (let i = length; i < names.length; i++) {
    equal = names[i] === names[i - length] ? equal + 1 : 0;
    if (equal === length * (PATH_LIMITS.repeats - 1)) return true;
  }
  return false;
}
