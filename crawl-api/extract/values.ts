/** Limits on crawled values, and fitting them to their columns. */
import type { ChainValue, FieldType, FieldValue, Row } from '../../shared/domain/mapping.ts';
import { isAmbiguous } from '../../shared/domain/ambiguous-number.ts';

/** Maximum UTF-8 bytes of a value: what MySQL's TEXT holds. */
export const MAX_VALUE_BYTES = 65_535;
/** Maximum values per chain. */
export const MAX_VALUES = 1_000;
/** Maximum characters collected for a value. More than a value may have, because white space is trimmed later. */
export const MAX_TEXT_CHARS = MAX_VALUE_BYTES * 4;
/** Maximum characters of a value from which a later step still selects, such as a script with the page's data. */
export const MAX_JSON_CHARS = 2_000_000;

/** Text that a database accepts: no NUL, no lone surrogates, at most MAX_VALUE_BYTES. */
function cleanText(text: string): string {
  const whole = text.includes('\0') ? text.replaceAll('\0', '\uFFFD') : text;
  return cutToBytes(whole.toWellFormed(), MAX_VALUE_BYTES);
}

/** The longest prefix of the text that fits the bytes without cutting a character in two. */
function cutToBytes(text: string, maxBytes: number): string {
  // A UTF-16 unit is at most three bytes, so most texts need no byte count.
  if (text.length * 3 <= maxBytes || Buffer.byteLength(text) <= maxBytes) return text;
  return text.slice(0, new TextEncoder().encodeInto(text, new Uint8Array(maxBytes)).read);
}

/** The result of a chain in the form of its column: the first value, or with `json` the list; null without any. */
export function fitValues(values: readonly ChainValue[], type: FieldType): FieldValue {
  if (type === 'json') return fitList(values);
  const [first] = values;
  return first === undefined ? null : fitValue(first, type);
}

function fitValue(value: ChainValue, type: Exclude<FieldType, 'json'>): ChainValue | null {
  if (isAmbiguous(value)) return type === 'number' || type === 'integer' ? value : null;
  switch (type) {
    case 'number':
      return typeof value === 'number' && Number.isFinite(value) ? value : null;
    case 'integer':
      return Number.isSafeInteger(value) ? value : null;
    case 'boolean':
      return typeof value === 'boolean' ? value : null;
    case 'text':
    case 'currency':
    case 'date':
    case 'datetime': {
      const text = cleanText(String(value));
      return text === '' ? null : text;
    }
  }
}

/** The whole list is one column, so the limit of one value applies to all together. */
function fitList(values: readonly ChainValue[]): ChainValue[] | null {
  const list: ChainValue[] = [];
  let bytes = 2;
  for (const value of values) {
    const fitting = typeof value === 'string' ? cleanText(value) : value;
    bytes += Buffer.byteLength(JSON.stringify(fitting)) + 1;
    if (bytes > MAX_VALUE_BYTES) break;
    if (fitting !== '') list.push(fitting);
  }
  return list.length > 0 ? list : null;
}

/** Quotes, colon, comma; or a number. */
const FIXED_BYTES = 16;

/** Approximate bytes of the row's JSON, in one pass without building it; escapes are not counted. */
export function rowBytes(row: Row): number {
  let bytes = FIXED_BYTES;
  for (const [name, value] of Object.entries(row)) bytes += name.length + valueBytes(value);
  return bytes;
}

function valueBytes(value: FieldValue): number {
  if (typeof value === 'string') return FIXED_BYTES + Buffer.byteLength(value);
  if (isAmbiguous(value)) return 4 * FIXED_BYTES + Buffer.byteLength(value.text);
  if (!Array.isArray(value)) return FIXED_BYTES;
  let bytes = FIXED_BYTES;
  for (const one of value) bytes += valueBytes(one);
  return bytes;
}
