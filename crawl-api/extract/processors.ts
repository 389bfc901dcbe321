/**
 * What each processor makes of values. A value that it cannot process yields none. Results are bounded: no step
 * produces a text longer than its limit, or more than MAX_VALUES values.
 *
 * trim: runs of white space (line ends, no-break and ideographic spaces too) become one space; leading and trailing
 * ones are removed.
 * number, price, currency: see numbers/. An ambiguous number stays ambiguous; text steps use its text.
 * boolean and url: below; date: see date-format.ts.
 * integer: the number, if it is a whole one that fits 53 bits; of two readings the only whole one.
 */
import type { DecimalMark } from '../../shared/domain/currencies.ts';
import type { ChainValue, Processor } from '../../shared/domain/mapping.ts';
import { isAmbiguous, readingsOf } from '../../shared/domain/ambiguous-number.ts';
import { readCurrency, readNumber } from './numbers/read-number.ts';
import type { PageBudget } from './page-limits.ts';
import { BrokenText } from './text-breaks.ts';
import { MAX_VALUES } from './values.ts';

/** What a processor may read about the page. */
export interface StepContext {
  /** Base URL of links: the page's URL or its <base>. */
  base: string;
  budget: PageBudget;
  /** The values come from attributes, JSON or JSON-LD. */
  isMachine: boolean;
  /** Decimal marks that unambiguous numbers show are added here. */
  marks: Set<DecimalMark>;
}

/** The values after one step, texts cut to `maxChars`. Dates need a library: see compile-mapping.ts. */
export function processValues(
  step: Exclude<Processor, { type: 'date' }>,
  values: readonly ChainValue[],
  context: StepContext,
  maxChars: number,
): ChainValue[] {
  switch (step.type) {
    case 'trim':
      return values.map((value) => (typeof value === 'string' ? trim(value) : value));
    case 'lower':
      return values.map((value) => asText(value).toLowerCase());
    case 'upper':
      return values.map((value) => asText(value).toUpperCase().slice(0, maxChars));
    case 'number':
    case 'price':
      return mapValues(values, (value) => toNumber(value, step, context));
    case 'integer':
      return mapValues(values, (value) => toInteger(toNumber(value, step, context)));
    case 'currency':
      return mapValues(values, (value) => readCurrency(asText(value), step.currency ?? null));
    case 'boolean':
      return mapValues(values, (value) => (isAmbiguous(value) ? null : toBoolean(value)));
    case 'replace':
      return values.map((value) => replaceAll(asText(value), step.find, step.with, maxChars));
    case 'split':
      return values.flatMap((value) => splitAt(asText(value), step.by)).slice(0, MAX_VALUES);
    case 'join':
      return values.length === 0 ? [] : [joinAll(values, step.by, maxChars)];
    case 'first':
      return values.slice(0, 1);
    case 'all':
      return [...values];
    case 'default':
      return values.length > 0 ? [...values] : [step.value];
    case 'url':
      return mapValues(values, (value) => toUrl(asText(value), context.base));
  }
}

/** The results of `read`, without nulls. */
export function mapValues(values: readonly ChainValue[], read: (value: ChainValue) => ChainValue | null): ChainValue[] {
  const results: ChainValue[] = [];
  for (const value of values) {
    const result = read(value);
    if (result !== null) results.push(result);
  }
  return results;
}

function trim(text: string): string {
  return text.replace(/\s+/g, ' ').trim();
}

/**
 * `trim` of a link: browsers remove line ends and tabs inside a URL, where a space in their place would become a part
 * of it, and control characters at its ends.
 */
export function trimLinks(values: readonly ChainValue[]): ChainValue[] {
  return values.map((value) => (typeof value === 'string' ? trimLink(value) : value));
}

function trimLink(text: string): string {
  const link = text.replace(/[\t\n\r]+/g, '');
  let start = 0;
  let end = link.length;
  while (start < end && link.charCodeAt(start) <= 0x20) start++;
  while (end > start && link.charCodeAt(end - 1) <= 0x20) end--;
  return link.slice(start, end).trim();
}

/** The value as text: for an ambiguous number the page's text. */
export function asText(value: ChainValue): string {
  return isAmbiguous(value) ? value.text : String(value);
}

type NumberStep = Extract<Processor, { type: 'number' | 'integer' | 'price' }>;

function toNumber(value: ChainValue, step: NumberStep, { isMachine, marks }: StepContext): ChainValue | null {
  if (typeof value === 'boolean') return null;
  if (typeof value === 'number') return Number.isFinite(value) ? value : null;
  if (isAmbiguous(value)) return value;
  const price = step.type === 'price' ? { currency: step.currency ?? null } : null;
  const reading = readNumber(value, { decimal: step.decimal ?? null, isMachine, price });
  if (reading.mark !== null) marks.add(reading.mark);
  return reading.value;
}

/** The value as an integer. Of the readings of `1.250` only 1250 is whole, so that is the integer. */
function toInteger(value: ChainValue | null): ChainValue | null {
  if (value === null || !isAmbiguous(value)) return Number.isSafeInteger(value) ? value : null;
  if (readingsOf(value).length === 0) return value;
  const whole = readingsOf(value).filter((reading) => Number.isSafeInteger(reading));
  return whole.length === 2 ? value : (whole[0] ?? null);
}

/** Stops at the limit: a short search text and a long replacement could turn a page into gigabytes. */
function replaceAll(text: string, find: string, by: string, maxChars: number): string {
  const broken = new BrokenText(text);
  let result = '';
  let from = 0;
  while (result.length < maxChars) {
    const at = broken.plain.indexOf(find, from);
    if (at === -1) break;
    result += broken.slice(from, at) + by;
    from = at + find.length;
  }
  return (result + broken.slice(from)).slice(0, maxChars);
}

function splitAt(text: string, by: string): string[] {
  const broken = new BrokenText(text);
  let from = 0;
  return broken.plain.split(by, MAX_VALUES).map((piece) => {
    const start = from;
    from += piece.length + by.length;
    return broken.slice(start, start + piece.length);
  });
}

function joinAll(values: readonly ChainValue[], by: string, maxChars: number): string {
  let result = '';
  for (const [i, value] of values.entries()) {
    if (result.length >= maxChars) break;
    result += (i === 0 ? '' : by) + asText(value);
  }
  return result.slice(0, maxChars);
}

const MAX_URL_CHARS = 2_048;

/** The absolute form of a URL; null for anything else (`mailto:`, `javascript:`, an empty `#`, garbage). */
export function toUrl(link: string, base: string): string | null {
  const text = trimLink(link);
  if (text === '' || text.length > MAX_URL_CHARS) return null;
  const url = URL.canParse(text, base) ? new URL(text, base) : null;
  if (url === null || (url.protocol !== 'http:' && url.protocol !== 'https:')) return null;
  return url.href.length > MAX_URL_CHARS ? null : url.href;
}

/**
 * Yes or no, from the words that shops use. Ignores case, surrounding white space, and what joins words (`in_stock`,
 * `InStock`); of a name of schema.org, such as `https://schema.org/InStock` or `schema:InStock`, the last part counts.
 * Anything else (also `PreOrder`: neither) is no value.
 */
const YES = 'true, yes, y, on, 1, available, instock, instoreonly, onlineonly, limitedavailability';
const NO = 'false, no, n, off, 0, unavailable, notavailable, outofstock, soldout, discontinued';

const MEANING = new Map([
  ...YES.split(', ').map((word) => [word, true] as const),
  ...NO.split(', ').map((word) => [word, false] as const),
]);
const MAX_CHARS = 200;
const SCHEMA_ORG = /^(?:schema:|(?:(?:https?:)?\/\/)?(?:www\.)?schema\.org[/#])(.*?)\/?$/;
const JOINT = /(?<=\p{L})[\s_-]+(?=\p{L})/gu;

export function toBoolean(value: string | number | boolean): boolean | null {
  if (typeof value === 'boolean') return value;
  const text = String(value).slice(0, MAX_CHARS).trim().toLowerCase();
  return MEANING.get(text.replace(SCHEMA_ORG, '$1').replace(JOINT, '')) ?? null;
}
