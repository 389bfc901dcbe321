/**
 * What each processor makes of values. A value that it can make nothing of gives none. Results are bounded: no step makes
 * a text longer than the place it was given allows, or more than MAX_VALUES values.
 *
 * trim: runs of white space (line ends, no-break and ideographic spaces too) become one space; none stays at the ends.
 * number, boolean, date, url: see number.ts, boolean.ts, date-format.ts and below.
 * integer: the number, if it is a whole one that fits 53 bits.
 */
import type { Processor, Scalar } from '../../shared/domain/mapping.ts';
import { toBoolean } from './boolean.ts';
import { toNumber } from './number.ts';
import type { PageBudget } from './page-limits.ts';
import { MAX_VALUES } from './values.ts';

/** What a processor may ask of the page. */
export interface ProcessPlace {
  /** Links are relative to this: the page's URL or its <base>. */
  base: string;
  budget: PageBudget;
}

/** The values after one step; dates are read elsewhere, by a library that few mappings need. `maxChars`: so long may a text become. */
export function processValues(
  step: Exclude<Processor, { type: 'date' }>,
  values: readonly Scalar[],
  place: ProcessPlace,
  maxChars: number,
): Scalar[] {
  switch (step.type) {
    case 'trim':
      return values.map((value) => (typeof value === 'string' ? trim(value) : value));
    case 'lower':
      return values.map((value) => String(value).toLowerCase());
    case 'upper':
      return values.map((value) => String(value).toUpperCase().slice(0, maxChars));
    case 'number':
      return mapValues(values, readNumber);
    case 'integer':
      return mapValues(values, (value) => {
        const number = readNumber(value);
        return number !== null && Number.isSafeInteger(number) ? number : null;
      });
    case 'boolean':
      return mapValues(values, toBoolean);
    case 'replace':
      return values.map((value) => replaceAll(String(value), step.find, step.with, maxChars));
    case 'split':
      return values.flatMap((value) => String(value).split(step.by, MAX_VALUES)).slice(0, MAX_VALUES);
    case 'join':
      return values.length === 0 ? [] : [joinAll(values, step.by, maxChars)];
    case 'first':
      return values.slice(0, 1);
    case 'all':
      return [...values];
    case 'default':
      return values.length > 0 ? [...values] : [step.value];
    case 'url':
      return mapValues(values, (value) => toUrl(String(value), place.base));
  }
}

/** The results of `read` that are values. */
export function mapValues(values: readonly Scalar[], read: (value: Scalar) => Scalar | null): Scalar[] {
  const results: Scalar[] = [];
  for (const value of values) {
    const result = read(value);
    if (result !== null) results.push(result);
  }
  return results;
}

export function trim(text: string): string {
  return text.replace(/\s+/g, ' ').trim();
}

function readNumber(value: Scalar): number | null {
  return typeof value === 'boolean' ? null : toNumber(value);
}

/** Stops at the limit: a short text to find and a long one to put in its place would make gigabytes of a page. */
function replaceAll(text: string, find: string, by: string, maxChars: number): string {
  let result = '';
  let from = 0;
  while (result.length < maxChars) {
    const at = text.indexOf(find, from);
    if (at === -1) break;
    result += text.slice(from, at) + by;
    from = at + find.length;
  }
  return (result + text.slice(from)).slice(0, maxChars);
}

function joinAll(values: readonly Scalar[], by: string, maxChars: number): string {
  let result = '';
  for (const [i, value] of values.entries()) {
    if (result.length >= maxChars) break;
    result += (i === 0 ? '' : by) + String(value);
  }
  return result.slice(0, maxChars);
}

const MAX_URL_CHARS = 2_048;

/** The absolute form of a web address; null for what is none (`mailto:`, `javascript:`, `#` of nowhere, garbage). */
export function toUrl(link: string, base: string): string | null {
  const text = link.trim();
  if (text === '' || text.length > MAX_URL_CHARS) return null;
  const url = URL.canParse(text, base) ? new URL(text, base) : null;
  if (url === null || (url.protocol !== 'http:' && url.protocol !== 'https:')) return null;
  return url.href.length > MAX_URL_CHARS ? null : url.href;
}
